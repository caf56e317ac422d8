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
from tests.web.conftest import Server
from tests.web.page_check import PageCheck, accessibility_problems
from tests.web.play.board_page import click_move
from tests.web.windows import PHONE, OpenPage, Windows, open_pages

if TYPE_CHECKING:
    from playwright.sync_api import Page

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
def open_page(windows: Windows, server: Server) -> Iterator[OpenPage]:
    with open_pages(windows, server, ".k-card:visible") as open_page:
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


def test_curves_are_smoothed_scaled_zoomed_and_saved(open_page: OpenPage, root: Path) -> None:
    page = open_page("?runs=first&show=metric/losses/value")
    chart = page.locator(".d-compare .d-chart")
    chart.locator("svg path").first.wait_for(state="attached")
    before = chart.inner_html()
    slider = page.get_by_role("slider", name="Smoothing")
    slider.locator("[tabindex]").focus()
    while slider.get_attribute("aria-valuenow") != "100":
        page.keyboard.press("PageUp")
        page.wait_for_timeout(100)  # as a person does
    page.wait_for_url("**smooth=100*")
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
    assert lines[0] == "series,timestep,value,low,high,games"
    written = [json.loads(line) for line in (root / "first" / METRICS).read_text().splitlines()]
    steps = [found for found in written if "losses/value" in found.get("metrics", {})]
    assert len(steps) == 40, "a line for each update"
    for line, found in zip(lines[1:], steps, strict=True):
        name, timestep, value = line.split(",")[:3]
        assert (name, float(timestep)) == ("first", found["timestep"])
        assert float(value) == found["metrics"]["losses/value"], "not its moving average"
    assert saved["PNG"].startswith(b"\x89PNG")
    picture = saved["SVG"].decode()
    assert picture.startswith("<svg")
    assert "var(" not in picture, "its colours are written out"


CHARTS = """all => all.filter(chart => chart.checkVisibility()).map(chart => {
    const card = chart.closest(".k-card");
    return [card.querySelector(".d-card-title").innerText,
            [...card.querySelectorAll("[aria-label^='Download: ']")].map(one => one.ariaLabel)];
})"""
"""Of each chart that is shown its title, and the names of its buttons to save it."""


@pytest.mark.parametrize(("path", "saved"), [("run/second", "How games end"), ("ladder", "Ladder")])
def test_every_plot_can_be_saved(open_page: OpenPage, path: str, saved: str) -> None:
    page = open_page(path)
    page.wait_for_selector(".d-chart svg path", state="attached")
    found = page.eval_on_selector_all(".d-chart", CHARTS)
    assert found == [[title, [f"Download: {title}"]] for title, _ in found]
    titles = [title for title, _ in found]
    assert saved in titles
    assert len(set(titles)) == len(titles)
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"series,")):
        page.get_by_role("button", name=f"Download: {saved}", exact=True).click()
        with page.expect_download() as download:
            page.locator(".q-menu .q-item").get_by_text(kind, exact=True).click()
        assert download.value.path().read_bytes().startswith(start), kind
        page.wait_for_selector(".q-menu", state="detached")


def test_use_of_the_machine_is_drawn_over_time(open_page: OpenPage) -> None:
    page = open_page("run/second")
    chart = page.locator(".k-card", has_text="Share in use").locator(".d-chart")
    chart.locator("svg path").first.wait_for(state="attached")
    series = chart.evaluate(
        "one => getElement(+one.id.slice(1)).chart.getOption().series"
        ".map(line => [line.name, line.data.length])"
    )
    assert series == [["CPU", 20], ["Memory of the machine", 20], ["GPU", 20]], (
        "a point for each update"
    )


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
    defender = "Black" if " w " in problem.sfen else "White"
    page.get_by_text("Every move gives check").wait_for()
    page.get_by_role("button", name="Hint").click()
    page.get_by_text("Drop a piece").wait_for()
    page.get_by_role("button", name="Hint").click()
    page.get_by_text(f"The move is {first}.").wait_for()
    for ply, move in enumerate(problem.solution[::2]):
        click_move(page, move.usi)
        is_last = 2 * ply + 1 == problem.plies
        status.get_by_text("Mate!" if is_last else "Right.").wait_for()
        if not is_last:  # screen readers hear the defender's answer
            page.wait_for_selector(f"[aria-live=assertive]:text-matches('^{defender}: ')")
    page.get_by_text("1 solved").wait_for()
    page.get_by_role("button", name="Next problem").click()
    page.wait_for_url(f"**problem={number + 1}")
    page.get_by_role("button", name="Solution").click()
    page.get_by_text("Solution: ").wait_for()
    # The solution is walked through by the arrows.
    shown = page.locator(".kb-to")
    for key, moves_shown in (("ArrowLeft", 1), ("Home", 0), ("ArrowRight", 1), ("ArrowRight", 1)):
        page.keyboard.press(key)
        page.wait_for_function(
            "number => document.querySelectorAll('.kb-to').length === number", arg=moves_shown
        )
    assert shown.count() == 1
    assert page.locator(".kb-own").count() == 0, "there is nothing to solve any more"
    page.wait_for_selector(f"[aria-live=assertive]:text-matches('^{defender}: ')")
    page.get_by_role("button", name="Start again").click()
    page.wait_for_selector(".kb-own")
    page.goto(page.url.partition("?")[0] + "?problem=nonsense")
    page.get_by_text("Problem 1 of").wait_for()


def test_a_mate_by_a_promotion(open_page: OpenPage) -> None:
    number, problem = next(
        (number, problem)
        for number, problem in enumerate(read_problems(), start=1)
        if problem.solution[0].promote
    )
    page = open_page(f"tsume?problem={number}")
    for choice, answer in (("keep", "Every move|escapes"), ("promote", "Right. Go on.")):
        click_move(page, problem.solution[0].usi)
        page.locator(f'[data-choice="{choice}"]').click()
        page.wait_for_selector(f"[role=status]:text-matches('{answer}')")
        page.wait_for_selector(".kb-own")


def test_pages_that_do_not_exist_say_so(server: Server) -> None:
    status, text = server.request("/run/nothere")
    assert status == 404
    assert "There is no such run" in text
    status, text = server.request("/no/such/page", Accept_Language="ja")
    assert status == 404
    assert "このアドレスにページはありません。" in text
    assert '<html lang="ja"' in text
    assert server.request("/_nicegui/nothing")[0] == 404


def test_nothing_is_wrong_with_a_refusal(windows: Windows, tmp_path: Path) -> None:
    with Server("dashboard", str(tmp_path), "--token", "the-secret-token") as server:
        for language in ("en-US", "ja-JP"):
            with windows.open(language=language) as page:
                page.goto(server.address.partition("?")[0])
                page.locator("h1").wait_for()
                check = PageCheck(page)
                check.look("refused")
                assert check.problems == {}, language
                assert page.evaluate("document.documentElement.lang") == language[:2]


@pytest.mark.parametrize("dark", [False, True])
def test_messages_can_be_read(open_page: OpenPage, root: Path, dark: bool) -> None:
    live = new_run(root, "live", line(time.time(), "start", 0))
    heartbeat = RunHeartbeat.now(PhaseProgress("playing", 0, 1), is_stopping=False)
    write_atomically(live / HEARTBEAT, heartbeat.to_json())
    try:
        page = open_page("run/live", dark=dark)
        problems = {}
        for button, text in (("Save", "Saved."), ("Pause", "live pauses")):
            page.get_by_role("button", name=button, exact=True).click()
            page.locator(".q-notification.bg-positive", has_text=text).wait_for()
            problems[button] = accessibility_problems(page, within=".q-notification")
        assert not any(problems.values()), problems
    finally:
        shutil.rmtree(live)


RUN_NAMES = {
    "alphabeta", "bad", "cpu", "first", "greedy", "img", "link", "live", "network", "onerror",
    "random", "resnet", "second", "seed", "src", "strong", "true", "false", "null", "window",
}  # fmt: skip
"""Words of the runs, their players and settings."""


@pytest.mark.parametrize(("language", "dark"), [("en-US", False), ("ja-JP", True)])
def test_nothing_is_wrong_with_the_pages_and_their_menus(
    open_page: OpenPage, root: Path, language: str, dark: bool
) -> None:
    size = PHONE if dark else (1280, 800)
    page = open_page("?runs=first/second", size, dark=dark, touch=dark, language=language)
    address = page.url.partition("?")[0]
    check = PageCheck(page, RUN_NAMES)
    for path in ("?runs=first/second&show=rating&show=metric/losses/entropy",
                 "games?runs=first/second", "ladder", "run/second"):  # fmt: skip
        page.goto(address + path)
        page.wait_for_selector(".d-chart svg path, .d-board svg", state="attached")
        page.wait_for_selector(".d-table tbody tr")
        check.look(path)
    # The page of a run: its menus, a game, the settings.
    check.look_at_menu("downloads", page.locator(".d-tool:visible").last)
    card = page.locator(".k-card:has(.d-viewer)")
    check.look_at_menu("games", card.locator(".q-select"))
    card.locator("input").click()
    page.locator(".q-menu .q-item").first.click()
    page.wait_for_selector(".d-viewer .shogi-piece", state="attached")
    check.look("a sample game")
    page.goto(address + "?runs=first/second")
    page.wait_for_selector(".d-table tbody tr")
    check.look_at_menu("what to compare", page.locator(".d-compare .q-select"))
    check.look_at_menu("languages", page.locator(".k-header button:has(i:text('language'))"))
    now = time.time()
    live = new_run(root, "live", line(now, "start", 0, facts={"parameters": 4321}))
    try:
        page.goto(address + "run/live")
        page.wait_for_selector(".d-state.d-running")
        write_atomically(
            live / LIVE,
            live_games(now, {"sfen": "4k4/9/9/9/9/9/9/9/4K4 b P 1", "last_move": "5i5h"}),
        )
        page.wait_for_selector(".d-board svg", state="attached")
        page.locator(".q-expansion-item").click()
        page.wait_for_selector(".d-pre:visible")
        check.look("a run that trains")
    finally:
        shutil.rmtree(live)
    page.wait_for_selector(".d-state.d-broken")
    check.look("a run that was removed")
    assert check.problems == {}


def test_nothing_is_wrong_with_pages_that_have_nothing_to_show(
    windows: Windows, tmp_path: Path
) -> None:
    ladder = tmp_path / "ladder.sqlite3"
    names = {"alphabeta", "greedy", "ladder", "random", "store", "train"}
    with Server("dashboard", str(tmp_path)) as server:
        for language in ("en-US", "ja-JP"):
            ladder.unlink(missing_ok=True)
            with windows.open(language=language) as page:
                check = PageCheck(page, names)
                for path in ("", "games", "ladder", "run/nothing"):
                    page.goto(server.address + path)
                    page.wait_for_selector(".d-none")
                    check.look(path)
                ladder.write_bytes(b"no database at all")
                page.goto(server.address + "ladder")
                page.wait_for_selector(".d-problem:visible")
                check.look("a broken ladder")
            assert check.problems == {}, language


def test_figures_of_a_report_stay_on_one_line(windows: Windows, root: Path) -> None:
    report = write_report(root / "first")
    with windows.open((390, 844)) as page:
        page.set_content(report.read_text("utf-8"))
        heights = page.evaluate(
            "[...document.querySelectorAll('.card dd')].map(dd => {"
            " const r = document.createRange();"
            " r.selectNode(dd.firstChild); return r.getClientRects().length; })"
        )
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
    broken = page.eval_on_selector_all(
        ".d-figures td",
        """all => all.filter(cell => {
            const text = document.createRange();
            text.selectNodeContents(cell);
            return text.getClientRects().length > 1;
        }).map(cell => cell.innerText)""",
    )
    assert broken == [], "a number and its unit stay on one line"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(value) for value in re.findall(r"\d+", background)[:3]]
    assert (sum(channels) < 200) == dark


def test_the_table_of_runs_fits_a_tablet(open_page: OpenPage) -> None:
    page = open_page(size=(820, 1180), language="ja-JP")
    page.get_by_label("学習を検索").fill("second")  # others have longer names than is usual
    wait_for_number(page, '[aria-label="学習一覧"] tbody tr', 1)
    widths = "table => [table.scrollWidth, table.clientWidth]"
    whole, shown = page.locator('[aria-label="学習一覧"] .q-table__middle').evaluate(widths)
    assert whole <= shown


@pytest.mark.parametrize("path", ["", "run/second", "games?runs=first/second", "ladder"])
def test_targets_are_large_enough_for_fingers(open_page: OpenPage, path: str) -> None:
    page = open_page(path, PHONE, touch=True)
    page.wait_for_selector(".d-chart svg path, .d-board svg", state="attached")
    small = page.eval_on_selector_all(
        "button, .k-header a, [role=checkbox], .q-slider",
        """all => all.filter(one => one.checkVisibility()).map(one => {
            const box = one.getBoundingClientRect();
            return [one.ariaLabel ?? one.innerText, Math.round(box.width), Math.round(box.height)];
        }).filter(([, width, height]) => width < 44 || height < 44)""",
    )
    assert small == []


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


def test_an_empty_folder_says_what_to_do_and_waits(windows: Windows, tmp_path: Path) -> None:
    with (
        Server("dashboard", str(tmp_path), "--token", "the-secret-token") as server,
        windows.open() as page,
    ):
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
