"""The database of a sweep: the trials of a killed session are there in the next."""

from pathlib import Path
from typing import Any

import pytest

from keisei.config import ConfigError
from keisei.errors import KeiseiError
from keisei.sweep.study import STUDY, Study
from tests.sweep.small_sweeps import small_sweep

SPACE: dict[str, Any] = {
    "ppo.learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
    "ppo.epochs": {"low": 1, "high": 9, "step": 2},
    "ppo.gamma": {"low": 0.5, "high": 0.9, "step": 0.1},
    "ppo.mirror": {"choices": [True, False]},
}


def open_study(folder: Path, **changes: Any) -> Study:
    return Study(small_sweep(folder, **{"space": SPACE, **changes}), folder)


def test_values_are_of_the_space(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    for _ in range(4):
        values = study.ask().parameters
        assert 1e-4 <= float(values["ppo.learning_rate"]) <= 1e-2
        assert values["ppo.epochs"] in (1, 3, 5, 7, 9)
        assert round(float(values["ppo.gamma"]), 6) in (0.5, 0.6, 0.7, 0.8, 0.9)
        assert values["ppo.mirror"] in ("true", "false")
    study.close()


@pytest.mark.parametrize("kind", ["tpe", "random"])
def test_sessions_together_ask_what_one_would_ask(kind: str, tmp_path: Path) -> None:
    space = {path: SPACE[path] for path in ("ppo.learning_rate", "ppo.mirror")}
    asked = []
    for sessions in (1, 3):
        folder = tmp_path / str(sessions)
        folder.mkdir()
        sampler = {"kind": kind, "seed": 7, "startup_trials": 3}
        parameters = []
        for _ in range(sessions):
            study = open_study(folder, sampler=sampler, space=space)
            for _ in range(6 // sessions):
                trial = study.ask()
                parameters.append(trial.parameters)
                study.complete(trial.number, float(trial.parameters["ppo.learning_rate"]), 4)
            study.close()
        asked.append(parameters)
    assert asked[0] == asked[1]
    assert len({str(parameters) for parameters in asked[0]}) == 6  # and never the same twice


def test_running_trials_are_found_again(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    done, open_one = study.ask(), study.ask()
    assert not open_one.report(1, 0.25)
    study.complete(done.number, 0.75, games=40)
    study.close()
    again = open_study(tmp_path)
    assert again.interrupted() == [open_one.number] == [1]
    reopened = again.reopen(1)
    assert reopened.parameters == open_one.parameters
    assert not reopened.report(1, 0.9)  # reported before: ignored
    assert [record.score for record in again.records()] == [0.75, 0.25]
    assert again.best() == again.records()[0]
    assert again.records()[0].games == 40
    again.fail(1, "no memory")
    assert again.records()[1].state == "failed"
    assert again.records()[1].reason == "no memory"
    assert again.interrupted() == []
    again.close()


def test_a_trial_that_was_killed_while_it_was_created_gets_the_rest(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    study._study.ask().suggest_float("ppo.learning_rate", 1e-4, 1e-2, log=True)
    study.close()
    again = open_study(tmp_path)
    (record,) = again.records()
    reopened = again.reopen(0)
    assert list(reopened.parameters) == list(SPACE)
    assert reopened.parameters["ppo.learning_rate"] == record.parameters["ppo.learning_rate"]
    again.close()


@pytest.mark.parametrize("kind", ["median", "halving"])
def test_what_is_worse_than_the_others_is_pruned(kind: str, tmp_path: Path) -> None:
    pruner = {"kind": kind, "startup_trials": 3, "warmup": 0.2}
    study = open_study(tmp_path, pruner=pruner, space={"ppo.mirror": SPACE["ppo.mirror"]})
    for score in (0.6, 0.7, 0.8):
        trial = study.ask()
        for part in range(1, 5):
            trial.report(part, score)
        study.complete(trial.number, score, 4)
    worse, better = study.ask(), study.ask()
    assert any(worse.report(part, 0.1) for part in range(1, 5))
    assert not any(better.report(part, 0.9) for part in range(1, 5))
    study.prune(worse.number)
    assert study.records()[worse.number].state == "pruned"
    assert study.records()[worse.number].score == 0.1
    study.close()


def test_importances_find_the_parameter_that_matters(tmp_path: Path) -> None:
    space = {path: SPACE[path] for path in ("ppo.learning_rate", "ppo.gamma")}
    study = open_study(tmp_path, sampler={"kind": "random"}, space=space)
    assert study.importances() == {}
    for _ in range(16):
        trial = study.ask()
        study.complete(trial.number, float(trial.parameters["ppo.gamma"]), 4)
    importances = study.importances()
    assert set(importances) == set(space)
    assert max(importances, key=importances.__getitem__) == "ppo.gamma"
    study.close()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"space": {**SPACE, "ppo.epochs": {"low": 1, "high": 5}}}, "ppo.epochs: was 1 to 9, step"),
        ({"objective": {"against": "greedy"}, "set": {}}, "objective.against: was ['random']"),
        ({"set": {"env.num_games": 4}, "objective": {"against": "random"}}, "num_games: was 8, is"),
    ],
)  # fmt: skip
def test_another_search_in_the_same_place_is_refused(
    changes: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    open_study(tmp_path).close()
    open_study(tmp_path, trials=400, side_by_side=2, pruner={"kind": "median"}).close()
    with pytest.raises(ConfigError) as caught:
        open_study(tmp_path, **changes)
    assert problem in str(caught.value)
    assert "start another sweep with --name" in str(caught.value)


def test_a_file_that_is_not_a_study_is_refused(tmp_path: Path) -> None:
    (tmp_path / STUDY).write_bytes(b"no database, but long enough to be taken for one" * 9)
    with pytest.raises(KeiseiError, match=r"study\.sqlite3 cannot be used"):
        open_study(tmp_path)
