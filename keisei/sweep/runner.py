"""Running a sweep: trials side by side, each in its process, until there are enough.

This process trains nothing. It looks at the trials' journals several times a second, tells the
study what they have reached, ends those that are pruned, and starts the next.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keisei.errors import KeiseiError
from keisei.sweep.locks import FileLock, LockedError
from keisei.sweep.space import Sweep
from keisei.sweep.study import (
    BEST,
    IN_USE,
    TRIALS_IN_USE,
    OpenTrial,
    Study,
    TrialRecord,
    trial_directory,
)
from keisei.sweep.sweep_results import write_best, write_plot
from keisei.sweep.trial import TrialError, TrialProcess, share_of_machine
from keisei.sweep.trial_main import GRACE_SECONDS, LAST_SECONDS
from keisei.system import InterruptFlag, make_directory

LOOK_SECONDS: Final = 0.2
"""How often the trials are looked at."""

ORPHAN_PATIENCE: Final = GRACE_SECONDS + 2 * LAST_SECONDS
"""How long the trials of a killed session may need to end."""


@dataclass(frozen=True)
class SweepProgress:
    """A sweep at one moment, for those who show it."""

    wanted: int
    trials: list[TrialRecord]
    done: Mapping[int, float]
    """How much of each trial under way is over, 0 to 1, by number."""

    is_ending: bool = False
    """Whether nothing new is begun: the trials under way save their last checkpoint."""


@dataclass(frozen=True)
class SweepSummary:
    """How a session of a sweep ended."""

    directory: Path
    wanted: int
    trials: list[TrialRecord]
    best: TrialRecord | None
    importances: Mapping[str, float]
    is_interrupted: bool

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "sweep": str(self.directory),
            "reason": "interrupted" if self.is_interrupted else "finished",
            "wanted": self.wanted,
            "trials": [trial.as_dict() for trial in self.trials],
            "best": self.best.as_dict() if self.best else None,
            "recipe": str(self.directory / BEST) if self.best else None,
            "importances": dict(self.importances),
        }


class TooManyFailuresError(KeiseiError):
    """Trials fail one after another: going on would only fail more."""


OnChange = Callable[[SweepProgress], None]


def run_sweep(
    sweep: Sweep,
    directory: Path,
    *,
    interrupt: InterruptFlag | None = None,
    on_change: OnChange = lambda progress: None,
) -> SweepSummary:
    """Begin a sweep, or go on with the one in `directory`, until its trials are done.

    `sweep` has been through `keisei.sweep.check.checked`. `on_change` is called after each look.
    When `interrupt` is set, the trials under way end with a checkpoint, and the next call goes on
    with them.

    Raises:
        TooManyFailuresError: After `failures_in_a_row` failed trials.
        LockedError: Another process runs this sweep.
    """
    make_directory(directory)
    with ExitStack() as held:
        try:
            held.enter_context(FileLock(directory / IN_USE))
        except LockedError:
            raise LockedError(f"another process runs the sweep in {directory}") from None
        # Of a session that was killed, trials may still be saving their last checkpoint.
        with FileLock(directory / TRIALS_IN_USE, patience=ORPHAN_PATIENCE):
            pass
        study = Study(sweep, directory)
        held.callback(study.close)
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


@dataclass
class _Running:
    """A trial under way."""

    trial: OpenTrial
    process: TrialProcess
    is_pruned: bool = False
    last_seen: int = 0
    """The update of the last evaluation that was looked at."""


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
        """Reasons of the last trials, as far as they failed one after another."""

        self._flags = share_of_machine(sweep.config(), sweep.side_by_side)

    def run(self) -> None:
        """Train until there are enough trials, too many failures, or an interrupt."""
        try:
            while self._fill():
                if not self._may_start():
                    for running in self._running:
                        running.process.stop()
                time.sleep(LOOK_SECONDS)
                for running in list(self._running):
                    self._look(running)
                self._tell()
        finally:
            for running in self._running:
                running.process.close()
        self._write_results()
        if len(self._failures) >= self._sweep.failures_in_a_row:
            raise TooManyFailuresError(
                f"{len(self._failures)} trials failed one after another, the last one because: "
                f"{self._failures[-1]}; each run's log is in {self._directory}. Once that is "
                "mended, the same command goes on"
            )

    def _may_start(self) -> bool:
        return not self.interrupt.is_set and len(self._failures) < self._sweep.failures_in_a_row

    def _fill(self) -> bool:
        """Start what there is room for; returns whether any trial is under way."""
        while self._has_room():
            self._start()
        return bool(self._running)

    def _has_room(self) -> bool:
        under_way = len(self._running)
        return (
            self._may_start()
            and under_way < self._sweep.side_by_side
            and self._finished + under_way < self._sweep.trials
        )

    def _start(self) -> None:
        """Go on with a trial of an earlier session, or begin the next."""
        trial = self._study.reopen(self._waiting.pop(0)) if self._waiting else self._study.ask()
        place = trial_directory(self._directory, trial.number)
        flags = {**self._flags, "run.root": str(place.parent), "run.name": place.name}
        try:
            config = self._sweep.config(trial.parameters, flags)
        except KeiseiError as error:  # a combination of values that only now came up
            self._fail(trial, str(error))
            return
        process = TrialProcess(
            config, self._directory / TRIALS_IN_USE, self._sweep.objective.against
        )
        self._running.append(_Running(trial, process))

    def _look(self, running: _Running) -> None:
        """Report what is new of a trial, and see whether it goes on."""
        # Asked first: what is read after it is then all there will be. A trial that has ended is
        # reported too: others are compared with it.
        has_ended = running.process.has_ended()
        goes_on = running.is_pruned or self._goes_on(running)
        if not goes_on and not has_ended:
            running.is_pruned = True
            running.process.stop()
        if has_ended:
            self._running.remove(running)
            running.process.close()
            self._conclude(running)

    def _goes_on(self, running: _Running) -> bool:
        parts = self._sweep.pruner.parts
        for evaluation in running.process.evaluations():
            if evaluation.update <= running.last_seen or evaluation.done >= 1.0:
                continue  # the last one is the result
            running.last_seen = evaluation.update
            if not running.trial.report(int(evaluation.done * parts), evaluation.score):
                return False
        return True

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
            # Else it was asked to end: it stays open, and the next session goes on with it.
            return
        self._study.complete(trial.number, result.score, result.games)
        self._finished += 1
        self._failures.clear()
        self._write_results()

    def _fail(self, trial: OpenTrial, reason: str) -> None:
        self._study.fail(trial.number, reason)
        self._failures.append(reason)

    def _tell(self) -> None:
        done = {running.trial.number: running.process.done() for running in self._running}
        records = self._study.records()
        self._on_change(
            SweepProgress(self._sweep.trials, records, done, is_ending=not self._may_start())
        )

    def _write_results(self) -> None:
        """Best recipe and plot: also a sweep that is killed later has them."""
        records = self._study.records()
        if (best := self._study.best()) is not None:
            write_best(self._sweep, best, len(records), self._directory)
        if ended := [record for record in records if record.state != "running"]:
            write_plot(ended, self._sweep.objective.against, self._directory)
