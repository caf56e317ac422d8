"""Small scales for tests."""

from keisei.evaluation.results import Conditions
from keisei.evaluation.scale import Reference, Scale, ScaleFile
from keisei.players.bots import GreedyPlayer, RandomPlayer


def scale_of(
    ratings: dict[str, float],
    *,
    pair_deviation: float = 0.0,
    first_move: float = 0.0,
    conditions: Conditions | None = None,
    specs: dict[str, str] | None = None,
) -> Scale:
    """Return a scale of players with given ratings, by identity."""
    return Scale(
        ScaleFile(
            version=1,
            keisei="0",
            conditions=conditions or Conditions(),
            first_move=first_move,
            pair_deviation=pair_deviation,
            references=tuple(
                Reference(
                    spec=(specs or {}).get(name, name), identity=name, rating=rating, error=0.0,
                    games=0, seconds=0.0,
                )
                for name, rating in ratings.items()
            ),
            covariance=(),
            results=(),
        )
    )  # fmt: skip


def bot_scale(conditions: Conditions) -> Scale:
    """Return a scale of the quickest bots."""
    return scale_of(
        {RandomPlayer.identity: 0.0, GreedyPlayer.identity: 1500.0},
        conditions=conditions,
        specs={GreedyPlayer.identity: "greedy"},
    )
