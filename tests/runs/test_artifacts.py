"""Figures of a run's sample games, and ratings of its checkpoints."""

import json
from pathlib import Path

from keisei.evaluation.match import write_games
from keisei.run_files import GAMES, STRENGTH
from keisei.runs.artifacts import read_ratings, summarize_games
from keisei.runs.folder import RunsFolder
from keisei.shogi.notation.record import Ending
from tests.runs.journals import new_run, step
from tests.training.fake_run import random_record


def test_sample_games_are_summed_up(tmp_path: Path) -> None:
    run = new_run(tmp_path, "one", step(1))
    records = [random_record("network", "greedy", 0), random_record("greedy", "network", 1)]
    write_games(records, run / GAMES, prefix="update-000001", event="test")
    (run / GAMES / "update-000002-broken-vs-network.kif").write_text("no game")
    found = summarize_games(RunsFolder(tmp_path), "one")
    assert found.games == 2, "a game that cannot be read does not count"
    assert found.mean_plies == sum(len(record.main_line) for record in records) / 2
    wins = [record.winner for record in records]
    assert found.black_score == sum(winner is not None and winner == 0 for winner in wins) / 2
    network = [winner == color for winner, color in zip(wins, (0, 1), strict=True)]
    assert found.network_score == sum(network) / 2
    assert found.endings == ((Ending.MATE, 2),)
    assert sum(number for _, number in found.openings) == 2


def test_without_games_there_are_no_scores(tmp_path: Path) -> None:
    new_run(tmp_path, "one", step(1))
    found = summarize_games(RunsFolder(tmp_path), "one")
    assert (found.games, found.network_score, found.black_score) == (0, None, None)


def test_ratings_say_where_they_are_on_the_scale(tmp_path: Path) -> None:
    run = new_run(tmp_path, "one")
    point = {"timestep": 9, "elo": 4400.0, "low": 4100.0, "high": 4700.0}
    found = [point, point | {"position": "above"}, point | {"position": ["nonsense"]}]
    strength = {"scale": 1, "checkpoints": found, "opponents": []}
    (run / STRENGTH).write_text(json.dumps(strength))
    ratings = read_ratings(RunsFolder(tmp_path), "one")
    assert ratings is not None
    positions = [checkpoint.rating.position for checkpoint in ratings.checkpoints]
    assert positions == ["on", "above", "on"], "earlier versions wrote none"
