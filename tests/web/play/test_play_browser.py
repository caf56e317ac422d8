"""What makes playing pleasant, in a real browser: rematch, premoves, sounds, looks, saved games."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.conftest import OpenPage, Server, open_pages
from tests.web.play.board_page import (
    begin,
    choose_tool,
    click_move,
    middle,
    moves,
    origin,
    wait_for_moves,
    wait_for_status,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow

LATIN = re.compile(r"[A-Za-z]{3,}")
NAMES = {"Keisei", "KIF", "CSA", "SFEN", "KI2", "English", "Elo", "Shift", "Enter", "Esc", "Tab",
         "Home", "End", "Space", "tiny"}  # fmt: skip
"""Words that are the same in every language."""


@pytest.fixture
def open_page(browser: "Browser", server: Server) -> Iterator[OpenPage]:
    with open_pages(browser, server, ".kb-piece") as open_page:
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


def test_sounds_after_a_click_and_not_when_muted(open_page: OpenPage, server: Server) -> None:
    page = open_page()
    page.evaluate(
        """() => {
            window.sounds = [];
            const RealAudio = window.Audio;
            window.Audio = function (url) { window.sounds.push(url); return new RealAudio(url); };
        }"""
    )
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


def test_drops_and_steps_back_are_animated(open_page: OpenPage) -> None:
    page = open_page(motion=True)
    begin(page, bot=0, sfen="4k4/9/9/9/9/9/9/9/4K4 b - 1 moves 5i5h 5a5b")
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
    begin(page, side="Both")
    wait_for_status(page, "White wins: time is up")
    assert page.locator(".kp-clock").all_inner_texts() == ["0:01", "0:00"], "it stays at zero"
    page.keyboard.press("n")
    assert page.get_by_label("Byoyomi").input_value() == "1", "the next game has the same clock"


def test_the_slider_keeps_the_focus_and_says_what_a_level_is(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, bot=None)
    page.locator(".kp-side").get_by_role("slider").locator("[tabindex]").first.focus()
    for level in (5, 6):
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(f".kp-player[data-color=white]:has-text('level {level}')")
    text = page.locator(".kp-side .kp-details").inner_text()
    assert re.fullmatch(r"Elo \d+: wins [5-9] of 10 games against the bot “.*”", text), text


def test_only_one_message_at_a_time(open_page: OpenPage) -> None:
    page = open_page()
    begin(page, side="Both")
    field = page.get_by_label("Type a move")
    for text in ("1a1b", "9a9b", "7g7e"):
        field.fill(text)
        field.press("Enter")
        page.wait_for_selector(f".q-notification:has-text('{text}')")
    # Sooner than they would leave by themselves, after five seconds:
    page.wait_for_function(
        "() => document.querySelectorAll('.q-notification').length === 1", timeout=2500
    )


def test_games_are_kept_over_a_restart(browser: "Browser", runs: Path, tmp_path: Path) -> None:
    played: list[str] = []
    for start in (1, 2):
        server = Server("play", "--runs", str(runs), "--seed", "1", games=tmp_path)
        try:
            with open_pages(browser, server, ".kb-piece") as open_page:
                page = open_page()
                if start == 1:
                    begin(page, bot=1)
                    click_move(page, "7g7f")
                    wait_for_moves(page, 2)
                    played = moves(page)
                    page.wait_for_timeout(300)
                else:
                    page.keyboard.press("Escape")
                    page.wait_for_selector(".q-dialog", state="detached")
                    choose_tool(page, "games")
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


def test_all_of_it_in_japanese_and_back(open_page: OpenPage) -> None:
    page = open_page(language="ja-JP")
    assert page.evaluate("document.documentElement.lang") == "ja"
    texts = [words(page)]
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    click_move(page, "7g7f")
    wait_for_moves(page, 2)
    page.locator('[data-tool="more"]').click()
    page.wait_for_selector(".q-menu")
    texts.append(words(page))
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-menu", state="detached")
    page.keyboard.press("?")
    page.wait_for_selector(".kp-keys")
    texts.append(words(page))
    page.keyboard.press("Escape")
    page.wait_for_selector(".q-dialog", state="detached")
    page.locator('[data-tool="resign"]').click()
    page.locator(".kp-dialog .bg-primary").click()
    wait_for_status(page, "あなたの負けです（投了）")
    texts.append(words(page))
    english = [word for text in texts for word in LATIN.findall(text) if word not in NAMES]
    assert english == []
    page.get_by_role("button", name="言語").click()
    page.get_by_role("menuitem", name="English").click()
    page.wait_for_function("() => document.documentElement.lang === 'en-US'")
    wait_for_status(page, "You lose: resignation")


def words(page: "Page") -> str:
    """Return all that can be read or heard on a page."""
    return str(
        page.evaluate(
            """() => {
                const copy = document.body.cloneNode(true), texts = [];
                copy.querySelectorAll("i, script, style, svg, [id$=popup]").forEach(
                    one => one.remove());
                for (const one of copy.querySelectorAll("[aria-label], [placeholder]"))
                    texts.push(one.ariaLabel, one.placeholder);
                return [copy.textContent, ...texts].filter(text => text).join(" ");
            }"""
        )
    )


def test_a_page_that_is_not_there(server: Server) -> None:
    status, text = server.request("/nothing/here", Accept_Language="ja")
    assert status == 404
    assert "このアドレスにページはありません" in text
    status, text = server.request("/static/sounds/nothing.wav")
    assert status == 404
