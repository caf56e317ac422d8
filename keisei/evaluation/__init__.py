"""Playing strength: matches, scores, sequential tests, a scale of ratings, ladders, runs over time.

>>> from keisei.evaluation import MatchSettings, play_match
>>> from keisei.players.spec import make_player
>>> settings = MatchSettings(games=20, ply_limit=200)
>>> play_match(make_player("greedy"), make_player("random"), settings).score.games
20

Importing the package is cheap, so that the command line can show the defaults below; what plays
games is imported when it is used.
"""

from typing import TYPE_CHECKING, Final

from keisei.front_door import imported_on_use

if TYPE_CHECKING:
    from keisei.evaluation.ladder import Ladder, play_missing, read_ladder, round_robin
    from keisei.evaluation.match import MatchResult, MatchSettings, play_match
    from keisei.evaluation.placing import Placement, PlacingSettings, place_player
    from keisei.evaluation.ratings import PairResult, Ratings, rate
    from keisei.evaluation.results import Conditions, ResultStore
    from keisei.evaluation.run_strength import measure_run
    from keisei.evaluation.scale import Scale, current_scale
    from keisei.evaluation.score import Score, Sprt

__all__ = [
    "DEFAULT_CHECKPOINTS",
    "DEFAULT_GAMES",
    "DEFAULT_MAX_GAMES",
    "DEFAULT_OPENING_PLIES",
    "DEFAULT_PLY_LIMIT",
    "DEFAULT_WITHIN",
    "STANDARD_OPPONENTS",
    "ZERO_PLAYER",
    "Conditions",
    "Ladder",
    "MatchResult",
    "MatchSettings",
    "PairResult",
    "Placement",
    "PlacingSettings",
    "Ratings",
    "ResultStore",
    "Scale",
    "Score",
    "Sprt",
    "current_scale",
    "measure_run",
    "place_player",
    "play_match",
    "play_missing",
    "rate",
    "read_ladder",
    "round_robin",
]

ZERO_PLAYER: Final = "random"
"""Identity of the player with rating 0."""

STANDARD_OPPONENTS: Final = ("greedy", "alphabeta:2", "alphabeta:3")
"""Specs of references of the scale that every run is also compared with, the weakest first."""

DEFAULT_WITHIN: Final = 40.0
"""Points of Elo on either side of a rating at which it is known well enough."""

DEFAULT_MAX_GAMES: Final = 5_000
"""Games after which a rating is given as well as it is known."""

DEFAULT_GAMES: Final = 100
"""Games per pair of players."""

DEFAULT_CHECKPOINTS: Final = 8
"""Number of a run's checkpoints that are measured."""

DEFAULT_OPENING_PLIES: Final = 4
"""Random legal moves at the start of each game; without them all games would be alike."""

DEFAULT_PLY_LIMIT: Final = 512
"""Ply at which a game is a draw."""

__getattr__, __dir__ = imported_on_use(
    __name__,
    {
        "Conditions": "results",
        "Ladder": "ladder",
        "MatchResult": "match",
        "MatchSettings": "match",
        "PairResult": "ratings",
        "Placement": "placing",
        "PlacingSettings": "placing",
        "Ratings": "ratings",
        "ResultStore": "results",
        "Scale": "scale",
        "Score": "score",
        "Sprt": "score",
        "current_scale": "scale",
        "measure_run": "run_strength",
        "place_player": "placing",
        "play_match": "match",
        "play_missing": "ladder",
        "rate": "ratings",
        "read_ladder": "ladder",
        "round_robin": "ladder",
    },
)
