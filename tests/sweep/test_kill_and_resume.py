"""A sweep as a user runs it: six tiny trials, killed in between, and a usable recipe."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from keisei.commands.train import train
from keisei.config import load_config
from keisei.runs.history import History
from keisei.sweep.study import (
    BEST,
    PLOT,
    TRIALS,
    TrialRecord,
    trial_directory,
)
from keisei.sweep.summary import SweepDisplay, SweepProgress, trial_table
from keisei.system import module_environment
from tests.commands.invoke import invoke
from tests.sweep.small_sweeps import write_space

PATIENCE = 600.0
"""Seconds after which a test gives up; it is about what happens, not about when."""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "keisei", *arguments]


def has_a_checkpoint(directory: Path) -> bool:
    journal = directory / "metrics.jsonl"
    return journal.is_file() and b'"checkpoint"' in journal.read_bytes()


@pytest.mark.soak
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_six_trials_killed_and_resumed_are_six_trials_and_a_recipe(tmp_path: Path) -> None:
    space = write_space(tmp_path, trials=6, side_by_side=2)
    sweep = command("sweep", str(space), "--root", str(tmp_path), "--name", "it", "--json")
    environment = module_environment(OMP_NUM_THREADS="1")
    directory = tmp_path / "it"
    third = trial_directory(directory, 2)
    with (tmp_path / "first.txt").open("wb") as output:
        process = subprocess.Popen(sweep, stdout=output, stderr=output, env=environment)
        deadline = time.monotonic() + PATIENCE
        while not has_a_checkpoint(third):
            assert process.poll() is None, (tmp_path / "first.txt").read_text(encoding="utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL

    done = subprocess.run(
        sweep, capture_output=True, env=environment, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    summary = json.loads(done.stdout)
    assert [trial["number"] for trial in summary["trials"]] == list(range(6))
    assert {trial["state"] for trial in summary["trials"]} == {"complete"}
    assert len(list((directory / TRIALS).iterdir())) == 6
    # The trial that was running was resumed in its own run, and trained each update once.
    assert [step.update for step in History.read(third).steps] == [1, 2, 3]
    assert (directory / PLOT).is_file()

    recipe = load_config(directory / BEST)
    best = summary["best"]
    assert best["score"] == max(trial["score"] for trial in summary["trials"])
    assert recipe.ppo.learning_rate == best["parameters"]["ppo.learning_rate"]
    trained = invoke(
        train, "--config", str(directory / BEST), "--name", "again", "--json",
        "--set", f"run.root={tmp_path}",
    )  # fmt: skip
    # The same settings and the same seed are the same run: the score is that of the trial.
    assert json.loads(trained.stdout)["scores"]["random"] == best["score"]


RECORDS = [
    TrialRecord(0, "complete", {"ppo.gamma": 0.123456, "ppo.mirror": "true"}, 0.625, 40),
    TrialRecord(1, "failed", {"ppo.gamma": 0.5, "ppo.mirror": "true"}, None, reason="no memory"),
    TrialRecord(2, "running", {"ppo.gamma": 0.9, "ppo.mirror": "false"}, 0.25),
    TrialRecord(3, "running", {"ppo.gamma": 0.9, "ppo.mirror": "false"}, None),
]


def test_the_table_tells_states_scores_and_parameters() -> None:
    console = Console(record=True, width=100, file=None, quiet=False)
    with console.capture() as captured:
        console.print(trial_table(RECORDS, {2: 0.5}))
    rows = [line.split("│")[1:-1] for line in captured.get().splitlines() if "│" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["0", "complete", "62.5 %", "0.123", "true"],
        ["1", "failed", "-", "0.5", "true"],
        ["2", "running 50 %", "25.0 %", "0.9", "false"],
        ["3", "interrupted", "-", "0.9", "false"],
    ]


def test_without_a_terminal_each_trial_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with SweepDisplay(Console(width=100, force_terminal=False)) as display:
        display(SweepProgress(3, RECORDS[2:], {2: 0.0}))
        for _ in range(2):
            display(SweepProgress(3, RECORDS, {2: 0.5}))
    assert capsys.readouterr().out.splitlines() == [
        "trial 0 complete: 62.5 %; ppo.gamma=0.123, ppo.mirror=true",
        "trial 1 failed: -; no memory",
    ]


def test_on_a_terminal_the_table_is_live() -> None:
    console = Console(record=True, width=100, height=12, force_terminal=True, color_system=None)
    with console.capture() as captured, SweepDisplay(console) as display:
        display(SweepProgress(9, RECORDS, {2: 0.5}))
        display(SweepProgress(9, RECORDS, {}, is_ending=True))  # too soon after the first
    assert "1 of 9 trials; Ctrl-C stops the sweep, the same command resumes it" in captured.get()
    assert "save their last checkpoint" not in captured.get()
