"""The sample games of a run, to play through."""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from keisei import run_files
from keisei.dashboard.folder import OutsideError, RunsFolder
from keisei.errors import KeiseiError

if TYPE_CHECKING:
    from keisei.shogi.diagram import Diagram
    from keisei.shogi.moves import Move

MOST_GAMES: Final = 200
"""Games that are listed, the newest first."""

_NAME: Final = re.compile(r"update-(\d+)-(.+)\.kif")


class GameFile(NamedTuple):
    """A game that can be opened."""

    file: str
    update: int
    players: str
    """Such as ``network-vs-greedy``."""


class Frame(NamedTuple):
    """A position of a game."""

    diagram: "Diagram"
    last_move: "Move | None"
    check_square: int | None


class OpenedGame(NamedTuple):
    """A game to play through."""

    black: str
    white: str
    ending: str
    frames: tuple[Frame, ...]
    """The first is the start, each next one a move later."""


def list_games(folder: RunsFolder, name: str) -> list[GameFile]:
    """The games of a run, the newest evaluation first."""
    try:
        directory = folder.resolve(name, run_files.GAMES)
        names = [path.name for path in directory.iterdir()]
    except (OSError, OutsideError):
        return []
    found = [
        GameFile(file, int(match[1]), match[2])
        for file in names
        if (match := _NAME.fullmatch(file)) is not None
    ]
    return sorted(found, key=lambda game: (-game.update, game.players))[:MOST_GAMES]


def open_game(folder: RunsFolder, name: str, file: str) -> OpenedGame:
    """Play a game through.

    Raises:
        KeiseiError: There is no such game, or it cannot be read.
    """
    from keisei.shogi.game import ShogiGame
    from keisei.shogi.notation.files import load_game

    folder.run(name)
    if file not in {game.file for game in list_games(folder, name)}:
        raise KeiseiError(f"there is no game {file} of {name}")
    path = folder.resolve(name, run_files.GAMES, file)
    if not path.is_file():
        raise KeiseiError(f"{file} is no ordinary file")
    record = load_game(path)
    game = ShogiGame(record.start)
    frames = [Frame(game.diagram, None, game.checked_king)]
    for move in record.main_line:
        game.push(move)
        frames.append(Frame(game.diagram, move, game.checked_king))
    return OpenedGame(
        black=record.black or "Black",
        white=record.white or "White",
        ending="" if record.result is None else record.result.ending.value,
        frames=tuple(frames),
    )
