"""Evaluation while training goes on: another process plays, one network at a time.

A network is handed over as a small checkpoint of its own, so that it is the one of this moment and
the rotation of the run's checkpoints can't take it away. The process, `measure_worker`,
has a low priority and one thread. Whatever goes wrong with it is logged, and training goes on.
"""

import logging
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from keisei.checkpoints.store import save_checkpoint
from keisei.config_schema import AppConfig, EvaluationConfig
from keisei.errors import KeiseiError
from keisei.evaluation.measure import Measurement
from keisei.evaluation.measure_worker import (
    ANSWER,
    REQUEST,
    SHUTDOWN_TIMEOUT,
    Answer,
    Request,
)
from keisei.network.towers.device import Compute
from keisei.network.towers.model import ActorCritic
from keisei.runs.run_files import EVALUATING
from keisei.system import (
    ended_by,
    in_own_group,
    module_environment,
    read_bytes,
    usable_cpus,
    write_atomically,
)
from keisei.training.callbacks import EvaluationEnd, Progress
from keisei.training.interrupt import InterruptFlag

logger = logging.getLogger(__name__)

WORKER: Final = "keisei.evaluation.measure_worker"
"""The module that the other process runs."""

LONGEST_SECONDS: Final = 3600.0
"""How long an evaluation may take before it is given up."""

LOOK_SECONDS: Final = 0.05
"""How often one looks for the result when there is nothing else to do."""

LAST_WORDS: Final = 8_000
"""Bytes of what a failed process wrote that go into the log."""

_ERRORS: Final = "errors.txt"


class BackgroundEvaluationError(KeiseiError):
    """An evaluation that gave no result; the first line of the message says why."""


def is_in_background(config: EvaluationConfig, compute: Compute, learners: int = 1) -> bool:
    """Whether evaluations during training have a process of their own.

    ``auto``: where that has a core to itself, or the learners on this machine leave them all to
    others.
    """
    if config.background == "auto":
        return compute.device.type != "cpu" or usable_cpus() > learners * compute.threads
    return config.background == "on"


class BackgroundEvaluation:
    """The evaluations of a run, in the order in which they were asked for.

    While one is under way, only the newest of the others waits. As a context, it leaves neither a
    process nor a file behind.
    """

    def __init__(self, config: AppConfig, run_directory: Path) -> None:
        self._config = config
        self._place = run_directory.resolve() / EVALUATING
        self._running: _Evaluation | None = None
        self._waiting: _Evaluation | None = None

    def __enter__(self) -> Self:
        self._clear()  # of what a session left behind that was killed
        return self

    def __exit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.stop()
        self._running = self._waiting = None
        self._clear()

    def submit(self, network: ActorCritic, progress: Progress) -> None:
        """Have a network measured as it is now."""
        self._skip_waiting()
        try:
            self._waiting = _Evaluation(self._place, network, self._config, progress)
            if self._running is None:
                self._start_waiting()
        except (OSError, KeiseiError) as error:
            _report(progress, error)

    def poll(self) -> EvaluationEnd | None:
        """The result of the evaluation that has ended since the last call, if one has."""
        running = self._running
        if running is None or not running.has_ended():
            return None
        self._running = None
        result: Measurement | None = None
        try:
            result = running.result()
        except KeiseiError as error:
            _report(running.progress, error)
        self._start_waiting()
        if result is None:
            return None
        return EvaluationEnd(running.progress, result.scores, result.records)

    def finish(self, interrupt: InterruptFlag) -> EvaluationEnd | None:
        """Wait for the evaluation under way; the one that waits is left to the final one."""
        self._skip_waiting()
        if self._running is not None:
            logger.info("waiting for the evaluation of update %d", self._running.progress.update)
        while self._running is not None and not interrupt.is_set:
            if (event := self.poll()) is not None:
                return event
            time.sleep(LOOK_SECONDS)
        return None

    def _start_waiting(self) -> None:
        if self._waiting is None:
            return
        evaluation, self._waiting = self._waiting, None
        try:
            evaluation.start()
        except OSError as error:
            _report(evaluation.progress, error)
        else:
            self._running = evaluation

    def _skip_waiting(self) -> None:
        if self._waiting is not None:
            logger.info(
                "update %d is not evaluated: the evaluation before it took too long",
                self._waiting.progress.update,
            )
            self._waiting.remove()
            self._waiting = None

    def _clear(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)


class _Evaluation:
    """One network, its directory and, once it is started, the process that measures it."""

    def __init__(
        self, place: Path, network: ActorCritic, config: AppConfig, progress: Progress
    ) -> None:
        self.progress = progress
        place.mkdir(parents=True, exist_ok=True)
        self._directory = Path(tempfile.mkdtemp(prefix=f"update-{progress.update}-", dir=place))
        checkpoint = save_checkpoint(
            self._directory,
            timestep=progress.timestep,
            update=progress.update,
            state={"model": network.state_dict()},
            config_json=config.model_dump_json(),
            keep=1,
        )
        request = Request(
            checkpoint=checkpoint,
            games=config.evaluation.games,
            seed=config.run.seed + progress.update,
            sample_games=config.logging.sample_games,
        )
        write_atomically(self._directory / REQUEST, request.model_dump_json().encode())

    def start(self) -> None:
        """Start the process. It ends itself when its stdin is closed, as our own end does too."""
        # Into a file, not a pipe: nobody has to empty it.
        with (self._directory / _ERRORS).open("wb") as errors:
            self._process = subprocess.Popen(
                (sys.executable, "-m", WORKER, str(self._directory)),
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env=module_environment(OMP_NUM_THREADS="1"),
                **in_own_group(low_priority=True),
            )
        self._deadline = time.monotonic() + LONGEST_SECONDS

    def has_ended(self) -> bool:
        """Whether there is a result, or will never be one."""
        return self._process.poll() is not None or time.monotonic() > self._deadline

    def result(self) -> Measurement:
        """The result of an evaluation that has ended; nothing is left of it afterwards."""
        is_late = self._process.poll() is None
        self.stop()
        try:
            if is_late:
                raise BackgroundEvaluationError(f"no result after {LONGEST_SECONDS:g} s")
            if self._process.returncode != 0:
                raise BackgroundEvaluationError(self._cause())
            return self._answer()
        finally:
            self.remove()

    def stop(self) -> None:
        """End the process: politely at first, so that it can end the engines it plays against."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(SHUTDOWN_TIMEOUT + 1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def remove(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _answer(self) -> Measurement:
        try:
            return Answer.model_validate_json(read_bytes(self._directory / ANSWER)).measurement
        except ValueError as error:
            raise BackgroundEvaluationError(f"its result can't be read\n{error}") from error

    def _cause(self) -> str:
        """Why the process failed, in a line, and below it the last that it wrote."""
        written = read_bytes(self._directory / _ERRORS)[-LAST_WORDS:]
        words = written.decode(errors="replace").strip()
        code = self._process.returncode
        reason = words.rpartition("\n")[2] or f"exit code {code}"
        if code < 0:
            reason = f"its process was ended by {ended_by(code)}"
        return f"{reason}\n{words}".strip()


def _report(progress: Progress, error: Exception) -> None:
    logger.error("no evaluation of update %d: %s", progress.update, error)
