"""Evaluations in a second process: right results in the right place, nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keisei.callbacks import (
    Callback,
    EvaluationEnd,
    Progress,
    StepEnd,
)
from keisei.checkpoints.store import save_checkpoint
from keisei.config_schema import EvaluationConfig
from keisei.evaluation.measure_worker import NICENESS
from keisei.network.model_factory import make_network
from keisei.system import ChildProcess, InterruptFlag
from keisei.training import background
from keisei.training.background import BackgroundEvaluation, is_in_background
from keisei.training.trainer import Trainer
from tests.tiny import tiny_config, tiny_trainer

ROOT = Path(__file__).parents[2]
PROGRESS = Progress(timestep=64, total_timesteps=192, update=1, games=2, seconds=3.0)
IN_BACKGROUND = ("evaluation.background=on", "evaluation.interval=1", "evaluation.games=4")
AFTER_UPDATE_2 = (*IN_BACKGROUND, "evaluation.interval=2")
"""One evaluation during a run of three updates."""

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL, no niceness")


class Evaluations(Callback):
    """Keeps the evaluations, and does something after each step."""

    def __init__(self, after_step: Callable[[StepEnd], None] = lambda event: None) -> None:
        self.events: list[EvaluationEnd] = []
        self.after_step = after_step

    def on_evaluation(self, event: EvaluationEnd) -> None:
        self.events.append(event)

    def on_step_end(self, event: StepEnd) -> None:
        self.after_step(event)

    @property
    def updates(self) -> list[int]:
        return [event.progress.update for event in self.events]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the second process behave in some way."""
    monkeypatch.setattr(background, "WORKER", "tests.training.stub_worker")
    return lambda behaviour: monkeypatch.setenv("STUB", behaviour)


PATIENCE = 120.0
"""Seconds: the process has a low priority, and the tests keep all cores busy."""


def wait_for(is_true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:.0f} s"
        time.sleep(0.02)


def next_event(evaluation: BackgroundEvaluation) -> EvaluationEnd:
    found: list[EvaluationEnd] = []

    def look() -> bool:
        found.extend(event for event in (evaluation.poll(),) if event is not None)
        return bool(found)

    wait_for(look, "a result")
    return found[0]


def is_alive(process_id: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        os.kill(process_id, 0)
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # no /proc on this system, or gone in between
        return not Path("/proc/self").exists()


def running_process(trainer: Trainer) -> ChildProcess:
    assert trainer.background._running is not None
    return trainer.background._running.process


def submit(evaluation: BackgroundEvaluation, trainer: Trainer, update: int) -> None:
    evaluation.submit(trainer.learner.evaluation_network, replace(PROGRESS, update=update))


def test_results_are_those_of_the_submitted_network(tmp_path: Path, family: str) -> None:
    steps: list[Progress] = []
    aside = Evaluations(lambda event: steps.append(event.progress))
    settings = (family, *IN_BACKGROUND)
    trainer = tiny_trainer(tmp_path / "aside", *settings, callbacks=[aside])
    assert trainer.run() == "finished"
    inside = Evaluations()
    other = tiny_trainer(
        tmp_path / "inside", *settings, "evaluation.background=off", callbacks=[inside]
    )
    other.run()

    first, last = aside.events[0], aside.events[-1]
    assert aside.updates in ([1, 3], [1, 2, 3]), "in order, the final one last and once"
    assert replace(first.progress, seconds=0.0) == replace(steps[0], seconds=0.0)
    assert steps[0].seconds <= first.progress.seconds < steps[1].seconds
    assert first.games == inside.events[0].games, "the very same games"
    assert first.scores == inside.events[0].scores
    assert last.progress.update == 3
    assert trainer.scores == other.scores == last.scores
    for name, value in other.learner.network.weights().items():
        assert np.array_equal(value, trainer.learner.network.weights()[name]), name
    assert [path.name for path in (tmp_path / "aside").iterdir()] == ["checkpoints"]


def test_training_does_not_wait_for_an_evaluation(
    tmp_path: Path, stub: Callable[[str], None]
) -> None:
    stub("hangs")  # for a minute
    trainer = tiny_trainer(tmp_path)
    start = time.monotonic()
    with BackgroundEvaluation(trainer.config, tmp_path) as evaluation:
        for update in (1, 2, 3):
            submit(evaluation, trainer, update)
            trainer.train_step()
            assert evaluation.poll() is None
        assert time.monotonic() - start < 40.0
    assert trainer.update == 3


def test_only_the_newest_waits(
    tmp_path: Path, stub: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    stub("answers")
    caplog.set_level("INFO")
    trainer = tiny_trainer(tmp_path)
    with BackgroundEvaluation(trainer.config, tmp_path) as evaluation:
        for update in (1, 2, 3):
            submit(evaluation, trainer, update)
        assert next_event(evaluation).progress.update == 1
        assert next_event(evaluation).progress.update == 3
        assert "update 2 is not evaluated" in caplog.text
        submit(evaluation, trainer, 4)
        submit(evaluation, trainer, 5)
        event = evaluation.finish(InterruptFlag())
        assert event is not None
        assert event.progress.update == 4
        assert "update 5 is not evaluated" in caplog.text
        assert evaluation.finish(InterruptFlag()) is None
        assert not list((tmp_path / "evaluating").iterdir())
    assert not any(tmp_path.iterdir())


def test_a_network_that_cannot_be_loaded_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def save_and_damage(directory: Path, **arguments: object) -> Path:
        path = save_checkpoint(directory, **arguments)  # type: ignore[arg-type]
        (path / "weights.safetensors").write_bytes(b"no weights")
        return path

    monkeypatch.setattr(background, "save_checkpoint", save_and_damage)
    witness = Evaluations()
    trainer = tiny_trainer(tmp_path, *AFTER_UPDATE_2, callbacks=[witness])
    assert trainer.run() == "finished"
    assert witness.updates == [3], "only the final one: no score is invented"
    (record,) = (record for record in caplog.records if record.levelname == "ERROR")
    first_line, *others = record.getMessage().splitlines()
    assert first_line.startswith("no evaluation of update 2: keisei.errors.CheckpointError: ")
    assert "weights.safetensors: truncated" in first_line
    assert "Traceback (most recent call last):" in others


@posix_only
def test_a_killed_process_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def kill(event: StepEnd) -> None:
        if event.progress.update == 3:
            process = running_process(trainer)
            low = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19)
            wait_for(lambda: os.getpriority(os.PRIO_PROCESS, process.pid) == low, "low priority")
            process.kill()

    witness = Evaluations(kill)
    trainer = tiny_trainer(tmp_path, *AFTER_UPDATE_2, callbacks=[witness])
    assert trainer.run() == "finished"
    assert witness.updates == [3]
    assert "no evaluation of update 2: its process was ended by SIGKILL" in caplog.text
    assert not (tmp_path / "evaluating").exists()


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("says nothing", "cannot read .*answer.json"),
        ("lies", "its result cannot be parsed"),
        ("hangs", "no result after 0.5 s"),
    ],
)
def test_a_missing_or_broken_answer_is_reported(
    tmp_path: Path,
    stub: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    behaviour: str,
    message: str,
) -> None:
    stub(behaviour)
    if behaviour == "hangs":
        monkeypatch.setattr(background, "EVALUATION_TIMEOUT", 0.5)
        monkeypatch.setattr(background, "SHUTDOWN_TIMEOUT", -1.0)
    trainer = tiny_trainer(tmp_path)
    with BackgroundEvaluation(trainer.config, tmp_path) as evaluation:
        submit(evaluation, trainer, 7)
        assert evaluation.finish(InterruptFlag()) is None
    assert len(caplog.records) == 1
    assert re.match(f"no evaluation of update 7: {message}", caplog.records[0].getMessage())


def test_what_cannot_be_written_or_started_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = tiny_trainer(tmp_path)
    (tmp_path / "evaluating").touch()
    evaluation = BackgroundEvaluation(trainer.config, tmp_path)
    submit(evaluation, trainer, 1)
    assert "no evaluation of update 1: " in caplog.text
    (tmp_path / "evaluating").unlink()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    with evaluation:
        submit(evaluation, trainer, 2)
        assert evaluation.poll() is None
    assert "no evaluation of update 2: " in caplog.text


@pytest.mark.parametrize("ending", ["an error", "Ctrl-C", "Ctrl-C twice"])
def test_nothing_is_left_behind(
    tmp_path: Path,
    stub: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
) -> None:
    stub("hangs")
    monkeypatch.setattr(background, "SHUTDOWN_TIMEOUT", -1.0)
    left = tmp_path / "evaluating" / "update-1-of-a-killed-session"
    left.mkdir(parents=True)
    flag = InterruptFlag()
    processes: list[ChildProcess] = []

    def step_and_end() -> None:
        train_step()
        assert not left.exists()
        if trainer.update == 2:
            processes.append(running_process(trainer))
            if ending == "an error":
                raise ZeroDivisionError
            if ending == "Ctrl-C twice":
                raise KeyboardInterrupt
            flag.is_set = True

    trainer = tiny_trainer(tmp_path, *IN_BACKGROUND)
    train_step = trainer.train_step
    monkeypatch.setattr(trainer, "train_step", step_and_end)
    if ending == "Ctrl-C":
        assert trainer.run(flag) == "interrupted"
    else:
        with pytest.raises((ZeroDivisionError, KeyboardInterrupt)):
            trainer.run(flag)
    assert processes[0].exit_code is not None
    assert not (tmp_path / "evaluating").exists()


ORPHAN = """
import sys, time
from pathlib import Path
from tests.tiny import tiny_trainer
trainer = tiny_trainer(Path(sys.argv[1]), "evaluation.games=100000")
trainer.background.submit(trainer.learner.evaluation_network, trainer.progress)
print(trainer.background._running.process.pid, flush=True)
time.sleep(30)
"""


@posix_only
@pytest.mark.parametrize("seconds", [0.0, 4.0], ids=["while it starts", "while it plays"])
def test_the_process_ends_with_the_one_that_started_it(tmp_path: Path, seconds: float) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        orphan = int(parent.stdout.readline())
        time.sleep(seconds)
        assert is_alive(orphan)
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: not is_alive(orphan), "the end of the orphan")
    assert not list((tmp_path / "evaluating").iterdir())


@pytest.mark.parametrize(
    ("choice", "cores", "device", "expected"),
    [
        ("on", 1, "cpu", True),
        ("off", 64, "cuda", False),
        ("auto", 2, "cpu", False),
        ("auto", 3, "cpu", True),
        ("auto", 1, "cuda", True),
    ],
)
def test_auto_needs_a_core_to_spare(
    monkeypatch: pytest.MonkeyPatch, choice: str, cores: int, device: str, expected: bool
) -> None:
    monkeypatch.setattr(background, "usable_cpus", lambda: cores)
    config = tiny_config("device.threads=2")
    network = make_network(config, config.device)
    monkeypatch.setattr(type(network), "device", device)
    evaluation = EvaluationConfig.model_validate({"background": choice})
    assert is_in_background(evaluation, network) is expected


def test_all_cores_leave_none_to_spare() -> None:
    config = tiny_config("evaluation.background=auto", "device.threads=0")
    assert not is_in_background(config.evaluation, make_network(config, config.device))
