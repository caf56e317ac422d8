"""The scale in the package: its players are still those that were rated, and its ratings follow
from its results."""

import json
from contextlib import closing
from itertools import combinations, pairwise

import pytest

from keisei.evaluation import ZERO_PLAYER
from keisei.evaluation.ratings import PairResult, Ratings, rate
from keisei.evaluation.results import Conditions
from keisei.evaluation.scale import (
    NOTED_DEVIATIONS,
    RatedEngine,
    Reference,
    Scale,
    ScaleFile,
    current_scale,
)
from keisei.players.spec import make_player
from tests.evaluation.scales import scale_of

ROUNDING = 0.1
"""Points by which ratings may differ from the file's, which have one digit after the point."""


@pytest.fixture(scope="module")
def refit() -> Ratings:
    scale = current_scale()
    return rate(scale.results, fixed={ZERO_PLAYER: 0.0}, pair_deviation=scale.file.pair_deviation)


@pytest.mark.parametrize("reference", current_scale().references, ids=lambda r: r.spec)
def test_a_reference_is_still_the_player_that_was_rated(reference: Reference) -> None:
    with closing(make_player(reference.spec, threads=1)) as player:
        assert player.identity == reference.identity, "its rating needs a new version of the scale"


def test_the_ratings_follow_from_the_results(refit: Ratings) -> None:
    scale = current_scale()
    assert set(refit.names) == set(scale.ratings)
    for reference in scale.references:
        name = reference.identity
        assert refit.rating(name) == pytest.approx(reference.rating, abs=ROUNDING), name
        assert refit.error(name) == pytest.approx(reference.error, abs=ROUNDING), name
        assert refit.games[refit.names.index(name)] == reference.games
    assert refit.first_move == pytest.approx(scale.file.first_move, abs=ROUNDING)


def test_the_references_are_sorted_and_begin_with_random_at_zero() -> None:
    references = current_scale().references
    assert (references[0].identity, references[0].rating) == (ZERO_PLAYER, 0.0)
    assert all(weaker.rating <= stronger.rating for weaker, stronger in pairwise(references))
    assert len({reference.identity for reference in references}) == len(references)


def test_references_and_engines_are_in_one_table() -> None:
    file = scale_of({"random": 0.0, "strong v1": 2000.0}, specs={"strong v1": "strong"}).file
    engine = RatedEngine(
        name="Engine 5", version="Engine 5.1", spec="usi:engine", rating=900.0, low=850.0,
        high=950.0, games=64,
    )  # fmt: skip
    scale = Scale(file.model_copy(update={"engines": (engine,)}))
    assert [(player.name, player.kind, player.elo) for player in scale.players] == [
        ("strong", "reference", 2000.0),
        ("Engine 5", "engine", 900.0),
        ("random", "reference", 0.0),
    ]
    assert (scale.players[1].margin, scale.players[1].identity) == (50.0, "Engine 5.1")
    plain = json.loads(json.dumps(scale.as_dict()))
    assert plain["scale"] == 1
    assert plain["conditions"]["opening_plies"] == 4
    assert plain["players"][1]["games"] == 64


def test_the_file_names_the_pairs_that_its_ratings_explain_least() -> None:
    names = [f"player {n}" for n in range(8)]
    results = [PairResult(one, other, 50, 0, 50) for one, other in combinations(names, 2)]
    results.append(PairResult(names[0], names[5], 95, 0, 5))
    results.append(PairResult(names[2], names[6], 20, 0, 80))
    ratings = rate(results, fixed={names[0]: 0.0}, pair_deviation=80.0)
    scale = Scale.of(
        ratings, tuple(results), specs={name: name for name in names},
        seconds=dict.fromkeys(names, 0.0), conditions=Conditions(), keisei="0",
    )  # fmt: skip
    again = Scale(ScaleFile.model_validate_json(scale.file.model_dump_json()))
    deviations = again.file.deviations
    assert len(deviations) == NOTED_DEVIATIONS == 20, "of 28 pairs"
    sizes = [abs(points) for _, _, points in deviations]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] >= sorted(map(abs, ratings.deviations.values()))[8] - ROUNDING
    (one, other, points), (third, fourth, second) = deviations[:2]
    assert (one, other) == (names[0], names[5])
    assert points > 40.0
    assert (third, fourth) == (names[2], names[6])
    assert second < -40.0


def test_a_file_without_deviations_can_be_read() -> None:
    file = scale_of({"random": 0.0}).file
    older = file.model_dump_json(exclude={"deviations"})
    assert "deviations" not in older
    assert ScaleFile.model_validate_json(older).deviations == ()
