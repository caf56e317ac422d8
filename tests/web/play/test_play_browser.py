"""What makes playing pleasant, in a real browser: rematch, premoves, sounds, looks, saved games."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.conftest import Server
from tests.web.play.board_page import (
    begin,
    choose_tool,
    click_move,
    may_move,
    middle,
    moves,
    origin,
    wait_for_moves,
    wait_for_status,
)
from tests.web.windows import OpenPage, Windows, open_pages

if TYPE_CHECKING:
    from playwright.sync_api import Page

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow


@pytest.fixture
def open_page(windows: Windows, server: Server) -> Iterator[OpenPage]:
    with open_pages(windows, server, ".kb-piece") as open_page:
        yield open_page


def resign(page: "Page") -> None:
    page.locator('[data-tool="resign"]').click()
    page.locator(".kp-dialog .bg-primary").click()
    page.wait_for_selector(".kp-result")


def test_the_result_card_rematch_swap_review(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, bot=0)
    click_move(page, "7g7f")
    wait_for_moves(page, 2)
    resign(page)
    page.get_by_role("button", name="Review").click()
    page.wait_for_selector(".ka-tree")  # the page for analysis
    page.go_back()
    page.wait_for_selector(".kp-result")
    page.get_by_role("button", name="Swap sides").click()
    wait_for_moves(page, 1)  # the bot moves first now
    wait_for_status(page, "Your move, White")
    assert not page.locator(".kp-result").is_visible()
    resign(page)
    page.get_by_role("button", name="Rematch").click()
    wait_for_moves(page, 1)
    wait_for_status(page, "Your move, White")


def test_a_replaced_game_can_be_had_back(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, bot=0)
    click_move(page, "7g7f")
    wait_for_moves(page, 2)
    before = moves(page)
    choose_tool(page, "open")
    page.get_by_label("or paste it here").fill("position startpos moves 2g2f")
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_selector(".q-dialog", state="detached")
    wait_for_moves(page, 1)
    page.get_by_role("button", name="Back to the game before").click()
    wait_for_moves(page, 2)
    assert moves(page) == before
    wait_for_status(page, "Your move, Black")
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Play on from here").click()
    wait_for_moves(page, 2)  # the bot has moved again


def test_arrows_and_circles_by_the_right_button(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both")

    def draw(start: str, end: str) -> None:
        page.mouse.move(*middle(origin(page, start)))
        page.mouse.down(button="right")
        page.mouse.move(*middle(origin(page, end)))
        page.mouse.up(button="right")

    draw("7g", "7c")
    draw("5i", "5i")
    drawn = page.eval_on_selector_all("[data-drawn]", "all => all.map(one => one.dataset.drawn)")
    assert drawn == ["7g7c", "5i5i"]
    draw("5i", "5i")
    assert page.locator("[data-drawn]").count() == 1, "the same again removes it"
    page.mouse.click(*middle(origin(page, "5i")))
    assert page.locator("[data-drawn]").count() == 0


def test_arrows_are_not_drawn_through_the_promotion_choice(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both", sfen="4k4/9/9/1S7/9/9/9/9/4K4 b - 1")
    page.keyboard.press("h")
    page.wait_for_selector(".kb-arrows .kb-share")
    click_move(page, "8d8c")
    page.wait_for_selector(".kb-choice")
    assert page.locator(".kb-arrows").count() == 0


def listen(page: "Page") -> None:
    """Write the sounds that the page plays into the list ``window.sounds``."""
    page.evaluate(
        """() => {
            window.sounds = [];
            const RealAudio = window.Audio;
            window.Audio = function (url) { window.sounds.push(url); return new RealAudio(url); };
        }"""
    )


def test_a_position_that_is_sent_again_is_no_answer_to_a_move(open_page: OpenPage) -> None:
    """It must not take back the piece that was moved, nor have the move sound twice."""
    page = open_page()
    begin(page, side="Both", sfen="4k4/9/9/9/9/4p4/4P4/9/4K4 b - 1")
    may_move(page, "5g5f")
    board = "getElement(Number(document.querySelector('.kb').closest('[id^=c]').id.slice(1)))"
    page.evaluate(f"() => {{ {board}.pending = '5g5f'; }}")  # sent, and the answer takes a while
    page.wait_for_selector('[data-square="5f"][data-piece="P"]')
    page.keyboard.press("v")  # the server draws the board again
    page.wait_for_selector("[data-tool=sound] >> text=volume_off")
    assert page.evaluate(f"() => {board}.pending") == "5g5f"
    page.evaluate(f"() => {board}.refuse()")
    may_move(page, "5g5f")


def test_sounds_after_a_click_and_not_when_muted(open_page: OpenPage, server: Server) -> None:
    page = open_page()
    listen(page)
    begin(page, side="Both", sfen="4k4/9/9/9/9/4p4/4P4/9/4K4 b - 1")
    with page.expect_response("**/static/sounds/capture.wav") as response:
        click_move(page, "5g5f")
    assert response.value.ok
    wait_for_moves(page, 1)
    click_move(page, "5a5b")
    wait_for_moves(page, 2)
    heard = [f"/static/sounds/{name}.wav" for name in ("capture", "move")]
    assert page.evaluate("window.sounds") == heard
    page.keyboard.press("v")
    page.wait_for_selector("[data-tool=sound] >> text=volume_off")
    click_move(page, "5i5h")
    wait_for_moves(page, 3)
    assert page.evaluate("window.sounds") == heard
    for name in ("move", "clock", "end"):
        assert server.request(f"/static/sounds/{name}.wav")[0] == 200


LISTEN = """
    const RealAudio = window.Audio;
    window.Audio = function (url) { console.log("sound"); return new RealAudio(url); };
    const moves = () => document.querySelectorAll(".km-move[data-ply]").length;
    setInterval(() => console.log("moves", moves()), 50);
"""


def test_no_sound_before_the_visitor_has_done_something(open_page: OpenPage) -> None:
    first = open_page()
    first.get_by_role("button", name="Watch").click()
    for label in ("Opponent", "Plays Black against it"):
        first.get_by_label(label).click()
        first.get_by_role("option", name="Bots").click()
    first.get_by_role("button", name="Begin").click()
    wait_for_moves(first, 1)
    page = first.context.new_page()
    page.add_init_script(LISTEN)
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.goto(first.url)
    # Nothing is evaluated on the page meanwhile: browsers take that for an input.
    with page.expect_console_message(lambda _: len(set(heard)) > 3, timeout=30_000):
        pass
    assert "sound" not in heard, heard
    page.mouse.click(1, 1)
    with page.expect_console_message(lambda message: message.text == "sound", timeout=30_000):
        pass


def test_drops_and_steps_back_are_animated(open_page: OpenPage) -> None:
    page = open_page(motion=True)
    begin(page, bot=0, sfen="4k4/9/9/9/9/9/9/9/4K4 b G 1 moves 5i5h 5a5b")
    page.evaluate(
        """() => {
            window.glides = [];
            const animate = Element.prototype.animate;
            Element.prototype.animate = function (frames, ...rest) {
                if (this.dataset?.square) window.glides.push(this.dataset.square);
                return animate.call(this, frames, ...rest);
            };
        }"""
    )
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => window.glides.includes('5a')")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => window.glides.includes('5i')")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => window.glides.includes('5h')")
    page.evaluate("window.glides = []")
    page.keyboard.press("End")
    click_move(page, "G*5g")  # one's own needs none; the answer to it is seen
    wait_for_moves(page, 4)
    page.wait_for_function("() => window.glides.length > 0")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    wait_for_moves(page, 2)
    page.evaluate("window.glides = []")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => window.glides.includes('5g')")  # the drop, from the hand


@pytest.mark.parametrize("motion", [False, True])
def test_menus_and_dialogs_move_only_where_motion_is_wanted(
    open_page: OpenPage, motion: bool
) -> None:
    page = open_page(motion=motion)
    duration = "one => getComputedStyle(one).getPropertyValue('--q-transition-duration')"
    assert page.locator(".q-dialog__inner").evaluate(duration) == ("300ms" if motion else "0ms")
    page.get_by_label("Clock").click()
    assert page.locator(".q-menu").evaluate(duration) == ("300ms" if motion else "0ms")
    if not motion:
        assert page.evaluate("document.getAnimations().length") == 0
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-menu", state="detached")


def test_boards_and_pieces_to_choose(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both")
    choose_tool(page, "look")
    page.get_by_role("button", name="Slate").click()
    page.wait_for_selector(".kb-board-slate")
    page.get_by_role("button", name="White wood").click()
    page.wait_for_selector(".kb-pieces-white")
    page.get_by_role("button", name="Letters").click()
    page.wait_for_selector(".kb-letters")
    page.reload()
    page.wait_for_selector(".kb-board-slate.kb-pieces-white.kb-letters")


def test_own_clock_times(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_label("Clock").click()
    page.get_by_role("option", name="Own times").click()
    for label, value in (("Minutes", "0"), ("Byoyomi", "1"), ("Increment", "0")):
        page.get_by_label(label).fill(value)
    listen(page)
    begin(page, side="Both")
    wait_for_status(page, "White wins: time is up")
    page.wait_for_function("window.sounds.length >= 2")
    heard = {f"/static/sounds/{name}.wav" for name in ("clock", "end")}
    assert set(page.evaluate("window.sounds")) == heard, "the last seconds, and the end"
    assert page.locator(".kp-clock").all_inner_texts() == ["0:01", "0:00"], "it stays at zero"
    page.keyboard.press("n")
    assert page.get_by_label("Byoyomi").input_value() == "1", "the next game has the same clock"


def test_the_slider_keeps_the_focus_and_says_what_a_level_is(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, bot=None)
    page.locator(".kp-side").get_by_role("slider").locator("[tabindex]").first.focus()
    pressed = [("End", 10), ("Home", 1), *(("ArrowRight", level) for level in range(2, 7))]
    for key, level in pressed:
        page.keyboard.press(key)
        page.wait_for_selector(f".kp-player[data-color=white]:has-text('level {level}')")
    text = page.locator(".kp-side .kp-details").inner_text()
    assert re.fullmatch(r"Elo \d+: wins [5-9] of 10 games against the bot “.*”", text), text


def test_moves_typed_quickly_are_all_played(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both")
    field = page.get_by_label("Type a move")
    for text in ("7g7f", "3c3d", "2g2f", "8c8d", "2f2e", "8d8e"):
        field.fill(text)
        field.press("Enter")
        assert field.input_value() == "", "emptied at once, not when the next move stands there"
    wait_for_moves(page, 6)


def test_only_one_message_at_a_time(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both")
    field = page.get_by_label("Type a move")
    for ply, text in enumerate(("7g7f", "P-3d", "２六歩", "84歩"), start=1):
        field.fill(text)
        field.press("Enter")
        wait_for_moves(page, ply)
    assert moves(page) == ["☗７六歩", "☖３四歩", "☗２六歩", "☖８四歩"], "in any notation"
    for text in ("1a1b", "9a9b", "7g7e"):
        field.fill(text)
        field.press("Enter")
        page.wait_for_selector(f".q-notification:has-text('{text}')")
    # Sooner than they would leave by themselves, after five seconds:
    page.wait_for_function(
        "() => document.querySelectorAll('.q-notification').length === 1", timeout=2500
    )


def wait_for_file(page: "Page", folder: Path, move: str) -> None:
    """Wait until the file of a game has a move."""
    for _ in range(600):
        if any(move in file.read_text("utf-8") for file in folder.glob("*.kif")):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"no game with {move} was saved")


def test_games_are_kept_over_a_restart(windows: Windows, runs: Path, tmp_path: Path) -> None:
    played: list[str] = []
    for start in (1, 2):
        server = Server("play", "--runs", str(runs), "--seed", "1", games=tmp_path)
        try:
            with open_pages(windows, server, ".kb-piece") as open_page:
                page = open_page()
                if start == 1:
                    begin(page, bot=1)
                    click_move(page, "7g7f")
                    wait_for_moves(page, 2)
                    played = moves(page)
                    wait_for_file(page, tmp_path, move=played[-1][1:])
                else:
                    page.keyboard.press("Escape")
                    page.wait_for_selector(".q-dialog", state="detached")
                    choose_tool(page, "games")
                    page.locator(".kp-game button").last.click()
                    page.get_by_role("button", name="Cancel").click()  # it is not deleted
                    page.get_by_text("Delete this game?").wait_for(state="detached")
                    page.locator(".kp-game button").first.click()
                    page.wait_for_selector(".q-dialog", state="detached")
                    wait_for_moves(page, 2)
                    assert moves(page) == played
                    wait_for_status(page, "Your move, Black")
                    click_move(page, "2g2f")
                    wait_for_moves(page, 4)  # against the same opponent
        finally:
            server.interrupt()
    (file,) = tmp_path.glob("*.kif")
    assert "２六歩" in file.read_text("utf-8")


def test_the_language_is_the_browsers_and_can_be_changed(open_page: OpenPage) -> None:
    page = open_page(language="ja-JP")
    assert page.evaluate("document.documentElement.lang") == "ja"
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    click_move(page, "7g7f")
    wait_for_moves(page, 2)
    page.locator('[data-tool="resign"]').click()
    page.locator(".kp-dialog .bg-primary").click()
    wait_for_status(page, "あなたの負けです（投了）")
    page.get_by_role("button", name="言語").click()
    page.get_by_role("menuitem", name="English").click()
    page.wait_for_function("() => document.documentElement.lang === 'en-US'")
    wait_for_status(page, "You lose: resignation")


def test_a_page_that_is_not_there(server: Server) -> None:
    status, text = server.request("/nothing/here", Accept_Language="ja")
    assert status == 404
    assert "このアドレスにページはありません" in text
    status, text = server.request("/static/sounds/nothing.wav")
    assert status == 404
