"""One run, read as it grows.

A long journal takes seconds to read. So at first only its end is looked at, then all of it is
skimmed, with a few hundred of the steps, and at last everything is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple

import orjson

from keisei.runs import run_files
from keisei.runs.curves import Curve, Floats
from keisei.runs.folder import OutsideError, RunsFolder
from keisei.runs.journal import PIECE_BYTES, LineReader
from keisei.runs.listing import ListedRun, model_name, run_state
from keisei.runs.run_record import (
    Evaluation,
    Record,
    Saved,
    sample,
)


class LiveBoard(NamedTuple):
    """A game under way."""

    sfen: str
    last_move: str | None
    """In USI."""


class LiveGames(NamedTuple):
    """What a run said last."""

    time: float
    """When, in seconds since 1970."""

    update: int
    boards: tuple[LiveBoard, ...]
    stamp: int
    """When the file was written, in nanoseconds: another stamp means that there is news."""


def read_live(folder: RunsFolder, name: str, known: LiveGames | None = None) -> LiveGames | None:
    """The games of a run: `known`, if there is no news; None if it says nothing."""
    try:
        stamp = folder.resolve(name, run_files.LIVE).stat().st_mtime_ns
    except (OSError, OutsideError):
        return None
    if known is not None and known.stamp == stamp:
        return known
    data = folder.read(name, run_files.LIVE)
    try:
        fields = orjson.loads(data or b"")
        return LiveGames(
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


_TAIL_BYTES: Final = 256 << 10
"""So much of a long journal is read at first, to tell how the run is doing."""

_SKIMMED_BYTES: Final = 8 << 20
"""How much is skimmed at a time: as much work as a piece that is read."""

_LONG_BYTES: Final = 4 << 20
"""Journals up to this length are read at once."""

_SKIMMED_STEPS: Final = 400
"""About so many steps are read when a journal is skimmed."""

_LINE_BYTES: Final = 1000
"""What a step takes, roughly."""


@dataclass(frozen=True)
class Summary(ListedRun):
    """A run in a line of a table."""

    heard: float = 0.0
    """When it last wrote something."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Of the newest step."""

    @property
    def fraction(self) -> float:
        """How much of the plies is done."""
        return min(1.0, self.timestep / self.total_timesteps) if self.total_timesteps else 0.0


class RunData:
    """A run. One thread calls `glimpse` and `read`; others may ask at any time."""

    def __init__(self, folder: RunsFolder, name: str) -> None:
        self.name = name
        self._folder = folder
        self._lock = Lock()
        self._config: Mapping[str, Any] = {}
        self._problem = ""
        self._skim: Record | None = None
        self._full = Record()
        self._shown = self._full
        self._open = partial(folder.open, name, run_files.METRICS)
        self._skimmer: LineReader | None = None
        self._reader = LineReader(self._open)
        self.version = 0
        """Counts the changes, so that those who show it know when to look again."""

        self.is_skimmed = False
        """Whether its curves can be shown, if only roughly."""

        self.is_read = False
        """Whether all that was there has been read."""

    @property
    def progress(self) -> float:
        """How much of the journal has been read, from 0 to 1."""
        if self.is_read:
            return 1.0
        return self._reader.offset / self._reader.size if self._reader.size else 0.0

    # ---- reading ----

    def glimpse(self) -> None:
        """Look at the end of a long journal, to tell at once how the run is doing."""
        glimpse = Record()
        try:
            with self._open() as file:
                first = file.readline(PIECE_BYTES)
                size = file.seek(0, 2)
                if size <= _LONG_BYTES:
                    return
                file.seek(-_TAIL_BYTES, 2)
                tail = file.read(_TAIL_BYTES)
        except (OSError, OutsideError) as error:
            self._fail(error)
            return
        # Its first line is a part of one, except by chance.
        glimpse.take([first, *sample(tail[tail.find(b"\n") + 1 :], len(tail))])
        with self._lock:
            self._config = self._read_config()
            self._shown = glimpse
            self._skim, self._skimmer = Record(), LineReader(self._open)
            self.version += 1

    def read(self, most: int = PIECE_BYTES) -> bool:
        """Read what has been written since, at most so many bytes; returns whether there is more.

        Nothing here raises: a run that cannot be read says why.
        """
        try:
            if self._skim is not None and self._skimmer is not None:
                self._read_skim(self._skim, self._skimmer, max(most, _SKIMMED_BYTES))
                return True
            return self._read_full(most)
        except (OSError, OutsideError) as error:
            self._fail(error)
            return False

    def _read_skim(self, skim: Record, skimmer: LineReader, most: int) -> None:
        found = skimmer.read(most)
        every = max(1, skimmer.size // _LINE_BYTES // _SKIMMED_STEPS)
        if found.is_anew:
            skim = self._skim = Record()
        skim.take(sample(found.data, every))
        if found.left == 0:
            with self._lock:
                self._shown, self._skim, self._skimmer = skim, None, None
                self.is_skimmed = True
                self.version += 1

    def _read_full(self, most: int) -> bool:
        found = self._reader.read(most)
        if not found.data and not found.is_anew and self.is_read:
            return False
        with self._lock:
            if found.is_anew:
                self._full = self._shown = Record()
            if not self._config or found.is_anew:
                self._config = self._read_config()
            self._full.take(found.lines)
            self._problem = ""
            self.is_read = found.left == 0
            if self.is_read:
                self._shown = self._full
                self.is_skimmed = True
            self.version += 1
        return not self.is_read

    def _fail(self, error: Exception) -> None:
        missing = isinstance(error, FileNotFoundError)
        problem = f"there is no {run_files.METRICS} yet" if missing else str(error)
        with self._lock:
            self.is_read = self.is_skimmed = True
            self._skim = self._skimmer = None
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

    # ---- asking ----

    @property
    def heard(self) -> float:
        """When it last wrote something, in seconds since 1970; 0 if nobody knows."""
        last = self._shown.standing.last
        return 0.0 if last is None else last.time

    def summary(self, now: float) -> Summary:
        """How the run is doing; `now` is in seconds since 1970."""
        with self._lock:
            standing = self._shown.standing
            first, last, furthest = standing.first, standing.last, standing.furthest
            if first is None or last is None or furthest is None:
                note = self._problem or "its journal has no readable line yet"
                return Summary(self.name, "broken", note=note, model=model_name(self._config))
            state, note = run_state(standing.end, last, now)
            parameters = standing.facts.get("parameters")
            return Summary(
                name=self.name,
                state=state,
                note=self._problem or note,
                timestep=furthest.timestep,
                total_timesteps=furthest.total_timesteps,
                update=furthest.update,
                games=furthest.games,
                seconds=furthest.seconds,
                started=first.time,
                heard=last.time,
                metrics=dict(standing.metrics),
                scores=dict(standing.scores),
                model=model_name(self._config),
                parameters=parameters if isinstance(parameters, int) else None,
            )

    def curve(self, name: str, axis: str) -> Curve:
        """A metric over one of the axes: see `keisei.runs.run_record.AXES`."""
        with self._lock:
            return self._shown.curves.curve(name, axis)

    def means(self, names: tuple[str, ...], axis: str) -> tuple[Floats, Floats]:
        """(``[points]``, ``[points, names]``): several metrics over one of the axes."""
        with self._lock:
            return self._shown.curves.means(names, axis)

    @property
    def metric_names(self) -> list[str]:
        """The metrics of its steps."""
        with self._lock:
            return self._shown.curves.names

    @property
    def stride(self) -> int:
        """How many steps a point of its curves stands for."""
        with self._lock:
            return self._shown.curves.stride

    @property
    def steps(self) -> int:
        """How many steps its curves are made of."""
        with self._lock:
            return self._shown.curves.rows

    @property
    def evaluations(self) -> list[Evaluation]:
        """In the order of their updates."""
        with self._lock:
            return self._shown.evaluations

    @property
    def saved(self) -> list[Saved]:
        """The checkpoints that were written, the newest first."""
        with self._lock:
            return list(reversed(self._shown.saved))

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the last session said about itself."""
        with self._lock:
            return self._shown.standing.facts

    @property
    def sessions(self) -> int:
        """How often it was started or resumed."""
        with self._lock:
            return self._shown.standing.sessions

    @property
    def broken_lines(self) -> int:
        """Lines of the journal that could not be read."""
        with self._lock:
            return self._shown.broken_lines

    @property
    def config(self) -> Mapping[str, Any]:
        """Its settings as they were written."""
        with self._lock:
            return self._config
