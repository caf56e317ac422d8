"""Runs a sweep: trials side by side, each in its own process, until there are enough.

This process trains nothing. Several times a second it reads the trials' journals, reports their
scores to the study, stops those that are pruned, and starts the next.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from keisei.errors import KeiseiError
from keisei.sweep.space import Sweep
from keisei.sweep.study import IN_USE, OpenTrial, Study, trial_directory, trial_lock
from keisei.sweep.summary import SweepProgress, SweepSummary, write_best, write_plot
from keisei.sweep.trial import STOP_TIMEOUT, TrialError, TrialProcess, share_of_machine
from keisei.system import FileAccessError, InterruptFlag, make_directory

POLL_INTERVAL: Final = 0.2
"""Seconds between two reads of the trials' journals."""


class TooManyFailuresError(KeiseiError):
    """Several trials failed one after another: more would fail as well."""


class LockedError(KeiseiError):
    """Another process runs the sweep, or still trains one of its trials."""


OnChange = Callable[[SweepProgress], None]


def run_sweep(
    sweep: Sweep,
    directory: Path,
    *,
    interrupt: InterruptFlag | None = None,
    on_change: OnChange = lambda progress: None,
) -> SweepSummary:
    """Start a sweep, or continue the one in `directory`, until its trials are done.

    `sweep` comes from `keisei.sweep.check.checked`. `on_change` is called after each poll. When
    `interrupt` is set, the running trials end with a checkpoint, and the next call resumes them.

    Raises:
        TooManyFailuresError: After `failures_in_a_row` failed trials.
        LockedError: Another process runs this sweep.
    """
    make_directory(directory)
    with ExitStack() as held:
        try:
            held.enter_context(FileLock(directory / IN_USE, timeout=0.0))
        except Timeout:
            raise LockedError(f"another process runs the sweep in {directory}") from None
        except OSError as error:
            raise FileAccessError(f"cannot lock {directory}: {error.strerror or error}") from error
        study = Study(sweep, directory)
        held.callback(study.close)
        _wait_for_orphans(directory, study.interrupted())
        runner = _Runner(sweep, directory, study, interrupt or InterruptFlag(), on_change)
        runner.run()
        return SweepSummary(
            directory=directory,
            wanted=sweep.trials,
            trials=study.records(),
            best=study.best(),
            importances=study.importances(),
            is_interrupted=runner.interrupt.is_set,
        )


def _wait_for_orphans(directory: Path, numbers: list[int]) -> None:
    """Wait for trials of a killed session, which may still be saving their last checkpoint."""
    deadline = time.monotonic() + STOP_TIMEOUT
    for number in numbers:
        make_directory(trial_lock(directory, number).parent)
        timeout = max(0.0, deadline - time.monotonic())
        try:
            with FileLock(trial_lock(directory, number), timeout=timeout):
                pass
        except Timeout:
            raise LockedError(
                f"trial {number} of an earlier session is still training in {directory}"
            ) from None


@dataclass
class _Running:
    """A running trial."""

    trial: OpenTrial
    process: TrialProcess
    is_pruned: bool = False
    last_seen: int = 0
    """Update of the last evaluation that was reported."""


class _Runner:
    def __init__(
        self,
        sweep: Sweep,
        directory: Path,
        study: Study,
        interrupt: InterruptFlag,
        on_change: OnChange,
    ) -> None:
        self.interrupt = interrupt
        self._sweep = sweep
        self._directory = directory
        self._study = study
        self._on_change = on_change
        self._running: list[_Running] = []
        self._waiting = study.interrupted()
        self._finished = sum(record.state in ("complete", "pruned") for record in study.records())
        self._failures: list[str] = []
        """Reasons of the failed trials since the last success."""

        self._flags = share_of_machine(sweep.config(), sweep.side_by_side)

    def run(self) -> None:
        """Train until there are enough trials, too many failures, or an interrupt."""
        try:
            while self._fill():
                if not self._may_start():
                    for running in self._running:
                        running.process.stop()
                time.sleep(POLL_INTERVAL)
                for running in list(self._running):
                    self._poll(running)
                self._notify()
        finally:
            for running in self._running:
                running.process.close()
        self._write_results()
        if len(self._failures) >= self._sweep.failures_in_a_row:
            raise TooManyFailuresError(
                f"{len(self._failures)} trials failed one after another, the last one because: "
                f"{self._failures[-1]}; each run's log is in {self._directory}. Once that is "
                "fixed, the same command resumes the sweep"
            )

    def _may_start(self) -> bool:
        return not self.interrupt.is_set and len(self._failures) < self._sweep.failures_in_a_row

    def _fill(self) -> bool:
        """Start trials while there is room; returns whether any is running."""
        while self._has_room():
            self._start()
        return bool(self._running)

    def _has_room(self) -> bool:
        running = len(self._running)
        return (
            self._may_start()
            and running < self._sweep.side_by_side
            and self._finished + running < self._sweep.trials
        )

    def _start(self) -> None:
        """Resume a trial of an earlier session, or start a new one."""
        trial = self._study.reopen(self._waiting.pop(0)) if self._waiting else self._study.ask()
        place = trial_directory(self._directory, trial.number)
        flags = {**self._flags, "run.root": str(place.parent), "run.name": place.name}
        try:
            config = self._sweep.config(trial.parameters, flags)
        except KeiseiError as error:  # an invalid combination of values
            self._fail(trial, str(error))
            return
        process = TrialProcess(
            config, trial_lock(self._directory, trial.number), self._sweep.objective.against
        )
        self._running.append(_Running(trial, process))

    def _poll(self, running: _Running) -> None:
        """Report new scores of a trial; stop it if it is pruned, conclude it if it has ended."""
        # In this order, so that all entries of a trial that has ended are read. Its scores are
        # reported too, since other trials are compared with them.
        has_ended = running.process.has_ended()
        running.process.read()
        should_prune = not running.is_pruned and self._should_prune(running)
        if should_prune and not has_ended:
            running.is_pruned = True
            running.process.stop()
        if has_ended:
            self._running.remove(running)
            running.process.close()
            self._conclude(running)

    def _should_prune(self, running: _Running) -> bool:
        """Report the new scores of a trial; returns whether it should be pruned."""
        parts = self._sweep.pruner.parts
        for found in running.process.scores:
            if found.update <= running.last_seen or found.fraction_done >= 1.0:
                continue  # known, or the result of the trial
            running.last_seen = found.update
            if running.trial.report(int(found.fraction_done * parts), found.score):
                return True
        return False

    def _conclude(self, running: _Running) -> None:
        trial = running.trial
        try:
            result = running.process.result()
        except TrialError as error:
            if running.is_pruned:
                self._study.prune(trial.number)
                self._finished += 1
                self._failures.clear()
            elif self._may_start():
                self._fail(trial, str(error))
            # Else it was asked to stop: it stays open, and the next session resumes it.
            return
        self._study.complete(trial.number, result.score, result.games)
        self._finished += 1
        self._failures.clear()
        self._write_results()

    def _fail(self, trial: OpenTrial, reason: str) -> None:
        self._study.fail(trial.number, reason)
        self._failures.append(reason)

    def _notify(self) -> None:
        fractions = {each.trial.number: each.process.fraction_done for each in self._running}
        records = self._study.records()
        self._on_change(
            SweepProgress(self._sweep.trials, records, fractions, is_ending=not self._may_start())
        )

    def _write_results(self) -> None:
        """Write recipe and plot after each trial, so that a killed sweep has them too."""
        records = self._study.records()
        if (best := self._study.best()) is not None:
            write_best(self._sweep, best, len(records), self._directory)
        if ended := [record for record in records if record.state != "running"]:
            write_plot(ended, self._sweep.objective.against, self._directory)
