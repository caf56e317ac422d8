"""The page at the sizes of phones, tablets and screens, by finger, and judged by axe-core."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.web.conftest import Engine, Server
from tests.web.page_check import PageCheck, accessibility_problems
from tests.web.play.board_page import begin, choose_tool, click_move, middle, origin, wait_for_moves
from tests.web.windows import DESK, PHONE, OpenPage, Windows, open_pages

if TYPE_CHECKING:
    from playwright.sync_api import Page

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow

ALL_PIECES = "4k4/9/9/9/9/9/9/9/4K4 b RB2G2S2N2L9Prb2g2s2n2l9p 1"
PLAYERS = ("Akane", "Botan")
"""People whose game another test may have left among the server's saved ones."""


@pytest.fixture
def open_page(windows: Windows, server: Server) -> Iterator[OpenPage]:
    with open_pages(windows, server, ".kb-piece") as open_page:
        yield open_page


def box(page: "Page", selector: str) -> Any:
    found = page.locator(selector).first.bounding_box()
    assert found is not None, selector
    return found


def test_board_and_hands_fit_every_window(open_page: OpenPage) -> None:
    page = open_page(touch=True)
    begin(page, side="Both", sfen=ALL_PIECES)
    for width, height, least in (
        (390, 844, 330),  # width of the nine files
        (844, 390, 270),
        (820, 1180, 570),
        (1280, 800, 540),
        (1920, 1080, 800),
        (360, 640, 250),
        (1000, 1000, 400),
    ):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("window.scrollTo(0, 0)")
        page.wait_for_function(
            "height => document.querySelector('.kb svg').getBoundingClientRect().bottom <= height",
            arg=height,
        )
        drawing = box(page, ".kb svg")
        where = f"{width}x{height}"
        assert drawing["x"] >= 0, where
        assert drawing["x"] + drawing["width"] <= width, where
        assert drawing["y"] >= 0, where
        assert box(page, ".kb-frame")["width"] >= least, where
        assert page.evaluate("document.documentElement.scrollWidth") <= width, where
        for held in page.locator(".kb-held").all():
            place = held.bounding_box()
            assert place is not None
            assert place["y"] >= 0, where
            assert place["y"] + place["height"] <= height + 1, where
        if width > height:
            assert page.evaluate("document.documentElement.scrollHeight") <= height, where


def test_dragging_by_finger_moves_the_piece_and_not_the_page(open_page: OpenPage) -> None:
    page = open_page(size=PHONE, touch=True)
    begin(page, side="Both")
    x, y = middle(origin(page, "7g"))
    step = box(page, ".kb-frame")["height"] / 9
    device = page.context.new_cdp_session(page)
    steps = [("touchStart", 0.0), *(("touchMove", part / 8) for part in range(1, 9))]
    for kind, part in steps:
        points = [{"x": x, "y": y - step * part}]
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    device.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    wait_for_moves(page, 1)
    page.touchscreen.tap(*middle(origin(page, "3c")))
    page.touchscreen.tap(*middle(page.locator('[data-target="3d"]')))
    wait_for_moves(page, 2)
    assert page.evaluate("window.scrollY") == 0


@pytest.mark.parametrize("language", ["en-US", "ja-JP"])
def test_nothing_is_wrong_with_the_page_and_its_dialogs(open_page: OpenPage, language: str) -> None:
    page = open_page(size=DESK, dark=language == "ja-JP", language=language)
    check = PageCheck(page, names=PLAYERS)
    check.look("new game")
    for number, name in enumerate(("opponents", "starts", "clocks")):
        check.look_at_menu(name, page.locator(".kp-dialog .q-select:visible").nth(number))
    # The last of each: an SFEN, and own times.
    for number in (1, 2):
        page.locator(".kp-dialog .q-select:visible").nth(number).click()
        page.locator(".q-menu .q-item").last.click()
        page.wait_for_selector(".q-menu", state="detached")
    page.locator(".kp-dialog .q-btn-group button").last.click()  # two computer players
    page.wait_for_selector(".kp-times:visible")
    check.look("watching, from an SFEN, with own times")
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    click_move(page, "7g7f")
    wait_for_moves(page, 2)
    check.look("playing")
    check.look_at_menu("menu", page.locator('[data-tool="more"]'))
    check.look_at_menu("languages", page.locator(".k-header button:has(i:text('language'))"))
    choose_tool(page, "look")
    boards = {"en-US": (1, ".kb-board-paper"), "ja-JP": (2, ".kb-board-slate")}
    for group, (button, board) in enumerate((boards[language], (1, ".kb-pieces-white"))):
        page.locator(".kp-dialog .q-btn-group").nth(group).locator("button").nth(button).click()
        page.wait_for_selector(board)
    check.look("look")
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    choose_tool(page, "games")
    page.wait_for_selector(".kp-game")
    check.look("games")
    number = page.locator(".kp-game").count()
    page.locator(".kp-game button").last.click()
    page.locator(".kp-dialog").nth(1).wait_for()
    check.look("a game to delete")
    page.locator(".kp-dialog .bg-primary").click()
    page.wait_for_function(
        "left => document.querySelectorAll('.kp-game').length === left", arg=number - 1
    )
    page.locator(".kp-dialog").nth(1).wait_for(state="detached")
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    check.look_at_dialog("open", partial(choose_tool, page, "open"))
    check.look_at_dialog("keys", partial(page.keyboard.press, "?"))
    page.locator('[data-tool="resign"]').click()
    page.wait_for_selector(".kp-dialog")
    check.look("resign")
    page.locator(".kp-dialog .bg-primary").click()
    page.wait_for_selector(".kg-line")
    page.wait_for_selector(".q-dialog", state="detached")
    check.look("review")
    check.look_at_menu("networks", page.locator(".kp-side .q-select").first)
    if language == "ja-JP":
        page.locator(".kp-tools button").first.click()
        page.locator(".kp-dialog .q-btn-group button").first.click()
        page.locator(".kp-dialog .q-select:visible").nth(1).click()
        page.get_by_role("option", name="二枚落ち").click()
        page.get_by_role("button", name="対局開始").click()
        page.wait_for_selector(".kp-status:text('あなたの手番です（下手）。')")
        page.wait_for_selector(".kp-side:has-text('上手：')")
        page.get_by_role("group", name="上手の持ち駒").wait_for(state="attached")
    page.locator(".kp-tools button").first.click()
    page.locator(".kp-dialog .q-btn-group button").last.click()
    page.locator(".kp-dialog .bg-primary").last.click()
    page.wait_for_selector('.km-move[data-ply="1"]')  # computers do not wait until it is looked at
    check.look("watching")
    assert check.problems == {}


@pytest.mark.parametrize("language", ["en-US", "ja-JP"])
def test_nothing_is_wrong_with_promotions_and_mate_problems(
    open_page: OpenPage, server: Server, language: str
) -> None:
    start = quote("4k4/9/9/1S7/9/9/9/9/4K4 b - 1")
    page = open_page(f"?start={start}", dark=language == "ja-JP", language=language)
    check = PageCheck(page)
    click_move(page, "8d8c")
    page.wait_for_selector(".kb-choice")
    check.look("promotion")
    page.keyboard.press("Escape")
    field = page.locator(".kp-typed input")
    field.fill("8d8f")
    field.press("Enter")
    page.wait_for_selector(".q-notification")
    check.look("an illegal move")
    page.goto(f"{server.address}tsume?problem=2")
    page.wait_for_selector(".kb-piece")
    check.look("a mate problem")
    check.look_at_menu("lengths", page.locator(".kp-side .q-select"))
    status = page.locator('[role="status"]')
    for button, name in ((0, "hint"), (0, "second hint"), (2, "solution")):
        before = status.inner_text()
        page.locator(".kp-side .q-btn").nth(button).click()
        page.wait_for_function(
            "text => document.querySelector('[role=status]').innerText !== text", arg=before
        )
        check.look(name)
    assert check.problems == {}


@pytest.mark.parametrize("dark", [False, True])
def test_a_clock_that_runs_out_can_be_read(open_page: OpenPage, dark: bool) -> None:
    page = open_page(dark=dark)
    page.get_by_label("Clock").click()
    page.get_by_role("option", name="Own times").click()
    page.get_by_label("Minutes").fill("0")
    page.get_by_label("Byoyomi, seconds").fill("10")
    begin(page, side="Both")
    page.wait_for_selector(".kp-clock.kp-low")
    assert accessibility_problems(page, within=".kp-low") == []


ONE_ROOM = """
from keisei.__main__ import main
from keisei.web import rooms
rooms.MAX_ROOMS = 1
main()
"""


def test_nothing_is_wrong_with_a_broken_player_and_without_a_room(
    windows: Windows, runs: Path, engine: Engine
) -> None:
    server = Server(
        "play", f"--runs={runs}", "--color=white", engine.spec, program=["-c", ONE_ROOM]
    )
    try:
        engine.remove()
        with open_pages(windows, server, "[role=alert]:visible") as open_page:
            playing = PageCheck(open_page())
            playing.look("a player that is broken")
            refused = PageCheck(open_page(language="ja-JP"))
            refused.look("rooms in use")
            assert playing.problems | refused.problems == {}
    finally:
        server.interrupt()


@pytest.mark.parametrize("language", ["en-US", "ja-JP"])
def test_nothing_is_wrong_with_a_page_that_is_not_there(
    windows: Windows, server: Server, language: str
) -> None:
    with windows.open(language=language) as page:
        page.goto(f"{server.address}not/there")
        page.wait_for_selector("[role=alert]")
        check = PageCheck(page)
        check.look("not found")
    assert check.problems == {}


@pytest.mark.parametrize(("language", "dark"), [("en-US", True), ("ja-JP", False)])
def test_nothing_is_wrong_on_a_phone(
    open_page: OpenPage, server: Server, language: str, dark: bool
) -> None:
    page = open_page(f"?start={quote(ALL_PIECES)}", PHONE, dark=dark, touch=True, language=language)
    check = PageCheck(page, names=PLAYERS)
    page.locator('[data-tool="hint"]').tap()
    page.wait_for_selector(".kb-arrows .kb-share")
    page.wait_for_selector(".q-tooltip", state="attached")
    assert not page.locator(".q-tooltip").is_visible()
    check.look("a hint")
    page.touchscreen.tap(*middle(origin(page, "R*")))
    page.touchscreen.tap(*middle(page.locator('[data-target="5b"]')))
    wait_for_moves(page, 2)
    page.locator(".kp-tools button").first.tap()
    for number, name in enumerate(("opponents", "starts", "clocks")):
        check.look_at_menu(name, page.locator(".kp-dialog .q-select:visible").nth(number))
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    check.look_at_menu("menu", page.locator('[data-tool="more"]'))
    for name in ("look", "open"):
        check.look_at_dialog(name, partial(choose_tool, page, name))
    check.look_at_dialog("help", page.locator('[data-tool="help"]').tap)
    page.goto(f"{server.address}tsume?problem=2")
    page.wait_for_selector(".kb-piece")
    page.locator(".kp-side .q-btn").nth(2).tap()
    page.wait_for_selector(".kp-nav:visible")
    check.look("a solution")
    check.look_at_menu("lengths", page.locator(".kp-side .q-select"))
    assert check.problems == {}


@pytest.mark.parametrize("language", ["en-US", "ja-JP"])
def test_labels_of_own_times_are_not_cut_on_a_phone(open_page: OpenPage, language: str) -> None:
    page = open_page(size=PHONE, touch=True, language=language)
    page.locator(".kp-dialog .q-select:visible").last.tap()
    page.locator(".q-menu .q-item").last.tap()
    page.wait_for_selector(".kp-times:visible")
    cut = page.eval_on_selector_all(
        ".kp-times .q-field__label",
        "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)",
    )
    assert cut == []


def test_promoting_by_keys(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both", sfen="4k4/9/9/1S5S1/9/9/9/9/4K4 b - 1")
    moves = (("8d", "8c", "Enter", "+S"), ("5a", "4a", "", "k"))
    for ply, (start, end, key, piece) in enumerate(moves, start=1):
        page.locator(f'[data-cell="{start}"]').focus()
        page.keyboard.press("Enter")
        page.locator(f'[data-cell="{end}"]').focus()
        page.keyboard.press("Enter")
        if key:
            page.wait_for_function("() => document.activeElement.ariaLabel === 'Promote'")
            page.keyboard.press(key)
        page.wait_for_selector(f'[data-square="{end}"][data-piece="{piece}"]')
        wait_for_moves(page, ply)  # the board shows a move before the server knows it
    page.locator('[data-cell="2d"]').focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.keyboard.press("=")
    page.wait_for_selector('[data-square="2c"][data-piece="S"]')


def test_screen_readers_hear_squares_hands_and_moves(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, sfen="4k4/9/9/9/9/9/4P4/9/4K4 b 2Pr 1")
    grid = page.get_by_role("grid")
    assert grid.get_by_role("row").count() == 9
    assert grid.get_by_role("gridcell").count() == 81
    assert grid.get_by_role("gridcell", name="5g, Black pawn").count() == 1
    assert grid.get_by_role("gridcell", name="5e, empty").count() == 1
    hand = page.get_by_role("group", name="Black: pieces in hand")
    assert hand.get_by_role("button", name="pawn, 2 in hand").is_enabled()
    assert (
        page.get_by_role("group", name="White: pieces in hand").get_by_role("button").is_disabled()
    )
    hand.get_by_role("button").focus()
    page.keyboard.press("Enter")
    page.locator('[data-cell="3e"]').focus()
    page.keyboard.press("Enter")
    wait_for_moves(page, 2)
    said = page.locator('[aria-live="assertive"]').text_content()
    assert said is not None
    assert said.startswith("White: "), "the opponent's move"
    assert page.locator("main").count() == page.locator("h1").count() == 1
