"""Opinions of whole games, against asking about each position alone."""

import numpy as np
import pytest

from keisei.analysis.review import SHOWN_CANDIDATES, Reviewer
from keisei.play.opponent import think
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Color
from tests.predictors import KnownPredictor

LINE = ["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"]


def opinionated() -> KnownPredictor:
    """A judge that likes every move and values every position otherwise."""
    return KnownPredictor(
        lambda actions: np.sin(actions.astype(np.float64)),
        lambda packed: np.sin(packed["board"].astype(np.float64).sum(axis=1) + packed["ply"]),
    )


def test_opinions_are_those_of_the_positions_alone() -> None:
    predictor = opinionated()
    game = ShogiGame("startpos moves " + " ".join(LINE))
    opinions = Reviewer(predictor).review(game)
    assert len(opinions) == len(LINE) + 1
    for ply, opinion in enumerate(opinions):
        alone = ShogiGame("startpos moves " + " ".join(LINE[:ply]))
        thought = think(predictor, alone)
        assert [usi for usi, _ in opinion.candidates] == [
            candidate.move.usi for candidate in thought.candidates[:SHOWN_CANDIDATES]
        ]
        assert [share for _, share in opinion.candidates] == pytest.approx(
            [candidate.probability for candidate in thought.candidates[:SHOWN_CANDIDATES]]
        )
        value = thought.value if alone.turn is Color.BLACK else -thought.value
        assert opinion.black == pytest.approx((1 + value) / 2)


def test_a_position_is_asked_about_once() -> None:
    predictor = opinionated()
    reviewer = Reviewer(predictor)
    for plies in (2, 2, 3, 5, 1):
        reviewer.review(ShogiGame("startpos moves " + " ".join(LINE[:plies])))
    assert [len(asked) for asked in predictor.asked] == [3, 1, 2], (
        "all the new ones of a game in one call"
    )


@pytest.mark.parametrize(
    ("position", "black"),
    [
        ("4k4/9/4P4/9/9/9/9/9/4K4 b G 1 moves G*5b", 1.0),
        ("4k4/9/9/9/9/9/4p4/9/4K4 w g 1 moves G*5h", 0.0),
        ("startpos moves " + "2h3h 8b7b 3h2h 7b8b " * 3, 0.5),
    ],
)
def test_after_the_end_the_result_counts(position: str, black: float) -> None:
    opinions = Reviewer(opinionated()).review(ShogiGame(position))
    assert (opinions[-1].black, opinions[-1].candidates) == (black, ())
