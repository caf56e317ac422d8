"""Every field of the configuration has an effect: some code of the package reads it.

Tiny runs record which fields are read; `ELSEWHERE` lists those that only other runs read.
"""

import re
import sys
from pathlib import Path

import pytest

import keisei
from keisei.config import sections
from keisei.config_schema import SPARSE_SETTINGS, ModelConfig, Section
from keisei.network.model_factory import build_model
from keisei.shogi.features import feature_spec
from keisei.training.run import start_run
from tests.tiny import tiny_config

PACKAGE = Path(keisei.__file__).parent
SECTION_NAMES = {section: name for name, section in sections().items()}
FIELDS = {
    f"{name}.{field}" for name, section in sections().items() for field in section.model_fields
}

DISPLAYS = ("keisei.config_schema", "keisei.display")
"""Modules that only validate or show a field: that is no effect."""

VALIDATES = "_require_effect"
"""Function of a start that only validates, in a module that does more."""

FEATURES = (
    "selfplay.pool_share=0.5",
    "selfplay.shaping=0.1",
    "selfplay.simulations=2",
    "ppo.ema_decay=0.9",
    "ppo.ema_kl=0.1",
    "ppo.epochs=2",
    "evaluation.interval=1",
    "evaluation.games=2",
    "evaluation.within=900",
    "evaluation.final_within=900",
    "evaluation.max_games=8",
    "run.max_minutes=10",
)
"""Settings without which some code would not run."""

NETWORK = {
    "tower_depth": 2,
    "tower_width": 16,
    "se_ratio": 0.5,
    "activation": "gelu",
    "policy_head": "flat",
    "policy_width": 8,
    "value_head": "wdl",
    "value_width": 8,
}
"""Another value for each field of a tower."""

TOWER = {"type": "resnet", "tower_depth": 1}

ELSEWHERE = {
    "logging.display": "by the display itself",
    "logging.wandb_project": "with Weights & Biases",
    "logging.wandb_timeout": "with Weights & Biases",
    "parallel.compression": "with Ray",
    "parallel.fallback": "when workers fail",
    "parallel.max_failures": "when a worker fails",
    "ppo.nan_limit": "when a loss is not finite",
}
"""Fields that these runs do not read, and when they are read."""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The fields that the package reads, as ``section.field``; dumps do not count."""
    found: set[str] = set()

    def record(section: Section, name: str) -> object:
        if name in type(section).__pydantic_fields__:
            frame = sys._getframe(1)
            reader = frame.f_globals.get("__name__", "")
            is_effect = reader.startswith("keisei.") and not reader.startswith(DISPLAYS)
            if is_effect and frame.f_code.co_name != VALIDATES:
                found.add(f"{SECTION_NAMES.get(type(section), 'config')}.{name}")
        return object.__getattribute__(section, name)

    monkeypatch.setattr(Section, "__getattribute__", record, raising=False)
    return found


def test_every_field_is_read(reads: set[str], tmp_path: Path) -> None:
    start_run(tiny_config(*FEATURES, f"run.root={tmp_path}"))
    start_run(tiny_config("parallel.num_workers=1", f"run.root={tmp_path}", "run.name=workers"))
    start_run(tiny_config("model.type=sparse", f"run.root={tmp_path}", "run.name=sparse"))
    network = {f"model.{field}" for field in NETWORK}
    assert FIELDS - reads - network == set(ELSEWHERE), "fields that nothing reads"


@pytest.mark.parametrize("path", ELSEWHERE)
def test_fields_that_are_read_elsewhere(path: str) -> None:
    section, _, field = path.partition(".")
    read = re.compile(rf"\b({section}|settings)\.{field}\b")
    modules = (file for file in PACKAGE.rglob("*.py") if file.name != "config_schema.py")
    assert any(read.search(file.read_text(encoding="utf-8")) for file in modules)


@pytest.mark.parametrize(("field", "value"), NETWORK.items())
def test_every_field_of_a_tower_changes_it(field: str, value: object) -> None:
    """They are passed on as keyword arguments, so nothing reads them one by one."""
    one, other = (
        str(build_model(ModelConfig.model_validate(TOWER | changes), feature_spec("core46")))
        for changes in ({}, {field: value})
    )
    assert one != other


def test_all_fields_of_the_model_are_tested() -> None:
    assert {"type", *NETWORK, *SPARSE_SETTINGS} == set(ModelConfig.model_fields)
