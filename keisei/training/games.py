"""Sample games of each evaluation, written down as KIF and CSA for people to play through."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from keisei import run_files
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.files import save_game
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.rules import Outcome
from keisei.training.events import Callback, EvaluationEnd

SUFFIXES: Final = (".kif", ".csa")

_SEPARATOR: Final = " vs "

Sample = tuple[str, ShogiGame, Outcome]
"""A title, the game, how it ended."""


class SampleGames(Callback):
    """Writes `number` games of each evaluation to the run's ``games`` directory.

    Where there are more, those are taken that lie evenly in their list: it goes from opponent to
    opponent, and each shall be seen.
    """

    def __init__(self, run_directory: Path, number: int) -> None:
        self.directory = run_directory / run_files.GAMES
        self.number = number

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Write the games as ``update-000123-<title>.kif`` and ``.csa``."""
        taken: set[str] = set()
        for title, game, outcome in _spread(event.games, self.number):
            self.directory.mkdir(parents=True, exist_ok=True)
            stem = _free_name(f"update-{event.progress.update:06}-{file_name(title)}", taken)
            record = game_record(game, outcome, title, event.progress.update)
            for suffix in SUFFIXES:
                save_game(record, self.directory / (stem + suffix))


def _spread(games: Sequence[Sample], number: int) -> list[Sample]:
    if len(games) <= number:
        return list(games)
    return [games[index * len(games) // number] for index in range(number)]


def game_record(game: ShogiGame, outcome: Outcome, title: str, update: int) -> GameRecord:
    """The record of a game; a title such as ``network vs greedy`` names Black and White."""
    headers = {header.EVENT: f"Keisei, update {update}: {title}"}
    black, found, white = title.partition(_SEPARATOR)
    if found:
        headers |= {header.BLACK: black, header.WHITE: white}
    return GameRecord.from_game(game, outcome, headers=headers)


def file_name(title: str) -> str:
    """A title in characters that every file system takes.

    >>> file_name("network vs usi:/opt/engine (2)")
    'network-vs-usi-opt-engine-2'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "game"


def _free_name(name: str, taken: set[str]) -> str:
    """The name, with a number where the same evaluation has used it before."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free
