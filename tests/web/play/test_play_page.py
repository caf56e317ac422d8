"""The page with the board, without a browser: requests, connections, refusals."""

import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

pytest.importorskip("nicegui")

from nicegui import Client, app, ui
from nicegui.elements.upload_files import SmallFileUpload
from nicegui.testing.user_interaction import UserInteraction
from nicegui.testing.user_simulation import user_simulation

from keisei.play.session import GameSession
from keisei.play.uploads import UploadReader
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.web.dashboard.site import build_play_page
from keisei.web.play.board import BoardView
from keisei.web.play.catalogue import Catalogue, GameSetup, PlayerChoice
from keisei.web.play.dialogs import open_dialog
from keisei.web.play.game_room import GameRoom, Lobby
from keisei.web.play.play_page import PlayPage

if TYPE_CHECKING:
    from nicegui.testing import User


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


@asynccontextmanager
async def visitor() -> AsyncIterator["User"]:
    """A simulated user and server."""
    async with user_simulation() as user:
        try:
            yield user
        finally:
            Client.page_routes.clear()  # else the modules of the pages were unloaded


@asynccontextmanager
async def served(*rooms: GameRoom) -> AsyncIterator["tuple[User, Lobby]"]:
    """Serve a page for each room: /0, /1 ..."""
    lobby = Lobby()

    def build(room: GameRoom) -> None:
        PlayPage(room, lobby, lettering="kanji").build(ask_first=False)

    async with visitor() as user:
        for number, room in enumerate(rooms):
            ui.page(f"/{number}")(partial(build, room))
        app.on_shutdown(lobby.close)
        yield user, lobby


def test_a_request_alone_loads_no_player(runs: Path) -> None:
    async def story() -> None:
        room = GameRoom(Catalogue(runs), GameSetup(black=PlayerChoice("bots", 0)))
        async with served(room) as (user, lobby):
            assert (await user.http_client.get("/0")).status_code == 200
            assert (room.is_watched, lobby.find(room.id)) == (False, None)
            await user.open("/0")
            assert (room.is_watched, lobby.find(room.id)) == (True, room)
            await room.settled()
            assert room.session.length == 1

    run(story())


def test_a_request_alone_for_the_dashboards_board_loads_no_player(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[GameRoom] = []
    monkeypatch.setattr(GameRoom, "attach", lambda room, _: shown.append(room))

    async def story() -> None:
        async with visitor() as user:
            build_play_page(runs)
            address = "/play?against=run:tiny"
            assert (await user.http_client.get(address)).status_code == 200
            assert shown == []
            await user.open(address)
            (room,) = shown
            assert room.setup.white == PlayerChoice("run:tiny")
            assert room.analyst == "run:tiny"

    run(story())


def test_the_dashboards_board_has_analysis_and_editor_and_starts_from_a_position(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[GameRoom] = []
    monkeypatch.setattr(GameRoom, "attach", lambda room, _: shown.append(room))

    async def story() -> None:
        async with visitor() as user:
            build_play_page(runs)
            for address in ("/analysis", "/analysis?game=nothing", "/editor"):
                assert (await user.http_client.get(address)).status_code == 200
            assert (await user.http_client.get("/analysis/nothing/game.kif")).status_code == 404
            sfen = "4k4/9/9/9/9/9/9/9/4K4 b R 1"
            for start in (sfen, "nonsense"):
                await user.open(f"/play?start={quote(start)}")
            first, second = shown
            assert first.session.game.sfen() == sfen
            assert second.session.game.sfen() == STARTPOS_SFEN

    run(story())


def test_the_page_explains_that_all_rooms_are_in_use(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keisei.web.rooms.MAX_ROOMS", 1)

    async def story() -> None:
        first, second = GameRoom(Catalogue(runs)), GameRoom(Catalogue(runs))
        async with served(first, second) as (user, _):
            await user.open("/0")
            await user.should_see(BoardView)
            client = await user.open("/1")
            await user.should_see("All game rooms are in use")
            await user.should_not_see(BoardView)
            assert not second.is_watched
            await first.close()
            for handler in client.connect_handlers:  # the connection is restored
                client.safe_invoke(handler)
            assert not second.is_watched, "it still shows the refusal"
            await user.open("/1")
            assert second.is_watched

    run(story())


def test_a_person_can_resume_paused_computer_players(runs: Path) -> None:
    async def story() -> None:
        room = GameRoom(Catalogue(runs), GameSetup(white=PlayerChoice("bots", 0)))
        room.pause(True)
        async with served(room) as (user, _):
            await user.open("/0")
            await user.should_see("Your move, Black.")
            buttons = user.find(ui.button).elements
            (pause,) = [button for button in buttons if button.props.get("data-tool") == "pause"]
            UserInteraction(user, {pause}, None).click()
            assert not room.paused

    run(story())


def test_the_page_of_a_game_whose_checkpoint_is_gone(runs: Path, tmp_path: Path) -> None:
    async def story() -> None:
        shutil.copytree(runs / "tiny", tmp_path / "tiny")
        catalogue = Catalogue(tmp_path)
        older = next(entry for entry in catalogue.entries() if "64 plies" in entry.label)
        room = GameRoom(catalogue, GameSetup(white=PlayerChoice(older.key)), analyst=older.key)
        shutil.rmtree(older.spec)
        async with served(room) as (user, _):
            await user.open("/0")
            await user.should_see("White: tiny, 64 plies")
            await room.settled()
            assert older.spec in room.problem, "the page explains that it cannot be loaded"

    run(story())


def test_other_pages_do_not_wait_while_a_file_is_read(runs: Path) -> None:
    readers: list[threading.Thread] = []

    class Uploads(UploadReader):
        def read(self, data: bytes, name: str = "", *, variations: bool = False) -> GameRecord:
            readers.append(threading.current_thread())
            return super().read(data, name, variations=variations)

    uploads = Uploads()

    async def story() -> None:
        opened: asyncio.Queue[GameSession] = asyncio.Queue()

        def show(session: GameSession) -> bool:
            opened.put_nowait(session)
            return True

        async with served(GameRoom(Catalogue(runs))) as (user, _):
            await user.open("/0")
            with user:
                open_dialog(show, GameSession.from_record, uploads=uploads)
            (uploader,) = user.find(ui.upload).elements
            file = SmallFileUpload("game.sfen", "", b"startpos moves 7g7f")
            await uploader.handle_uploads([file])
            assert (await opened.get()).length == 1
        (reader,) = readers
        assert reader is not threading.main_thread()
        assert uploads.process_id not in (None, os.getpid())
        uploads.close()

    run(story())
