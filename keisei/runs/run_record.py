"""What the lines of a journal add up to, in bounded memory however many there are."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from keisei.metric_names import Strength, strengths
from keisei.runs import journal
from keisei.runs.curves import Curves
from keisei.runs.journal import Entry

AXES: Final = ("timestep", "seconds", "update")
"""What can be along the x axis."""

MOST_EVALUATIONS: Final = 2048
"""Evaluations that are remembered; of more, every other one is forgotten."""

MOST_CHECKPOINTS: Final = 500
"""Checkpoints that are remembered, the newest."""

_STEP: Final = b'{"event":"step",'
"""How the lines begin that almost all lines are. Others are read with more care."""


class Evaluation(NamedTuple):
    """How strong the network was at some moment."""

    update: int
    timestep: int
    seconds: float
    scores: Mapping[str, Strength]
    """By opponent."""


class Saved(NamedTuple):
    """A checkpoint that was written; it may have been removed since."""

    path: str
    """In the run's directory, with slashes."""

    update: int
    timestep: int
    seconds: float


@dataclass
class Standing:
    """How a run is doing, by the newest lines of its journal."""

    first: Entry | None = None
    last: Entry | None = None
    furthest: Entry | None = None
    """An evaluation in the background tells of an earlier moment than the last step."""

    end: Entry | None = None
    sessions: int = 0
    """How often it was started or resumed."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the last session said about itself."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Of the newest step."""

    scores: dict[str, Strength] = field(default_factory=dict)
    """The newest against each opponent."""

    def take(self, entry: Entry) -> None:
        """Read on."""
        self.last = entry
        self.first = self.first or entry
        if self.furthest is None or entry.update >= self.furthest.update:
            self.furthest = entry
        if entry.event == journal.STEP:
            self.metrics = entry.metrics
        elif entry.event == journal.EVALUATION:
            self.scores |= strengths(entry.metrics)
        elif entry.event == journal.START:
            self.sessions += 1
            self.facts, self.end = entry.facts, None
        elif entry.event == journal.END:
            self.end = entry


class Record:
    """A run as far as its journal has been read, or was sampled."""

    def __init__(self) -> None:
        self.standing = Standing()
        self.curves = Curves(AXES)
        self.saved: deque[Saved] = deque(maxlen=MOST_CHECKPOINTS)
        self.broken_lines = 0
        self._evaluations: dict[int, Evaluation] = {}
        self._layouts: dict[tuple[str, ...], npt.NDArray[np.intp]] = {}
        """Where the metrics of a step go, by their names: nearly all steps have the same."""

    @property
    def evaluations(self) -> list[Evaluation]:
        """In the order of their updates."""
        return [self._evaluations[update] for update in sorted(self._evaluations)]

    def take(self, lines: Iterable[bytes]) -> None:
        """Read on, in lines without their newlines."""
        steps: list[Mapping[str, Any]] = []
        taken = 0
        for line in lines:
            try:
                fields = orjson.loads(line)
                if fields["event"] == journal.STEP:
                    steps.append(fields)
                else:
                    self._take_newest(steps[taken:])
                    taken = len(steps)
                    self._take_entry(Entry.from_fields(fields))
            except (ValueError, KeyError, TypeError):
                self.broken_lines += bool(line.strip())
        self._take_newest(steps[taken:])
        self._append(steps)

    def _take_newest(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """The newest step tells how the run is doing. The others need not become entries."""
        for step in reversed(steps):
            with suppress(ValueError):  # its numbers are counted as broken later
                self.standing.take(Entry.from_fields(step))
                return

    def _take_entry(self, entry: Entry) -> None:
        self.standing.take(entry)
        if entry.event == journal.CHECKPOINT:
            self.saved.append(Saved(entry.path, entry.update, entry.timestep, entry.seconds))
        elif entry.event == journal.EVALUATION:
            self._evaluations[entry.update] = Evaluation(
                entry.update, entry.timestep, entry.seconds, strengths(entry.metrics)
            )
            if len(self._evaluations) > MOST_EVALUATIONS:
                for update in list(islice(self._evaluations, 1, None, 2)):
                    del self._evaluations[update]

    def _append(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """Add steps to the curves."""
        if not steps:
            return
        try:
            x = np.array([[step[axis] for axis in AXES] for step in steps], float)
            by_layout: dict[tuple[str, ...], tuple[list[int], list[list[Any]]]] = {}
            for row, step in enumerate(steps):
                metrics = step["metrics"]
                if not isinstance(metrics, dict):
                    raise TypeError("metrics have names")
                rows, values = by_layout.setdefault(tuple(metrics), ([], []))
                rows.append(row)
                values.append(list(metrics.values()))
            parts = [
                (rows, self._columns_of(layout), np.array(values, float))
                for layout, (rows, values) in by_layout.items()
            ]
            is_known = (np.abs(x) <= journal.LARGEST).all()  # NaN is not
            if not is_known or any(numbers.ndim != 2 for _, _, numbers in parts):
                raise ValueError("something is no number")
        except (ValueError, KeyError, TypeError):
            if len(steps) == 1:
                self.broken_lines += 1
                return
            # Something in one of them is no number. That is rare: they are taken one by one.
            for step in steps:
                self._append([step])
            return
        table = np.full((len(steps), len(self.curves.names)), np.nan)
        for rows, columns, numbers in parts:
            kept = columns >= 0
            table[np.ix_(np.array(rows), columns[kept])] = numbers[:, kept]
        self.curves.append(x, table)

    def _columns_of(self, layout: tuple[str, ...]) -> npt.NDArray[np.intp]:
        """The columns of some metrics, -1 for those that there is no room for."""
        columns = self._layouts.get(layout)
        if columns is None:
            found = [self.curves.column(name) for name in layout]
            columns = np.array([-1 if place is None else place for place in found], np.intp)
            if len(self._layouts) > 1000:  # somebody else's file
                self._layouts.clear()
            self._layouts[layout] = columns
        return columns


def sample(data: bytes, every: int) -> Iterator[bytes]:
    """Of the lines of a journal: one step in so many and the last one, and all that is no step.

    The others are not even copied: only their beginnings are looked at.
    """
    skipped = begin = last_begin = last_end = 0
    while (end := data.find(b"\n", begin)) >= 0:
        if not data.startswith(_STEP, begin):
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


def score_points(
    evaluations: Iterable[Evaluation], opponent: str
) -> list[tuple[Evaluation, Strength]]:
    """The evaluations that tell something about an opponent, with what they tell."""
    return [
        (evaluation, strength)
        for evaluation in evaluations
        if (strength := evaluation.scores.get(opponent)) is not None
        and math.isfinite(strength.score)
    ]
