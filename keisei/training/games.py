"""Sample games of each evaluation, written down for people to play through."""

from collections.abc import Sequence
from pathlib import Path

from keisei import run_files
from keisei.evaluation.game_files import write_games
from keisei.shogi.notation.record import GameRecord
from keisei.training.events import Callback, EvaluationEnd


class SampleGames(Callback):
    """Writes `number` games of each evaluation to the run's ``games`` directory.

    Where there are more, those are taken that lie evenly in their list: it goes from opponent to
    opponent, and each shall be seen.
    """

    def __init__(self, run_directory: Path, number: int) -> None:
        self.directory = run_directory / run_files.GAMES
        self.number = number

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Write the games as ``update-000123-<black>-vs-<white>.kif`` and ``.csa``."""
        update = event.progress.update
        write_games(
            _spread(event.games, self.number),
            self.directory,
            prefix=f"update-{update:06}",
            event=f"Keisei, update {update}",
        )


def _spread(games: Sequence[GameRecord], number: int) -> list[GameRecord]:
    if len(games) <= number:
        return list(games)
    return [games[index * len(games) // number] for index in range(number)]
