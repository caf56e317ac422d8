"""Registers the pages of analysis: the game, its files, and the editor of positions.

What they need, Numba among it, is imported when the first of them is opened.
"""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from fastapi import HTTPException, Response
from nicegui import app, ui

from keisei.errors import KeiseiError
from keisei.web.theme import toast

if TYPE_CHECKING:
    from keisei.shogi.notation.record import GameRecord
    from keisei.shogi.render.glyphs import Lettering
    from keisei.web.analysis.analysis_room import AnalysisRoom
    from keisei.web.play.catalogue import Catalogue
    from keisei.web.play.game_room import GameRoom
    from keisei.web.rooms import Rooms

ADDRESS: Final = "/analysis"
EDITOR: Final = "/editor"


def build_analysis_routes(
    catalogue: "Callable[[], Catalogue]",
    find_game: "Callable[[str], GameRoom | None]",
    *,
    lettering: "Lettering" = "kanji",
    play_address: str = "/",
) -> None:
    """Register the pages.

    Args:
        catalogue: returns where the networks are that can analyse.
        find_game: returns the game room with an id, whose game can be analysed.
        lettering: the script on the pieces, unless the visitor has chosen another.
        play_address: of the page on which games are played.
    """

    @cache
    def rooms() -> "Rooms[AnalysisRoom]":
        from keisei.web.analysis.analysis_room import AnalysisRoom
        from keisei.web.rooms import Rooms

        app.on_shutdown((kept := Rooms[AnalysisRoom]()).close)
        return kept

    @ui.page(ADDRESS)
    def analysis(room: str = "", game: str = "", sfen: str = "", flip: bool = False) -> None:
        """Show an analysis: ``?game=`` of a game room, ``?sfen=`` of a position.

        ``?room=`` is the id of the analysis of a page that is reloaded.
        """
        from keisei.web.analysis.analysis_page import AnalysisPage
        from keisei.web.analysis.analysis_room import AnalysisRoom
        from keisei.web.play.error_wording import error_text

        found, problem = rooms().find(room), None
        if found is None:
            record, problem = _record(find_game(game) if game else None, sfen)
            found = AnalysisRoom(catalogue(), record)
        page = AnalysisPage(
            found, rooms(), lettering=lettering, flip=flip, play_address=play_address
        )
        page.build()
        if problem is not None:
            toast(error_text(problem))

    @ui.page(EDITOR)
    def editor(sfen: str = "") -> None:
        """Show the editor, with the position ``?sfen=``."""
        from keisei.web.analysis.editor_page import EditorPage

        EditorPage(sfen, lettering=lettering, play_address=play_address).build()

    @app.get(f"{ADDRESS}/{{room}}/{{name}}")
    async def file(
        room: str, name: str, flip: bool = False, labels: str = "japanese", as_text: bool = False
    ) -> Response:
        """Return a file of a game under analysis."""
        from keisei.web.analysis.room_files import Snapshot, file_content

        found = rooms().find(room)
        if found is None:
            raise HTTPException(404)
        snapshot = Snapshot.of(found)
        try:
            content, kind = await asyncio.to_thread(
                file_content, snapshot, name, as_text=as_text, labels=labels, flip=flip
            )
        except KeiseiError as error:
            raise HTTPException(404, str(error)) from None
        title = quote(f"{snapshot.title}.{name.partition('.')[2]}")
        return Response(
            content,
            media_type=kind,
            headers={
                "Content-Disposition": f"attachment; filename*=UTF-8''{title}",
                "Cache-Control": "no-store",  # the same address is another position next time
            },
        )


def _record(room: "GameRoom | None", sfen: str) -> "tuple[GameRecord, KeiseiError | None]":
    """Return the game of a game room, or the one that starts from an SFEN, or why it is neither."""
    from keisei.shogi.game import ShogiGame
    from keisei.shogi.notation.record import GameRecord

    if room is not None:
        return room.session.record(), None
    if not sfen:
        return GameRecord(), None
    try:
        game = ShogiGame(sfen)
        return GameRecord.from_moves(game.moves, start=game.start), None
    except KeiseiError as error:
        return GameRecord(), error
