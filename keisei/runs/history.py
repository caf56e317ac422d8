"""Summaries of a journal: the present status of a run, or its whole history."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from keisei import run_files
from keisei.runs.journal import (
    END,
    EVALUATION,
    MAX_JOURNAL_BYTES,
    START,
    STEP,
    STEP_LINE,
    EloEstimate,
    JournalEntry,
    JournalReader,
    ScoreEstimate,
    elo_estimate,
    parse_lines,
    score_estimates,
)
from keisei.system import FileAccessError, read_bytes


@dataclass
class RunStatus:
    """Present status of a run, in memory that does not grow with its journal."""

    first: JournalEntry | None = None
    last: JournalEntry | None = None
    furthest: JournalEntry | None = None
    """Entry of the highest update; an evaluation in the background may be written after it."""

    end: JournalEntry | None = None
    """End of the last session; None while it runs, or if it was killed."""

    sessions: int = 0
    """Number of times the run was started or resumed."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Properties of the last session."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the last step."""

    scores: dict[str, ScoreEstimate] = field(default_factory=dict)
    """Latest score against each opponent."""

    elo: EloEstimate | None = None
    """Latest rating."""

    _score_updates: dict[str, int] = field(default_factory=dict)
    """Update of the network that reached each of the `scores`."""

    _elo_update: int = 0

    def add(self, entry: JournalEntry) -> None:
        """Take the next entry into account."""
        self.last = entry
        self.first = self.first or entry
        if self.furthest is None or entry.update >= self.furthest.update:
            self.furthest = entry
        if entry.event == STEP:
            self.metrics = entry.metrics
        elif entry.event == EVALUATION:
            rated = elo_estimate(entry.metrics)
            if rated is not None and entry.update >= self._elo_update:
                self.elo, self._elo_update = rated, entry.update
            for opponent, score in score_estimates(entry.metrics).items():
                if entry.update >= self._score_updates.get(opponent, entry.update):
                    self.scores[opponent] = score
                    self._score_updates[opponent] = entry.update
        elif entry.event == START:
            self.sessions += 1
            self.facts, self.end = entry.facts, None
        elif entry.event == END:
            self.end = entry

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Take the next lines into account; of consecutive steps only the last is parsed."""
        steps: list[bytes] = []
        for line in lines:
            if line.startswith(STEP_LINE) and self.first is not None:
                steps.append(line)
                continue
            self._add_last(steps)
            steps.clear()
            self._add_last([line])
        self._add_last(steps)

    def _add_last(self, lines: Sequence[bytes]) -> None:
        """Take the last line that can be parsed into account."""
        for line in reversed(lines):
            try:
                entry = JournalEntry.from_line(line)
            except ValueError:
                continue
            self.add(entry)
            return


def read_status(run_directory: Path) -> RunStatus:
    """Return the status of a run; raises `FileAccessError` if its journal cannot be read."""
    reader = JournalReader.of_run(run_directory)
    status = RunStatus()
    bytes_left = 1
    while bytes_left:
        try:
            chunk = reader.read()
        except OSError as error:
            path = run_directory / run_files.METRICS
            raise FileAccessError(f"cannot read {path}: {error.strerror or error}") from error
        if chunk.is_restarted:
            status = RunStatus()
        status.add_lines(chunk.lines)
        bytes_left = chunk.bytes_left
    return status


@dataclass(frozen=True)
class History:
    """All entries of a run's journal, for plots and tables that need every step."""

    entries: tuple[JournalEntry, ...]
    broken_lines: int = 0
    """Number of lines that could not be parsed: a killed run may leave half a line."""

    @classmethod
    def read(cls, run_directory: Path) -> Self:
        """Read the journal of a run; raises `FileAccessError` if it cannot be read."""
        data = read_bytes(run_directory / run_files.METRICS, max_size=MAX_JOURNAL_BYTES)
        entries = [entry for _, entry in parse_lines(data)]
        readable = tuple(entry for entry in entries if entry is not None)
        return cls(readable, broken_lines=len(entries) - len(readable))

    @cached_property
    def status(self) -> RunStatus:
        """Status of the run after all entries."""
        status = RunStatus()
        for entry in self.entries:
            status.add(entry)
        return status

    @cached_property
    def steps(self) -> tuple[JournalEntry, ...]:
        """Training steps in the order of their updates, each update once."""
        return _latest_by_update(entry for entry in self.entries if entry.event == STEP)

    @cached_property
    def evaluations(self) -> tuple[JournalEntry, ...]:
        """Evaluations in the order of their updates, each update once."""
        return _latest_by_update(entry for entry in self.entries if entry.event == EVALUATION)

    @property
    def furthest(self) -> JournalEntry:
        """The last entry of the highest update; the history must not be empty."""
        assert self.status.furthest is not None
        return self.status.furthest

    @property
    def starts(self) -> tuple[JournalEntry, ...]:
        """Starts of sessions: that of the run, and one for each resume."""
        return tuple(entry for entry in self.entries if entry.event == START)

    @property
    def end(self) -> JournalEntry | None:
        """End of the last session; None while it runs, or if it was killed."""
        return self.status.end

    @property
    def facts(self) -> Mapping[str, Any]:
        """Properties of the last session."""
        return self.status.facts

    def series(self, name: str) -> tuple[list[int], list[float]]:
        """Return (timesteps, values) of a metric; steps without a finite value are left out."""
        points = [
            (step.timestep, step.metrics[name])
            for step in self.steps
            if math.isfinite(step.metrics.get(name, math.nan))
        ]
        return [timestep for timestep, _ in points], [value for _, value in points]


def _latest_by_update(entries: Iterable[JournalEntry]) -> tuple[JournalEntry, ...]:
    """Return entries in the order of their updates; of several of one update, the last.

    A session that is resumed right at an evaluation writes that evaluation a second time.
    """
    by_update = {entry.update: entry for entry in entries}
    return tuple(by_update[update] for update in sorted(by_update))
