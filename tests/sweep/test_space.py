"""Search spaces: what they say, and what is wrong with bad ones before the first trial."""

import re
from pathlib import Path
from typing import Any

import pytest

from keisei.config import ConfigError, load_config
from keisei.sweep.check import checked, require_set_up
from keisei.sweep.space import (
    Choices,
    Range,
    load_space,
    spaces,
)
from keisei.system import FileAccessError
from tests.sweep.small_sweeps import small_sweep, write_space

MANY: dict[str, Any] = {
    f"ppo.{field}": {"low": 0.1, "high": 0.9}
    for field in (
        "learning_rate", "learning_rate_end", "warmup", "entropy", "entropy_end", "value_weight",
        "gamma", "gae_lambda", "max_grad_norm",
    )
}  # fmt: skip
"""More combinations of ends than are tried."""


@pytest.mark.parametrize("name", spaces())
def test_the_spaces_that_come_with_keisei_are_good(name: str) -> None:
    require_set_up(checked(load_space(Path(name))))


def test_parameters_override_what_is_set_and_that_the_base(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("ppo: {epochs: 7, gamma: 0.5}", encoding="utf-8")
    sweep = small_sweep(
        tmp_path, base="mine.yaml", set={"ppo.clip_range": 0.3, "evaluation": {"games": 6}},
        objective={"against": ["random", "greedy"]},
    )  # fmt: skip
    config = sweep.config({"ppo.epochs": 3}, {"run.name": "x"})
    assert config == load_config(
        overrides=["ppo.epochs=3", "ppo.gamma=0.5", "ppo.clip_range=0.3", "evaluation.games=6",
                   "run.name=x"]
    )  # fmt: skip


def test_whether_numbers_are_whole_is_said_by_their_field(tmp_path: Path) -> None:
    space = {
        "ppo.epochs": {"low": 1, "high": 3},
        "ppo.gamma": {"low": 0.5, "high": 1},
        "ppo.minibatch_size": {"low": 32, "high": 128, "step": 32},
        "ppo.value_weight": {"low": 1, "high": 3, "int": True},
        "ppo.target_kl": {"low": 0.01, "high": 0.1},
    }
    sweep = small_sweep(tmp_path, space=space, set={})
    ends = {path: parameter.ends() for path, parameter in sweep.space.items()}
    assert ends["ppo.epochs"] == (1, 3)
    assert isinstance(ends["ppo.epochs"][0], int)
    assert isinstance(ends["ppo.gamma"][1], float)
    assert isinstance(ends["ppo.minibatch_size"][0], int)
    assert isinstance(ends["ppo.value_weight"][0], int)
    assert isinstance(ends["ppo.target_kl"][0], float)


@pytest.mark.parametrize(
    ("path", "choices", "values"),
    [
        ("ppo.target_kl", [None, 0.1], [None, 0.1]),
        ("ppo.mirror", [True, False], [True, False]),
        ("env.declaration", [27, "off"], ["27", "off"]),
        ("logging.plugins", [[], ["one", "two"]], [(), ("one", "two")]),
    ],
)
def test_choices_reach_the_settings_as_they_are_meant(
    path: str, choices: list[object], values: list[object], tmp_path: Path
) -> None:
    sweep = small_sweep(tmp_path, space={path: {"choices": choices}})
    section, field = path.split(".")
    labels = sweep.space[path].ends()
    assert all(isinstance(label, str) for label in labels)  # what optuna can store
    settings = [getattr(sweep.config({path: label}), section) for label in labels]
    assert [getattr(setting, field) for setting in settings] == values


def test_a_grid_has_both_ends() -> None:
    assert Range(low=0.1, high=0.4, step=0.1).grid() == pytest.approx([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ({"low": 1e-4, "high": 0.1, "log": True}, "0.0001 to 0.1, log"),
        ({"low": 0, "high": 1, "step": 0.25}, "0 to 1, step 0.25"),
    ],
)
def test_ranges_in_words(parameter: dict[str, Any], words: str) -> None:
    assert str(Range.model_validate(parameter)) == words
    assert str(Choices(choices=(None, "a"))) == "none, a"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"trails": 3}, "trails: unknown; valid names are base, trials,"),
        ({"trials": 0}, "trials: 0 is not allowed: should be greater than 0"),
        ({"trials": "many"}, "trials: many is not allowed: should be a whole number"),
        ({"space": {}}, "space: {} is not allowed"),
        ({"space": {"ppo.gamma": 3}}, "space.ppo.gamma: 3 is not allowed: should be settings"),
        ({"space": {"ppo.gamma": {"low": 0.5}}}, "space.ppo.gamma.high: is missing"),
        ({"space": {"ppo.gamma": {"low": "x", "high": 1}}}, "ppo.gamma.low: x is not allowed"),
        ({"space": {"ppo.gamma": {"low": 0, "high": 1, "lg": 1}}}, "lg: unknown; valid names are"),
        ({"space": {"ppo.gamma": {"low": 0.9, "high": 0.5}}}, "0.9 should be less than high 0.5"),
        ({"space": {"ppo.gamma": {"low": 0, "high": 1, "log": True}}}, "log needs a low greater"),
        (
            {"space": {"ppo.gamma": {"low": 0.5, "high": 1, "log": True, "step": 0.1}}},
            "log and step exclude each other",
        ),
        ({"space": {"ppo.gamma": {"low": 0.5, "high": 1, "step": 0.2}}}, "0.9 instead of 1"),
        ({"space": {"ppo.gamma": {"choices": [0.9]}}}, "space.ppo.gamma: choices should be at"),
        ({"space": {"ppo.gamma": {"choices": [1, 1]}}}, "should differ from each other"),
        ({"space": {"ppo.gamma": {"choices": 3}}}, "space.ppo.gamma.choices: 3 is not allowed"),
        ({"objective": {"against": []}}, "against should name an opponent"),
        ({"sampler": {"kind": "grid"}}, "sampler.kind: grid is not allowed: should be 'tpe' or"),
        ({"pruner": {"warmup": 2}}, "pruner.warmup: 2 is not allowed: should be less than or"),
        # From here on it is the configuration that refuses.
        ({"base": "quickstrat"}, "cannot read quickstrat"),
        ({"set": {"ppo.epoch": 2}}, "ppo.epoch: unknown field: did you mean ppo.epochs?"),
        ({"space": {"ppo.gama": {"low": 0, "high": 1}}}, "did you mean ppo.gamma?"),
        ({"space": {"ppo": {"low": 0, "high": 1}}}, "ppo: 0.0 is not allowed: should be settings"),
        (
            {"space": {"ppo.clip_range": {"low": 0.1, "high": 3}}},
            "space: ppo.clip_range: 3.0 is not allowed: should be less than 1",
        ),
        (
            {"space": {"model.activation": {"choices": ["relu", "rely"]}}},
            "space: model.activation: rely is not allowed: should be 'relu', 'silu', 'gelu' or",
        ),
        ({"space": {"ppo.mirror": {"low": 0, "high": 1}}}, "ppo.mirror: is not a number; use cho"),
        ({"space": {"ppo.epochs": {"low": 1.5, "high": 3}}}, "low should be a whole number"),
        (
            {"space": {"ppo.epochs": {"low": 1, "high": 3, "int": False}}},
            "takes whole numbers: int should be true",
        ),
        ({"space": {"run.name": {"choices": ["a", "b"]}}}, "run.name: is set by the sweep"),
        ({"set": {"run": {"root": "elsewhere"}}}, "run.root: is set by the sweep"),
        ({"set": {"ppo": {"epochs": 2}}}, "ppo.epochs: is both set and searched"),
        ({"objective": {"against": "tanuki"}}, "tanuki is not among evaluation.opponents"),
        (
            {"set": {"evaluation.interval": 0}, "pruner": {"kind": "median"}},
            "pruner: without evaluations during training",
        ),
        (
            {"space": {
                "ppo.ema_kl": {"choices": [0, 0.1]}, "ppo.ema_decay": {"choices": [0, 0.9]},
            }},
            "ema_kl needs averaged weights: set ema_decay, for example to 0.99 "
            "(with ppo.ema_kl=0.1, ppo.ema_decay=0)",
        ),
        ({"space": {**MANY, "ppo.clip_range": {"low": 0.1, "high": 3}}}, "clip_range: 3.0 is not"),
    ],
)  # fmt: skip
def test_a_bad_space_is_refused(changes: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, FileAccessError)) as caught:
        checked(load_space(write_space(tmp_path, **changes)))
    assert problem in str(caught.value)


def test_fields_that_only_go_together_are_allowed_together(tmp_path: Path) -> None:
    small_sweep(
        tmp_path,
        space={
            "ppo.ema_kl": {"low": 0.01, "high": 0.1},
            "ppo.ema_decay": {"low": 0.9, "high": 0.99},
        },
    )


def test_every_problem_is_listed(tmp_path: Path) -> None:
    space = {
        "ppo.clip_range": {"low": -1, "high": 3},
        "ppo.gama": {"choices": [1, 2]},
        "ppo.mirror": {"low": 0, "high": 1},
    }
    with pytest.raises(ConfigError) as caught:
        small_sweep(tmp_path, space=space)
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"space": {"model.type": {"choices": ["resnet", "tower"]}}}, "model type 'tower' does"),
        ({"space": {"device.device": {"choices": ["cpu", "cuda:77"]}}}, "'cuda:77' is not avail"),
        (
            {"set": {"evaluation.opponents": ["random", "alphabeta:x"], "evaluation.interval": 1}},
            "alphabeta",
        ),
    ],
)
def test_what_only_training_would_notice_is_refused(
    changes: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    if "space" in changes:  # what is searched must not be set, as it is in small sweeps
        changes = {**changes, "set": {"evaluation.interval": 1}}
        if "model.type" not in changes["space"]:
            changes["set"]["model.type"] = "resnet"
    sweep = small_sweep(tmp_path, **changes)
    with pytest.raises(ConfigError, match=problem):
        require_set_up(sweep)


def test_files_that_are_not_a_space(tmp_path: Path) -> None:
    with pytest.raises(FileAccessError, match="search spaces that come with Keisei are quickstart"):
        load_space(tmp_path / "nothing.yaml")
    path = tmp_path / "list.yaml"
    path.write_text("- one", encoding="utf-8")
    with pytest.raises(ConfigError, match="should contain settings of a sweep"):
        load_space(path)
    path.write_text("trials: 3\ntrials: 4", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 2, column 1: duplicate key trials"):
        load_space(path)


def test_aliases_are_refused(tmp_path: Path) -> None:
    """Before, these 700 bytes took all memory."""
    lines = [
        f"  l{depth}: &l{depth} [{', '.join([f'*l{depth - 1}'] * 9)}]" for depth in range(1, 12)
    ]
    path = tmp_path / "space.yaml"
    path.write_text("\n".join(["trials: 1", "set:", "  l0: &l0 [x]", *lines]), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"line 4, column [0-9]+: aliases .* are not supported"):
        load_space(path)


def test_a_base_whose_name_is_too_long_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    text = next(iter(spaces().values())).read_text()
    path.write_text(re.sub("^base: .*$", f"base: {'x' * 300}", text, flags=re.MULTILINE))
    with pytest.raises(FileAccessError, match="too long"):
        load_space(path)
