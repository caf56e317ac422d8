"""Checkpoints, sample games and ratings that a run has left on disk, for the dashboard."""

import re
from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

import orjson

from keisei import run_files
from keisei.errors import KeiseiError
from keisei.evaluation.rating_text import Position
from keisei.runs.folder import OutsideError, RunsFolder
from keisei.runs.journal import EloEstimate, ScoreEstimate
from keisei.runs.run_reader import RunReader

if TYPE_CHECKING:
    from pathlib import Path

    from keisei.evaluation.ladder import Ladder
    from keisei.evaluation.results import Conditions
    from keisei.shogi.notation.record import Ending
    from keisei.shogi.types import Diagram, Move

_MANIFEST: Final = "manifest.json"
"""File that a complete checkpoint has: see `keisei.checkpoints.manifest`."""

MAX_GAMES: Final = 200
"""Maximum number of sample games that are listed."""

_GAME_FILE: Final = re.compile(r"update-(\d+)-(.+)\.kif")


class RunCheckpoint(NamedTuple):
    """A checkpoint on disk."""

    name: str
    timestep: int
    update: int | None
    """Updates of the network; None if the journal does not mention the checkpoint."""

    seconds: float | None
    """Seconds of training; None if the journal does not mention the checkpoint."""

    scores: dict[str, ScoreEstimate]
    """Scores of the same network by opponent; empty if it was not evaluated."""


def list_run_checkpoints(folder: RunsFolder, run: RunReader) -> list[RunCheckpoint]:
    """Return the complete checkpoints of a run, newest first."""
    from keisei.checkpoints.rotation import list_checkpoints, rank  # slow to import

    try:
        paths = list_checkpoints(folder.resolve(run.name, run_files.CHECKPOINTS))
    except KeiseiError:
        return []
    scores = {evaluation.update: dict(evaluation.scores) for evaluation in run.evaluations}
    journaled = {saved.path.rpartition("/")[2]: saved for saved in reversed(run.checkpoints)}
    found = []
    for path in reversed(paths):
        if not _is_complete(folder, run.name, path.name):
            continue
        saved = journaled.get(path.name)
        found.append(
            RunCheckpoint(
                name=path.name,
                timestep=rank(path)[0],
                update=saved.update if saved else None,
                seconds=saved.seconds if saved else None,
                scores=scores.get(saved.update, {}) if saved else {},
            )
        )
    return found


def _is_complete(folder: RunsFolder, run: str, name: str) -> bool:
    try:
        return folder.resolve(run, run_files.CHECKPOINTS, name, _MANIFEST).is_file()
    except (OSError, OutsideError):
        return False


_IMPORTING: Final = Lock()


def import_shogi() -> None:
    """Import the game, which takes a second; call this before importing parts of it in a thread.

    Two threads that import it at the same time may see it half initialized.
    """
    with _IMPORTING:
        import keisei.shogi.notation.files  # noqa: F401


class GameFile(NamedTuple):
    """A sample game on disk."""

    file: str
    update: int
    players: str
    """Names of the players, such as ``network-vs-greedy``."""


class Frame(NamedTuple):
    """A position of a game."""

    diagram: "Diagram"
    last_move: "Move | None"
    check_square: int | None
    """Square of the king in check; None if there is no check."""


class OpenedGame(NamedTuple):
    """A game with all its positions."""

    black: str
    white: str
    ending: "Ending | None"
    """None if the record does not say how the game ended."""

    frames: tuple[Frame, ...]
    """The start position, then the position after each move."""


def list_games(folder: RunsFolder, name: str) -> list[GameFile]:
    """Return the sample games of a run, newest evaluation first."""
    try:
        directory = folder.resolve(name, run_files.GAMES)
        names = [path.name for path in directory.iterdir()]
    except (OSError, OutsideError):
        return []
    found = [
        GameFile(file, int(match[1]), match[2])
        for file in names
        if (match := _GAME_FILE.fullmatch(file)) is not None
    ]
    return sorted(found, key=lambda game: (-game.update, game.players))[:MAX_GAMES]


def open_game(folder: RunsFolder, name: str, file: str) -> OpenedGame:
    """Return a sample game with all its positions.

    Raises:
        KeiseiError: The game does not exist, or cannot be read.
    """
    import_shogi()
    from keisei.shogi.game import ShogiGame
    from keisei.shogi.notation.files import load_game

    folder.run(name)
    if file not in {game.file for game in list_games(folder, name)}:
        raise KeiseiError(f"there is no game {file} of {name}")
    path = folder.resolve(name, run_files.GAMES, file)
    if not path.is_file():
        raise KeiseiError(f"{file} is not a regular file")
    record = load_game(path)
    game = ShogiGame(record.start)
    frames = [Frame(game.diagram, None, game.checked_king)]
    for move in record.main_line:
        game.push(move)
        frames.append(Frame(game.diagram, move, game.checked_king))
    return OpenedGame(
        black=record.black or "Black",
        white=record.white or "White",
        ending=None if record.result is None else record.result.ending,
        frames=tuple(frames),
    )


class Opening(NamedTuple):
    """The start position of a game and the first move of each side."""

    start: "Diagram"
    moves: "tuple[Move, ...]"


class GameSummary(NamedTuple):
    """Figures of the sample games of a run."""

    games: int
    mean_plies: float
    network_score: float | None
    """Points of the network per game; None if no game names it."""

    black_score: float | None
    """Points of Black per game; None if no game has an end."""

    endings: "tuple[tuple[Ending, int], ...]"
    """Endings with their numbers, the most frequent first."""

    openings: "tuple[tuple[Opening, int], ...]"
    """Openings with their numbers, the most frequent first."""


NETWORK: Final = "network"
"""Name of the network in the records of its games: see `keisei.evaluation.measure`."""


def summarize_games(folder: RunsFolder, name: str) -> GameSummary:
    """Return figures of the sample games of a run; games that cannot be read do not count."""
    import_shogi()
    from keisei.shogi.notation.files import load_game
    from keisei.shogi.types import Color

    lengths: list[int] = []
    network: list[float] = []
    black: list[float] = []
    endings: Counter[Ending] = Counter()
    openings: Counter[Opening] = Counter()
    for found in list_games(folder, name):
        try:
            record = load_game(folder.resolve(name, run_files.GAMES, found.file))
        except KeiseiError:
            continue
        lengths.append(len(record.main_line))
        openings[Opening(record.start, tuple(record.main_line[:2]))] += 1
        if record.result is None:
            continue
        endings[record.result.ending] += 1
        winner = record.winner
        points = 0.5 if winner is None else float(winner is Color.BLACK)
        black.append(points)
        if record.black == NETWORK:
            network.append(points)
        elif record.white == NETWORK:
            network.append(1.0 - points)
    return GameSummary(
        games=len(lengths),
        mean_plies=sum(lengths) / max(1, len(lengths)),
        network_score=sum(network) / len(network) if network else None,
        black_score=sum(black) / len(black) if black else None,
        endings=tuple(endings.most_common()),
        openings=tuple(openings.most_common()),
    )


class CheckpointRating(NamedTuple):
    """Elo of a checkpoint with its 95 % interval."""

    timestep: int
    rating: EloEstimate


class RunRatings(NamedTuple):
    """Elo ratings of a run's checkpoints, as ``keisei evaluate`` wrote them."""

    scale: int
    """Version of the scale."""

    checkpoints: tuple[CheckpointRating, ...]
    opponents: tuple[tuple[str, float], ...]
    """Names and ratings, strongest first."""


def read_ratings(folder: RunsFolder, name: str) -> RunRatings | None:
    """Return the ratings of a run's checkpoints; None if they have not been measured."""
    data = folder.read(name, run_files.STRENGTH)
    try:
        fields = orjson.loads(data or b"")
        return RunRatings(
            int(fields["scale"]),
            tuple(
                CheckpointRating(
                    int(point["timestep"]),
                    EloEstimate(
                        float(point["elo"]),
                        float(point["low"]),
                        float(point["high"]),
                        _position(point.get("position")),
                    ),
                )
                for point in fields["checkpoints"]
            ),
            tuple((str(other["name"]), float(other["elo"])) for other in fields["opponents"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def _position(found: object) -> Position:
    """Return a position from a file; earlier versions wrote none."""
    return next((known for known in get_args(Position) if known == found), "on")


def read_ladder(path: "Path", conditions: "Conditions | None") -> "tuple[Ladder, list[Conditions]]":
    """Return (ladder of all players under some conditions, all conditions with games).

    Args:
        path: file of the stored results.
        conditions: the games that count; those with the most games if None.

    Raises:
        KeiseiError: The results do not exist, or cannot be read.
    """
    # Half a second to import, which only the ladder page needs.
    from keisei.evaluation import ladder, results

    with results.ResultStore(path) as store:
        known = [found for found, _ in store.conditions()]
        chosen = conditions or (known[0] if known else results.Conditions())
        return ladder.read_ladder(store, chosen), known
