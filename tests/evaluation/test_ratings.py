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
    PRIOR_FIRST_MOVE,
    PairResult,
    connected,
    fit_pair_deviation,
    rate,
)
from keisei.evaluation.score import elo_difference, expected_score


def chances(difference: float, draws: float) -> list[float]:
    """Return the chances of Black's win, a draw and White's win; `draws` is a draw's at most."""
    expected = 1 / (1 + 10 ** (-difference / 400))
    draw = draws * 4 * expected * (1 - expected)
    return [expected - draw / 2, draw, 1 - expected - draw / 2]


def log_posterior(
    results: list[PairResult], elo: dict[str, float], first_move: float, weight: float
) -> float:
    """The definition, written out; `weight` is the power of the likelihood."""
    total = -(first_move**2) / (2 * PRIOR_FIRST_MOVE**2)
    for pair in {frozenset((r.black, r.white)) for r in results}:
        one, other = pair
        total -= (elo[one] - elo[other]) ** 2 / (2 * PRIOR_ELO**2)
    for r in results:
        expected = expected_score(elo[r.black] - elo[r.white] + first_move)
        total += weight * (r.wins + r.draws / 2) * math.log(expected)
        total += weight * (r.losses + r.draws / 2) * math.log(1 - expected)
    return total


RESULTS = [
    PairResult("random", "greedy", 2, 3, 45),
    PairResult("greedy", "random", 48, 2, 0),
    PairResult("greedy", "net", 20, 12, 18),
    PairResult("net", "greedy", 25, 10, 15),
    PairResult("net", "random", 50, 0, 0),
]


def test_it_is_the_maximum_that_brute_force_finds() -> None:
    found = rate(RESULTS, fixed={"random": 0.0})
    elo = {name: found.rating(name) for name in found.names}
    model = ratings._Model(found.names, {"random": 0.0}, RESULTS)
    model.fit()
    best = log_posterior(RESULTS, elo, found.first_move, model.weight)
    # A coordinate search that knows nothing of slopes ends at the same place.
    values = {"greedy": 0.0, "net": 0.0, "first": 0.0}

    def value() -> float:
        players = {"random": 0.0, "greedy": values["greedy"], "net": values["net"]}
        return log_posterior(RESULTS, players, values["first"], model.weight)

    for step in (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1):
        improved = True
        while improved:
            improved = False
            for name in list(values):
                for sign in (1, -1):
                    old, before = values[name], value()
                    values[name] += sign * step
                    if value() > before + 1e-12:
                        improved = True
                    else:
                        values[name] = old
    assert value() == pytest.approx(best, abs=1e-3)
    assert best >= value() - 1e-9
    assert elo["greedy"] == pytest.approx(values["greedy"], abs=3.0)
    assert elo["net"] == pytest.approx(values["net"], abs=3.0)
    assert found.first_move == pytest.approx(values["first"], abs=3.0)


@pytest.mark.parametrize("pair_deviation", [0.0, 50.0])
def test_gradient_and_curvature_are_the_derivatives(pair_deviation: float) -> None:
    fixed = {"random": 0.0, "absent": 70.0}
    model = ratings._Model(("random", "greedy", "net"), fixed, RESULTS, pair_deviation)
    model.weight = 1.3
    at = np.array([1.0, 2.0, *([0.1, -0.2, 0.3] if pair_deviation else []), 0.4])
    for place in range(len(at)):
        step = np.zeros(len(at))
        step[place] = 1e-5
        slope = (model.log_posterior(at + step) - model.log_posterior(at - step)) / 2e-5
        assert model.gradient(at)[place] == pytest.approx(slope, rel=1e-5, abs=1e-6)
        row = -(model.gradient(at + step) - model.gradient(at - step)) / 2e-5
        assert model.curvature(at)[place] == pytest.approx(row, rel=1e-4, abs=1e-5)


def test_two_players_without_draws_have_the_logistic_difference() -> None:
    """With many games the prior does not matter: -400 log10(1 / score - 1)."""
    results = [PairResult("a", "b", 7_500, 0, 2_500), PairResult("b", "a", 2_500, 0, 7_500)]
    found = rate(results, fixed={"b": 0.0})
    assert found.rating("a") == pytest.approx(elo_difference(0.75), abs=0.5)
    assert found.rating("a") == pytest.approx(190.8, abs=0.5)
    assert found.first_move == pytest.approx(0.0, abs=0.1)
    # The textbook error of a proportion, through the slope of the logistic curve.
    deviation = math.sqrt(0.75 * 0.25 / 20_000) * ELO_PER_UNIT / (0.75 * 0.25)
    assert found.error("a") == pytest.approx(deviation, rel=0.01)


def test_draws_do_not_change_what_a_difference_means() -> None:
    """It is that of the score, as for a match; the error is smaller, as scores vary less."""
    drawn = [PairResult("a", "b", 5_000, 3_000, 2_000), PairResult("b", "a", 2_000, 3_000, 5_000)]
    decided = [PairResult("a", "b", 6_500, 0, 3_500), PairResult("b", "a", 3_500, 0, 6_500)]
    found, other = (rate(results, fixed={"b": 0.0}) for results in (drawn, decided))
    assert found.rating("a") == pytest.approx(elo_difference(0.65), abs=0.5)
    assert found.rating("a") == pytest.approx(other.rating("a"), abs=0.1)
    variance = 0.5 * 0.35**2 + 0.3 * 0.15**2 + 0.2 * 0.65**2
    ratio = math.sqrt(variance / (0.65 * 0.35))
    assert found.error("a") == pytest.approx(other.error("a") * ratio, rel=0.01)
    assert (found.draws, other.draws) == (0.3, 0.0)


def both_colours(scores: list[tuple[str, str, int]]) -> list[PairResult]:
    """Return results of 2,000 games; a score is (player, opponent, wins of 1,000)."""
    return [
        result
        for one, other, wins in scores
        for result in (
            PairResult(one, other, wins, 0, 1_000 - wins),
            PairResult(other, one, 1_000 - wins, 0, wins),
        )
    ]


def simulated(
    truth: dict[str, float],
    games: int,
    random: np.random.Generator,
    *,
    first_move: float = 35.0,
    draws: float = 0.3,
    pair_deviation: float = 0.0,
) -> list[PairResult]:
    """Return a round robin between players of known strengths."""
    results = []
    for one, other in combinations(truth, 2):
        deviation = random.normal(0.0, pair_deviation) if pair_deviation else 0.0
        for black, white, sign in ((one, other, 1), (other, one, -1)):
            difference = truth[black] - truth[white] + sign * deviation + first_move
            wins, drawn, losses = random.multinomial(games, chances(difference, draws))
            results.append(PairResult(black, white, int(wins), int(drawn), int(losses)))
    return results


@pytest.mark.parametrize(
    ("draws", "pair_deviation"), [(0.0, 0.0), (0.4, 0.0), (0.1, 60.0)], ids=str
)
def test_intervals_cover_the_truth_about_95_times_in_100(
    draws: float, pair_deviation: float
) -> None:
    random = np.random.default_rng(7)
    truth = {"anchor": 0.0, "low": 120.0, "mid": 310.0, "high": 480.0, "top": 600.0}
    covered = tried = 0
    for _ in range(250):
        results = simulated(truth, 60, random, draws=draws, pair_deviation=pair_deviation)
        found = rate(results, fixed={"anchor": 0.0}, pair_deviation=pair_deviation)
        for name, elo in truth.items():
            if name != "anchor":
                low, high = found.interval(name)
                covered += low <= elo <= high
                tried += 1
    assert 0.93 <= covered / tried <= 0.97


@pytest.mark.parametrize("truth", [0.0, 40.0, 100.0])
def test_the_deviation_of_pairs_is_found(truth: float) -> None:
    random = np.random.default_rng(3)
    elo = {str(place): 100.0 * place for place in range(10)}
    results = simulated(elo, 500, random, pair_deviation=truth)
    found = fit_pair_deviation(results, fixed={"0": 0.0})
    assert found == pytest.approx(truth, rel=0.25, abs=6.0)


def test_the_deviation_of_a_pair_is_found() -> None:
    """A, who beats B more often than C, though B and C are equal."""
    others = ("c", "d", "e", "f")
    results = both_colours(
        [
            ("a", "b", 800),
            *(("a", name, 500) for name in others),
            *(("b", name, 500) for name in others),
        ]
    )
    found = rate(
        results, fixed={"c": 0.0}, pair_deviation=fit_pair_deviation(results, fixed={"c": 0.0})
    )
    assert max(found.deviations, key=lambda pair: abs(found.deviations[pair])) == ("a", "b")
    assert found.deviations["a", "b"] > 100


def test_a_pair_that_played_much_does_not_outvote_the_others() -> None:
    results = both_colours([("new", "a", 760)] * 10 + [("new", name, 500) for name in "bcde"])
    fixed = dict.fromkeys("abcde", 0.0)
    alone = rate(results, fixed=fixed)
    shared = rate(results, fixed=fixed, pair_deviation=100.0)
    assert alone.rating("new") > 120
    assert shared.rating("new") < 60
    assert shared.error("new") > alone.error("new")


def test_fixed_ratings_stay() -> None:
    fixed = {"random": 0.0, "greedy": 1_000.0}
    found = rate(RESULTS, fixed=fixed)
    assert found.rating("greedy") == 1_000.0
    assert found.error("greedy") == 0.0
    assert found.rating("net") > 1_000.0
    assert found.fixed == ("random", "greedy")
    assert found.superiority("greedy", "random") == 1.0


def test_superiority_is_what_simulation_says() -> None:
    found = rate(RESULTS, fixed={"random": 0.0})
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
    found = rate([PairResult("a", "b", 20, 0, 0), PairResult("b", "a", 0, 0, 20)], fixed={"b": 0.0})
    assert 400 < found.rating("a") < 3_000
    assert found.error("a") > 200
    assert found.superiority("a", "b") > 0.95


def test_the_order_and_the_anchor() -> None:
    found = rate(RESULTS, fixed={"greedy": 0.0})
    assert found.ranking()[-1] == "random"
    assert found.rating("greedy") == found.error("greedy") == 0.0
    other = rate(RESULTS, fixed={"random": 0.0})
    gap = other.rating("net") - other.rating("greedy")
    assert found.rating("net") == pytest.approx(gap, abs=1e-4), "the anchor shifts, no more"
    assert found.games == (150, 200, 150)
    plain = found.as_dict()
    assert [player["name"] for player in plain["players"]] == found.ranking()


def test_ratings_need_games_that_connect() -> None:
    with pytest.raises(
        KeiseiError, match="none of the players with known ratings has played: random"
    ):
        rate([PairResult("a", "b", 1, 0, 0)], fixed={"random": 0.0})
    apart = [PairResult("a", "b", 1, 0, 0), PairResult("c", "d", 1, 0, 0)]
    with pytest.raises(KeiseiError, match="connects c, d with a player of known rating"):
        rate(apart, fixed={"a": 0.0})


def test_connections_are_chains_of_games() -> None:
    results = [
        PairResult("a", "b", 1, 0, 0),
        PairResult("c", "b", 0, 1, 0),
        PairResult("c", "d", 0, 0, 0),
    ]
    assert connected(results, ["a"]) == {"a", "b", "c"}
    assert connected(results, ["d"]) == {"d"}, "without games there is no chain"
    assert connected([], ["e"]) == {"e"}
