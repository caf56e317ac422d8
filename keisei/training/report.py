"""``report.html``: a run on one page, made from its files alone, so it can be made again later."""

import logging
from pathlib import Path
from typing import Final

from keisei import run_files
from keisei.errors import KeiseiError
from keisei.files import write_atomically
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.files import load_game
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.render_svg import board_svg
from keisei.training.events import Callback, TrainingEnd
from keisei.training.journal import History
from keisei.training.report_page import Picture, Report, SampleGame, page

logger = logging.getLogger(__name__)

BOARD_SIZE: Final = 420
"""Height of the sample game's board, in pixels."""

MOST_GAMES: Final = 60
"""Games that the report links to, the newest first."""


class ReportWriter(Callback):
    """Writes the report when the run ends."""

    def __init__(self, run_directory: Path) -> None:
        self.run_directory = run_directory

    def on_training_end(self, event: TrainingEnd) -> None:
        """Write the report."""
        path = write_report(self.run_directory)
        logger.info("report: %s", path)


def write_report(run_directory: Path) -> Path:
    """Write ``report.html`` and ``plots/*.png`` of a run from its other files; return its path.

    Raises `KeiseiError` if the settings or the journal cannot be read. A run that has not got far
    gives a short report.
    """
    run_directory = run_directory.resolve()
    config = run_files.read_config(run_directory)
    history = History.read(run_directory)
    games = _game_files(run_directory)
    report = Report(
        name=run_directory.name,
        config=config,
        history=history,
        pictures=_draw(history, run_directory / run_files.PLOTS),
        sample=_sample(run_directory, games),
        games=games[:MOST_GAMES],
    )
    path = run_directory / run_files.REPORT
    write_atomically(path, page(report).encode())
    return path


def _draw(history: History, directory: Path) -> tuple[Picture, ...]:
    from keisei.training.plots import PLOTS, png

    pictures = []
    for plot in PLOTS:
        figure = plot.draw(history)
        if figure is None:
            continue
        picture = Picture(plot.name, plot.title, plot.caption, png(figure))
        directory.mkdir(exist_ok=True)
        write_atomically(directory / f"{plot.name}.png", picture.png)
        pictures.append(picture)
    return tuple(pictures)


def _game_files(run_directory: Path) -> tuple[str, ...]:
    """The KIF files of the sample games, newest first, in their order within an evaluation."""
    names = sorted(path.name for path in (run_directory / run_files.GAMES).glob("update-*.kif"))
    newest_first = sorted(names, key=_update_of, reverse=True)  # stable
    return tuple(f"{run_files.GAMES}/{name}" for name in newest_first)


def _update_of(name: str) -> str:
    """The update in the name of a game's file, ``update-000123-...``."""
    return name[: len("update-000000")]


def _sample(run_directory: Path, games: tuple[str, ...]) -> SampleGame | None:
    """The newest game that can be read."""
    for file in games:
        try:
            record = load_game(run_directory / file)
            game = ShogiGame(record.start)
            for move in record.main_line:
                game.push(move)
        except KeiseiError as error:
            logger.warning("%s is not shown in the report: %s", file, error)
            continue
        return SampleGame(
            file=file,
            title=record.event or Path(file).stem,
            ending=_ending(record),
            moves=" ".join(move.usi for move in record.main_line),
            svg=board_svg(
                game.diagram,
                last_move=game.last_move,
                size=BOARD_SIZE,
                labels="western",
                check_square=game.checked_king,
            ),
        )
    return None


def _ending(record: GameRecord) -> str:
    moves = f"{len(record.moves)} moves"
    if record.result is None:
        return f"unfinished after {moves}"
    winner = record.winner
    result = "a draw" if winner is None else f"{winner.name.title()} won"
    return f"{record.result.ending.value}: {result} after {moves}"
