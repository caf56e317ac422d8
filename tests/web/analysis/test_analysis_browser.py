"""The analysis page and the editor of positions in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from keisei.shogi.notation import GameRecord, GameTree, read_kif, write_kif
from tests.web.conftest import Server
from tests.web.page_check import PageCheck, accessibility_problems, settle
from tests.web.play.board_page import begin, click_move, middle
from tests.web.windows import DESK, PHONE, OpenPage, Windows, open_pages

if TYPE_CHECKING:
    from playwright.sync_api import Page

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow

MOVES = ["7g7f", "3c3d", "8h3c+", "2a3c", "2g2f", "4a3b"]
GAME = quote(f"startpos moves {' '.join(MOVES)}")
SIZES = ((390, 844), (844, 390), (820, 1180), (1280, 800), (1920, 1080))


@pytest.fixture
def open_page(windows: Windows, server: Server) -> Iterator[OpenPage]:
    with open_pages(windows, server, ".kb-piece, .kx-square svg") as open_page:
        yield open_page


def saved(page: "Page", name: str) -> bytes:
    """Save a file by the menu, and return its content."""
    page.locator('[data-tool="save"]').click()
    with page.expect_download() as waiting:
        page.locator(f'[data-save="{name}"]').click()
    page.wait_for_selector(".q-menu", state="detached")
    return Path(waiting.value.path()).read_bytes()


def test_a_game_is_analysed_with_lines_graph_and_variations(open_page: OpenPage) -> None:
    page = open_page(f"analysis?sfen={GAME}")
    # The review marks the bishop that is given away, in the tree and in the graph.
    page.wait_for_selector(".ka-sign")
    page.wait_for_selector('.ke-plot circle[data-ply="3"]')
    assert page.locator(".ke-scale text").first.text_content() == "0%"
    page.mouse.move(*middle(page.locator('.ke-plot circle[data-ply="3"]')))
    assert "3 ☗３三角成" in page.locator(".ke-tip").inner_text()
    page.mouse.click(*middle(page.locator('.ke-plot circle[data-ply="3"]')))
    page.wait_for_selector('.kb-piece[data-square="3c"][data-piece="+B"]')
    # The search shows several lines, and goes on until it is stopped.
    page.locator('[data-tool="run"]').click()
    page.wait_for_selector(".kl-line:nth-child(3)")
    page.locator('[data-tool="more-lines"]').click()
    page.wait_for_selector(".kl-line:nth-child(4)")
    assert page.locator(".kl-moves b").first.inner_text() in ("☖３三桂", "☖３三角")
    facts = page.locator(".ka-facts").first.inner_text()
    page.wait_for_function(
        "text => document.querySelector('.ka-facts').innerText !== text", arg=facts
    )
    page.locator('[data-tool="run"]').click()
    page.wait_for_selector(".ka-facts:text-matches('stopped')")
    # A line is kept as a variation; a move on the board begins one.
    page.locator(".kl-keep").nth(1).click()
    page.wait_for_selector(".ka-variation")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector('.kb-piece[data-square="8h"]')
    click_move(page, "2g2f")
    page.wait_for_selector(".ka-variation .ka-now")
    page.get_by_label("Comment").fill("a quiet move")
    page.wait_for_selector(".ka-note:text('a quiet move')")
    record = read_kif(saved(page, "game.kif").decode("cp932"))
    assert [str(move) for move in record.main_line] == MOVES
    assert any(move.comment == "a quiet move" for line in record.variations for move in line.moves)
    # It is still there after the page is loaded again.
    page.reload()
    page.wait_for_selector(".ka-note:text('a quiet move')")
    page.locator('[data-tool="promote"]').click()
    page.wait_for_selector(".ka-row:not(.ka-variation) .ka-now")
    page.locator('[data-tool="remove"]').click()
    page.wait_for_selector(".ka-note", state="detached")


def test_variations_are_reached_by_keyboard(open_page: OpenPage) -> None:
    page = open_page(f"analysis?sfen={GAME}")
    page.locator(".ka-move").nth(2).click()
    page.wait_for_selector('.ka-now[tabindex="0"]:text("☖３四歩")')
    click_move(page, "2g2f")
    page.wait_for_selector(".ka-variation .ka-now")
    assert page.locator('.ka-tree[tabindex], .ka-tree [tabindex="0"]').count() == 1
    page.keyboard.press("Home")
    page.wait_for_selector(".ka-start.ka-now")
    # Tab reaches the current move, arrows go through all moves in the order of the list.
    page.locator(".ka-start").focus()
    focused = "document.activeElement.innerText"
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) == "Start", "there is none above"
    texts = page.locator(".ka-move").all_inner_texts()
    place = texts.index("☗２六歩")
    for _ in range(place):
        page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "☗２六歩"
    assert page.locator(".ka-start.ka-now").count() == 1, "focus alone selects nothing"
    page.keyboard.press("Space")
    page.wait_for_selector('.ka-variation .ka-now[tabindex="0"]')
    page.wait_for_selector('.kb-piece[data-square="2f"]')
    # The keys of the board work from here, and the focus follows.
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector('.ka-now:text("☖３四歩"):focus')
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector('.ka-now:text("☗７六歩"):focus')


def test_games_that_were_replaced_and_moves_that_were_deleted_come_back(
    open_page: OpenPage,
) -> None:
    page = open_page(f"analysis?sfen={GAME}")
    page.locator(".ka-move").nth(3).click()
    page.get_by_label("Comment").fill("too greedy")
    page.wait_for_selector(".ka-note:text('too greedy')")
    number = page.locator(".ka-move").count()
    for _ in range(2):
        page.locator('[data-tool="remove"]').click()
        number -= 4 if number == len(MOVES) + 1 else 1
        page.wait_for_function(
            "number => document.querySelectorAll('.ka-move').length === number", arg=number
        )
    put_back = page.get_by_role("button", name="Bring back what was deleted")
    put_back.click()
    page.wait_for_selector(".ka-now:text('☖３四歩')")
    put_back.click()
    page.wait_for_selector(".ka-note:text('too greedy')")
    put_back.wait_for(state="hidden")
    assert page.locator(".ka-move").count() == len(MOVES) + 1
    restore = page.get_by_role("button", name="Back to the game before")
    assert not restore.is_visible()
    page.locator('[data-tool="open"]').click()
    page.get_by_label("or paste it here").fill("position startpos moves 2g2f")
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_selector(".q-dialog", state="detached")
    page.wait_for_selector(".ka-note", state="detached")
    restore.click()
    page.wait_for_selector(".ka-now:text('☗３三角成')")
    page.wait_for_selector(".ka-note:text('too greedy')")
    restore.click()  # the two games change places
    page.wait_for_selector(".ka-move:text('☗２六歩')")
    page.wait_for_selector(".ka-note", state="detached")


@pytest.mark.parametrize("address", ["analysis", "editor"])
def test_a_page_has_one_heading_of_the_first_level(open_page: OpenPage, address: str) -> None:
    assert open_page(address).locator("h1").count() == 1


def test_a_game_that_was_played_is_reviewed(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both")
    for move in ("7g7f", "3c3d"):
        click_move(page, move)
        page.wait_for_selector(f'.kb-piece[data-square="{move[2:]}"]')
    page.locator('[data-tool="resign"]').click()
    page.locator(".kp-dialog .bg-primary").click()
    page.get_by_role("button", name="Review").click()
    page.wait_for_selector(".ka-tree")
    assert page.locator(".ka-row .ka-move").all_inner_texts() == [
        "☗７六歩", "☖３四歩", "resignation",
    ]  # fmt: skip
    page.wait_for_selector(".ke-line")
    assert "/analysis?room=" in page.url


def test_copies_and_files(open_page: OpenPage) -> None:
    page = open_page(f"analysis?sfen={GAME}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('.kb-piece[data-square="7f"]')

    def copied(name: str, found: str) -> str:
        """Copy by the menu, and return the clipboard once an expression says that it is there."""
        page.locator('[data-tool="copy"]').click()
        page.locator(f'[data-copy="{name}"]').click()
        page.wait_for_selector(".q-menu", state="detached")
        page.wait_for_function(f"async () => {found}")
        page.wait_for_selector(".q-notification:has-text('Copied.')")
        return str(page.evaluate("navigator.clipboard.readText()"))

    text = copied("position.sfen", "(await navigator.clipboard.readText()).includes('/')")
    assert text == "lnsgkgsnl/1r5b1/ppppppppp/9/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL w - 2"
    text = copied("game.kif", "(await navigator.clipboard.readText()).includes('手合割')")
    assert [str(move) for move in read_kif(text).main_line] == MOVES
    kinds = "(await navigator.clipboard.read()).flatMap(item => item.types)"
    copied("board.png", f"{kinds}.includes('image/png')")
    assert saved(page, "board.png").startswith(b"\x89PNG")
    assert saved(page, "board.svg").startswith(b"<svg")
    assert saved(page, "game.gif").startswith(b"GIF89a")
    assert b"acTL" in saved(page, "game.apng")


@pytest.mark.parametrize("dark", [False, True])
def test_the_message_about_a_copy_can_be_read(open_page: OpenPage, dark: bool) -> None:
    page = open_page(f"analysis?sfen={GAME}", dark=dark)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator('[data-tool="copy"]').click()
    page.locator('[data-copy="position.sfen"]').click()
    page.locator(".q-notification.bg-positive", has_text="Copied.").wait_for()
    assert accessibility_problems(page, within=".q-notification") == []


def test_a_file_with_variations_is_opened(open_page: OpenPage) -> None:
    page = open_page("analysis")
    tree = GameTree.from_record(GameRecord.from_moves(MOVES))
    tree.add_line(tree.root, ["2g2f", "8c8d"]).comment = "the static rook"
    page.locator('[data-tool="open"]').click()
    page.get_by_label("or paste it here").fill("this is no game")
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_selector(".q-notification")
    page.get_by_label("or paste it here").fill(write_kif(tree.record()))
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_selector(".q-dialog", state="detached")
    page.wait_for_selector(".ka-variation .ka-note:text('the static rook')")
    page.get_by_text("☖８四歩").click()
    page.wait_for_selector('.kb-piece[data-square="8d"]')
    page.wait_for_selector(".ka-sign")  # the main line is reviewed


def test_files_of_unknown_rooms_do_not_exist(server: Server) -> None:
    assert server.request("/analysis/nothing/game.kif")[0] == 404


def test_a_position_is_set_up_explained_analysed_and_played(open_page: OpenPage) -> None:
    page = open_page("editor")
    verdict = page.locator(".ka-verdict")
    assert verdict.inner_text() == "This can be played."
    page.locator('[data-tool="clear"]').click()
    page.wait_for_selector('.kx-square[data-square="7g"]:not(:has(svg))')
    page.locator('[data-symbol="P"]').click()
    for square in ("7g", "7f"):
        page.locator(f'[data-square="{square}"]').click()
    page.wait_for_selector(".ka-bad")
    assert verdict.inner_text() == "Black has two pawns on file 7 (nifu)"
    assert page.locator('[data-tool="analyse"]').is_disabled()
    page.locator('[data-tool="erase"]').click()
    page.locator('[data-square="7f"]').click()
    page.wait_for_selector(".ka-good")
    # A piece is dragged, another one turned by the keyboard; a hand gets a gold.
    page.mouse.move(*middle(page.locator('[data-square="7g"]')))
    page.mouse.down()
    page.mouse.move(*middle(page.locator('[data-square="5c"]')), steps=3)
    page.mouse.up()
    page.wait_for_selector('[data-square="5c"][data-piece="P"]')
    page.locator('[data-square="5c"]').focus()
    page.keyboard.press("Space")
    page.wait_for_selector('[data-square="5c"][data-piece="+P"]')
    for _ in range(3):
        page.keyboard.press("Space")
    page.wait_for_selector('[data-square="5c"][data-piece="P"]')
    hand = page.locator('[data-hand="G"]')
    for tool, clicks in (("move", 3), ("erase", 1)):
        page.locator(f'[data-tool="{tool}"]').click()
        page.wait_for_selector(f'[data-tool="{tool}"].kx-chosen')
        for _ in range(clicks):
            hand.click()
    page.get_by_role("button", name="gold, 2 in hand").wait_for()
    hand.click(button="right")
    page.get_by_role("button", name="gold, 1 in hand").wait_for()
    sfen = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    page.wait_for_function("sfen => document.querySelector('input').value === sfen", arg=sfen)
    page.locator('[data-tool="analyse"]').click()
    page.wait_for_selector('.kb-held[data-hand="G"]')
    page.locator('[data-tool="run"]').click()
    page.wait_for_selector(".kl-score:text-matches('mate 1')")
    page.wait_for_selector(".ka-facts:text-matches('proven')")
    page.locator('[data-tool="play-on"]').click()
    page.wait_for_selector(".kp-player")
    page.wait_for_selector('.kb-held[data-hand="G"]')
    assert page.locator(".kb-piece").count() == 3


def test_the_editor_reads_an_sfen_and_refuses_what_is_none(open_page: OpenPage) -> None:
    page = open_page(f"editor?sfen={quote('4k4/9/9/9/9/9/9/9/4K4 w 2R 1')}")
    assert page.locator(".kx-square svg").count() == 2
    page.get_by_label("SFEN").fill("nothing")
    page.keyboard.press("Enter")
    page.wait_for_selector(".q-notification")
    assert page.locator(".kx-square svg").count() == 2
    page.get_by_label("SFEN").fill("startpos")
    page.keyboard.press("Enter")
    page.wait_for_selector('[data-square="1i"] svg')


def test_board_and_tools_fit_every_window(open_page: OpenPage) -> None:
    for address, board in (
        (f"analysis?sfen={GAME}", ".kb svg"),
        ("editor", ".kx-board"),
        ("tsume", ".kb svg"),
    ):
        page = open_page(address, touch=True)
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("window.scrollTo(0, 0)")
            settle(page)
            place: Any = page.locator(board).first.bounding_box()
            where = f"{address} at {width}x{height}: {place}"
            assert place["x"] >= 0, where
            assert place["y"] >= 0, where
            assert place["x"] + place["width"] <= width + 1, where
            assert place["y"] + place["height"] <= height + 1, where
            for hand in page.locator(".kx-hand").all():
                held: Any = hand.bounding_box()
                assert held["x"] >= 0, f"{where}: {held}"
                assert held["x"] + held["width"] <= width, f"{where}: {held}"
                assert held["y"] + held["height"] <= height + 1, f"{where}: {held}"
            assert min(place["width"], place["height"]) > 0.55 * min(width, height), where
            assert page.evaluate("document.documentElement.scrollWidth") <= width, where


@pytest.mark.parametrize("language", ["en-US", "ja-JP"])
def test_nothing_is_wrong_with_the_pages_and_their_dialogs(
    open_page: OpenPage, language: str
) -> None:
    page = open_page(f"analysis?sfen={GAME}", DESK, dark=language == "ja-JP", language=language)
    check = PageCheck(page)
    page.wait_for_selector(".ka-sign")
    page.locator('[data-tool="run"]').click()
    page.wait_for_selector(".kl-line:nth-child(3)")
    page.locator('[data-tool="run"]').click()
    page.locator(".kl-keep").nth(1).click()
    page.wait_for_selector(".ka-variation")
    check.look("analysis")
    for tool in ("copy", "save", "review"):
        check.look_at_menu(tool, page.locator(f'[data-tool="{tool}"]'))
    check.look_at_menu("networks", page.locator(".ka-analyst"))
    check.look_at_menu("languages", page.locator(".k-header button:has(i:text('language'))"))
    check.look_at_dialog("open", page.locator('[data-tool="open"]').click)
    page.goto(page.url.partition("/analysis")[0] + "/editor")
    page.wait_for_selector(".kx-square svg")
    check.look("editor")
    page.locator('[data-tool="clear"]').click()
    page.locator('[data-symbol="K"]').click()
    page.locator('[data-square="5e"]').click()
    page.wait_for_selector(".ka-bad")
    check.look("a wrong position")
    assert check.problems == {}
    if language == "ja-JP":
        assert page.locator(".ka-verdict").inner_text() == "先手に玉が2枚あります"


@pytest.mark.parametrize(("language", "dark"), [("en-US", True), ("ja-JP", False)])
def test_nothing_is_wrong_on_a_phone(open_page: OpenPage, language: str, dark: bool) -> None:
    page = open_page(f"analysis?sfen={GAME}", PHONE, dark=dark, touch=True, language=language)
    check = PageCheck(page)
    page.wait_for_selector(".ka-sign")
    page.locator('[data-tool="forward"]').tap()
    page.wait_for_selector(".ka-now:not(.ka-start)")
    page.locator('[data-tool="remove"]').tap()
    page.wait_for_selector(".ka-empty")
    check.look("a game that was deleted", axe=False)
    page.locator(".kp-buttons button:visible").tap()
    page.wait_for_selector(".ka-empty", state="detached")
    check.look("analysis")
    check.look_at_menu("save", page.locator('[data-tool="save"]'))
    check.look_at_menu("networks", page.locator(".ka-analyst"))
    check.look_at_dialog("open", page.locator('[data-tool="open"]').tap)
    page.goto(page.url.partition("/analysis")[0] + "/editor")
    page.wait_for_selector(".kx-square svg")
    check.look("editor")
    assert check.problems == {}


def test_a_broken_address_shows_the_starting_position(open_page: OpenPage) -> None:
    page = open_page("analysis?sfen=nonsense")
    page.wait_for_selector(".q-notification")
    assert page.locator(".kb-piece").count() == 40
