"""``keisei models``, and the card of the player in the package."""

import json
from importlib import resources
from pathlib import Path

import pytest

from keisei.commands.models import models
from keisei.constants import BUILTIN
from keisei.network.loading import read_network
from tests.commands.invoke import invoke
from tests.runs.journals import append, entry
from tests.tiny_runs import tiny_run


def test_the_network_in_the_package_and_those_of_runs(tmp_path: Path) -> None:
    tiny_run(tmp_path / "mine", checkpoints=1)
    (tmp_path / "empty").mkdir()
    shown = invoke(models, str(tmp_path)).stdout
    assert shown.index("builtin") < shown.index("mine") < shown.index("keisei play NAME")
    assert "empty" not in shown
    found = json.loads(invoke(models, str(tmp_path), "--json").stdout)
    assert [entry["name"] for entry in found] == ["builtin", "mine"]


def test_without_runs(tmp_path: Path) -> None:
    assert "builtin" in invoke(models, str(tmp_path / "nowhere")).stdout


def test_the_card_is_that_of_the_network() -> None:
    package = resources.files("keisei.network")
    card = json.loads(package.joinpath(f"{BUILTIN}.json").read_text("utf-8"))
    assert card["plies"] == read_network(Path(BUILTIN)).timestep
    assert card["command"].startswith("keisei train --config ")
    assert len(package.joinpath(f"{BUILTIN}.keisei").read_bytes()) <= 5_000_000


@pytest.mark.parametrize(
    ("position", "shown"), [(0.0, "4400"), (1.0, "above the scale: 4100 or more")]
)
def test_beyond_the_scale_there_is_a_bound(tmp_path: Path, position: float, shown: str) -> None:
    run = tiny_run(tmp_path / "mine", checkpoints=1)
    metrics = {
        "eval/elo": 4400.0, "eval/elo_low": 4100.0, "eval/elo_high": 4700.0,
        "eval/elo_position": position,
    }  # fmt: skip
    append(run, entry("evaluation", 1, metrics=metrics).to_line())
    row = next(line for line in invoke(models, str(tmp_path)).stdout.splitlines() if "mine" in line)
    assert row.rstrip().endswith(shown)
