"""The page at the sizes of phones, tablets and screens, by finger, and judged by axe-core."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.conftest import DESK, PHONE, OpenPage, Server, accessibility_problems, open_pages
from tests.web.play.board_page import begin, choose_tool, click_move, middle, origin, wait_for_moves

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow

ALL_PIECES = "4k4/9/9/9/9/9/9/9/4K4 b RB2G2S2N2L9Prb2g2s2n2l9p 1"


@pytest.fixture
def open_page(browser: "Browser", server: Server) -> Iterator[OpenPage]:
    with open_pages(browser, server, ".kb-piece") as open_page:
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
    assert page.evaluate("window.scrollY") == 0


def test_targets_are_large_enough_for_fingers(open_page: OpenPage) -> None:
    page = open_page(size=PHONE, touch=True)
    begin(page, side="Both", sfen="startpos moves 7g7f 3c3d")
    small = page.eval_on_selector_all(
        "button, a, [role=menuitem], .q-slider",
        """all => all.filter(one => !one.closest(".kb") && one.checkVisibility()).map(one => {
            const box = one.getBoundingClientRect();
            return [one.ariaLabel ?? one.innerText, Math.round(box.width), Math.round(box.height)];
        }).filter(([, width, height]) => width < 44 || height < 44)""",
    )
    assert small == []


@pytest.mark.parametrize("language", ["en-US", "ja-JP"])
def test_axe_finds_nothing_on_the_page_and_in_its_dialogs(
    open_page: OpenPage, language: str
) -> None:
    page = open_page(size=DESK, language=language)
    found = {"new game": accessibility_problems(page)}
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    click_move(page, "7g7f")
    wait_for_moves(page, 2)
    found["playing"] = accessibility_problems(page)
    page.locator('[data-tool="more"]').click()
    page.wait_for_selector(".q-menu")
    found["menu"] = accessibility_problems(page, popup=True)
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-menu", state="detached")
    for name in ("look", "games", "open"):
        choose_tool(page, name)
        page.wait_for_selector(".kp-dialog")
        found[name] = accessibility_problems(page)
        page.keyboard.press("Escape")
        page.wait_for_selector(".q-dialog", state="detached")
    page.keyboard.press("?")
    page.wait_for_selector(".kp-keys")
    found["keys"] = accessibility_problems(page)
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    page.locator('[data-tool="resign"]').click()
    page.wait_for_selector(".kp-dialog")
    found["resign"] = accessibility_problems(page)
    page.locator(".kp-dialog .bg-primary").click()
    page.wait_for_selector(".kg-line")
    page.wait_for_selector(".q-dialog", state="detached")
    found["review"] = accessibility_problems(page)
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_axe_finds_nothing_in_the_dark_and_on_a_phone(open_page: OpenPage) -> None:
    page = open_page(size=PHONE, dark=True, touch=True)
    found = accessibility_problems(page)
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    assert found + accessibility_problems(page) == []


def test_promoting_by_keys(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both", sfen="4k4/9/9/1S5S1/9/9/9/9/4K4 b - 1")
    for start, end, key, piece in (("8d", "8c", "Enter", "+S"), ("5a", "4a", "", "k")):
        page.locator(f'[data-cell="{start}"]').focus()
        page.keyboard.press("Enter")
        page.locator(f'[data-cell="{end}"]').focus()
        page.keyboard.press("Enter")
        if key:
            page.wait_for_function("() => document.activeElement.ariaLabel === 'Promote'")
            page.keyboard.press(key)
        page.wait_for_selector(f'[data-square="{end}"][data-piece="{piece}"]')
    wait_for_moves(page, 2)
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
