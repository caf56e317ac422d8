"""A run for the dashboard: its status, curves and evaluations, in bounded memory.

`RunRecord.add_lines` is the fast path for long journals: most lines are training steps, whose
metrics go into arrays without becoming `JournalEntry` objects.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from keisei.runs.curves import Curves
from keisei.runs.history import RunStatus
from keisei.runs.journal import (
    CHECKPOINT,
    EVALUATION,
    MAX_NUMBER,
    STEP,
    STEP_LINE,
    EloEstimate,
    JournalEntry,
    ScoreEstimate,
    elo_estimate,
    score_estimates,
)

AXES: Final = ("timestep", "seconds", "update")
"""Fields of a step that can be the x axis of a curve."""

MAX_EVALUATIONS: Final = 2048
"""Maximum number of evaluations; beyond it, every other one is dropped."""

MAX_CHECKPOINTS: Final = 500
"""Maximum number of checkpoints; beyond it, the oldest are dropped."""

_MAX_LAYOUTS: Final = 1000
"""Sets of metric names whose columns are cached; a journal by Keisei has a handful."""


class Evaluation(NamedTuple):
    """Scores of the network after an update."""

    update: int
    timestep: int
    seconds: float
    scores: Mapping[str, ScoreEstimate]
    """Scores by opponent."""

    elo: EloEstimate | None = None


class SavedCheckpoint(NamedTuple):
    """A checkpoint that was written; it may have been removed since."""

    path: str
    """Path in the run's directory, with slashes."""

    update: int
    timestep: int
    seconds: float


class RunRecord:
    """Knowledge of a run from the lines of its journal so far, or from a sample of them."""

    def __init__(self) -> None:
        self.status = RunStatus()
        self.curves = Curves(AXES)
        self.checkpoints: deque[SavedCheckpoint] = deque(maxlen=MAX_CHECKPOINTS)
        self.broken_lines = 0
        self._evaluations: dict[int, Evaluation] = {}
        self._columns: dict[tuple[str, ...], npt.NDArray[np.intp]] = {}
        """Columns of the metrics of a step by their names: nearly all steps have the same."""

    @property
    def evaluations(self) -> list[Evaluation]:
        """Evaluations in the order of their updates."""
        return [self._evaluations[update] for update in sorted(self._evaluations)]

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Take the next lines into account, given without their newlines."""
        steps: list[Mapping[str, Any]] = []
        done = 0
        for line in lines:
            try:
                fields = orjson.loads(line)
                if fields["event"] == STEP:
                    steps.append(fields)
                else:
                    self._add_last_step(steps[done:])
                    done = len(steps)
                    self._add_entry(JournalEntry.from_fields(fields))
            except (ValueError, KeyError, TypeError):
                self.broken_lines += bool(line.strip())
        self._add_last_step(steps[done:])
        self._add_to_curves(steps)

    def _add_last_step(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """Update the status by the last valid step; the others need not become entries."""
        for step in reversed(steps):
            with suppress(ValueError):  # counted as broken by `_add_to_curves`
                self.status.add(JournalEntry.from_fields(step))
                return

    def _add_entry(self, entry: JournalEntry) -> None:
        self.status.add(entry)
        if entry.event == CHECKPOINT:
            self.checkpoints.append(
                SavedCheckpoint(entry.path, entry.update, entry.timestep, entry.seconds)
            )
        elif entry.event == EVALUATION:
            self._evaluations[entry.update] = Evaluation(
                entry.update,
                entry.timestep,
                entry.seconds,
                score_estimates(entry.metrics),
                elo_estimate(entry.metrics),
            )
            if len(self._evaluations) > MAX_EVALUATIONS:
                for update in list(islice(self._evaluations, 1, None, 2)):
                    del self._evaluations[update]

    def _add_to_curves(self, steps: Sequence[Mapping[str, Any]]) -> None:
        if not steps:
            return
        try:
            x = np.array([[step[axis] for axis in AXES] for step in steps], float)
            by_names: dict[tuple[str, ...], tuple[list[int], list[list[Any]]]] = {}
            for row, step in enumerate(steps):
                metrics = step["metrics"]
                if not isinstance(metrics, dict):
                    raise TypeError("metrics should be an object")
                rows, values = by_names.setdefault(tuple(metrics), ([], []))
                rows.append(row)
                values.append(list(metrics.values()))
            parts = [
                (rows, self._columns_of(names), np.array(values, float))
                for names, (rows, values) in by_names.items()
            ]
            is_bounded = (np.abs(x) <= MAX_NUMBER).all()  # False for NaN
            if not is_bounded or any(numbers.ndim != 2 for _, _, numbers in parts):
                raise ValueError("a value is not a number")
        except (ValueError, KeyError, TypeError):
            if len(steps) == 1:
                self.broken_lines += 1
                return
            # One of them is broken. That is rare: they are added one by one.
            for step in steps:
                self._add_to_curves([step])
            return
        table = np.full((len(steps), len(self.curves.names)), np.nan)
        for rows, columns, numbers in parts:
            kept = columns >= 0
            table[np.ix_(np.array(rows), columns[kept])] = numbers[:, kept]
        self.curves.append(x, table)

    def _columns_of(self, names: tuple[str, ...]) -> npt.NDArray[np.intp]:
        """Return the columns of some metrics in the curves, -1 for those beyond the maximum."""
        columns = self._columns.get(names)
        if columns is None:
            found = [self.curves.column(name) for name in names]
            columns = np.array([-1 if place is None else place for place in found], np.intp)
            if len(self._columns) > _MAX_LAYOUTS:
                self._columns.clear()
            self._columns[names] = columns
        return columns


def sample_lines(data: bytes, every: int) -> Iterator[bytes]:
    """Yield every n-th step of a journal and the last one, and all lines that are not steps.

    Of the other lines only the beginning is looked at, so that sampling is much faster than
    reading.
    """
    skipped = begin = last_begin = last_end = 0
    while (end := data.find(b"\n", begin)) >= 0:
        if not data.startswith(STEP_LINE, begin):
            yield data[begin:end]
        elif skipped + 1 < every:
            skipped += 1
            last_begin, last_end = begin, end
        else:
            skipped = 0
            yield data[begin:end]
        begin = end + 1
    if skipped:
        yield data[last_begin:last_end]


def scores_against(
    evaluations: Iterable[Evaluation], opponent: str
) -> list[tuple[Evaluation, ScoreEstimate]]:
    """Return the evaluations that have a finite score against an opponent, with that score."""
    return [
        (evaluation, score)
        for evaluation in evaluations
        if (score := evaluation.scores.get(opponent)) is not None and math.isfinite(score.score)
    ]
