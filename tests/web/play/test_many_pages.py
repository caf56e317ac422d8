"""Many pages at once, and many games one after the other. Takes minutes: `make soak`."""

from typing import TYPE_CHECKING

import pytest

from tests.web.conftest import Server, open_pages
from tests.web.play.board_page import begin, click_move, wait_for_moves, wait_for_status

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.soak

PAGES = 20
GAMES = 100
WARM_GAMES = 20
MAX_GROWTH = 16 << 20
"""Bytes by which the server may grow over the games after the first ones."""


def test_twenty_pages_at_once(browser: "Browser", server: Server) -> None:
    with open_pages(browser, server, ".kb-piece") as open_page:
        pages = [open_page() for _ in range(PAGES)]
        for page in pages:
            begin(page, bot=None)
        for page in pages:
            click_move(page, "7g7f")
        for page in pages:
            wait_for_moves(page, 2)
            wait_for_status(page, "Your move")


def test_memory_stays_flat_over_many_games(browser: "Browser", server: Server) -> None:
    before = 0
    with open_pages(browser, server, ".kb-piece") as open_page:
        page = open_page()
        begin(page, bot=None)
        for number in range(GAMES):
            for ply, move in ((2, "7g7f"), (4, "9g9f")):
                click_move(page, move)
                wait_for_moves(page, ply)
            page.locator('[data-tool="resign"]').click()
            page.locator(".kp-dialog .bg-primary").click()
            page.get_by_role("button", name="Rematch").click()
            page.wait_for_selector(".km-empty")
            page.wait_for_selector(".q-dialog", state="detached")
            if number == WARM_GAMES:
                before = server.memory()
    assert server.memory() - before < MAX_GROWTH
