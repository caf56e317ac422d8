"""A network is rated and plays the opponents of its settings."""

from pathlib import Path

from keisei.evaluation.calibration import GAMES as CALIBRATION_GAMES
from keisei.evaluation.measure import manner_of_play, measure
from keisei.evaluation.scale import current_scale
from tests.tiny import tiny_trainer


def test_a_network_gets_scores_and_a_rating(tmp_path: Path, family: str) -> None:
    trainer = tiny_trainer(tmp_path, family, "evaluation.max_games=16")
    network = trainer.learner.evaluation_network
    found = measure(network, trainer.config, games=4, within=1.0, seed=3, sample_games=1)
    assert {name: score.games for name, score in found.scores.items()} == {"random": 4, "greedy": 4}
    assert len(found.records) == 2
    assert found.placement is not None
    assert found.placement.games == 16, "games with another ply limit do not count"
    assert found.placement.version == current_scale().version
    assert found.placement.low < found.placement.rating < found.placement.high
    again = measure(network, trainer.config, games=4, within=1.0, seed=3)
    assert again.placement == found.placement


def test_games_under_the_conditions_of_the_scale_count_for_the_rating(tmp_path: Path) -> None:
    trainer = tiny_trainer(
        tmp_path, "model.type=sparse", "evaluation.max_games=16", "evaluation.ply_limit=512"
    )
    network = trainer.learner.evaluation_network
    counts: list[tuple[int, int]] = []
    found = measure(
        network,
        trainer.config,
        games=8,
        within=1.0,
        seed=3,
        on_games=lambda games, at_most: counts.append((games, at_most)),
    )
    assert found.placement is not None
    assert found.placement.games == 32, "16 of them against the opponents of the settings"
    assert counts == sorted(counts), "games are not counted twice"
    assert counts[-1] == (32, 32 + CALIBRATION_GAMES), "the games of the calibration come last"


def test_without_a_wish_for_exactness_there_is_no_rating(tmp_path: Path) -> None:
    trainer = tiny_trainer(tmp_path, "model.type=sparse")
    found = measure(trainer.learner.evaluation_network, trainer.config, games=2, within=0.0, seed=1)
    assert found.placement is None


def test_how_a_network_plays_is_said_in_words() -> None:
    assert manner_of_play(0.0, 0) == "by its policy at temperature 0, without a mate rule"
    assert manner_of_play(0.5, 1) == "by its policy at temperature 0.5, with mates in one by rule"
