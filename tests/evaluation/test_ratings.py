"""Ratings against brute force, against known formulas, and on players whose strength is known."""

import math
from itertools import combinations

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation import ratings
from keisei.evaluation.ratings import (
    ELO_PER_UNIT,
    PRIOR_ELO,
    PRIOR_NUISANCE,
    PairResult,
    connected,
    rate,
)
from keisei.evaluation.score import elo_difference


def probabilities(difference: float, first_move: float, log_draw: float) -> list[float]:
    """Return the probabilities of Black's win, a draw and White's win, from Elo points."""
    x = (difference + first_move) / ELO_PER_UNIT
    weights = [math.exp(x / 2), math.exp(log_draw), math.exp(-x / 2)]
    return [weight / sum(weights) for weight in weights]


def log_posterior(
    results: list[PairResult], elo: dict[str, float], first_move: float, log_draw: float
) -> float:
    """The definition, written out."""
    total = -((first_move / ELO_PER_UNIT) ** 2 + log_draw**2) / (2 * PRIOR_NUISANCE**2)
    for pair in {frozenset((r.black, r.white)) for r in results}:
        one, other = pair
        total -= (elo[one] - elo[other]) ** 2 / (2 * PRIOR_ELO**2)
    for r in results:
        chances = probabilities(elo[r.black] - elo[r.white], first_move, log_draw)
        for count, chance in zip((r.wins, r.draws, r.losses), chances, strict=True):
            total += count * math.log(chance)
    return total


RESULTS = [
    PairResult("random", "greedy", 2, 3, 45),
    PairResult("greedy", "random", 48, 2, 0),
    PairResult("greedy", "net", 20, 12, 18),
    PairResult("net", "greedy", 25, 10, 15),
    PairResult("net", "random", 50, 0, 0),
]


def test_it_is_the_maximum_that_brute_force_finds() -> None:
    found = rate(RESULTS, anchor="random")
    elo = {name: found.rating(name) for name in found.names}
    log_draw = math.log(2 * found.draw_rate / (1 - found.draw_rate))
    best = log_posterior(RESULTS, elo, found.first_move, log_draw)
    # A coordinate search that knows nothing of slopes ends at the same place.
    values = {"greedy": 0.0, "net": 0.0, "first": 0.0, "draw": 0.0}

    def value() -> float:
        players = {"random": 0.0, "greedy": values["greedy"], "net": values["net"]}
        return log_posterior(RESULTS, players, values["first"], values["draw"])

    for step in (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1):
        improved = True
        while improved:
            improved = False
            for name in list(values):
                for sign in (1, -1):
                    old, before = values[name], value()
                    values[name] += sign * step / (ELO_PER_UNIT if name == "draw" else 1)
                    if value() > before + 1e-12:
                        improved = True
                    else:
                        values[name] = old
    assert value() == pytest.approx(best, abs=1e-3)
    assert best >= value() - 1e-9
    assert elo["greedy"] == pytest.approx(values["greedy"], abs=3.0)
    assert elo["net"] == pytest.approx(values["net"], abs=3.0)
    assert found.first_move == pytest.approx(values["first"], abs=3.0)


def test_gradient_and_curvature_are_the_derivatives() -> None:
    model = ratings._Model(("random", "greedy", "net"), "random", RESULTS)
    at = np.array([1.0, 2.0, 0.3, -0.5])
    for place in range(4):
        step = np.zeros(4)
        step[place] = 1e-5
        slope = (model.log_posterior(at + step) - model.log_posterior(at - step)) / 2e-5
        assert model.gradient(at)[place] == pytest.approx(slope, rel=1e-5, abs=1e-6)
        row = -(model.gradient(at + step) - model.gradient(at - step)) / 2e-5
        assert model.curvature(at)[place] == pytest.approx(row, rel=1e-4, abs=1e-5)


def test_two_players_without_draws_have_the_logistic_difference() -> None:
    """With many games the prior does not matter: -400 log10(1 / score - 1)."""
    results = [PairResult("a", "b", 7_500, 0, 2_500), PairResult("b", "a", 2_500, 0, 7_500)]
    found = rate(results, anchor="b")
    assert found.rating("a") == pytest.approx(elo_difference(0.75), abs=0.5)
    assert found.rating("a") == pytest.approx(190.8, abs=0.5)
    assert found.first_move == pytest.approx(0.0, abs=0.1)
    # The textbook error of a proportion, through the slope of the logistic curve.
    deviation = math.sqrt(0.75 * 0.25 / 20_000) * ELO_PER_UNIT / (0.75 * 0.25)
    assert found.error("a") == pytest.approx(deviation, rel=0.01)


def test_two_players_with_draws_have_davidsons_closed_form() -> None:
    """Wins : losses is exp(x) and draws / sqrt(wins * losses) is v, whatever the share of draws."""
    results = [PairResult("a", "b", 5_000, 3_000, 2_000), PairResult("b", "a", 2_000, 3_000, 5_000)]
    found = rate(results, anchor="b")
    assert found.rating("a") == pytest.approx(400 * math.log10(5 / 2), abs=0.5)
    draw = 3_000 / math.sqrt(5_000 * 2_000)
    assert found.draw_rate == pytest.approx(draw / (2 + draw), abs=1e-3)


def test_intervals_cover_the_truth_about_95_times_in_100() -> None:
    random = np.random.default_rng(7)
    truth = {"anchor": 0.0, "low": 120.0, "mid": 310.0, "high": 480.0}
    first_move, log_draw = 35.0, math.log(0.6)
    covered = tried = 0
    for _ in range(150):
        results = []
        for one, other in combinations(truth, 2):
            for black, white in ((one, other), (other, one)):
                chances = probabilities(truth[black] - truth[white], first_move, log_draw)
                wins, draws, losses = random.multinomial(40, chances)
                results.append(PairResult(black, white, int(wins), int(draws), int(losses)))
        found = rate(results, anchor="anchor")
        for name, elo in truth.items():
            if name != "anchor":
                low, high = found.interval(name)
                covered += low <= elo <= high
                tried += 1
    assert 0.92 <= covered / tried <= 0.98


def test_superiority_is_what_simulation_says() -> None:
    found = rate(RESULTS, anchor="random")
    random = np.random.default_rng(1)
    free = [found.names.index(name) for name in ("greedy", "net")]
    draws = random.multivariate_normal(
        found.elo[free], found.covariance[np.ix_(free, free)], size=200_000
    )
    assert found.superiority("net", "greedy") == pytest.approx(
        float((draws[:, 1] > draws[:, 0]).mean()), abs=0.005
    )
    assert found.superiority("net", "greedy") + found.superiority("greedy", "net") == pytest.approx(
        1.0
    )
    assert found.superiority("net", "net") == 0.5


def test_a_whitewash_has_a_finite_rating_and_a_large_error() -> None:
    found = rate([PairResult("a", "b", 20, 0, 0), PairResult("b", "a", 0, 0, 20)], anchor="b")
    assert 400 < found.rating("a") < 3_000
    assert found.error("a") > 200
    assert found.superiority("a", "b") > 0.95


def test_the_order_and_the_anchor() -> None:
    found = rate(RESULTS, anchor="greedy")
    assert found.ranking()[-1] == "random"
    assert found.rating("greedy") == found.error("greedy") == 0.0
    other = rate(RESULTS, anchor="random")
    gap = other.rating("net") - other.rating("greedy")
    assert found.rating("net") == pytest.approx(gap, abs=1e-4), "the anchor shifts, no more"
    assert found.games == (150, 200, 150)
    plain = found.as_dict()
    assert [player["name"] for player in plain["players"]] == found.ranking()


def test_ratings_need_games_that_connect() -> None:
    with pytest.raises(KeiseiError, match="anchor 'random' has not played"):
        rate([PairResult("a", "b", 1, 0, 0)], anchor="random")
    apart = [PairResult("a", "b", 1, 0, 0), PairResult("c", "d", 1, 0, 0)]
    with pytest.raises(KeiseiError, match="connects c, d with the anchor 'a'"):
        rate(apart, anchor="a")


def test_connections_are_chains_of_games() -> None:
    results = [
        PairResult("a", "b", 1, 0, 0),
        PairResult("c", "b", 0, 1, 0),
        PairResult("c", "d", 0, 0, 0),
    ]
    assert connected(results, "a") == {"a", "b", "c"}
    assert connected(results, "d") == {"d"}, "without games there is no chain"
    assert connected([], "e") == {"e"}
