"""The sequential test: its ratio against brute force, its error rates by simulation."""

import math

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.score import (
    ERROR_RATE,
    LOWER,
    SPRT_ROUND_GAMES,
    UPPER,
    Score,
    Sprt,
    Verdict,
    expected_score,
)


def score_of(wins: int, draws: int, losses: int) -> Score:
    return Score((wins, draws, losses), (0, 0, 0))


def greatest_log_likelihood(counts: tuple[int, int, int], mean: float) -> float:
    """Over all distributions of (win, draw, loss) with this mean, which have one free parameter."""
    draws = np.linspace(1e-9, 2 * min(mean, 1 - mean) - 1e-9, 400_001)
    wins = mean - draws / 2
    losses = 1 - wins - draws
    w, d, lost = counts
    return float((w * np.log(wins) + d * np.log(draws) + lost * np.log(losses)).max())


@pytest.mark.parametrize("counts", [(520, 130, 350), (410, 200, 390), (300, 10, 290), (90, 20, 90)])
@pytest.mark.parametrize(("elo0", "elo1"), [(0.0, 10.0), (-5.0, 5.0), (0.0, 30.0)])
def test_the_ratio_is_that_of_brute_force(
    counts: tuple[int, int, int], elo0: float, elo1: float
) -> None:
    exact = greatest_log_likelihood(counts, expected_score(elo1)) - greatest_log_likelihood(
        counts, expected_score(elo0)
    )
    ratio = Sprt(elo0, elo1).log_likelihood_ratio(score_of(*counts))
    # The approximation is coarsest where the score is far from both means, long after a decision.
    assert ratio == pytest.approx(exact, rel=0.05, abs=0.02)


def test_the_ratio_in_a_case_that_can_be_done_by_hand() -> None:
    """Mean 0.6, variance about 0.24, hypotheses 0.5 and 0.5 + h."""
    elo1 = 400 * math.log10(0.55 / 0.45)
    ratio = Sprt(0.0, elo1).log_likelihood_ratio(score_of(6_000, 0, 4_000))
    assert ratio == pytest.approx(10_000 * 0.05 * (1.2 - 1.05) / (2 * 0.24), rel=1e-3)


def simulated_verdicts(test: Sprt, elo: float, *, draw_rate: float, trials: int) -> list[Verdict]:
    random = np.random.default_rng(11)
    mean = expected_score(elo)
    chances = (mean - draw_rate / 2, draw_rate, 1 - mean - draw_rate / 2)
    verdicts: list[Verdict] = []
    for _ in range(trials):
        counts = np.zeros(3, dtype=np.int64)
        verdict = Verdict.UNDECIDED
        while verdict is Verdict.UNDECIDED:
            counts += random.multinomial(SPRT_ROUND_GAMES, chances)
            verdict = test.verdict(score_of(*counts.tolist()))
        verdicts.append(verdict)
    return verdicts


@pytest.mark.parametrize("draw_rate", [0.0, 0.4])
@pytest.mark.parametrize(("elo", "wrong"), [(0.0, Verdict.H1), (50.0, Verdict.H0)])
def test_errors_are_as_rare_as_promised(elo: float, wrong: Verdict, draw_rate: float) -> None:
    verdicts = simulated_verdicts(Sprt(0.0, 50.0), elo, draw_rate=draw_rate, trials=1_500)
    # Three standard deviations above the promised error rate.
    allowed = ERROR_RATE + 3 * math.sqrt(ERROR_RATE * (1 - ERROR_RATE) / 1_500)
    assert 0.0 < verdicts.count(wrong) / 1_500 < allowed


def test_between_the_hypotheses_either_is_possible_and_far_away_it_is_sure() -> None:
    between = simulated_verdicts(Sprt(0.0, 60.0), 30.0, draw_rate=0.1, trials=200)
    assert 0.35 < between.count(Verdict.H1) / 200 < 0.65
    beyond = simulated_verdicts(Sprt(0.0, 60.0), 200.0, draw_rate=0.1, trials=100)
    assert set(beyond) == {Verdict.H1}


def test_verdicts_stand_at_the_bounds() -> None:
    assert -LOWER == UPPER == pytest.approx(math.log(19))
    test = Sprt(0.0, 20.0)
    assert test.verdict(score_of(0, 0, 0)) is Verdict.UNDECIDED
    assert test.verdict(score_of(40, 10, 40)) is Verdict.UNDECIDED
    assert test.verdict(score_of(64, 0, 0)) is Verdict.H1
    assert test.verdict(score_of(0, 0, 64)) is Verdict.H0
    assert math.isfinite(test.log_likelihood_ratio(score_of(0, 64, 0)))


@pytest.mark.parametrize(
    ("elo0", "elo1"), [(5.0, 5.0), (10.0, 0.0), (0.0, math.inf), (math.nan, 1)]
)
def test_hypotheses_must_differ(elo0: float, elo1: float) -> None:
    with pytest.raises(KeiseiError, match="the lower one first"):
        Sprt(elo0, elo1)
