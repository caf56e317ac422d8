"""Playing strength: matches, scores, sequential tests, Elo ratings, ladders, runs over time.

>>> from keisei.evaluation import MatchSettings, play_match
>>> from keisei.players.spec import make_player
>>> settings = MatchSettings(games=20, ply_limit=200)
>>> play_match(make_player("greedy"), make_player("random"), settings).score.games
20

Importing the package is cheap, so that the command line can show the defaults below; what plays
games is imported when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from keisei.evaluation.ladder import Ladder, play_missing, read_ladder, round_robin
    from keisei.evaluation.match import MatchResult, MatchSettings, play_match
    from keisei.evaluation.ratings import PairResult, Ratings, rate
    from keisei.evaluation.results import Conditions, ResultStore
    from keisei.evaluation.run_strength import measure_run
    from keisei.evaluation.score import Score, Sprt

__all__ = [
    "DEFAULT_CHECKPOINTS",
    "DEFAULT_GAMES",
    "DEFAULT_OPENING_PLIES",
    "DEFAULT_PLY_LIMIT",
    "STANDARD_OPPONENTS",
    "YARDSTICK",
    "Conditions",
    "Ladder",
    "MatchResult",
    "MatchSettings",
    "PairResult",
    "Ratings",
    "ResultStore",
    "Score",
    "Sprt",
    "measure_run",
    "play_match",
    "play_missing",
    "rate",
    "read_ladder",
    "round_robin",
]

YARDSTICK: Final = "alphabeta:2"
"""The bot that strength is compared with."""

STANDARD_OPPONENTS: Final = (
    "random",
    "greedy",
    "alphabeta:1",
    "alphabeta:2,random=0.25",
    YARDSTICK,
)
"""Specs of the players that every run is measured against, the weakest first.

``alphabeta:2,random=0.25`` is a step between two bots that are too unequal to be compared directly.
"""

DEFAULT_GAMES: Final = 100
"""Games per pair of players."""

DEFAULT_CHECKPOINTS: Final = 8
"""Number of a run's checkpoints that are measured."""

DEFAULT_OPENING_PLIES: Final = 4
"""Random legal moves at the start of each game; without them all games would be alike."""

DEFAULT_PLY_LIMIT: Final = 512
"""Ply at which a game is a draw."""

_MODULES: Final = {
    "Conditions": "results",
    "Ladder": "ladder",
    "MatchResult": "match",
    "MatchSettings": "match",
    "PairResult": "ratings",
    "Ratings": "ratings",
    "ResultStore": "results",
    "Score": "score",
    "Sprt": "score",
    "measure_run": "run_strength",
    "play_match": "match",
    "play_missing": "ladder",
    "rate": "ratings",
    "read_ladder": "ladder",
    "round_robin": "ladder",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
