"""The journal of a run, ``metrics.jsonl``: its lines, and how they are read while it grows.

Each line is a JSON object, a `JournalEntry`. `JournalReader` is the one way to follow a journal
that another process appends to: it returns each complete line once, in chunks of bounded size.
`rewind` shortens a journal when its run is resumed from an earlier checkpoint.
"""

import json
import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, Self

from keisei import run_files
from keisei.callbacks import Progress
from keisei.evaluation.rating_text import (
    Position,
    bound_text,
    numbered_position,
    position_number,
    rating_text,
)
from keisei.metric_names import (
    ELO,
    ELO_HIGH,
    ELO_LOW,
    ELO_POSITION,
    EVALUATION_PREFIX,
    VALUE_LOG_LOSS,
    evaluation_metric,
    finite,
)
from keisei.system import open_regular, read_bytes, write_atomically

if TYPE_CHECKING:
    from keisei.evaluation.calibration import Calibration
    from keisei.evaluation.placing import Placement
    from keisei.evaluation.score import Score

logger = logging.getLogger(__name__)

START: Final = "start"
STEP: Final = "step"
EVALUATION: Final = "evaluation"
CHECKPOINT: Final = "checkpoint"
END: Final = "end"

STEP_LINE: Final = b'{"event":"step",'
"""Beginning of the lines of training steps, which most lines are."""

FINISHED_REASONS: Final = frozenset({"finished", "time limit"})
"""End reasons of a run that has done all it should."""

INTERRUPTED: Final = "interrupted"
"""End reason of a run that the user stopped."""

MAX_NUMBER: Final = 1e15
"""Upper bound of counts and times: a million plies a second for thirty years is less."""

CHUNK_BYTES: Final = 2 << 20
"""Default size of a chunk, about ten milliseconds of work; longer lines are skipped."""

MAX_JOURNAL_BYTES: Final = 2 << 30
"""Largest journal that is read: thirteen days of the quick start, whose updates are short."""

_CONTEXT_BYTES: Final = 64
"""Bytes before the reading position that are compared to notice that a file was replaced."""


def is_orderly_end(reason: str) -> bool:
    """Return whether a run ended as it or its user wanted, not by an error."""
    return reason in FINISHED_REASONS or reason == INTERRUPTED


@dataclass(frozen=True)
class JournalEntry:
    """One line of a journal."""

    event: str
    """`START`, `STEP`, `EVALUATION`, `CHECKPOINT` or `END`."""

    update: int
    timestep: int
    total_timesteps: int
    games: int
    seconds: float
    time: float
    """When the line was written, in seconds since 1970."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics of a step or an evaluation."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Properties of the session, in a start."""

    path: str = ""
    """Path of a checkpoint in the run's directory, with slashes."""

    reason: str = ""
    """Reason of an end."""

    def progress(self, max_minutes: float = 0.0) -> Progress:
        """Return how far the run was; the journal does not hold its time limit."""
        return Progress(
            timestep=self.timestep,
            total_timesteps=self.total_timesteps,
            update=self.update,
            games=self.games,
            seconds=self.seconds,
            max_minutes=max_minutes,
        )

    def to_line(self) -> bytes:
        """Return the entry as a line with its newline; empty fields are left out."""
        fields = {key: value for key, value in vars(self).items() if value not in ({}, "")}
        if self.metrics:
            fields["metrics"] = {
                name: float(value) if math.isfinite(value) else None
                for name, value in self.metrics.items()
            }
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)
        return text.encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Parse a line; raises `ValueError` if it is torn or not an entry."""
        try:
            return cls.from_fields(json.loads(line))
        except RecursionError:
            raise ValueError("not a journal entry: nested too deeply") from None

    @classmethod
    def from_fields(cls, fields: Any) -> Self:
        """Convert the JSON value of a line; raises `ValueError` if it is not an entry."""
        try:
            return cls(
                event=str(fields["event"]),
                update=int(_bounded(fields["update"])),
                timestep=int(_bounded(fields["timestep"])),
                total_timesteps=int(_bounded(fields["total_timesteps"])),
                games=int(_bounded(fields["games"])),
                seconds=float(_bounded(fields["seconds"])),
                time=float(_bounded(fields["time"])),
                metrics={
                    str(name): math.nan if value is None else float(value)
                    for name, value in fields.get("metrics", {}).items()
                },
                facts=dict(fields.get("facts", {}).items()),
                path=str(fields.get("path", "")),
                reason=str(fields.get("reason", "")),
            )
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a journal entry: {error!r}") from error


def _bounded(value: Any) -> float:
    """Return a count or a time; raises `ValueError` for anything else, NaN included."""
    if not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
        raise ValueError(f"not a journal entry: {value!r} is not a number up to {MAX_NUMBER:g}")
    return value


def parse_lines(data: bytes) -> Iterator[tuple[bytes, JournalEntry | None]]:
    """Yield each line that is not blank with its entry; None for one that cannot be parsed."""
    for line in data.split(b"\n"):
        if line.strip():
            try:
                yield line, JournalEntry.from_line(line)
            except ValueError:
                yield line, None


def rewind(path: Path, update: int) -> None:
    """Shorten a journal to the entries up to an update, from which its run is resumed.

    Drops what a killed session wrote after its last checkpoint, and torn lines. The file is
    replaced as a whole, or stays as it was.
    """
    if not path.exists():
        return
    data = read_bytes(path, max_size=MAX_JOURNAL_BYTES)
    lines = list(parse_lines(data))
    kept = [line for line, entry in lines if entry is not None and entry.update <= update]
    if len(kept) == len(lines) and data.endswith(b"\n"):
        return
    write_atomically(path, b"".join(line + b"\n" for line in kept))
    torn = sum(entry is None for _, entry in lines)
    later = len(lines) - len(kept) - torn
    logger.info(
        "%s: dropped %d lines after update %d, and %d torn lines", path.name, later, update, torn
    )


def drop_repeated_evaluation(path: Path, update: int) -> None:
    """Drop an evaluation that no checkpoint knows of: its run was killed after it, and repeats it.

    That is one of `update` behind the last checkpoint of the journal.
    """
    lines = list(parse_lines(read_bytes(path, max_size=MAX_JOURNAL_BYTES)))
    saved = max(
        (at for at, (_, entry) in enumerate(lines) if entry and entry.event == CHECKPOINT),
        default=-1,
    )
    kept = [
        line
        for at, (line, entry) in enumerate(lines)
        if at < saved or not (entry and entry.event == EVALUATION and entry.update == update)
    ]
    if len(kept) < len(lines):
        write_atomically(path, b"".join(line + b"\n" for line in kept))


class JournalChunk(NamedTuple):
    """Consecutive lines of a journal, as `JournalReader.read` returns them."""

    data: bytes
    """Complete lines, each with its newline."""

    is_restarted: bool
    """Whether the file was replaced: what was read from it before is void."""

    bytes_left: int
    """Bytes of the file that have not been read yet."""

    @property
    def lines(self) -> list[bytes]:
        """The lines without their newlines."""
        return self.data.split(b"\n")[:-1]

    @property
    def entries(self) -> list[JournalEntry]:
        """The entries of all lines that can be parsed."""
        return [entry for _, entry in parse_lines(self.data) if entry is not None]


class JournalReader:
    """Reads a file that another process appends to, each complete line once.

    A line that is still being written is left for the next call. A file that was shortened or
    replaced, as by a resumed run, is read again from its beginning.
    """

    def __init__(self, open_file: Callable[[], AbstractContextManager[BinaryIO]]) -> None:
        self._open = open_file
        self._identity: tuple[int, int] | None = None
        self._context = b""
        self.offset = 0
        """Bytes that have been read."""

        self.size = 0
        """Size of the file at the last call of `read`."""

    @classmethod
    def of_run(cls, run_directory: Path) -> Self:
        """Return a reader of the journal of a run, which need not exist yet."""
        path = run_directory / run_files.METRICS
        return cls(lambda: open_regular(path))

    def read(self, max_bytes: int = CHUNK_BYTES) -> JournalChunk:
        """Return the next complete lines within `max_bytes`.

        Raises `OSError` if the file cannot be read, or is larger than `MAX_JOURNAL_BYTES`.
        """
        with self._open() as file:
            status = os.fstat(file.fileno())
            if status.st_size > MAX_JOURNAL_BYTES:  # zeros without end take no room on a disk
                raise OSError(
                    f"it has {status.st_size:,} bytes, and up to {MAX_JOURNAL_BYTES:,} are read"
                )
            is_restarted = self._was_replaced(file, status)
            if is_restarted:
                self.offset, self._context = 0, b""
            self._identity = (status.st_dev, status.st_ino)
            self.size = status.st_size
            file.seek(self.offset)
            data = file.read(min(max_bytes, max(0, self.size - self.offset)))
        end = data.rfind(b"\n") + 1
        if end == 0:
            if len(data) < max_bytes:  # nothing, or the beginning of a line
                return JournalChunk(b"", is_restarted, 0)
            self._advance(data)  # too long for a line: skipped
            return JournalChunk(b"", is_restarted, self.size - self.offset)
        data = data[:end]
        self._advance(data)
        return JournalChunk(data, is_restarted, self.size - self.offset)

    def _advance(self, data: bytes) -> None:
        self.offset += len(data)
        self._context = (self._context + data[-_CONTEXT_BYTES:])[-_CONTEXT_BYTES:]

    def _was_replaced(self, file: BinaryIO, status: os.stat_result) -> bool:
        if self._identity is None:
            return False
        if self._identity != (status.st_dev, status.st_ino) or status.st_size < self.offset:
            return True
        file.seek(self.offset - len(self._context))
        return file.read(len(self._context)) != self._context


class ScoreEstimate(NamedTuple):
    """Score against an opponent with its 95 % interval, as the metrics of an evaluation hold it."""

    score: float
    """Points per game, a draw being half a point."""

    low: float
    high: float
    as_black: float
    as_white: float
    games: int

    @property
    def margin(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


class EloEstimate(NamedTuple):
    """Rating with its 95 % interval, as the metrics of an evaluation hold it."""

    elo: float
    low: float
    high: float
    position: Position = "on"
    """Whether it is on the scale, or beyond one of its ends: then only a bound is known."""

    @property
    def margin(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def bound(self) -> str:
        """The bound in words; empty for a rating on the scale."""
        return bound_text(self.low, self.high, self.position)

    @property
    def short_text(self) -> str:
        """The rating with its margin, or the bound."""
        return self.bound or f"{self.elo:.0f} ±{self.margin:.0f}"

    def __str__(self) -> str:
        return rating_text(*self)


def evaluation_metrics(
    scores: "Mapping[str, Score]",
    placement: "Placement | None" = None,
    calibration: "Calibration | None" = None,
) -> dict[str, float]:
    """Return the metrics of an evaluation by name; opponents without games are left out."""
    metrics: dict[str, float] = {}
    if calibration is not None:
        metrics[VALUE_LOG_LOSS] = calibration.log_loss
    if placement is not None:
        metrics |= {ELO: placement.rating, ELO_LOW: placement.low, ELO_HIGH: placement.high}
        metrics[ELO_POSITION] = position_number(placement.position)
    for opponent, score in scores.items():
        if score.games == 0:
            continue
        low, high = score.interval
        wins, draws, losses = score.total
        values = {"score": score.score, "low": low, "high": high}
        for name, (won, drawn, lost) in (("as_black", score.black), ("as_white", score.white)):
            if won + drawn + lost:
                values[name] = (won + drawn / 2) / (won + drawn + lost)
        values |= {"wins": wins, "draws": draws, "losses": losses}
        metrics |= {evaluation_metric(opponent, name): value for name, value in values.items()}
    return metrics


def elo_estimate(metrics: Mapping[str, float]) -> EloEstimate | None:
    """Return the rating that `evaluation_metrics` made into metrics; None if there is none."""
    elo, low, high = (metrics.get(name, math.nan) for name in (ELO, ELO_LOW, ELO_HIGH))
    if not all(map(math.isfinite, (elo, low, high))):
        return None
    # Journals of earlier versions do not hold the position.
    return EloEstimate(elo, low, high, numbered_position(metrics.get(ELO_POSITION, 0.0)))


def score_estimates(metrics: Mapping[str, float]) -> dict[str, ScoreEstimate]:
    """Return the scores by opponent that `evaluation_metrics` made into metrics."""
    found = {}
    for name, score in metrics.items():
        opponent, _, last = name.removeprefix(EVALUATION_PREFIX).rpartition("/")
        if not name.startswith(EVALUATION_PREFIX) or last != "score":
            continue

        def value(figure: str, default: float = math.nan, *, of: str = opponent) -> float:
            return metrics.get(evaluation_metric(of, figure), default)

        games = sum(value(figure, 0.0) for figure in ("wins", "draws", "losses"))
        found[opponent] = ScoreEstimate(
            score,
            low=value("low"),
            high=value("high"),
            as_black=value("as_black"),
            as_white=value("as_white"),
            games=round(finite(games)),
        )
    return found
