"""A run for the dashboard, read while it grows.

Parsing a long journal takes seconds. So at first only its tail is read, which gives the run's
status; then all of it is sampled, a few hundred steps, which gives rough curves; then all of it is
read.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple

import orjson

from keisei import run_files
from keisei.runs.curves import Curve, Floats
from keisei.runs.folder import OutsideError, RunsFolder
from keisei.runs.heartbeat import RunHeartbeat, parse_heartbeat
from keisei.runs.journal import CHUNK_BYTES, JournalReader
from keisei.runs.listing import RunOverview, make_overview
from keisei.runs.notes import EMPTY_NOTES, RunNotes, parse_notes, write_notes
from keisei.runs.run_record import (
    Evaluation,
    RunRecord,
    SavedCheckpoint,
    sample_lines,
)

_TAIL_BYTES: Final = 256 << 10
"""Size of the tail of a long journal that is read first."""

_SAMPLED_BYTES: Final = 8 << 20
"""Size of a chunk that is sampled: as much work as a chunk that is read."""

_LONG_BYTES: Final = 4 << 20
"""Size up to which a journal is read at once, without tail and sample."""

_SAMPLED_STEPS: Final = 400
"""Approximate number of steps in the sample of a journal."""

_STEP_BYTES: Final = 1000
"""Approximate size of the line of a step."""


class RunReader:
    """One run. A single thread calls `read_tail` and `read`; any thread may use the rest."""

    def __init__(self, folder: RunsFolder, name: str) -> None:
        self.name = name
        self._folder = folder
        self._lock = Lock()
        self._config: Mapping[str, Any] = {}
        self._problem = ""
        self._heartbeat: RunHeartbeat | None = None
        self.notes: RunNotes = EMPTY_NOTES
        """Notes that people wrote about the run."""

        self._sample: RunRecord | None = None
        self._full = RunRecord()
        self._shown = self._full
        self._open = partial(folder.open, name, run_files.METRICS)
        self._sampler: JournalReader | None = None
        self._reader = JournalReader(self._open)
        self.version = 0
        """Changes whenever something new has been read."""

        self.is_sampled = False
        """Whether its curves can be shown, if only roughly."""

        self.is_read = False
        """Whether the whole journal, as it was, has been read."""

    @property
    def progress(self) -> float:
        """Fraction of the journal that has been read."""
        if self.is_read:
            return 1.0
        return self._reader.offset / self._reader.size if self._reader.size else 0.0

    # ---- reading ----

    def read_tail(self) -> None:
        """Read the tail of a long journal, so that the run's status is known at once."""
        record = RunRecord()
        try:
            with self._open() as file:
                first = file.readline(CHUNK_BYTES)
                size = file.seek(0, 2)
                if size <= _LONG_BYTES:
                    return
                file.seek(-_TAIL_BYTES, 2)
                tail = file.read(_TAIL_BYTES)
        except (OSError, OutsideError) as error:
            self._fail(error)
            return
        # The tail begins in the middle of a line, except by chance.
        record.add_lines([first, *sample_lines(tail[tail.find(b"\n") + 1 :], len(tail))])
        with self._lock:
            self._config = self._read_config()
            self._shown = record
            self._sample, self._sampler = RunRecord(), JournalReader(self._open)
            self.version += 1

    def read_small_files(self) -> None:
        """Read the run's sign of life and its notes."""
        self._heartbeat = parse_heartbeat(self._folder.read(self.name, run_files.HEARTBEAT))
        notes = parse_notes(self._folder.read(self.name, run_files.NOTES))
        if notes != self.notes:
            self.notes = notes
            self.version += 1

    def set_notes(self, notes: RunNotes) -> None:
        """Write what people say about the run into its directory.

        Raises:
            KeiseiError: The file cannot be written, or is a link that leads out of the folder.
        """
        self._folder.resolve(self.name, run_files.NOTES)
        write_notes(self._folder.run(self.name), notes)
        self.notes = notes
        self.version += 1

    def read(self, max_bytes: int = CHUNK_BYTES) -> bool:
        """Read the next chunk of the journal; returns whether there is more.

        Does not raise: a run that cannot be read has a note in its overview.
        """
        try:
            if self._sample is not None and self._sampler is not None:
                self._read_sample(self._sample, self._sampler, max(max_bytes, _SAMPLED_BYTES))
                return True
            return self._read_full(max_bytes)
        except (OSError, OutsideError) as error:
            self._fail(error)
            return False

    def _read_sample(self, record: RunRecord, sampler: JournalReader, max_bytes: int) -> None:
        chunk = sampler.read(max_bytes)
        every = max(1, sampler.size // _STEP_BYTES // _SAMPLED_STEPS)
        if chunk.is_restarted:
            record = self._sample = RunRecord()
        record.add_lines(sample_lines(chunk.data, every))
        if chunk.bytes_left == 0:
            with self._lock:
                self._shown, self._sample, self._sampler = record, None, None
                self.is_sampled = True
                self.version += 1

    def _read_full(self, max_bytes: int) -> bool:
        chunk = self._reader.read(max_bytes)
        if not chunk.data and not chunk.is_restarted and self.is_read:
            return False
        with self._lock:
            if chunk.is_restarted:
                self._full = self._shown = RunRecord()
            if not self._config or chunk.is_restarted:
                self._config = self._read_config()
            self._full.add_lines(chunk.lines)
            self._problem = ""
            self.is_read = chunk.bytes_left == 0
            if self.is_read:
                self._shown = self._full
                self.is_sampled = True
            self.version += 1
        return not self.is_read

    def _fail(self, error: Exception) -> None:
        is_missing = isinstance(error, FileNotFoundError)
        problem = f"there is no {run_files.METRICS} yet" if is_missing else str(error)
        with self._lock:
            self.is_read = self.is_sampled = True
            self._sample = self._sampler = None
            if problem != self._problem:
                self._problem = problem
                self.version += 1

    def _read_config(self) -> Mapping[str, Any]:
        data = self._folder.read(self.name, run_files.CONFIG)
        try:
            config = orjson.loads(data or b"")
        except orjson.JSONDecodeError:
            return {}
        return config if isinstance(config, dict) else {}

    # ---- what has been read ----

    @property
    def last_written(self) -> float:
        """When the last line was written, in seconds since 1970; 0 if unknown."""
        last = self._shown.status.last
        return 0.0 if last is None else last.time

    def overview(self, now: float) -> RunOverview:
        """Return the overview of the run; `now` is in seconds since 1970."""
        with self._lock:
            overview = make_overview(
                self.name, self._shown.status, self._config, self._heartbeat, now=now
            )
            return replace(overview, note=self._problem or overview.note, notes=self.notes)

    def curve(self, name: str, axis: str) -> Curve:
        """Return a metric over one of the axes: see `keisei.runs.run_record.AXES`."""
        with self._lock:
            return self._shown.curves.curve(name, axis)

    def means(self, names: tuple[str, ...], axis: str) -> tuple[Floats, Floats]:
        """Return (x ``[points]``, means ``[points, names]``) of several metrics over an axis."""
        with self._lock:
            return self._shown.curves.means(names, axis)

    @property
    def metric_names(self) -> list[str]:
        """Names of the metrics of its steps."""
        with self._lock:
            return self._shown.curves.names

    @property
    def stride(self) -> int:
        """Number of steps that a point of its curves stands for."""
        with self._lock:
            return self._shown.curves.stride

    @property
    def steps(self) -> int:
        """Number of steps in its curves."""
        with self._lock:
            return self._shown.curves.rows

    @property
    def evaluations(self) -> list[Evaluation]:
        """Evaluations in the order of their updates."""
        with self._lock:
            return self._shown.evaluations

    @property
    def checkpoints(self) -> list[SavedCheckpoint]:
        """Checkpoints that were written, newest first."""
        with self._lock:
            return list(reversed(self._shown.checkpoints))

    @property
    def facts(self) -> Mapping[str, Any]:
        """Properties of the last session."""
        with self._lock:
            return self._shown.status.facts

    @property
    def sessions(self) -> int:
        """Number of times the run was started or resumed."""
        with self._lock:
            return self._shown.status.sessions

    @property
    def broken_lines(self) -> int:
        """Number of lines of the journal that could not be parsed."""
        with self._lock:
            return self._shown.broken_lines

    @property
    def config(self) -> Mapping[str, Any]:
        """Settings of the run as written."""
        with self._lock:
            return self._config


class LiveBoard(NamedTuple):
    """A game in progress."""

    sfen: str
    last_move: str | None
    """USI notation."""


class LiveGamesSnapshot(NamedTuple):
    """Games in progress, as the run last wrote them to ``live.json``."""

    time: float
    """When they were written, in seconds since 1970."""

    update: int
    boards: tuple[LiveBoard, ...]
    stamp: int
    """Modification time of the file in nanoseconds."""


def read_live(
    folder: RunsFolder, name: str, known: LiveGamesSnapshot | None = None
) -> LiveGamesSnapshot | None:
    """Return the games in progress of a run: `known` if unchanged, None if there are none."""
    try:
        stamp = folder.resolve(name, run_files.LIVE).stat().st_mtime_ns
    except (OSError, OutsideError):
        return None
    if known is not None and known.stamp == stamp:
        return known
    data = folder.read(name, run_files.LIVE)
    try:
        fields = orjson.loads(data or b"")
        return LiveGamesSnapshot(
            float(fields["time"]),
            int(fields["update"]),
            tuple(_board(game) for game in fields["games"]),
            stamp,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _board(game: Any) -> LiveBoard:
    move = game.get("last_move")
    return LiveBoard(str(game["sfen"]), None if move is None else str(move))
