"""Evaluation in the background: a second process plays while training continues.

The network is passed as a small checkpoint of its own, which the rotation of the run's checkpoints
cannot remove. The process, `keisei.evaluation.measure_worker`, has a low priority and one thread.
Its failures are logged, and training continues.
"""

import logging
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final, Self

from keisei.callbacks import EvaluationEnd, Progress
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
from keisei.network.predictor import Network
from keisei.run_files import EVALUATING
from keisei.system import ChildProcess, InterruptFlag, read_bytes, usable_cpus, write_atomically

logger = logging.getLogger(__name__)

WORKER: Final = "keisei.evaluation.measure_worker"
"""Module that the second process runs."""

EVALUATION_TIMEOUT: Final = 3600.0
"""Seconds after which an evaluation is given up."""

POLL_INTERVAL: Final = 0.05
"""Seconds between two looks for the result while nothing else is left to do."""

_OUTPUT: Final = "output.txt"


class BackgroundEvaluationError(KeiseiError):
    """An evaluation without a result; the first line of the message gives the reason."""


def is_in_background(config: EvaluationConfig, network: Network, learners: int = 1) -> bool:
    """Return whether evaluations during training run in a second process.

    With ``auto`` they do if that process has a core to itself, or if the learners on this machine
    use a GPU.
    """
    if config.background == "auto":
        return network.device != "cpu" or usable_cpus() > learners * network.threads
    return config.background == "on"


class BackgroundEvaluation:
    """Evaluations of a run in a second process, one at a time, in the order of submission.

    While one is running, only the newest of the others waits. As a context it leaves neither a
    process nor a file behind.
    """

    def __init__(self, config: AppConfig, run_directory: Path) -> None:
        self._config = config
        self._directory = run_directory.resolve() / EVALUATING
        self._running: _EvaluationJob | None = None
        self._waiting: _EvaluationJob | None = None

    def __enter__(self) -> Self:
        self._clear()  # a killed session may have left files
        return self

    def __exit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.stop()
        self._running = self._waiting = None
        self._clear()

    def submit(self, network: Network, progress: Progress) -> None:
        """Evaluate a network as it is now."""
        self._skip_waiting()
        try:
            self._waiting = _EvaluationJob(self._directory, network, self._config, progress)
            if self._running is None:
                self._start_waiting()
        except (OSError, KeiseiError) as error:
            _log_failure(progress, error)

    def poll(self) -> EvaluationEnd | None:
        """Return the result of an evaluation that has ended since the last call; None if none."""
        running = self._running
        if running is None or not running.has_ended():
            return None
        self._running = None
        result: Measurement | None = None
        try:
            result = running.result()
        except KeiseiError as error:
            _log_failure(running.progress, error)
        self._start_waiting()
        if result is None:
            return None
        return EvaluationEnd.of(running.progress, result)

    def finish(self, interrupt: InterruptFlag) -> EvaluationEnd | None:
        """Wait for the running evaluation; a waiting one is dropped for the final evaluation."""
        self._skip_waiting()
        if self._running is not None:
            logger.info("waiting for the evaluation of update %d", self._running.progress.update)
        while self._running is not None and not interrupt.is_set:
            if (event := self.poll()) is not None:
                return event
            time.sleep(POLL_INTERVAL)
        return None

    def _start_waiting(self) -> None:
        if self._waiting is None:
            return
        job, self._waiting = self._waiting, None
        try:
            job.start()
        except OSError as error:
            _log_failure(job.progress, error)
        else:
            self._running = job

    def _skip_waiting(self) -> None:
        if self._waiting is not None:
            logger.info(
                "update %d is not evaluated: the previous evaluation took too long",
                self._waiting.progress.update,
            )
            self._waiting.remove()
            self._waiting = None

    def _clear(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


class _EvaluationJob:
    """A network to evaluate, its directory and, once started, the process that evaluates it."""

    def __init__(
        self, directory: Path, network: Network, config: AppConfig, progress: Progress
    ) -> None:
        self.progress = progress
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = Path(tempfile.mkdtemp(prefix=f"update-{progress.update}-", dir=directory))
        checkpoint = save_checkpoint(
            self._directory,
            timestep=progress.timestep,
            update=progress.update,
            state={"model": network.weights()},
            config_json=config.model_dump_json(),
            keep=1,
        )
        request = Request(
            checkpoint=checkpoint,
            games=config.evaluation.games,
            within=config.evaluation.within,
            seed=config.run.seed + progress.update,
            sample_games=config.logging.sample_games,
        )
        write_atomically(self._directory / REQUEST, request.model_dump_json().encode())

    def start(self) -> None:
        """Start the process; raises `OSError` if that fails."""
        self.process = ChildProcess(
            WORKER, str(self._directory), output=self._directory / _OUTPUT, low_priority=True
        )
        self._deadline = time.monotonic() + EVALUATION_TIMEOUT

    def has_ended(self) -> bool:
        """Return whether there is a result, or will never be one."""
        return self.process.has_ended() or time.monotonic() > self._deadline

    def result(self) -> Measurement:
        """Return the result of an evaluation that has ended, and remove its files."""
        is_late = not self.process.has_ended()
        self.stop()
        try:
            if is_late:
                raise BackgroundEvaluationError(f"no result after {EVALUATION_TIMEOUT:g} s")
            if self.process.exit_code != 0:
                reason = self.process.failure_reason()
                raise BackgroundEvaluationError(f"{reason}\n{self.process.output_tail()}".strip())
            return self._answer()
        finally:
            self.remove()

    def stop(self) -> None:
        """Stop the process, with some time to close the engines it plays against."""
        self.process.stop(SHUTDOWN_TIMEOUT + 1.0)

    def remove(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _answer(self) -> Measurement:
        try:
            return Answer.model_validate_json(read_bytes(self._directory / ANSWER)).measurement
        except ValueError as error:
            raise BackgroundEvaluationError(f"its result cannot be parsed\n{error}") from error


def _log_failure(progress: Progress, error: Exception) -> None:
    logger.error("no evaluation of update %d: %s", progress.update, error)
