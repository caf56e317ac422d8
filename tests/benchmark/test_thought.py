"""``keisei benchmark thought``: matches of longer and longer searches, their table and plot."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.benchmark.strength_curve import read_curve
from keisei.benchmark.thought import (
    MIN_GAMES,
    POLICY,
    ThoughtReport,
    ThoughtStep,
    draw_thought,
    games_of,
    measure_thought,
    read_thought,
)
from keisei.commands.benchmark import benchmark_app
from keisei.errors import KeiseiError
from keisei.evaluation.score import Score
from keisei.plotting import png
from keisei.training.run import start_run
from tests.tiny import tiny_config


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = (f"run.root={tmp_path_factory.mktemp('runs')}", "run.name=tiny", "model.type=sparse")
    return start_run(tiny_config(*settings)).run_directory


def some_steps() -> ThoughtReport:
    return ThoughtReport(
        "mine",
        (
            ThoughtStep(4, POLICY, Score((60, 0, 40), (50, 10, 40))),
            ThoughtStep(16, 4, Score((80, 0, 20), (70, 0, 30))),
        ),
    )


def test_each_search_plays_the_one_before_it(run: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    report = measure_thought(
        str(run), simulations=(2, 5), games=4, on_progress=lambda *now: seen.append(now)
    )
    assert [(step.simulations, step.before) for step in report.steps] == [(2, POLICY), (5, 2)]
    assert [step.score.games for step in report.steps] == [4, 4]
    assert seen[0] == ("2 against the policy", 0, 8)
    assert seen[-1] == ("5 against 2", 8, 8)


@pytest.mark.parametrize("simulations", [(), (4, 4), (16, 4), (0, 4)])
def test_numbers_that_do_not_grow_are_refused(simulations: tuple[int, ...]) -> None:
    with pytest.raises(KeiseiError, match="each is larger than the one before it"):
        measure_thought("builtin", simulations=simulations, games=2)


def test_steps_add_up_and_so_do_their_squared_errors() -> None:
    report = some_steps()
    start, first, second = report.points()
    assert start == (POLICY, 0.0, 0.0, 0.0)
    steps = [step.score for step in report.steps]
    assert first[1:] == pytest.approx((steps[0].elo, *steps[0].elo_interval))
    assert second.elo == pytest.approx(steps[0].elo + steps[1].elo)
    below = math.hypot(*(score.elo - score.elo_interval[0] for score in steps))
    assert second.low == pytest.approx(second.elo - below)
    assert second.high > second.elo


def test_long_searches_play_fewer_games() -> None:
    assert games_of(64, 400) == 400
    assert games_of(1_024, 400) == 194
    assert games_of(16_384, 400) == MIN_GAMES
    assert games_of(16_384, 10) == 10


def test_a_kept_report_is_shown_and_drawn(tmp_path: Path) -> None:
    report, kept, plot = some_steps(), tmp_path / "report.json", tmp_path / "plot.svg"
    kept.write_text(json.dumps(report.as_dict()), "utf-8")
    assert read_thought(kept) == report
    runner = CliRunner()
    shown = runner.invoke(benchmark_app, ["thought", "--report", str(kept), "--plot", str(plot)])
    assert shown.exit_code == 0, shown.output
    assert "75.0%" in shown.output
    assert plot.read_bytes().startswith(b"<?xml")
    again = runner.invoke(benchmark_app, ["thought", "--report", str(kept), "--json"])
    assert json.loads(again.stdout) == report.as_dict()


def test_a_clean_sweep_can_be_drawn() -> None:
    sweep = ThoughtReport("mine", (ThoughtStep(4, POLICY, Score((5, 0, 0), (5, 0, 0))),))
    assert png(draw_thought(sweep)).startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["{}", "[" * 200_000])
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, "utf-8")
    with pytest.raises(KeiseiError, match="is not a report of keisei benchmark thought"):
        read_thought(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("read", [read_curve, read_thought])
def test_a_pipe_is_no_report(tmp_path: Path, read: Callable[[Path], object]) -> None:
    """Before, it was waited for."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(KeiseiError, match="not a regular file"):
        read(tmp_path / "pipe")
