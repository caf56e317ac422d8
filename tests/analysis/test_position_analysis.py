"""The analysis of positions by a network, and of growing games: each position only once."""

import numpy as np
import pytest

from keisei.analysis import Reviewer, analyze_position
from keisei.analysis.position_analysis import SHOWN_CANDIDATES
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Color
from tests.predictors import KnownPredictor

LINE = ["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"]


def distinctive() -> KnownPredictor:
    """A predictor with a different probability for every move and value for every position."""
    return KnownPredictor(
        lambda actions: np.sin(actions.astype(np.float64)),
        lambda packed: np.sin(packed["board"].astype(np.float64).sum(axis=1) + packed["ply"]),
    )


def test_candidates_are_the_legal_moves_by_probability() -> None:
    game = ShogiGame("startpos moves 7g7f")
    analysis = analyze_position(game, distinctive())
    expected = np.sin(game.legal_actions.astype(np.float64))
    order = np.argsort(-expected)
    moves = game.legal_moves
    assert [candidate.move for candidate in analysis.candidates] == [moves[k] for k in order]
    shares = np.exp(expected) / np.exp(expected).sum()
    probabilities = [candidate.probability for candidate in analysis.candidates]
    assert probabilities == pytest.approx(shares[order].tolist(), rel=1e-5)
    assert analysis.best_line == (analysis.candidates[0].move,)
    assert analysis.turn is Color.WHITE
    assert analysis.chances(Color.BLACK) == pytest.approx((1 - analysis.value) / 2)


def test_a_review_is_the_analysis_of_each_position_alone() -> None:
    predictor = distinctive()
    game = ShogiGame("startpos moves " + " ".join(LINE))
    analyses = Reviewer(predictor).review(game)
    assert len(analyses) == len(LINE) + 1
    for ply, analysis in enumerate(analyses):
        game = ShogiGame("startpos moves " + " ".join(LINE[:ply]))
        alone = analyze_position(game, predictor)
        shown = alone.candidates[:SHOWN_CANDIDATES]
        assert [candidate.move for candidate in analysis.candidates] == [c.move for c in shown]
        assert [candidate.probability for candidate in analysis.candidates] == pytest.approx(
            [candidate.probability for candidate in shown]
        )
        value = alone.value if game.turn is Color.BLACK else -alone.value
        assert analysis.chances(Color.BLACK) == pytest.approx((1 + value) / 2)


def test_a_position_is_evaluated_once() -> None:
    predictor = distinctive()
    reviewer = Reviewer(predictor)
    for plies in (2, 2, 3, 5, 1):
        reviewer.review(ShogiGame("startpos moves " + " ".join(LINE[:plies])))
    assert [len(batch) for batch in predictor.batches] == [3, 1, 2], (
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
    analyses = Reviewer(distinctive()).review(ShogiGame(position))
    assert (analyses[-1].chances(Color.BLACK), analyses[-1].candidates) == (black, ())
