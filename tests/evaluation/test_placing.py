"""Placing on players whose strength is known: intervals, stopping, the ends of the scale."""

import math
from pathlib import Path

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.placing import FAR, Placement, Placing, PlacingSettings, place, place_player
from keisei.evaluation.results import Conditions, ResultStore, score_of
from keisei.evaluation.scale import Reference, Scale, current_scale
from keisei.evaluation.score import Score, elo_difference, expected_score
from keisei.players.bots import AlphaBetaPlayer, GreedyPlayer, RandomPlayer
from tests.evaluation.scales import bot_scale, scale_of

FIRST_MOVE = 30.0


class Simulated:
    """A player of known rating, with a deviation of its own against each reference."""

    def __init__(self, rating: float, scale: Scale, random: np.random.Generator, draws: float):
        self._rating = rating
        self._deviation = scale.file.pair_deviation
        self._deviations: dict[str, float] = {}
        self._random = random
        self._draws = draws
        self.rounds: list[tuple[str, int]] = []

    def play(self, reference: Reference, games: int) -> Score:
        """Return the score in as many games."""
        self.rounds.append((reference.identity, games))
        deviation = self._deviations.setdefault(
            reference.identity, float(self._random.normal(0.0, self._deviation))
        )
        difference = self._rating - reference.rating + deviation
        sides = []
        for first_move in (FIRST_MOVE, -FIRST_MOVE):
            expected = expected_score(difference + first_move)
            draw = self._draws * 4 * expected * (1 - expected)
            wins, drawn, losses = self._random.multinomial(
                games // 2, [expected - draw / 2, draw, 1 - expected - draw / 2]
            )
            sides.append((int(wins), int(drawn), int(losses)))
        return Score(*sides)


LADDER = {f"r{place}": 150.0 * place for place in range(18)}
TOP = max(LADDER.values())


SIMULATED = ((40.0, 0.0, 0.0), (40.0, 40.0, 0.05), (80.0, 40.0, 0.3))
"""(interval asked for, deviation of pairs, share of draws in even games)"""


@pytest.mark.parametrize(("within", "pair_deviation", "draws"), SIMULATED, ids=str)
def test_adaptive_intervals_cover_the_truth_about_95_times_in_100(
    within: float, pair_deviation: float, draws: float
) -> None:
    trials = 300
    covered, errors = simulate(within, pair_deviation, draws, trials)
    assert 0.92 <= covered <= 0.98, "95 % in 2,000 trials: see docs/strength.md"
    bias = float(np.mean(errors)) / (float(np.std(errors)) / math.sqrt(trials))
    assert abs(bias) < 2.6, "neither the choice of opponents nor stopping favours one side"


@pytest.mark.soak
@pytest.mark.parametrize(("within", "pair_deviation", "draws"), SIMULATED, ids=str)
def test_intervals_cover_the_truth_93_to_97_times_in_100(
    within: float, pair_deviation: float, draws: float
) -> None:
    covered, _ = simulate(within, pair_deviation, draws, trials=2_000)
    assert 0.93 <= covered <= 0.97


def simulate(
    within: float, pair_deviation: float, draws: float, trials: int
) -> tuple[float, list[float]]:
    """Place players; return the share of intervals with the truth, and the ratings' errors."""
    random = np.random.default_rng(1)
    scale = scale_of(LADDER, pair_deviation=pair_deviation, first_move=FIRST_MOVE)
    covered, errors = 0, list[float]()
    for _ in range(trials):
        truth = float(random.uniform(0.0, TOP))
        player = Simulated(truth, scale, random, draws)
        found = place(Placing(scale), player.play, PlacingSettings(within=within, max_games=20_000))
        covered += found.low <= truth <= found.high
        errors.append(found.rating - truth)
        assert found.error <= within
    return covered / trials, errors


@pytest.mark.parametrize("rating", [800, 1500, 2200, 2900])
def test_the_packaged_scale_places_a_policy_within_40_points_by_default(rating: int) -> None:
    player = Simulated(rating, current_scale(), np.random.default_rng(3), draws=0.05)
    placing = Placing(current_scale())
    found = place(placing, player.play, PlacingSettings())
    assert found.error <= 40.0
    seconds = {reference.identity: reference.seconds for reference in placing.references}
    took = sum(score.games * seconds[name] for name, score in placing.scores.items())
    assert took < 100.0, "CPU seconds of the references' moves: a minute on two cores"


def test_the_references_nearest_in_strength_are_met_most() -> None:
    random = np.random.default_rng(2)
    scale = scale_of(LADDER, pair_deviation=30.0, first_move=FIRST_MOVE)
    player = Simulated(1_000.0, scale, random, 0.0)
    placing = Placing(scale)
    place(placing, player.play, PlacingSettings(within=45.0))
    far = sum(
        score.games for name, score in placing.scores.items() if abs(LADDER[name] - 1_000) > 400
    )
    assert far < placing.games / 10
    assert len([score for score in placing.scores.values() if score.games >= 40]) >= 3


def test_slow_references_are_met_only_if_they_tell_more() -> None:
    scale = scale_of({"slow": 1_000.0, "quick": 1_050.0})
    slow, quick = scale.references
    slow = slow.model_copy(update={"seconds": 1.0})
    placing = Placing(scale, [slow, quick])
    placing.add(quick, Score((20, 0, 30), (20, 0, 30)))
    assert placing.next_reference(16) == quick


def test_a_single_opponent_gives_the_difference_of_the_score() -> None:
    placing = Placing(scale := scale_of({"a": 1_000.0}))
    placing.add(scale.references[0], Score((150, 0, 50), (150, 0, 50)))
    found = placing.placement
    assert found.rating == pytest.approx(1_000.0 + elo_difference(0.75), abs=3.0)
    low, high = Score((150, 0, 50), (150, 0, 50)).elo_interval
    assert found.low == pytest.approx(1_000.0 + low, abs=4.0)
    assert found.high == pytest.approx(1_000.0 + high, abs=4.0)
    assert str(found).startswith("1191 (95 %: 1153 to ")


def test_the_doubt_about_pairs_limits_what_one_opponent_can_tell() -> None:
    scale = scale_of({"a": 0.0, "b": 0.0, "c": 0.0}, pair_deviation=50.0)
    many = Score((5_000, 0, 5_000), (5_000, 0, 5_000))
    placing = Placing(scale)
    errors = []
    for reference in scale.references:
        placing.add(reference, many)
        errors.append(placing.placement.error / 1.96)
    assert errors == pytest.approx([50.0, 50.0 / math.sqrt(2), 50.0 / math.sqrt(3)], rel=0.05)


@pytest.mark.parametrize(("truth", "position"), [(-900.0, "below"), (TOP + 900.0, "above")])
def test_beyond_the_ends_there_is_a_bound(truth: float, position: str) -> None:
    scale = scale_of(LADDER, pair_deviation=30.0)
    player = Simulated(truth, scale, np.random.default_rng(1), 0.0)
    found = place(Placing(scale), player.play, PlacingSettings(within=20.0))
    assert found.position == position
    assert found.games < 1_000, "more games would not tell more"
    if position == "above":
        assert str(found) == f"above the scale: {found.low:.0f} or more"
        assert found.low > TOP + FAR
    else:
        assert str(found) == f"below the scale: {found.high:.0f} or less"


def test_no_more_games_than_allowed() -> None:
    scale = scale_of(LADDER)
    player = Simulated(700.0, scale, np.random.default_rng(1), 0.0)
    found = place(Placing(scale), player.play, PlacingSettings(within=1.0, max_games=50))
    assert found.games == 50
    assert found.low < 700.0 < found.high


CONDITIONS = Conditions(ply_limit=60)


def test_a_player_meets_the_references_and_the_games_are_kept(tmp_path: Path) -> None:
    scale = bot_scale(CONDITIONS)
    settings = PlacingSettings(within=10.0, max_games=60)
    player = AlphaBetaPlayer(1)
    seen: list[Placement] = []
    with ResultStore(tmp_path / "games.sqlite3", create=True) as store:
        first = place_player(
            player, scale, settings, store=store, on_games=lambda now: seen.append(now.placement)
        )
        assert first.games == 60
        assert seen
        results = store.results(CONDITIONS)
        met = {RandomPlayer.identity, GreedyPlayer.identity}
        for name in met:
            stored = score_of(results, player.identity, name)
            assert first.scores.get(name, Score((0, 0, 0), (0, 0, 0))).total == stored.total
        again = place_player(player, scale, settings, store=store)
        assert again.placement == first.placement, "no game is played twice"
        more = place_player(player, scale, PlacingSettings(within=10.0, max_games=80), store=store)
        assert more.games == 80


def test_a_reference_does_not_meet_itself() -> None:
    scale = bot_scale(CONDITIONS)
    found = place_player(GreedyPlayer(), scale, PlacingSettings(max_games=8))
    assert set(found.scores) == {RandomPlayer.identity}


def test_games_that_are_known_count() -> None:
    scale = bot_scale(CONDITIONS)
    known = {GreedyPlayer.identity: Score((400, 0, 400), (400, 0, 400))}
    found = place_player(AlphaBetaPlayer(1), scale, PlacingSettings(within=40.0), known=known)
    assert found.games == 1_600
    assert found.placement.rating == pytest.approx(1_500.0, abs=2.0)


def test_a_reference_that_has_changed_since_is_refused() -> None:
    scale = scale_of({"greedy v0": 1500.0}, specs={"greedy v0": "greedy"}, conditions=CONDITIONS)
    with pytest.raises(KeiseiError, match=r"greedy of scale 1 has changed: .* v0 and"):
        place_player(AlphaBetaPlayer(1), scale, PlacingSettings(max_games=8))
