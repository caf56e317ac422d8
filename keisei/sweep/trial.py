"""One trial as the sweep sees it: a process that trains, and the journal that it writes.

A trial is an ordinary run in a process of its own, so that a crash or a lack of memory costs this
trial only. What it has reached is read from the run's journal.
"""

import math
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keisei.checkpoints.rotation import list_checkpoints
from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.metric_names import strengths
from keisei.run_files import CHECKPOINTS, METRICS
from keisei.runs.journal import FINISHED_REASONS, Entry, History
from keisei.sweep.study import OUTPUT
from keisei.sweep.trial_main import GRACE_SECONDS, LAST_SECONDS
from keisei.system import (
    FileAccessError,
    ended_by,
    in_own_group,
    make_directory,
    module_environment,
    read_bytes,
    usable_cpus,
)

PROCESS: Final = "keisei.sweep.trial_main"
"""The module that trains."""

LAST_WORDS: Final = 8_000
"""Bytes of what a failed process wrote in which the reason is looked for."""


class TrialError(KeiseiError):
    """A trial that gave no score; the message says why."""


@dataclass(frozen=True)
class Evaluation:
    """A measured moment of a trial."""

    update: int
    done: float
    """How much of the run was over, from 0 to 1."""

    score: float
    """The mean over the opponents of the objective."""

    games: int
    """Against all of them together."""


def share_of_machine(config: AppConfig, side_by_side: int) -> dict[str, object]:
    """Settings by which so many trials share the processors, where `config` leaves it open."""
    flags: dict[str, object] = {"logging.display": "off"}
    if side_by_side == 1:
        return flags
    cores = max(1, usable_cpus() // side_by_side)
    if config.parallel.num_workers == "auto" and config.parallel.backend == "processes":
        from keisei.ppo.resources import largest_divisor

        most = max(1, cores // (config.parallel.worker_threads or 1))
        flags["parallel.num_workers"] = largest_divisor(config.env.num_games, limit=most)
    if config.device.torch_threads == 0:
        flags["device.torch_threads"] = cores if config.parallel.num_workers == 0 else 1
    if config.evaluation.background == "auto" and _is_on_cpu(config):
        # A trial sees free cores, but they belong to the others.
        flags["evaluation.background"] = "off"
    return flags


def _is_on_cpu(config: AppConfig) -> bool:
    from keisei.network.towers.device import choose_compute

    return choose_compute(config.device).device.type == "cpu"


class TrialProcess:
    """A run that is trained by another process, which ends with `close` at the latest."""

    def __init__(self, config: AppConfig, lock: Path, against: Sequence[str]) -> None:
        self._config = config
        self._lock = lock
        self._against = against
        self.run_directory = Path(config.run.root) / config.run.name
        self._deadline = math.inf
        self._journal_size = -1
        self._history = History(())

        self._prepare()
        # Into a file, not a pipe: nobody has to empty it.
        with (self.run_directory / OUTPUT).open("wb") as output:
            self._process = subprocess.Popen(
                (sys.executable, "-m", PROCESS, str(self._lock)),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=module_environment(OMP_NUM_THREADS=str(self._config.device.torch_threads or 1)),
                **in_own_group(),
            )
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended already; its exit code tells more
            self._process.stdin.write(self._config.model_dump_json().encode() + b"\n")
            self._process.stdin.flush()

    def close(self) -> None:
        """End the process at once, if it has not ended, and let go of it."""
        if self._process.poll() is None:
            self._process.kill()
        self._close_stdin()
        self._process.wait()

    def stop(self) -> None:
        """Ask the run to end after its update; it saves a checkpoint. Does not wait for it."""
        self._close_stdin()
        self._deadline = min(self._deadline, time.monotonic() + GRACE_SECONDS + 2.0 * LAST_SECONDS)

    def has_ended(self) -> bool:
        """Whether the process is gone; one that does not stop when asked is ended here."""
        if self._process.poll() is None and time.monotonic() > self._deadline:
            self._process.kill()
            self._process.wait()
        return self._process.poll() is not None

    def evaluations(self) -> list[Evaluation]:
        """What has been measured so far, in the order of the updates."""
        found = (self._evaluation(entry) for entry in self._read().evaluations)
        return [evaluation for evaluation in found if evaluation is not None]

    def entries(self) -> tuple[Entry, ...]:
        """The journal so far."""
        return self._read().entries

    def done(self) -> float:
        """How much of the run is over, from 0 to 1."""
        history = self._read()
        return self._done(history.furthest) if history.entries else 0.0

    def result(self) -> Evaluation:
        """The last evaluation of a run that has done all it should.

        Raises:
            TrialError: The process failed, or the score cannot be told.
        """
        code = self._process.returncode
        history = self._read()
        if code != 0:
            raise TrialError(self._cause(code))
        if history.end is None or history.end.reason not in FINISHED_REASONS:
            raise TrialError("the run's journal does not tell how it ended")
        evaluations = self.evaluations()
        if not evaluations or evaluations[-1].update != history.furthest.update:
            raise TrialError(f"there is no last score against {', '.join(self._against)}")
        return evaluations[-1]

    def _prepare(self) -> None:
        """What an earlier session left without a checkpoint is begun anew."""
        if not list_checkpoints(self.run_directory / CHECKPOINTS):
            shutil.rmtree(self.run_directory, ignore_errors=True)
        make_directory(self.run_directory)

    def _close_stdin(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def _read(self) -> History:
        """The journal, read again only if it has changed."""
        try:
            size = (self.run_directory / METRICS).stat().st_size
            if size != self._journal_size:
                self._history, self._journal_size = History.read(self.run_directory), size
        except (OSError, FileAccessError):
            return History(())  # it is not there yet
        return self._history

    def _evaluation(self, entry: Entry) -> Evaluation | None:
        found = strengths(entry.metrics)
        results = [found[name] for name in self._against if name in found]
        if len(results) < len(self._against):
            return None
        score = sum(result.score for result in results) / len(results)
        if not math.isfinite(score):
            return None
        games = sum(result.games for result in results)
        return Evaluation(entry.update, self._done(entry), score, games)

    def _done(self, entry: Entry) -> float:
        minutes = self._config.run.max_minutes
        time_share = entry.seconds / (60.0 * minutes) if minutes else 0.0
        return min(1.0, max(entry.timestep / max(1, entry.total_timesteps), time_share))

    def _cause(self, code: int) -> str:
        """Why the process failed, in a line."""
        if code < 0:
            memory = ": perhaps memory ran out" if ended_by(code) == "SIGKILL" else ""
            return f"its process was ended by {ended_by(code)}{memory}"
        words = read_bytes(self.run_directory / OUTPUT)[-LAST_WORDS:].decode(errors="replace")
        return words.strip().rpartition("\n")[2] or f"exit code {code}"
