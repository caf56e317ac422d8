"""The dashboard in a real browser: runs that are training, and attempts to read other files."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keisei.callbacks import PhaseProgress
from keisei.evaluation.match import PlayedGame, write_games
from keisei.evaluation.results import Conditions, ResultStore
from keisei.play.mate_problems import read_problems
from keisei.play.move_text import move_texts
from keisei.run_files import (
    GAMES,
    HEARTBEAT,
    LIVE,
    METRICS,
    NOTES,
    PAUSE,
    RESET,
    STRENGTH,
)
from keisei.runs.heartbeat import RunHeartbeat
from keisei.runs.journal import rewind
from keisei.runs.report import write_report
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.types import Color
from keisei.system import write_atomically
from keisei.web.dashboard import site
from keisei.web.dashboard.components import Dashboard
from tests.evaluation.test_results import Nobody
from tests.runs.journals import append, entry, evaluation, fake_journal, new_run, step
from tests.training.fake_run import random_record
from tests.web.conftest import PHONE, OpenPage, Server, accessibility_problems, open_pages
from tests.web.play.board_page import click_move

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=window.hacked=1>"
SECRET = "a secret that no page shows"
OPTIONS = "getElement(+document.querySelector('.d-compare .d-chart').id.slice(1)).chart.getOption()"
"""The options of the plot that compares runs, as ECharts has them."""

LINES = '.d-compare svg path[stroke^="var(--d-"][stroke-width="2"]'
"""The curves of the plot that compares runs."""

not_on_windows = pytest.mark.skipif(
    sys.platform == "win32", reason="files have no such names there, and links need privileges"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, runs: Path) -> Path:
    """A folder with runs of all kinds, and secrets beside it."""
    top = tmp_path_factory.mktemp("top")
    root = top / "runs"
    first = fake_journal(root, "first", 40)
    write_games([random_record("greedy", "network", 2)], first / GAMES,
                prefix="update-000040", event="test")  # fmt: skip
    second = fake_journal(root, "second", 20)
    (second / "checkpoints").mkdir(exist_ok=True)
    write_games([random_record("network", "greedy", 1)], second / GAMES,
                prefix="update-000020", event="test")  # fmt: skip
    rating = {"name": "x", "identity": "x", "elo": 100.0, "low": 50.0, "high": 150.0, "games": 9}
    strength = {
        "scale": 1,
        "opponents": [rating],
        "checkpoints": [rating | {"timestep": 9}],
    }
    (second / STRENGTH).write_text(json.dumps(strength))
    shutil.copytree(runs / "tiny", root / "tiny")
    (top / "secret.txt").write_text(SECRET)
    outside = new_run(top, "outside", step(1, a=1.0), evaluation(1, 0.5, SECRET))
    (outside / "config.json").write_text(json.dumps({"model": {"type": SECRET}}))
    if sys.platform != "win32":
        new_run(root, EVIL, step(1, charts__SPS=1.0), evaluation(1, 0.5, EVIL))
        (root / "link").symlink_to(outside)
        bad = new_run(root, "bad")
        for name in (METRICS, "config.json"):
            (bad / name).unlink()
            (bad / name).symlink_to(outside / name)
    games = [PlayedGame(Color.BLACK, Color.BLACK, "checkmate", 90)] * 6
    games += [PlayedGame(Color.WHITE, Color.BLACK, "checkmate", 80)] * 2
    with ResultStore(root / "ladder.sqlite3", create=True) as store:
        store.add(Nobody("strong", "strong"), Nobody("random", "random"), games,
                  conditions=Conditions(), seed=0)  # fmt: skip
    return root


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Server]:
    server = Server("dashboard", str(root))
    yield server
    server.interrupt()


@pytest.fixture
def open_page(browser: "Browser", server: Server) -> Iterator[OpenPage]:
    with open_pages(browser, server, ".k-card:visible") as open_page:
        yield open_page


def number(page: "Page", selector: str) -> int:
    return page.locator(selector).count()


def wait_for_number(page: "Page", selector: str, wanted: int) -> None:
    page.wait_for_function(
        "([selector, wanted]) => document.querySelectorAll(selector).length === wanted",
        arg=[selector, wanted],
    )


def test_runs_are_listed_and_compared(open_page: OpenPage) -> None:
    page = open_page("?runs=first/second")
    wait_for_number(page, LINES, 2)
    rows = page.locator(".d-table tbody tr")
    first = rows.filter(has=page.locator("a", has_text=re.compile("^first$")))
    assert "finished" in first.inner_text()
    assert "Elo" in page.locator(".d-table thead").first.inner_text()
    first.locator(".q-checkbox").click()
    wait_for_number(page, LINES, 1)
    page.wait_for_url("**runs=second&**")  # the choice is part of the address
    page.get_by_text("minutes", exact=True).click()
    page.wait_for_url("**x=seconds")
    page.reload()
    wait_for_number(page, LINES, 1)


def test_metrics_are_compared_side_by_side_and_seeds_together(
    open_page: OpenPage, root: Path
) -> None:
    for seed in (1, 2):
        run = root / f"pair-{seed}"
        shutil.copytree(root / "first", run)
        config = json.loads((run / "config.json").read_bytes())
        config["run"]["seed"] = seed
        (run / "config.json").write_text(json.dumps(config))
    try:
        shown = "&show=metric/losses/entropy&show=rating&show=no-such-thing"
        page = open_page()
        page.wait_for_selector('a[href="/run/pair-2"]')  # the server has found them
        page.goto(f"{page.url.partition('?')[0]}?runs=pair-1/pair-2{shown}&x=update")
        wait_for_number(page, ".d-compare .d-chart", 2)
        wait_for_number(page, LINES, 4)
        differing = page.locator(".k-card", has_text="Settings that differ").locator("tbody tr")
        assert differing.all_inner_texts() == ["run.seed\t1\t2"]
        page.get_by_role("checkbox", name="Group seeds").click()
        page.wait_for_url("**group=1&**")
        page.get_by_text("pair (2 seeds)").first.wait_for()
        wait_for_number(page, LINES, 2)
        page.reload()
        wait_for_number(page, LINES, 2)
    finally:
        for seed in (1, 2):
            shutil.rmtree(root / f"pair-{seed}")


def test_settings_in_which_runs_differ_are_listed(open_page: OpenPage) -> None:
    page = open_page("?runs=first/tiny")
    card = page.locator(".k-card", has_text="Settings that differ")
    card.get_by_text("run.total_timesteps").wait_for()
    assert card.locator("th").all_inner_texts() == ["Setting", "first", "tiny"]


def test_curves_are_smoothed_scaled_zoomed_and_saved(open_page: OpenPage) -> None:
    page = open_page("?runs=first&show=metric/losses/value")
    chart = page.locator(".d-compare .d-chart")
    chart.locator("svg path").first.wait_for(state="attached")
    before = chart.inner_html()
    slider = page.get_by_role("slider", name="Smoothing")
    slider.locator("[tabindex]").focus()
    for _ in range(3):
        page.keyboard.press("PageUp")
    page.wait_for_url("**smooth=*")
    page.wait_for_function(
        "old => document.querySelector('.d-compare .d-chart').innerHTML !== old", arg=before
    )
    page.get_by_role("checkbox", name="Log scale").click()
    page.wait_for_url("**log=1**")
    page.wait_for_function(f"{OPTIONS}.yAxis[0].type === 'log'")
    page.get_by_role("button", name="Zoom in: Value loss").click()
    page.wait_for_function(f"{OPTIONS}.dataZoom[0].end === 75")
    page.get_by_role("button", name="Zoom out: Value loss").click()
    page.wait_for_function(f"{OPTIONS}.dataZoom[0].end === 100")
    page.get_by_role("button", name="Zoom in: Value loss").click()
    page.get_by_role("button", name="Reset zoom: Value loss").click()
    page.wait_for_function(f"{OPTIONS}.dataZoom[0].end === 100")
    saved = {}
    for kind in ("CSV", "PNG", "SVG"):
        page.get_by_role("button", name="Download: Value loss").click()
        with page.expect_download() as download:
            page.locator(".q-menu .q-item").get_by_text(kind, exact=True).click()
        assert download.value.suggested_filename == f"Value-loss.{kind.lower()}"
        saved[kind] = download.value.path().read_bytes()
    lines = saved["CSV"].decode().splitlines()
    assert lines[0] == "series,x,value,low,high,games"
    assert len(lines) == 41, "a line for each update"
    assert lines[1].startswith("first,16384,0.")
    assert saved["PNG"].startswith(b"\x89PNG")
    picture = saved["SVG"].decode()
    assert picture.startswith("<svg")
    assert "var(" not in picture, "its colours are written out"


def test_any_metric_can_be_compared(open_page: OpenPage) -> None:
    page = open_page("?runs=first/second&show=metric/losses/entropy&x=update")
    wait_for_number(page, LINES, 2)
    page.goto(page.url.replace("metric/losses/entropy", "elo"))
    wait_for_number(page, '.d-compare svg path[stroke^="var(--d-"][stroke-width="1.2"]', 1)


def test_a_run_is_followed_while_it_trains(open_page: OpenPage, root: Path) -> None:
    now = time.time()
    lines = [line(now, "start", 0, facts={"parameters": 4321})]
    run = new_run(root, "live", *lines)
    try:
        page = open_page("run/live")
        page.wait_for_selector(".d-state.d-running")
        assert "No evaluation yet" in page.inner_text("body")
        heartbeat = RunHeartbeat.now(PhaseProgress("playing", 0, 1), is_stopping=False)
        write_atomically(run / HEARTBEAT, heartbeat.to_json())
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("live pauses until it is resumed").wait_for()
        assert (run / PAUSE).exists()
        page.get_by_role("button", name="Resume").click()
        page.get_by_text("live continues").wait_for()
        assert not (run / PAUSE).exists()
        page.get_by_role("button", name="New games").click()
        page.get_by_text("live abandons its games").wait_for()
        assert (run / RESET).exists()
        metrics = {"charts/SPS": 777.0, "losses/entropy": 3.25, "losses/approx_kl": 0.01,
                   "games/black_wins": 0.5, "games/white_wins": 0.5, "games/mean_plies": 90.0,
                   "time/env": 1.0, "time/learning": 2.0, "workers/0/SPS": 123.0}  # fmt: skip
        append(run, *(line(now, "step", update, metrics=metrics) for update in (1, 2)))
        page.wait_for_function("document.querySelector('.d-tiles').innerText.includes('777')")
        assert "123" in page.locator(".k-card", has_text="Workers").inner_text()
        for update, score in ((2, 0.25), (3, 0.75)):
            scores = {f"eval/bot/{key}": score for key in ("score", "low", "high")}
            append(run, line(now, "evaluation", update, metrics=scores))
        page.get_by_text("vs bot").first.wait_for()
        page.wait_for_function("document.querySelector('.d-tiles').innerText.includes('75 %')")
        sfen = "lnsgkgsnl/1r5b1/ppppppppp/9/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL w - 2"
        game = {"sfen": sfen, "last_move": "7g7f"}
        write_atomically(run / LIVE, live_games(now, game))
        page.wait_for_selector('.d-board .shogi-last-to[data-square="7f"]', state="attached")
        write_atomically(run / LIVE, live_games(now, game, game, game))
        wait_for_number(page, ".d-board svg", 3)
        rewind(run / METRICS, 1)  # the run is resumed at an earlier checkpoint
        page.wait_for_function("!document.querySelector('.d-tiles').innerText.includes('75 %')")
        progress = PhaseProgress("evaluating", 120, 400)
        write_atomically(run / HEARTBEAT, RunHeartbeat(now, progress).to_json())
        page.get_by_text("evaluating, 120 of up to 400 games").wait_for()
        append(run, line(now, "end", 1, reason="finished"))
        page.wait_for_selector(".d-state.d-finished")
    finally:
        shutil.rmtree(run)
    page.get_by_text("This run has been moved or removed").wait_for()
    assert page.locator(".d-state").inner_text() == "removed"


def test_notes_and_tags_are_kept_with_the_run(open_page: OpenPage, root: Path) -> None:
    file = root / "second" / NOTES
    page = open_page("run/second")
    page.get_by_label("Notes", exact=True).fill(f"good {EVIL}")
    page.get_by_label("Tags", exact=True).fill("paper, seed-2")
    page.get_by_role("checkbox", name="In the archive").click()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.", exact=True).wait_for()
    try:
        notes = json.loads(file.read_text("utf-8"))
        assert notes == {"text": f"good {EVIL}", "tags": ["paper", "seed-2"], "is_archived": True}
        page.goto(page.url.partition("/run/")[0])
        page.get_by_text("1 in the archive").wait_for()
        assert number(page, 'a[href="/run/second"]') == 0
        page.get_by_role("checkbox", name="Show archive").click()
        page.wait_for_selector('a[href="/run/second"]')
        page.get_by_label("Search runs").fill("PAPER")
        wait_for_number(page, '[aria-label="Runs"] tbody tr', 1)
        assert page.locator(".d-tag").all_inner_texts() == ["paper", "seed-2"]
        assert page.evaluate("window.hacked") is None
    finally:
        file.unlink(missing_ok=True)


def test_the_games_of_two_runs_are_stepped_together(open_page: OpenPage) -> None:
    page = open_page("games?runs=first/second")
    captions = page.locator(".d-viewer .d-hint")
    page.wait_for_function(
        "[...document.querySelectorAll('.d-viewer .d-hint')].filter(c => c.innerText).length === 2"
    )
    captions_say = (
        "text => [...document.querySelectorAll('.d-viewer .d-hint')]"
        ".every(caption => caption.innerText.includes(text))"
    )
    page.get_by_role("button", name="First position").first.click()
    page.wait_for_function(captions_say, arg="move 0 of")
    for _ in range(2):
        page.get_by_role("button", name="Next move").first.click()
    page.wait_for_function(captions_say, arg="move 2 of")
    assert "greedy (Black) - network (White)" in captions.first.inner_text()
    table = page.locator(".d-table").first
    table.get_by_text("mean length in plies").wait_for()
    assert table.locator("th").all_inner_texts() == ["Figure", "first", "second"]


def test_a_mate_problem_is_solved_on_the_board(open_page: OpenPage) -> None:
    # Only drops: no choice of promotions on the way.
    number, problem = next(
        (number, problem)
        for number, problem in enumerate(read_problems(), start=1)
        if all("*" in move.usi for move in problem.solution[::2])
    )
    (first,) = move_texts(parse_sfen(problem.sfen), problem.solution[:1], "kanji")
    page = open_page(f"tsume?problem={number}")
    status = page.locator('[role="status"]')
    page.get_by_text("Every move gives check").wait_for()
    page.get_by_role("button", name="Hint").click()
    page.get_by_text("Drop a piece").wait_for()
    page.get_by_role("button", name="Hint").click()
    page.get_by_text(f"The move is {first}.").wait_for()
    for ply, move in enumerate(problem.solution[::2]):
        click_move(page, move.usi)
        is_last = 2 * ply + 1 == problem.plies
        status.get_by_text("Mate!" if is_last else "Right.").wait_for()
    page.get_by_text("1 solved").wait_for()
    page.get_by_role("button", name="Next problem").click()
    page.wait_for_url(f"**problem={number + 1}")
    page.get_by_role("button", name="Solution").click()
    page.get_by_text("Solution: ").wait_for()
    page.goto(page.url.partition("?")[0] + "?problem=nonsense")
    page.get_by_text("Problem 1 of").wait_for()
    assert accessibility_problems(page) == []


def test_pages_that_do_not_exist_say_so(server: Server) -> None:
    status, text = server.request("/run/nothere")
    assert status == 404
    assert "There is no such run" in text
    status, text = server.request("/no/such/page", Accept_Language="ja")
    assert status == 404
    assert "このアドレスにページはありません。" in text
    assert '<html lang="ja"' in text
    assert server.request("/_nicegui/nothing")[0] == 404


@pytest.mark.parametrize(("language", "dark"), [("en-US", False), ("ja-JP", True)])
def test_axe_finds_nothing(open_page: OpenPage, language: str, dark: bool) -> None:
    page = open_page("?runs=first/second", PHONE if dark else (1280, 800), dark=dark,
                     language=language)  # fmt: skip
    address = page.url.partition("?")[0]
    for path in ("?runs=first/second&show=rating&show=metric/losses/entropy", "run/second",
                 "games?runs=first/second", "ladder"):  # fmt: skip
        page.goto(address + path)
        page.wait_for_selector(".d-chart svg path, .d-board svg", state="attached")
        page.wait_for_selector(".d-table tbody tr")
        assert accessibility_problems(page) == [], path
    if not dark:
        page.goto(address + "?runs=first")
        page.locator(".d-tool").last.click()
        page.wait_for_selector(".q-menu .q-item")
        assert accessibility_problems(page, popup=True) == []


def test_figures_of_a_report_stay_on_one_line(browser: "Browser", root: Path) -> None:
    report = write_report(root / "first")
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content(report.read_text("utf-8"))
    heights = page.evaluate(
        "[...document.querySelectorAll('.card dd')].map(dd => { const r = document.createRange();"
        " r.selectNode(dd.firstChild); return r.getClientRects().length; })"
    )
    page.close()
    assert heights
    assert set(heights) == {1}


def live_games(now: float, *games: dict[str, str]) -> bytes:
    return json.dumps({"time": now, "update": 3, "games": games}).encode()


def line(now: float, event: str, update: int, **fields: object) -> bytes:
    found = json.loads(entry(event, update, **fields).to_line())
    return json.dumps(found | {"time": now}).encode() + b"\n"


def test_a_checkpoint_is_played_with_a_click(open_page: OpenPage) -> None:
    page = open_page("run/tiny")
    page.get_by_role("button", name="Play").last.click()
    page.wait_for_url("**/play?**")
    page.wait_for_selector(".kb-piece")
    assert "tiny" in page.inner_text("body")


def test_a_sample_game_is_played_through(open_page: OpenPage) -> None:
    page = open_page("run/second")
    page.locator(".k-card", has_text="Sample games").locator("input").click()
    page.get_by_role("option", name="update 20").first.click()
    page.wait_for_selector(".d-viewer .shogi-piece", state="attached")
    last = page.locator(".d-viewer .d-hint").inner_text()
    assert "network (Black) - greedy (White)" in last
    page.get_by_label("Previous move").click()
    page.wait_for_function(
        "text => document.querySelector('.d-viewer .d-hint').innerText !== text", arg=last
    )


def test_the_ladder_has_its_players(open_page: OpenPage) -> None:
    page = open_page("ladder")
    page.wait_for_selector(".d-table tbody tr:nth-child(2)")
    text = page.locator(".d-table tbody").inner_text()
    assert text.index("strong") < text.index("random")


@pytest.mark.parametrize("path", ["", "run/second", "ladder"])
@pytest.mark.parametrize("dark", [False, True])
def test_pages_fit_a_phone(open_page: OpenPage, path: str, dark: bool) -> None:
    page = open_page(path, PHONE, dark=dark)
    page.wait_for_selector(".d-chart svg path", state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(value) for value in re.findall(r"\d+", background)[:3]]
    assert (sum(channels) < 200) == dark


@not_on_windows
def test_names_are_text(open_page: OpenPage, root: Path) -> None:
    """A run and an opponent whose names are markup."""
    page = open_page()
    page.locator(".d-table a", has_text=EVIL).click()
    page.wait_for_url("**/run/**")
    page.get_by_text(f"vs {EVIL}").first.wait_for()
    chart = page.locator(".k-card", has_text="Points per game").locator(".d-chart")
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
    page.wait_for_selector(".d-dot", state="attached")
    assert page.evaluate("window.hacked") is None
    assert number(page, 'img[src="x"]') == 0


TRICKS = [
    "/run/..", "/run/../..", "/run/..%2f..", "/run/..%2foutside", "/run/%2e%2e%2foutside",
    "/run/..%5coutside", "/run/first%2f..%2f..%2foutside", "/run/%2fetc", "/run/outside",
    "/run/link", "/run/bad", "/run/first%00", "/run/", "/secret.txt", "/../secret.txt",
    "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/run/link/config.json", "/run/..;/outside",
    "/play?against=run:../outside", "/play?against=named:../outside", "/play?against=/etc/passwd",
    "/?runs=../outside", "/?runs=link&show=score/x", "/_nicegui/../../secret.txt",
    "/_nicegui/3.18.0/static/..%2f..%2f..%2fsecret.txt", "//secret.txt", "/static/../secret.txt",
]  # fmt: skip


@pytest.mark.parametrize("path", TRICKS)
def test_no_trick_reads_a_file_outside_the_folder(server: Server, path: str) -> None:
    status, text = server.request(path)
    assert status in (200, 404), status
    assert SECRET not in text
    assert "root:" not in text


@not_on_windows
def test_links_are_named_but_not_followed(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_text("Symbolic links are not followed: link").wait_for()
    assert number(page, 'a[href="/run/link"]') == 0
    page.goto(page.url.partition("?")[0] + "run/bad")
    page.wait_for_selector(".d-state.d-broken")
    assert SECRET not in page.inner_text("body")


def test_an_empty_folder_says_what_to_do_and_waits(browser: "Browser", tmp_path: Path) -> None:
    server = Server("dashboard", str(tmp_path), "--token", "the-secret-token")
    page = browser.new_page()
    try:
        assert server.request("/")[0] == 401, "a token is required"
        page.goto(server.address)
        page.get_by_text("keisei train", exact=True).wait_for()
        page.goto(server.address.partition("?")[0] + "ladder")
        page.get_by_text("There are no results").wait_for()
        page.goto(server.address.partition("?")[0] + "run/nothing")
        page.get_by_text("There is no such run").wait_for()
        page.goto(server.address.partition("?")[0])
        page.get_by_text("keisei train", exact=True).wait_for()
        new_run(tmp_path, "one", step(1, a=1.0))
        page.wait_for_selector('a[href="/run/one"]')
    finally:
        page.close()
        server.interrupt()


@pytest.mark.parametrize("arguments", [["nowhere"], ["{root}/first"], [".", "--token", "short"]])
def test_mistakes_are_explained_without_a_traceback(root: Path, arguments: list[str]) -> None:
    words = [word.format(root=root) for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "keisei", "dashboard", "--port=0", "--no-browser", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("host", "control", "allowed"),
    [
        ("127.0.0.1", None, True),
        ("localhost", False, False),
        ("0.0.0.0", None, False),
        ("0.0.0.0", True, True),
    ],
)
def test_runs_are_controlled_from_this_machine_only_unless_it_is_permitted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    control: bool | None,
    allowed: bool,
) -> None:
    found: list[Dashboard] = []
    monkeypatch.setattr(site, "serve", lambda build_pages, **_: build_pages())
    monkeypatch.setattr(site, "build_pages", found.append)
    site.serve_dashboard(tmp_path, host=host, control=control)
    assert found[0].allows_control is allowed
