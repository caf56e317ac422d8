"""Reading a file that another process appends to, without ever reading a line twice.

Only whole lines are handed out: what the writer has begun is left for the next time. A file that
was cut or replaced, as a resumed run does with its journal, is read anew.
"""

import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Self

from keisei.runs import run_files
from keisei.system import read_bytes, write_atomically

logger = logging.getLogger(__name__)

START: Final = "start"
STEP: Final = "step"
EVALUATION: Final = "evaluation"
CHECKPOINT: Final = "checkpoint"
END: Final = "end"

FINISHED_REASONS: Final = frozenset({"finished", "time limit"})
"""Why a run may end that has done what it was asked to do."""

INTERRUPTED: Final = "interrupted"
"""The reason when the user ended the run."""


LARGEST: Final = 1e15
"""What is counted or timed is less: a million plies a second for thirty years."""


def is_orderly_end(reason: str) -> bool:
    """Whether a run ended as it or its user wanted, not by an error."""
    return reason in FINISHED_REASONS or reason == INTERRUPTED


@dataclass(frozen=True)
class Entry:
    """One line of the journal."""

    event: str
    update: int
    timestep: int
    total_timesteps: int
    games: int
    seconds: float
    time: float
    """When it was written, in seconds since 1970."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
    reason: str = ""

    def to_line(self) -> bytes:
        """The line with its newline. Only the fields that say something are written."""
        fields = {key: value for key, value in vars(self).items() if value not in ({}, "")}
        if self.metrics:
            fields["metrics"] = {name: _number(value) for name, value in self.metrics.items()}
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)
        return text.encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line; raises `ValueError` if it is torn or no entry."""
        try:
            return cls.from_fields(json.loads(line))
        except RecursionError:
            raise ValueError("no entry of a journal: too deep") from None

    @classmethod
    def from_fields(cls, fields: Any) -> Self:
        """Read what a line holds as JSON; raises `ValueError` if that is no entry."""
        try:
            return cls(
                event=str(fields["event"]),
                update=int(_known_number(fields["update"])),
                timestep=int(_known_number(fields["timestep"])),
                total_timesteps=int(_known_number(fields["total_timesteps"])),
                games=int(_known_number(fields["games"])),
                seconds=float(_known_number(fields["seconds"])),
                time=float(_known_number(fields["time"])),
                metrics={
                    str(name): math.nan if value is None else float(value)
                    for name, value in fields.get("metrics", {}).items()
                },
                facts=dict(fields.get("facts", {}).items()),
                path=str(fields.get("path", "")),
                reason=str(fields.get("reason", "")),
            )
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"no entry of a journal: {error!r}") from error


def _known_number(value: Any) -> float:
    """A number that can be reckoned with: a count of something, or a time."""
    if not isinstance(value, int | float) or not abs(value) <= LARGEST:  # NaN is neither
        raise ValueError(f"no entry of a journal: {value!r} is no number up to {LARGEST:g}")
    return value


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _lines(data: bytes) -> Iterator[tuple[bytes, Entry | None]]:
    """The lines of a journal, each with its entry; None for one that cannot be read."""
    for line in data.split(b"\n"):
        if line.strip():
            try:
                yield line, Entry.from_line(line)
            except ValueError:
                yield line, None


def rewind(path: Path, update: int) -> None:
    """Make a journal end at an update, so that a resumed run can go on from there.

    Drops what a killed session wrote after the checkpoint that the run goes on from, and a torn
    last line. The file is replaced as a whole, or stays as it was.
    """
    if not path.exists():
        return
    data = read_bytes(path)
    lines = list(_lines(data))
    kept = [line for line, entry in lines if entry is not None and entry.update <= update]
    if len(kept) == len(lines) and data.endswith(b"\n"):
        return
    write_atomically(path, b"".join(line + b"\n" for line in kept))
    torn = sum(entry is None for _, entry in lines)
    later = len(lines) - len(kept) - torn
    logger.info(
        "%s: dropped %d lines later than update %d, and %d torn", path.name, later, update, torn
    )


@dataclass(frozen=True)
class History:
    """A run as its journal tells it."""

    entries: tuple[Entry, ...]
    broken_lines: int = 0
    """Lines that could not be read: a run that was killed may leave half a line."""

    @classmethod
    def read(cls, run_directory: Path) -> Self:
        """Read the journal of a run; raises `FileAccessError` where there is none."""
        entries = [entry for _, entry in _lines(read_bytes(run_directory / run_files.METRICS))]
        readable = tuple(entry for entry in entries if entry is not None)
        return cls(readable, broken_lines=len(entries) - len(readable))

    @cached_property
    def steps(self) -> tuple[Entry, ...]:
        """The steps of training, each update once."""
        return _latest_by_update(entry for entry in self.entries if entry.event == STEP)

    @cached_property
    def evaluations(self) -> tuple[Entry, ...]:
        """The evaluations, each update once."""
        return _latest_by_update(entry for entry in self.entries if entry.event == EVALUATION)

    @property
    def furthest(self) -> Entry:
        """The entry that tells how far the run has come; there must be one.

        That need not be the last: an evaluation in the background tells of an earlier moment.
        """
        return max(reversed(self.entries), key=lambda entry: entry.update)

    @property
    def starts(self) -> tuple[Entry, ...]:
        """The beginnings of sessions: the first, and one for each resume."""
        return tuple(entry for entry in self.entries if entry.event == START)

    @property
    def end(self) -> Entry | None:
        """How the last session ended; None while it goes on, or if it was killed."""
        for entry in reversed(self.entries):
            if entry.event == START:
                return None
            if entry.event == END:
                return entry
        return None

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the last session said about itself."""
        starts = self.starts
        return starts[-1].facts if starts else {}

    def series(self, name: str) -> tuple[list[int], list[float]]:
        """A metric over time: (timesteps, values), steps without a finite value left out."""
        points = [
            (step.timestep, step.metrics[name])
            for step in self.steps
            if math.isfinite(step.metrics.get(name, math.nan))
        ]
        return [timestep for timestep, _ in points], [value for _, value in points]


def _latest_by_update(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Entries in the order of their updates; of several of one update, the one written last.

    A session that is resumed right at an evaluation writes that one a second time.
    """
    by_update = {entry.update: entry for entry in entries}
    return tuple(by_update[update] for update in sorted(by_update))


PIECE_BYTES: Final = 2 << 20
"""How much is read at a time: some ten milliseconds of work. No line is as long."""

_SEEN_BYTES: Final = 64
"""So much before the place where reading goes on has to be what it was."""


class Piece(NamedTuple):
    """What has been read."""

    data: bytes
    """Whole lines, each with its newline."""

    is_anew: bool
    """Whether the file is another one now: what was read from it before is void."""

    left: int
    """Bytes of the file that have not been read yet."""

    @property
    def lines(self) -> list[bytes]:
        """Without their newlines."""
        return self.data.split(b"\n")[:-1]


class LineReader:
    """Remembers how far a file was read."""

    def __init__(self, open_file: Callable[[], AbstractContextManager[BinaryIO]]) -> None:
        self._open = open_file
        self._offset = 0
        self._identity: tuple[int, int] | None = None
        self._seen = b""
        self.size = 0
        """How large the file was when it was last looked at."""

    @property
    def offset(self) -> int:
        """How far the file has been read."""
        return self._offset

    def read(self, most: int = PIECE_BYTES) -> Piece:
        """The next whole lines, from at most so many bytes.

        Raises `OSError` if the file cannot be read.
        """
        with self._open() as file:
            status = os.fstat(file.fileno())
            is_anew = self._was_replaced(file, status)
            if is_anew:
                self._offset, self._seen = 0, b""
            self._identity = (status.st_dev, status.st_ino)
            self.size = status.st_size
            file.seek(self._offset)
            data = file.read(min(most, max(0, self.size - self._offset)))
        end = data.rfind(b"\n") + 1
        if end == 0:
            # No line ends here. Either it will, or this is no line: then it is passed over.
            if len(data) < most:
                return Piece(b"", is_anew, 0)
            self._advance(data)
            return Piece(b"", is_anew, self.size - self._offset)
        data = data[:end]
        self._advance(data)
        return Piece(data, is_anew, self.size - self._offset)

    def _advance(self, data: bytes) -> None:
        self._offset += len(data)
        self._seen = (self._seen + data[-_SEEN_BYTES:])[-_SEEN_BYTES:]

    def _was_replaced(self, file: BinaryIO, status: os.stat_result) -> bool:
        if self._identity is None:
            return False
        if self._identity != (status.st_dev, status.st_ino) or status.st_size < self._offset:
            return True
        file.seek(self._offset - len(self._seen))
        return file.read(len(self._seen)) != self._seen
