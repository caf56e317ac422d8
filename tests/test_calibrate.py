"""``scripts/calibrate.py``: which references play, and what is written."""

from itertools import combinations, pairwise
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from keisei.evaluation.match import MatchSettings, play_match
from keisei.evaluation.ratings import PairResult, rate
from keisei.evaluation.results import Conditions, ResultStore
from keisei.evaluation.scale import Scale, current_scale
from keisei.players.player import Player
from keisei.players.spec import make_player
from tests.evaluation.scales import scale_of
from tests.evaluation.test_results import A, B
from tests.scripts import load_script


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load_script("calibrate", monkeypatch)


def call(script: ModuleType, *arguments: object) -> str:
    result = CliRunner().invoke(
        script.app, [str(argument) for argument in arguments], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_the_scale_in_the_package_has_exactly_these_references(script: ModuleType) -> None:
    assert {r.spec for r in current_scale().references} == set(script.REFERENCES)


def test_references_play_until_neighbours_have_met(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = ("random", "greedy,random=0.8", "greedy,random=0.7")
    monkeypatch.setattr(script, "REFERENCES", specs)
    monkeypatch.setattr(script, "FIRST_GAMES", 4)
    store, output = tmp_path / "games.sqlite3", tmp_path / "ratings-1.json"
    options = ("--store", store, "--output", output, "--games", 20)
    text = call(script, "references", *options)
    scale = Scale.read(output)
    assert scale.references[0].spec == "random"
    assert scale.ratings["random"] == 0.0
    assert scale.references[0].error == 0.0
    assert {r.games for r in scale.references} == {40}, "each pair has met 20 times"
    assert sum(result.games for result in scale.results) == 60
    assert scale.covariance.shape == (3, 3)
    assert "greedy,random=0.7" in text
    # All of it can be computed again from the file.
    again = rate(scale.results, fixed={"random": 0.0}, pair_deviation=scale.file.pair_deviation)
    for reference in scale.references:
        assert again.rating(reference.identity) == pytest.approx(reference.rating, abs=0.06)
        assert again.error(reference.identity) == pytest.approx(reference.error, abs=0.06)
    before = output.read_bytes()
    call(script, "references", *options)
    assert Scale.read(output).results == scale.results, "nothing was missing"
    assert len(output.read_bytes()) == pytest.approx(len(before), abs=20)


def test_kept_games_are_rated_again_without_playing(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        script, "REFERENCES", ("random", "greedy,random=0.8", "greedy,random=0.7", "greedy")
    )
    store, old, new = (tmp_path / name for name in ("games.sqlite3", "old.json", "new.json"))
    players = [make_player(spec) for spec in ("random", "greedy,random=0.8", "greedy,random=0.7")]
    with ResultStore(store, create=True) as results:
        for seed, (one, other) in enumerate(combinations(players, 2)):
            games = play_match(one, other, MatchSettings(games=20, seed=seed)).games
            results.add(one, other, games, conditions=Conditions(), seed=seed)
        found = results.results(Conditions())
    monkeypatch.setattr(script, "measure_seconds", lambda spec: {"random": 1.0}.get(spec, 2.0))
    assert "left out: greedy, it has no games" in call(script, "refit", store, "--output", old)
    scale = Scale.read(old)
    assert [r.seconds for r in scale.references] == [1.0, 2.0, 2.0]
    expected, counted = script.fit(found)
    assert sum(r.games for r in scale.results) == sum(r.games for r in counted)
    assert [r.identity for r in scale.references] == expected.ranking()[::-1]
    assert [r.rating for r in scale.references] == pytest.approx(sorted(expected.elo), abs=0.06)

    monkeypatch.delattr(script, "measure_seconds")  # what is in the file is not measured
    monkeypatch.setattr(script, "_play", None)
    call(script, "refit", store, "--output", new, "--seconds-of", old)
    assert Scale.read(new) == scale


def test_players_that_are_near_each_other_play(script: ModuleType) -> None:
    names = ["a", "b", "c", "d", "e", "f", "g"]
    fixed = dict(zip(names, (0.0, 100.0, 200.0, 1000.0, 2000.0, 3000.0, 3100.0), strict=True))
    results = [PairResult(x, y, 1, 1, 1) for x, y in pairwise(names)]
    pairs = script.near_pairs(names, rate(results, fixed=fixed))
    assert frozenset("ae") in pairs, "four above it in any case"
    assert frozenset("af") not in pairs
    assert frozenset("fg") in pairs


def test_only_results_of_near_players_count_unless_a_player_is_near_none(
    script: ModuleType,
) -> None:
    results = [
        PairResult("near", "zero", 60, 0, 40),
        PairResult("far", "zero", 99, 0, 1),
        PairResult("far", "near", 98, 0, 2),
        PairResult("zero", "far", 0, 0, 100),
    ]
    ratings = rate(results, fixed={"zero": 0.0})
    assert script.near_results(results, ratings) == results, "or nothing would be known of `far`"
    linked = [*results, PairResult("far", "further", 40, 0, 60)]
    ratings = rate(linked, fixed={"zero": 0.0})
    assert script.near_results(linked, ratings) == [linked[0], linked[-1]]


def test_slow_players_play_fewer_games(script: ModuleType) -> None:
    def pair(one: float, other: float) -> tuple[object, object]:
        players: list[Player] = [A, B]
        return tuple(
            script.Candidate(player.name, player, seconds)
            for player, seconds in zip(players, (one, other), strict=True)
        )

    assert script.games_of(pair(0.001, 0.001), 400) == 400
    assert script.games_of(pair(0.1, 0.2), 400, seconds=60.0) in (198, 200)
    assert script.games_of(pair(5.0, 1.0), 400) == script.MIN_GAMES


def test_two_calibrations_are_compared(script: ModuleType, tmp_path: Path) -> None:
    for name, rating in (("one", 500.0), ("other", 530.0)):
        scale = scale_of({"random": 0.0, "greedy": rating})
        references = tuple(
            r.model_copy(update={"error": 10.0 if r.rating else 0.0}) for r in scale.references
        )
        results = ((1, 0, 400, 0, 100), (0, 1, 100, 0, 400))
        file = scale.file.model_copy(update={"references": references, "results": results})
        (tmp_path / f"{name}.json").write_text(file.model_dump_json())
    text = call(script, "compare", tmp_path / "one.json", tmp_path / "other.json")
    assert "+30" in text
    assert "largest distance 2.1 standard deviations, 0% within 1.96" in text
    assert "largest distance 0.0 sampling errors, 100% within 1.96" in text


def test_a_gap_that_sampling_does_not_explain_is_seen_behind_deviations_of_pairs(
    script: ModuleType, tmp_path: Path
) -> None:
    """1,000 games and 64 instead of 60 %: 30 points, 2 sampling errors, whatever pairs deviate."""
    for name, wins in (("one", 600), ("other", 640)):
        results = [
            PairResult("greedy", "random", wins // 2, 0, 500 - wins // 2),
            PairResult("random", "greedy", 500 - wins // 2, 0, wins // 2),
        ]
        ratings = rate(results, fixed={"random": 0.0}, pair_deviation=100.0)
        names = {"random": "random", "greedy": "greedy"}
        scale = Scale.of(
            ratings, tuple(results), specs=names, seconds=dict.fromkeys(names, 0.0),
            conditions=Conditions(), keisei="0",
        )  # fmt: skip
        (tmp_path / f"{name}.json").write_text(scale.file.model_dump_json())
    text = call(script, "compare", tmp_path / "one.json", tmp_path / "other.json")
    assert "largest distance 0.2 standard deviations, 100% within 1.96" in text
    assert "largest distance 1.8 sampling errors, 100% within 1.96" in text


def test_a_player_is_placed_by_two_halves_of_the_references(script: ModuleType) -> None:
    output = call(script, "halves", "greedy,random=0.35", "--within", 150)
    assert "greedy,random=0.35: " in output
    assert float(output.partition(" standard")[0].split()[-1]) < 4.0


def test_engines_that_are_not_installed_have_no_spec(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script.shutil, "which", lambda name, path=None: None)
    assert {script.engine_spec(engine) for engine in script.ENGINES} == {None}
    monkeypatch.setattr(script.shutil, "which", lambda name, path=None: f"/there/{name}")
    specs = [script.engine_spec(engine) for engine in script.ENGINES]
    assert specs[0].startswith('usi:"/there/fairy-stockfish",name=Fairy-Stockfish Skill Level -20')
    assert any("gnushogi_usi.py" in spec for spec in specs)
