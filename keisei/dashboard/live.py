"""The games that a run is playing right now, as its ``live.json`` tells."""

from typing import Any, NamedTuple

import orjson

from keisei import run_files
from keisei.dashboard.folder import OutsideError, RunsFolder


class LiveBoard(NamedTuple):
    """A game under way."""

    sfen: str
    last_move: str | None
    """In USI."""


class LiveGames(NamedTuple):
    """What a run said last."""

    time: float
    """When, in seconds since 1970."""

    update: int
    boards: tuple[LiveBoard, ...]
    stamp: int
    """When the file was written, in nanoseconds: another stamp means that there is news."""


def read_live(folder: RunsFolder, name: str, known: LiveGames | None = None) -> LiveGames | None:
    """The games of a run: `known`, if there is no news; None if it says nothing."""
    try:
        stamp = folder.resolve(name, run_files.LIVE).stat().st_mtime_ns
    except (OSError, OutsideError):
        return None
    if known is not None and known.stamp == stamp:
        return known
    data = folder.read(name, run_files.LIVE)
    try:
        fields = orjson.loads(data or b"")
        return LiveGames(
            float(fields["time"]),
            int(fields["update"]),
            tuple(_board(game) for game in fields["games"]),
            stamp,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _board(game: Any) -> LiveBoard:
    move = game.get("last_move")
    return LiveBoard(str(game["sfen"]), None if move is None else str(move))
