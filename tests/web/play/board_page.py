"""What people do with the board on a page, for tests in a browser."""

import re
from typing import TYPE_CHECKING

from keisei.shogi.game import ShogiGame

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def begin(
    page: "Page", *, side: str = "Black", bot: int | None = 0, sfen: str = "", start: str = ""
) -> None:
    """Fill in the dialog for a new game; `bot` is a stop of the strength slider."""
    page.get_by_role("button", name=side, exact=True).click()
    if side != "Both" and bot is not None:
        page.get_by_label("Opponent").click()
        page.get_by_role("option", name="Bots").click()
        # The opponent's: another one is behind the dialog.
        page.locator(".kp-dialog").get_by_role("slider", name="Strength").first.locator(
            "[tabindex]"
        ).first.focus()
        page.keyboard.press("Home")
        for _ in range(bot):
            page.keyboard.press("ArrowRight")
    if sfen or start:
        page.get_by_label("Start").click()
        page.get_by_role("option", name="Another position" if sfen else start).click()
    if sfen:
        page.get_by_label("SFEN", exact=True).fill(sfen)
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector(".q-dialog", state="detached")  # its backdrop too


def middle(locator: "Locator") -> tuple[float, float]:
    """Return the centre of an element; one that is drawn again at this moment is measured again."""
    for _ in range(50):
        if (box := locator.bounding_box()) is not None:
            break
        locator.page.wait_for_timeout(20)
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def origin(page: "Page", move: str) -> "Locator":
    if move[1] == "*":
        return page.locator(f'.kb-held.kb-own[data-hand="{move[0]}"]')
    return page.locator(f'.kb-piece[data-square="{move[:2]}"]')


def may_move(page: "Page", move: str) -> None:
    """Wait until the piece of a move can be moved."""
    if move[1] != "*":
        page.wait_for_selector(f'.kb-own[data-square="{move[:2]}"]')


def click_move(page: "Page", move: str) -> None:
    may_move(page, move)
    page.mouse.click(*middle(origin(page, move)))
    page.mouse.click(*middle(page.locator(f'[data-target="{move[2:4]}"]')))


def drag_move(page: "Page", move: str) -> None:
    may_move(page, move)
    page.mouse.move(*middle(origin(page, move)))
    page.mouse.down()
    x, y = middle(page.locator(f'[data-target="{move[2:4]}"]'))
    page.mouse.move(x - 15, y - 15)
    page.mouse.move(x, y)
    page.mouse.up()


def wait_for_moves(page: "Page", number: int) -> None:
    page.wait_for_selector(f'.km-move[data-ply="{number}"].km-now')


def wait_for_status(page: "Page", text: str) -> None:
    page.wait_for_selector(f".kp-status:text-matches({text!r})")


def moves(page: "Page") -> list[str]:
    return page.locator(".km-move[data-ply]").all_inner_texts()


def position(page: "Page", turn: str) -> ShogiGame:
    """Return the position as it is drawn on the page."""
    pieces = page.eval_on_selector_all(
        ".kb-piece", "all => all.map(one => [one.dataset.square, one.dataset.piece])"
    )
    held = page.eval_on_selector_all(
        ".kb-held",
        "all => all.map(one => [one.dataset.hand, one.dataset.color, one.dataset.count])",
    )
    board = dict(pieces)
    rows = []
    for rank in "abcdefghi":
        row = "".join(board.get(f"{file}{rank}", " ") for file in range(9, 0, -1))
        rows.append(re.sub(" +", lambda gap: str(len(gap[0])), row))
    hands = "".join(
        f"{count if int(count) > 1 else ''}{letter if color == '0' else letter.lower()}"
        for letter, color, count in sorted(held, key=lambda h: (h[1], "RBGSNLP".index(h[0])))
    )
    return ShogiGame(f"{'/'.join(rows)} {turn} {hands or '-'} 1")


def choose_tool(page: "Page", name: str) -> None:
    """Click an item of the menu beside the tools."""
    page.locator('[data-tool="more"]').click()
    page.locator(f'.q-menu [data-tool="{name}"]').click()
