"""One trial of a sweep: a run that another process trains, ``python -m keisei.sweep.trial LOCK``.

A trial is an ordinary run in a process of its own, so that a crash or a lack of memory costs this
trial only. `TrialProcess` starts it and reads its scores from the run's journal.

The process receives its settings as one line of JSON on stdin, which then stays open. When stdin
closes, because the trial is pruned or the sweep ends or is killed, the run ends after its update as
by Ctrl-C, with a checkpoint to resume from; if that takes too long, it ends at once. The process
holds the file lock `LOCK` while it runs, so that a resumed sweep can wait for its end.
"""

import _thread
import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from keisei.errors import KeiseiError
from keisei.run_files import CHECKPOINTS, CONFIG
from keisei.runs.history import RunStatus
from keisei.runs.journal import (
    EVALUATION,
    FINISHED_REASONS,
    JournalEntry,
    JournalReader,
    score_estimates,
)
from keisei.system import ChildProcess, make_directory, usable_cpus

if TYPE_CHECKING:  # the process should watch its stdin before it imports anything slow
    from keisei.config_schema import AppConfig

MODULE: Final = "keisei.sweep.trial"
"""Module that the process runs."""

OUTPUT: Final = "output.txt"
"""File in the run's directory that receives the stdout and stderr of the process."""

UPDATE_TIMEOUT: Final = 60.0
"""Seconds for the current update to end once the run is to stop."""

CLOSE_TIMEOUT: Final = 5.0
"""Seconds for the run to close its engines after that."""

STOP_TIMEOUT: Final = UPDATE_TIMEOUT + 2.0 * CLOSE_TIMEOUT
"""Seconds after which a process that was asked to stop has ended, or is killed."""

USER_ERROR: Final = 2
"""Exit code of a run that a `KeiseiError` ended."""

STOPPED: Final = 130
"""Exit code of a run that was asked to stop."""


class TrialError(KeiseiError):
    """A trial without a score; the message gives the reason."""


@dataclass(frozen=True)
class TrialScore:
    """Score of a trial in one evaluation."""

    update: int
    fraction_done: float
    """Fraction of the run that was over, 0 to 1."""

    score: float
    """Mean score against the opponents of the objective."""

    games: int
    """Games against all of them together."""


def share_of_machine(config: "AppConfig", side_by_side: int) -> dict[str, object]:
    """Return settings by which `side_by_side` trials share the cores, where `config` is open."""
    flags: dict[str, object] = {"logging.display": "off"}
    if side_by_side == 1:
        return flags
    cores = max(1, usable_cpus() // side_by_side)
    if config.parallel.num_workers == "auto" and config.parallel.backend == "processes":
        from keisei.ppo.learner import largest_divisor

        max_workers = max(1, cores // (config.parallel.worker_threads or 1))
        flags["parallel.num_workers"] = largest_divisor(config.env.num_games, limit=max_workers)
    if config.device.threads == 0:
        flags["device.threads"] = cores if config.parallel.num_workers == 0 else 1
    if config.evaluation.background == "auto" and _is_on_cpu(config):
        # A trial sees free cores, but they belong to the other trials.
        flags["evaluation.background"] = "off"
    return flags


def _is_on_cpu(config: "AppConfig") -> bool:
    from keisei.network.model_factory import network_device

    return network_device(config) == "cpu"


class TrialProcess:
    """A trial that another process trains, from its newest checkpoint if it has one.

    Call `read` to bring `scores` and `fraction_done` up to date, and `close` at the end.
    """

    def __init__(self, config: "AppConfig", lock: Path, against: Sequence[str]) -> None:
        self._against = against
        self._max_minutes = config.run.max_minutes
        self.run_directory = Path(config.run.root) / config.run.name
        self._prepare(lock)
        self._journal = JournalReader.of_run(self.run_directory)
        self._status = RunStatus()
        self._scores: dict[int, TrialScore] = {}
        self._process = ChildProcess(
            MODULE,
            str(lock),
            output=self.run_directory / OUTPUT,
            first_line=config.model_dump_json().encode() + b"\n",
            threads=config.device.threads or 1,
        )

    def _prepare(self, lock: Path) -> None:
        """Remove what an earlier session left, unless it can be resumed from a checkpoint."""
        from keisei.checkpoints.rotation import list_checkpoints

        if not list_checkpoints(self.run_directory / CHECKPOINTS):
            shutil.rmtree(self.run_directory, ignore_errors=True)
        make_directory(self.run_directory)
        make_directory(lock.parent)

    def stop(self) -> None:
        """Ask the run to save a checkpoint and end after its update; does not wait for it."""
        self._process.request_stop(STOP_TIMEOUT)

    def close(self) -> None:
        """Kill the process if it still runs."""
        self._process.kill()

    def has_ended(self) -> bool:
        """Return whether the process has ended; one that does not stop in time is killed."""
        return self._process.has_ended()

    def read(self) -> list[JournalEntry]:
        """Read what is new in the journal, and return its entries."""
        new: list[JournalEntry] = []
        bytes_left = 1
        while bytes_left:
            try:
                chunk = self._journal.read()
            except OSError:
                break  # there is no journal yet
            if chunk.is_restarted:
                self._status, self._scores, new = RunStatus(), {}, []
            new += chunk.entries
            bytes_left = chunk.bytes_left
        for entry in new:
            self._status.add(entry)
            if entry.event == EVALUATION and (score := self._score(entry)) is not None:
                self._scores[entry.update] = score
        return new

    @property
    def scores(self) -> list[TrialScore]:
        """Scores of all evaluations, in the order of the updates."""
        return [self._scores[update] for update in sorted(self._scores)]

    @property
    def fraction_done(self) -> float:
        """Fraction of the run that is over, 0 to 1."""
        furthest = self._status.furthest
        return 0.0 if furthest is None else furthest.progress(self._max_minutes).fraction_done

    def result(self) -> TrialScore:
        """Return the last score of a run that has finished; its process must have ended.

        Raises:
            TrialError: The process failed, or there is no last score.
        """
        self.read()
        if self._process.exit_code != 0:
            raise TrialError(self._process.failure_reason())
        end, furthest = self._status.end, self._status.furthest
        if end is None or furthest is None or end.reason not in FINISHED_REASONS:
            raise TrialError("the run's journal has no orderly end")
        scores = self.scores
        if not scores or scores[-1].update != furthest.update:
            raise TrialError(f"there is no last score against {', '.join(self._against)}")
        return scores[-1]

    def _score(self, entry: JournalEntry) -> TrialScore | None:
        found = score_estimates(entry.metrics)
        results = [found[name] for name in self._against if name in found]
        if len(results) < len(self._against):
            return None
        score = sum(result.score for result in results) / len(results)
        if not math.isfinite(score):
            return None
        games = sum(result.games for result in results)
        return TrialScore(
            entry.update, entry.progress(self._max_minutes).fraction_done, score, games
        )


def main() -> None:
    """Train the run whose settings are on stdin, from its newest checkpoint if it has one."""
    # A sweep that was started in the background may ignore SIGINT, and its children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with FileLock(sys.argv[1], timeout=STOP_TIMEOUT):
            settings = _read_line()
            threading.Thread(target=_stop_with_stdin, daemon=True).start()
            sys.exit(_train(settings))
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except Timeout:
        sys.exit("another process trains this trial")


def _train(settings: bytes) -> int:
    # Imported this late: it takes seconds, during which stdin is watched already.
    from keisei.checkpoints.rotation import list_checkpoints
    from keisei.config_schema import AppConfig
    from keisei.training.run import resume_run, start_run

    config = AppConfig.model_validate_json(settings)
    run_directory = Path(config.run.root) / config.run.name
    try:
        if list_checkpoints(run_directory / CHECKPOINTS):
            summary = resume_run(_where_it_began(config, run_directory), run_directory)
        else:
            summary = start_run(config)
    except KeiseiError as error:
        sys.stderr.write(f"{error}\n")
        return USER_ERROR
    return STOPPED if summary.reason == "interrupted" else 0


def _where_it_began(config: "AppConfig", run_directory: Path) -> "AppConfig":
    """Return settings with the name and root of a saved run, which cannot change.

    The sweep may continue from another working directory, or have been moved.
    """
    from keisei.config import load_saved_config

    saved = load_saved_config(run_directory / CONFIG).run
    run = config.run.model_copy(update={"root": saved.root, "name": saved.name})
    return config.model_copy(update={"run": run})


def _read_line() -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        # Not sys.stdin, which would read ahead and hold a lock that the exit of Python needs.
        if not (chunk := os.read(0, 65_536)):
            sys.exit(STOPPED)
        line += chunk
    return bytes(line)


def _stop_with_stdin() -> None:
    """Wait until stdin closes, then interrupt the run; if it does not end, exit."""
    while os.read(0, 1):
        pass
    _thread.interrupt_main()
    time.sleep(UPDATE_TIMEOUT)
    _thread.interrupt_main()  # like a second Ctrl-C, which ends the run at once
    time.sleep(CLOSE_TIMEOUT)
    os._exit(STOPPED)


if __name__ == "__main__":
    main()
