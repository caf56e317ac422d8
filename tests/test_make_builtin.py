"""``scripts/make_builtin.py``: a run becomes a file of the package, with its card."""

import json
from pathlib import Path

import pytest

from keisei.benchmark.strength_curve import measure_curve
from keisei.errors import KeiseiError
from keisei.network.loading import read_network
from keisei.training.run import start_run
from tests.scripts import load_script
from tests.tiny import tiny_config


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    milestone = "checkpoint.milestones=[0.00001]"
    settings = (f"run.root={root}", "run.name=mine", "model.type=sparse", milestone)
    return start_run(tiny_config(*settings)).run_directory


def test_network_and_card(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("make_builtin", monkeypatch)
    curve = tmp_path / "curve.json"
    report = measure_curve([run], opponents=["random"], games=2, within=500.0)
    curve.write_text(json.dumps(report.as_dict()), "utf-8")
    script.main(run, curve, command="keisei train", directory=tmp_path)
    card = json.loads((tmp_path / "builtin.json").read_text("utf-8"))
    trained = read_network(run)
    assert (card["plies"], card["seed"]) == (trained.timestep, trained.config.run.seed)
    assert card["games"] > 0
    assert [entry["plies"] for entry in card["curve"]] == [report.points[0].timestep]
    assert 0.0 <= card["curve"][0]["against random"] <= 1.0
    assert read_network(tmp_path / "builtin.keisei").timestep == trained.timestep
    monkeypatch.setattr(script, "MAX_BYTES", 10)
    with pytest.raises(KeiseiError, match="more than 10"):
        script.main(run, curve, command="keisei train", directory=tmp_path)
