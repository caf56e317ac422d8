"""The page with the board, without a browser: who only asks for it, who comes, who is refused."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("nicegui")

from nicegui import Client, app, ui
from nicegui.elements.upload_files import SmallFileUpload
from nicegui.testing.user_interaction import UserInteraction
from nicegui.testing.user_simulation import user_simulation

from keisei.play.session import GameSession
from keisei.play.transfer import read_session
from keisei.web.dashboard.play_link import build_play_page
from keisei.web.play.board import Board
from keisei.web.play.catalogue import Catalogue
from keisei.web.play.dialogs import open_dialog
from keisei.web.play.game_room import Table
from keisei.web.play.game_setup import Seat, Setup
from keisei.web.play.play_page import PlayPage
from keisei.web.play.room_directory import Tables

if TYPE_CHECKING:
    from nicegui.testing import User


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


@asynccontextmanager
async def visitor() -> AsyncIterator["User"]:
    """Somebody without a browser, at a server without a network."""
    async with user_simulation() as user:
        try:
            yield user
        finally:
            Client.page_routes.clear()  # else the modules of the pages were unloaded


@asynccontextmanager
async def house(*tables: Table) -> AsyncIterator["tuple[User, Tables]"]:
    """A server that shows a page for each table: /0, /1 ..."""
    known = Tables()

    def build(table: Table) -> None:
        PlayPage(table, known, lettering="kanji").build(ask_first=False)

    async with visitor() as user:
        for number, table in enumerate(tables):
            ui.page(f"/{number}")(partial(build, table))
        app.on_shutdown(known.close)
        yield user, known


def test_who_only_asks_for_the_page_wakes_nobody(runs: Path) -> None:
    async def story() -> None:
        table = Table(Catalogue(runs), Setup(black=Seat("bots", 0)))
        async with house(table) as (user, tables):
            assert (await user.http_client.get("/0")).status_code == 200
            assert (table.is_watched, tables.find(table.id)) == (False, None)
            await user.open("/0")
            assert (table.is_watched, tables.find(table.id)) == (True, table)
            await table.settled()
            assert table.session.length == 1

    run(story())


def test_nor_does_who_only_asks_for_the_dashboards_board(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Table] = []
    monkeypatch.setattr(Table, "attach", lambda table, _: shown.append(table))

    async def story() -> None:
        async with visitor() as user:
            build_play_page(runs)
            address = "/play?against=run:tiny"
            assert (await user.http_client.get(address)).status_code == 200
            assert shown == []
            await user.open(address)
            (table,) = shown
            assert table.setup.white == Seat("run:tiny")
            assert table.adviser == "run:tiny"

    run(story())


def test_where_all_tables_are_taken_the_page_says_so(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keisei.web.play.room_directory.MOST_TABLES", 1)

    async def story() -> None:
        first, second = Table(Catalogue(runs)), Table(Catalogue(runs))
        async with house(first, second) as (user, _):
            await user.open("/0")
            await user.should_see(Board)
            client = await user.open("/1")
            await user.should_see("All 1 tables are taken")
            await user.should_not_see(Board)
            assert not second.is_watched
            await first.close()
            for handler in client.connect_handlers:  # its connection was lost and comes back
                client.safe_invoke(handler)
            assert not second.is_watched, "what it shows is the refusal"
            await user.open("/1")
            assert second.is_watched

    run(story())


def test_a_person_can_let_paused_machines_go_on(runs: Path) -> None:
    async def story() -> None:
        table = Table(Catalogue(runs), Setup(white=Seat("bots", 0)))
        table.pause(True)
        async with house(table) as (user, _):
            await user.open("/0")
            await user.should_see("Your move, Black.")
            buttons = user.find(ui.button).elements
            (pause,) = [button for button in buttons if button.props.get("data-tool") == "pause"]
            UserInteraction(user, {pause}, None).click()
            assert not table.paused

    run(story())


def test_the_page_of_a_game_whose_checkpoint_is_gone(runs: Path, tmp_path: Path) -> None:
    async def story() -> None:
        shutil.copytree(runs / "tiny", tmp_path / "tiny")
        catalogue = Catalogue(tmp_path)
        older = catalogue.entries()[1]
        table = Table(catalogue, Setup(white=Seat(older.key)), adviser=older.key)
        shutil.rmtree(older.word)
        async with house(table) as (user, _):
            await user.open("/0")
            await user.should_see("White: tiny, 64 plies")
            await table.settled()
            assert older.word in table.problem, "it can't be loaded any more, and says so"

    run(story())


def test_other_pages_do_not_wait_while_a_file_is_read(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[threading.Thread] = []

    def read(data: bytes, name: str) -> GameSession:
        readers.append(threading.current_thread())
        return read_session(data, name)

    monkeypatch.setattr("keisei.web.play.dialogs.read_session", read)

    async def story() -> None:
        opened: asyncio.Queue[GameSession] = asyncio.Queue()

        def show(session: GameSession) -> bool:
            opened.put_nowait(session)
            return True

        async with house(Table(Catalogue(runs))) as (user, _):
            await user.open("/0")
            with user:
                open_dialog(show)
            (uploader,) = user.find(ui.upload).elements
            file = SmallFileUpload("game.sfen", "", b"startpos moves 7g7f")
            await uploader.handle_uploads([file])
            assert (await opened.get()).length == 1
        (reader,) = readers
        assert reader is not threading.main_thread()

    run(story())
