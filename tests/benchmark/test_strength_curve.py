"""``keisei benchmark curve``: milestones of tiny runs, their table, plot and JSON."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.benchmark.strength_curve import (
    CurvePoint,
    CurveReport,
    draw_curve,
    measure_curve,
    print_curve_report,
    read_curve,
)
from keisei.checkpoints.rotation import list_checkpoints
from keisei.checkpoints.store import load_checkpoint
from keisei.commands.benchmark import benchmark_app
from keisei.errors import KeiseiError
from keisei.evaluation.placing import Placement
from keisei.evaluation.score import Score
from keisei.network.loading import read_network
from keisei.plotting import png
from keisei.run_files import MILESTONES
from keisei.training.run import start_run
from tests.tiny import tiny_config

EARLY = "checkpoint.milestones=[0.00001]"
"""A milestone that has passed after the first step."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    settings = (f"run.root={root}", "run.name=tiny-1", "model.type=sparse", EARLY)
    return start_run(tiny_config(*settings, "ppo.ema_decay=0.5")).run_directory


def test_a_run_keeps_its_network_at_each_milestone_once(run: Path) -> None:
    (milestone,) = list_checkpoints(run / MILESTONES)
    stored = read_network(milestone)
    assert stored.timestep == 64
    assert stored.run == "tiny-1"
    state = load_checkpoint(milestone).state
    assert 0.0 < state["seconds"] < 60.0
    assert "optimizer" not in state
    assert {"model", "ema"} <= state.keys()


def test_milestones_are_measured(run: Path) -> None:
    report = measure_curve([run], opponents=["random"], games=2)
    (point,) = report.points
    assert (point.run, point.recipe, point.timestep) == ("tiny-1", "tiny", 64)
    assert point.scores["random"].games == 2
    (by_plies,) = measure_curve([run], opponents=["random"], games=2, rate=2.0).points
    assert by_plies.minutes == pytest.approx(64 / 2.0 / 60)


def test_a_run_without_milestones_is_refused(tmp_path: Path) -> None:
    directory = start_run(tiny_config(f"run.root={tmp_path}", "run.name=plain")).run_directory
    with pytest.raises(KeiseiError, match="has no milestones: train it with"):
        measure_curve([directory], games=2)


def some_points() -> CurveReport:
    return CurveReport(
        tuple(
            CurvePoint(
                f"{recipe}-{seed}",
                recipe,
                minutes + 0.1 * seed,
                round(1e6 * minutes),
                Placement(100.0 * minutes, 100.0 * minutes - 40, 100.0 * minutes + 40, games=500),
                {
                    "greedy": Score((90, 5, 5), (80, 10, 10)),
                    "alphabeta:3": Score((9, 1, 0), (5, 0, 5)),
                },
                {},
            )
            for recipe in ("sparse", "tower")
            for seed in (1, 2)
            for minutes in (1.0, 5.0)
        )
    )


def test_curves_are_drawn() -> None:
    figure = draw_curve(some_points())
    assert png(figure).startswith(b"\x89PNG")
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Elo",
        "against greedy, %",
        "against alphabeta:3, %",
    ]
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["sparse", "tower"]


def test_a_rating_beyond_the_scale_is_a_bound(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    on, *_ = some_points().points
    above = replace(on, placement=Placement(4400.0, 4100.0, 4700.0, 100, "above"))
    print_curve_report(CurveReport((on, above)))
    text = capsys.readouterr().out
    assert "100 (60-140)" in text
    assert "above the scale: 4100 or more" in text


def test_the_command_writes_plot_and_json_which_it_reads_again(run: Path, tmp_path: Path) -> None:
    plot = tmp_path / "curve.svg"
    arguments = ["curve", str(run), "--games", "2", "--against", "random"]
    result = CliRunner().invoke(benchmark_app, [*arguments, "--plot", str(plot), "--json"])
    assert result.exit_code == 0, result.output
    assert b"<svg" in plot.read_bytes()
    kept = tmp_path / "curve.json"
    kept.write_text(json.dumps(json.loads(result.stdout)), encoding="utf-8")
    (point,) = read_curve(kept).points
    assert point.placement.rating == pytest.approx(
        json.loads(result.stdout)["points"][0]["rating"]["rating"]
    )
    result = CliRunner().invoke(benchmark_app, ["curve", "--add", str(kept)])
    assert result.exit_code == 0, result.output
    assert "tiny-1" in result.output


@pytest.mark.parametrize(
    "text", ["", "{}", '{"points": [1]}', '{"points": [{"run": 1}]}', "[" * 200_000]
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "curve.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(KeiseiError, match="is not a report of keisei benchmark curve"):
        read_curve(path)


def test_the_command_needs_a_run_or_a_report() -> None:
    result = CliRunner().invoke(benchmark_app, ["curve"])
    assert isinstance(result.exception, KeiseiError)
    assert "name at least one run" in str(result.exception)
