"""The board in a real browser: clicks, drags, keys, files, on a desktop and on a phone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from keisei.constants import MOVE_BUFFER
from keisei.play.session import GameSession
from keisei.play.transfer import read_session, write_session
from keisei.search.mates import MateSearch
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import Ending
from keisei.shogi.position import new_positions
from tests.web.conftest import Engine, Server
from tests.web.play.board_page import (
    begin,
    choose_tool,
    click_move,
    drag_move,
    middle,
    moves,
    origin,
    position,
    wait_for_moves,
    wait_for_status,
)
from tests.web.windows import PHONE, OpenPage, Windows, open_pages

if TYPE_CHECKING:
    from playwright.sync_api import Page

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow


@pytest.fixture
def open_page(windows: Windows, server: Server) -> Iterator[OpenPage]:
    with open_pages(windows, server, ".kb-piece") as open_page:
        yield open_page


def mating_move(game: ShogiGame) -> str:
    """Return the first move of a mate in at most 5 plies."""
    positions = new_positions(1)
    positions[0] = game.position
    legal, number = game.legal_actions, len(game.legal_actions)
    padded = legal.copy()
    padded.resize(MOVE_BUFFER, refcheck=False)
    (legal_index,) = MateSearch(5).find(positions, padded[None], np.array([number], dtype=np.int32))
    assert legal_index >= 0, game
    return PolicyOutputMapper().move(int(legal[legal_index]), game.turn).usi


# ---- playing ----


def test_a_whole_game_by_clicking(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, sfen="4k4/9/9/9/9/9/9/9/4K4 b 2R2G 1")
    played = 0
    for _ in range(6):
        wait_for_status(page, "Your move")
        game = position(page, "b")
        move = mating_move(game)
        click_move(page, move)
        if move[1] != "*" and game.is_legal(move[:4]) and game.is_legal(f"{move[:4]}+"):
            choice = "promote" if move.endswith("+") else "keep"
            page.locator(f'[data-choice="{choice}"]').click()
        page.wait_for_selector(f'.km-move[data-ply="{played + 1}"]')
        page.wait_for_selector(f'.km-end, .km-move[data-ply="{played + 2}"]')
        played += 2
        if page.locator(".km-end").count():
            break
    wait_for_status(page, "You win: mate")
    assert page.locator(".kb-own").count() == 0, "no piece can be moved"
    assert position(page, "w").outcome() is not None
    page.locator('[data-tool="take-back"]').click()
    wait_for_status(page, "Your move")


def test_legal_targets_and_the_last_move_are_shown(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both")
    page.mouse.click(*middle(origin(page, "2h")))
    targets = page.eval_on_selector_all("[data-target]", "all => all.map(o => o.dataset.target)")
    assert set(targets) == {"1h", "3h", "4h", "5h", "6h", "7h"}
    page.mouse.click(*middle(origin(page, "2h")))
    assert page.locator("[data-target]").count() == 0, "a second click deselects"
    click_move(page, "7g7f")
    wait_for_moves(page, 1)
    assert page.locator(".kb-to").count() == page.locator(".kb-from").count() == 1
    assert moves(page) == ["☗７六歩"]
    wait_for_status(page, "White to move")


def test_promotion_is_a_choice(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both", sfen="4k4/9/9/1S5S1/9/9/9/9/4K4 b - 1")
    drag_move(page, "8d8c")
    page.locator('[data-choice="promote"]').click()
    wait_for_moves(page, 1)
    assert page.locator('[data-square="8c"]').get_attribute("data-piece") == "+S"
    click_move(page, "5a5b")
    wait_for_moves(page, 2)
    click_move(page, "2d2c")
    page.locator('[data-choice="keep"]').click()
    wait_for_moves(page, 3)
    assert page.locator('[data-square="2c"]').get_attribute("data-piece") == "S"
    assert moves(page)[::2] == ["☗８三銀成", "☗２三銀不成"]


def test_drops_by_click_and_by_drag(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both", sfen="4k4/9/9/9/9/4P4/9/9/4K4 b G3Pr 1")
    page.mouse.click(*middle(origin(page, "P*")))
    targets = page.eval_on_selector_all("[data-target]", "all => all.map(o => o.dataset.target)")
    assert len(targets) == 8 * 8, "eight files, without the last rank"
    page.mouse.click(*middle(page.locator('[data-target="7d"]')))
    wait_for_moves(page, 1)
    assert page.locator('.kb-held[data-hand="P"]').get_attribute("data-count") == "2"
    drag_move(page, "R*9e")
    wait_for_moves(page, 2)
    assert page.locator('.kb-held[data-hand="R"]').count() == 0
    assert page.locator('[data-square="9e"]').get_attribute("data-piece") == "r"


def test_a_drag_to_nowhere_changes_nothing(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both")
    before = position(page, "b").sfen()
    page.mouse.move(*middle(origin(page, "7g")))
    page.mouse.down()
    page.mouse.move(*middle(origin(page, "5a")))
    page.mouse.up()
    assert position(page, "b").sfen() == before
    assert page.locator("[data-target]").count() == 0


def test_taking_back_and_resigning(open_page: OpenPage) -> None:
    page = open_page()
    begin(page)
    click_move(page, "7g7f")
    wait_for_moves(page, 2)
    page.locator('[data-tool="take-back"]').click()
    page.wait_for_selector(".km-empty")
    assert position(page, "b").sfen() == ShogiGame().sfen()
    page.locator('[data-tool="resign"]').click()
    page.get_by_role("dialog").get_by_role("button", name="Resign", exact=True).click()
    wait_for_status(page, "You lose: resignation")


def test_a_computer_player_gives_a_handicap_and_moves_first(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, start="White without 2 pieces", bot=1)
    wait_for_moves(page, 1)
    wait_for_status(page, "Your move, Black")
    whites = page.eval_on_selector_all(".kb-piece", "all => all.map(one => one.dataset.piece)")
    assert {"r", "b"}.isdisjoint(whites)
    assert sum(piece.islower() for piece in whites) == 18


def test_refused_actions_are_explained(open_page: OpenPage) -> None:
    page = open_page()
    begin(page)
    field = page.get_by_label("Type a move")
    field.fill("7g7e")
    field.press("Enter")
    page.wait_for_selector(".q-notification:has-text('7g7e')")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New").first.click()
    page.get_by_label("Start").click()
    page.get_by_role("option", name="Another position").click()
    page.get_by_label("SFEN", exact=True).fill("not a position")
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector(".q-notification:has-text('column 1')")
    assert page.locator(".kp-dialog").count() == 1, "the dialog stays open"


# ---- networks, computer players, clocks ----


def test_a_network_plays_gives_hints_and_analyses_afterwards(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, bot=None)  # the first in the list is the player in the package
    assert page.locator(".kp-player[data-color=white]").inner_text().startswith("Keisei (level 4)")
    click_move(page, "7g7f")
    wait_for_moves(page, 2)
    wait_for_status(page, "Your move")
    assert page.locator(".kb-share").count() == 0, "no arrows while a person plays"
    assert not page.locator(".kp-bar").is_visible()
    assert not page.locator(".kg").is_visible()
    page.locator('[data-tool="hint"]').click()
    page.wait_for_selector(".kb-arrows .kb-share")
    shares = page.locator(".kb-share").all_text_contents()
    assert all(re.fullmatch(r"([歩香桂銀金角飛] )?\d+%", share) for share in shares), shares
    click_move(page, "2g2f")
    page.wait_for_selector(".kb-share", state="detached")
    wait_for_moves(page, 4)
    page.locator('[data-tool="resign"]').click()
    page.get_by_role("dialog").get_by_role("button", name="Resign", exact=True).click()
    page.wait_for_selector(".kg-line")
    assert page.locator(".kp-bar").is_visible(), "now it is a review"
    page.wait_for_selector(".kb-arrows .kb-share")
    assert 1 <= page.locator(".kp-candidates span").count() <= 5
    page.keyboard.press("h")
    page.wait_for_selector(".kb-share", state="detached")


def test_watching_computer_players(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_role("button", name="Watch").click()
    for label in ("Opponent", "Plays Black against it"):
        page.get_by_label(label).click()
        page.get_by_role("option", name="Bots").click()
    page.get_by_role("button", name="Begin").click()
    wait_for_moves(page, 2)
    page.keyboard.press(" ")
    wait_for_status(page, "Paused")
    page.keyboard.press(" ")
    wait_for_status(page, "thinking")


def test_clocks(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_label("Clock").click()
    page.get_by_role("option", name="3 minutes").click()
    begin(page, side="Both")
    # A busy machine may miss the first second.
    page.wait_for_function(
        "() => /^2:5\\d$/.test(document.querySelectorAll('.kp-clock')[1].innerText)"
    )
    assert page.locator(".kp-clock").first.inner_text() == "3:00"


def test_with_a_token_and_an_engine_until_the_server_ends(
    windows: Windows, runs: Path, tmp_path: Path
) -> None:
    engine = Engine(tmp_path, seconds=1.5)
    server = Server(
        "play", "--runs", str(runs), "--color", "white", "--token", "open-sesame", engine.spec
    )  # fmt: skip
    with server, windows.open() as page:
        refusal = page.goto(server.address.partition("?")[0])
        assert refusal is not None
        assert refusal.status == 401
        assert not engine.is_running()
        page.goto(server.address)
        wait_for_moves(page, 1)
        assert "token" not in page.url
        assert engine.is_running()
        wait_for_status(page, "Your move, White")
        click_move(page, "3c3d")
        wait_for_status(page, "is thinking")
        page.mouse.click(*middle(origin(page, "8c")))  # a premove: it waits for the engine's move
        x, y = middle(origin(page, "8c"))
        square = page.locator(".kb-frame").evaluate("e => e.getBoundingClientRect().height") / 9
        page.mouse.click(x, y - square)  # White is at the bottom
        page.wait_for_selector(".kb-premove")
        wait_for_moves(page, 5)
        assert moves(page) == ["☗７六歩", "☖３四歩", "☗２六歩", "☖８四歩", "☗２五歩"]
        assert page.locator(".kb-premove").count() == 0
        # One that turns out to be illegal is dropped, and the piece stays where it was.
        click_move(page, "2c2d")
        wait_for_status(page, "is thinking")
        page.mouse.click(*middle(origin(page, "9c")))
        x, y = middle(origin(page, "9c"))
        page.mouse.click(x, y - 2 * square)
        page.wait_for_selector(".kb-premove")
        wait_for_moves(page, 7)
        wait_for_status(page, "Your move, White")
        assert page.locator(".kb-premove").count() == 0
        assert origin(page, "9c").count() == 1
        assert server.interrupt() == 0, server.printed
    assert not engine.is_running()


# ---- looking, files, keys ----

GAME_OF_PAWNS = "startpos moves " + " ".join(
    f"{file}g{file}f {file}c{file}d" for file in range(9, 0, -1)
)
"""All pawns step forward: 18 moves, more than the list shows at once."""

GAME = ["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"]


def test_opening_walking_through_and_saving_a_kif(open_page: OpenPage, tmp_path: Path) -> None:
    session = GameSession(headers={"black": "Akane", "white": "<i>Botan</i>"})
    for move in GAME:
        session.push(move)
    session.finish(Ending.RESIGNATION)
    path = tmp_path / "game.kif"
    path.write_bytes(write_session(session, "kif"))
    page = open_page()
    begin(page, side="Both")
    choose_tool(page, "open")
    page.locator("input[type=file]").set_input_files(path)
    page.wait_for_selector(".km-end")
    assert moves(page) == session.moves("kanji")
    assert page.locator(".kp-player[data-color=black]").inner_text() == "Akane"
    assert page.locator(".kp-player[data-color=white]").inner_text() == "<i>Botan</i>", "no markup"
    wait_for_status(page, "Black wins: resignation")
    for key, ply in (("ArrowRight", 1), ("ArrowRight", 2), ("End", 5), ("ArrowLeft", 4)):
        page.keyboard.press(key)
        wait_for_moves(page, ply)
        assert page.locator(".km-now").inner_text() == session.moves("kanji")[ply - 1]
    page.locator('.km-move[data-ply="3"]').click()
    wait_for_moves(page, 3)
    shown = position(page, "w").sfen().split()[:3]
    assert shown == ShogiGame("startpos moves " + " ".join(GAME[:3])).sfen().split()[:3]
    with page.expect_download() as download:
        choose_tool(page, "save-kif")
    saved = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename == "akane-vs-i-botan-i.kif"
    assert read_session(saved, "x.kif").record() == session.record()
    page.get_by_role("button", name="Play on from here").click()
    wait_for_status(page, "White to move")
    assert len(moves(page)) == 3


def test_pasting_an_sfen_and_invalid_games(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page()
    begin(page, side="Both")
    click_move(page, "5i5h")
    wait_for_moves(page, 1)
    choose_tool(page, "open")
    for text, reason in (
        ("gibberish", "neither a header"),
        ("https://lishogi.org/BYxMqNxI", "there is no game in this text"),
    ):
        page.get_by_label("or paste it here").fill(text)
        page.get_by_role("button", name="Open", exact=True).click()
        page.wait_for_selector(f".q-notification:has-text('{reason}')")
        assert moves(page) == ["☗５八玉"], "the game is still there"
    big = tmp_path / "big.kif"
    big.write_bytes(b"*" * 300_000)
    page.locator("input[type=file]").set_input_files(big)
    page.wait_for_selector(".q-notification:has-text('256 kB')")
    page.get_by_label("or paste it here").fill("position startpos moves " + " ".join(GAME))
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_selector(".kp-dialog", state="detached")
    wait_for_moves(page, 5)
    page.wait_for_selector(".q-dialog", state="detached")
    choose_tool(page, "open")
    page.get_by_label("or paste it here").fill("1. P-7f P-3d 2. P-2f")
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_selector(".kp-dialog", state="detached")
    wait_for_moves(page, 3)
    assert moves(page) == ["☗７六歩", "☖３四歩", "☗２六歩"]


def test_playing_with_the_keyboard_alone(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both", sfen="4k4/9/9/1S7/9/9/9/9/4K4 b G 1")
    page.keyboard.press("m")
    page.keyboard.type("G*5h")
    page.keyboard.press("Enter")
    wait_for_moves(page, 1)
    page.get_by_label("Type a move").blur()
    page.locator('.kb-cells [tabindex="0"]').focus()
    page.wait_for_selector(".kb-cursor")
    x, y = middle(page.locator(".kb-cursor"))
    target_x, target_y = middle(origin(page, "5a"))
    width, height = (
        page.locator(".kb-frame").evaluate("e => e.getBoundingClientRect().width") / 9,
        page.locator(".kb-frame").evaluate("e => e.getBoundingClientRect().height") / 9,
    )
    columns, rows = round((target_x - x) / width), round((target_y - y) / height)
    for _ in range(abs(columns)):
        page.keyboard.press("ArrowRight" if columns > 0 else "ArrowLeft")
    for _ in range(abs(rows)):
        page.keyboard.press("ArrowDown" if rows > 0 else "ArrowUp")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_for_moves(page, 2)
    assert moves(page)[1] == "☖５二玉"
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    for key, label in (("n", "New game"), ("?", "Keyboard shortcuts")):
        page.keyboard.press(key)
        page.wait_for_selector(f".kp-dialog h2:text-is('{label}')")
        page.keyboard.press("Escape")
        page.wait_for_selector(".kp-dialog", state="detached")
    before = middle(origin(page, "5b"))
    page.keyboard.press("f")
    page.wait_for_function(
        "y => document.querySelector('[data-square=\"5b\"]').getBoundingClientRect().y > y",
        arg=before[1] + 50,
    )
    page.keyboard.press("k")
    page.wait_for_selector(".kb-letters")
    assert moves(page) == ["G*5h", "K-5b"]
    page.keyboard.press("u")
    page.wait_for_selector('.km-move[data-ply="2"]', state="detached")


def test_the_list_of_moves_follows(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both", sfen=GAME_OF_PAWNS)
    last = len(GAME_OF_PAWNS.split()) - 2
    wait_for_moves(page, last)

    def is_in_view() -> bool:
        return bool(
            page.evaluate(
                """() => {
                    const list = document.querySelector(".km").getBoundingClientRect();
                    const now = document.querySelector(".km-now").getBoundingClientRect();
                    return now.top >= list.top - 1 && now.bottom <= list.bottom + 1;
                }"""
            )
        )

    assert is_in_view()
    page.locator('[data-tool="first"]').click()
    page.keyboard.press("ArrowRight")
    wait_for_moves(page, 1)
    assert is_in_view()
    page.keyboard.press("End")
    wait_for_moves(page, last)
    assert is_in_view()


def test_a_page_that_is_loaded_again_finds_its_game(open_page: OpenPage) -> None:
    page = open_page()
    begin(page)
    click_move(page, "7g7f")
    wait_for_moves(page, 2)
    page.wait_for_url("**/?room=*")
    before = moves(page)
    page.reload()
    wait_for_moves(page, 2)
    assert moves(page) == before
    assert page.locator(".kp-dialog").count() == 0


# ---- looks ----


def overflow(page: "Page") -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def test_on_a_phone(open_page: OpenPage) -> None:
    page = open_page(size=PHONE)
    begin(page, side="Both", sfen="4k4/9/9/9/9/9/9/9/4K4 b RB2G2S2N2L9Prb2g2s2n2l9p 1")
    assert overflow(page) <= 0
    box = page.locator(".kb-frame").bounding_box()
    assert box is not None
    assert box["width"] > 300, "the board takes the screen's width"
    stands = page.locator(".kb-held")
    assert stands.count() == 14
    last = page.locator(".kb svg").bounding_box()
    assert last is not None
    assert last["y"] + last["height"] < PHONE[1], "board and both hands fit on the screen"
    page.touchscreen.tap(*middle(origin(page, "P*")))
    page.touchscreen.tap(*middle(page.locator('[data-target="5e"]')))
    wait_for_moves(page, 1)
    assert position(page, "w").piece_at(40) is not None
    page.get_by_role("button", name="New").first.click()
    dialog = page.locator(".kp-dialog").bounding_box()
    assert dialog is not None
    assert dialog["x"] >= 0
    assert dialog["x"] + dialog["width"] <= PHONE[0]


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(open_page: OpenPage, dark: bool) -> None:
    page = open_page(dark=dark)
    begin(page, side="Both")

    def brightness() -> int:
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", color)[:3])

    assert (brightness() < 200) is dark, "follows the system"
    switch = page.get_by_role("button", name="Theme")
    switch.click()
    page.wait_for_function("() => document.body.classList.contains('body--light')")
    switch.click()
    page.wait_for_function("() => document.body.classList.contains('body--dark')")
    assert brightness() < 200
    page.reload()
    page.wait_for_selector(".kb-piece")
    assert brightness() < 200, "it is remembered"
