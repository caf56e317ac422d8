"""A sweep from its first trial to its recipe; the trials only pretend to train."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from keisei.config import load_config
from keisei.runs.history import History
from keisei.sweep import runner
from keisei.sweep.runner import LockedError, TooManyFailuresError, run_sweep
from keisei.sweep.study import (
    BEST,
    IN_USE,
    PLOT,
    TrialRecord,
    trial_directory,
    trial_lock,
)
from keisei.sweep.summary import SweepProgress, SweepSummary, best_recipe
from keisei.system import InterruptFlag
from tests.sweep.small_sweeps import small_sweep, stub

__all__ = ["stub"]

Stub = Callable[[str], None]

SCORES: dict[str, Any] = {"ppo.entropy": {"low": 0.0, "high": 1.0}}
"""The stub's score is this field."""

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def run(folder: Path, **changes: Any) -> SweepSummary:
    options = {name: changes.pop(name) for name in ("interrupt", "on_change") if name in changes}
    sweep = small_sweep(folder, **{"space": SCORES, **changes})
    return run_sweep(sweep, folder / "sweep", **options)


def states(summary: SweepSummary) -> list[str]:
    return [trial.state for trial in summary.trials]


def test_the_best_of_all_trials_becomes_a_recipe(stub: Stub, tmp_path: Path) -> None:
    summary = run(tmp_path, trials=3, side_by_side=2)
    assert states(summary) == ["complete"] * 3
    scores = [trial.score for trial in summary.trials]
    assert scores == [trial.parameters["ppo.entropy"] for trial in summary.trials]
    assert summary.best is not None
    assert summary.best.score == max(score for score in scores if score is not None)
    recipe = summary.directory / BEST
    assert load_config(recipe) == small_sweep(tmp_path, space=SCORES).config(
        summary.best.parameters
    )
    assert f"Trial {summary.best.number} of the sweep sweep" in recipe.read_text(encoding="utf-8")
    assert (summary.directory / PLOT).read_bytes().startswith(b"\x89PNG")
    assert not summary.is_interrupted
    assert summary.as_dict()["recipe"] == str(recipe)


def test_a_sweep_that_is_done_does_nothing_unless_more_is_wanted(
    stub: Stub, tmp_path: Path
) -> None:
    first = run(tmp_path, trials=1)
    stub("fail")
    assert run(tmp_path, trials=1).trials == first.trials
    stub("")
    assert states(run(tmp_path, trials=2)) == ["complete"] * 2


def test_failed_trials_are_written_down_and_replaced(stub: Stub, tmp_path: Path) -> None:
    stub("odd ones fail")
    summary = run(tmp_path, trials=2, failures_in_a_row=2)
    assert states(summary) == ["complete", "failed", "complete"]
    assert summary.trials[1].reason == "exit code 1"


def test_too_many_failures_in_a_row_end_the_sweep(stub: Stub, tmp_path: Path) -> None:
    stub("fail")
    with pytest.raises(TooManyFailuresError, match="2 trials failed one after another, the last"):
        run(tmp_path, failures_in_a_row=2)
    stub("")
    summary = run(tmp_path, trials=1)
    assert states(summary) == ["failed", "failed", "complete"]
    assert summary.trials[0].reason == "no such network"  # the last line, not the traceback


@posix_only
def test_a_killed_trial_has_a_reason(stub: Stub, tmp_path: Path) -> None:
    stub("kill")
    with pytest.raises(TooManyFailuresError, match="ended by SIGKILL: perhaps memory ran out"):
        run(tmp_path, failures_in_a_row=1)


def test_a_run_without_a_score_has_failed(stub: Stub, tmp_path: Path) -> None:
    stub("no score")
    with pytest.raises(TooManyFailuresError, match="there is no last score against random"):
        run(tmp_path, failures_in_a_row=1)


def test_trials_that_do_badly_are_ended_early(stub: Stub, tmp_path: Path) -> None:
    stub("wait if bad")  # those never end by themselves; with this seed the first is a good one
    summary = run(
        tmp_path, trials=3, pruner={"startup_trials": 1, "warmup": 0},
        space={"ppo.entropy": {"choices": [0.1, 0.9]}}, sampler={"kind": "random", "seed": 1},
    )  # fmt: skip
    by_score = {(trial.state, trial.score) for trial in summary.trials}
    assert by_score == {("complete", 0.9), ("pruned", 0.1)}
    pruned = next(trial for trial in summary.trials if trial.state == "pruned")
    history = History.read(trial_directory(summary.directory, pruned.number))
    assert history.end is not None
    assert history.end.reason == "interrupted"  # asked, not killed


def test_an_interrupted_sweep_resumes_the_same_trials(stub: Stub, tmp_path: Path) -> None:
    stub("wait")
    interrupt = InterruptFlag()

    def stop_when_both_are_running(progress: SweepProgress) -> None:
        if [share > 0.7 for share in progress.fractions_done.values()] == [True, True]:
            interrupt.is_set = True

    first = run(
        tmp_path, trials=3, side_by_side=2, interrupt=interrupt,
        on_change=stop_when_both_are_running,
    )  # fmt: skip
    assert first.is_interrupted
    assert states(first) == ["running", "running"]
    stub("")
    second = run(tmp_path, trials=3, side_by_side=2)
    assert states(second) == ["complete"] * 3
    for before, after in zip(first.trials, second.trials, strict=False):
        assert before.parameters == after.parameters
        assert len(History.read(trial_directory(second.directory, after.number)).starts) == 2


def test_a_trial_without_a_checkpoint_starts_from_scratch(stub: Stub, tmp_path: Path) -> None:
    left = trial_directory(tmp_path / "sweep", 0)
    left.mkdir(parents=True)
    (left / "config.json").write_text("half a file", encoding="utf-8")
    (left / "metrics.jsonl").write_text("half a line", encoding="utf-8")
    assert states(run(tmp_path, trials=1)) == ["complete"]
    assert History.read(left).broken_lines == 0


def test_two_processes_cannot_run_one_sweep(stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    with (
        FileLock(tmp_path / "sweep" / IN_USE),
        pytest.raises(LockedError, match="another process runs the sweep in"),
    ):
        run(tmp_path)


HOLD = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder_of(lock: Path) -> "subprocess.Popen[bytes]":
    lock.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        (sys.executable, "-c", HOLD, str(lock)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_killed_process_does_not_keep_its_lock(stub: Stub, tmp_path: Path) -> None:
    with holder_of(tmp_path / "sweep" / IN_USE) as holder:
        with pytest.raises(LockedError, match="another process runs the sweep in"):
            run(tmp_path)
        holder.kill()
    assert states(run(tmp_path, trials=1)) == ["complete"]


def test_a_resumed_sweep_waits_for_the_trials_of_a_killed_one(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub("wait")
    interrupt = InterruptFlag()

    def stop_when_running(progress: SweepProgress) -> None:
        if any(share > 0.7 for share in progress.fractions_done.values()):
            interrupt.is_set = True

    run(tmp_path, trials=1, interrupt=interrupt, on_change=stop_when_running)
    stub("")
    with holder_of(trial_lock(tmp_path / "sweep", 0)) as orphan:
        with monkeypatch.context() as patch:
            patch.setattr(runner, "STOP_TIMEOUT", 0.1)
            with pytest.raises(LockedError, match="trial 0 of an earlier session is still"):
                run(tmp_path, trials=1)
        end = threading.Timer(0.5, orphan.kill)
        end.start()
        assert states(run(tmp_path, trials=1)) == ["complete"]
        assert orphan.wait() != 0


def test_a_recipe_can_be_read_back(tmp_path: Path) -> None:
    odd = {
        "evaluation.opponents": ["random", "usi:my engine,depth=3", 'a "quoted" one'],
        "run.start_from": "none",
        "logging.wandb_project": "囲い: 100 %",
        "ppo.ema_decay": 1e-07,
        "env.declaration": "24",
    }
    space = {"ppo.target_kl": {"choices": [None, 0.2]}, "ppo.epochs": {"low": 1, "high": 3}}
    sweep = small_sweep(tmp_path, set={}, space=space).model_copy(update={"set": odd})
    best = TrialRecord(3, "complete", {"ppo.target_kl": "none", "ppo.epochs": 1}, 0.5, 400)
    path = tmp_path / "best.yaml"
    text = best_recipe(sweep, best, 12, tmp_path)
    path.write_text(text, encoding="utf-8")
    assert load_config(path) == sweep.config(best.parameters)
    assert "the best of 12: 50.0 % against random in 400 games" in text
    assert "  epochs: 1  # found" in text  # also where it is the default
