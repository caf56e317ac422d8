"""The checkpoints and sample games that a run has left on disk."""

import re
from typing import Final, NamedTuple

from keisei.checkpoints.rotation import list_checkpoints, rank
from keisei.errors import KeiseiError
from keisei.metric_names import Strength
from keisei.runs import run_files
from keisei.runs.folder import OutsideError, RunsFolder
from keisei.runs.run_reader import RunData
from keisei.shogi.types import Diagram, Move

_MANIFEST: Final = "manifest.json"
"""A checkpoint is complete if it has one: see `keisei.checkpoints.manifest`, which needs torch."""


class Playable(NamedTuple):
    """A checkpoint on disk."""

    name: str
    timestep: int
    update: int | None
    """Updates of the network, where the journal tells."""

    seconds: float | None
    """Seconds of training, where the journal tells."""

    scores: dict[str, Strength]
    """Of the evaluation of the same network, if there was one."""


def playable(folder: RunsFolder, run: RunData) -> list[Playable]:
    """The checkpoints of a run that are complete, the newest first."""
    try:
        paths = list_checkpoints(folder.resolve(run.name, run_files.CHECKPOINTS))
    except KeiseiError:
        return []
    scores = {found.update: dict(found.scores) for found in run.evaluations}
    told = {saved.path.rpartition("/")[2]: saved for saved in reversed(run.saved)}
    found = []
    for path in reversed(paths):
        if not _is_there(folder, run.name, path.name):
            continue
        saved = told.get(path.name)
        found.append(
            Playable(
                name=path.name,
                timestep=rank(path)[0],
                update=saved.update if saved else None,
                seconds=saved.seconds if saved else None,
                scores=scores.get(saved.update, {}) if saved else {},
            )
        )
    return found


def _is_there(folder: RunsFolder, run: str, name: str) -> bool:
    try:
        return folder.resolve(run, run_files.CHECKPOINTS, name, _MANIFEST).is_file()
    except (OSError, OutsideError):
        return False


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
