"""Follows all runs of a folder in a thread, the ones that are shown first.

Nothing that training reads is written or locked, so it does not notice, and the dashboard can be
started, stopped or killed at any time.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Final, Self

from keisei.runs.folder import RunsFolder
from keisei.runs.listing import RunOverview
from keisei.runs.run_reader import LiveGamesSnapshot, RunReader, read_live

logger = logging.getLogger(__name__)

POLL_INTERVAL: Final = 0.5
"""Seconds between two refreshes of the folder."""

FIRST_RUNS: Final = 5
"""Number of runs, newest first, that the first page shows."""

FIRST_TIMEOUT: Final = 1.0
"""Seconds that the first page waits for the curves of these; usually they take a tenth of it."""


class Watch:
    """All runs of a folder, as far as they have been read. Use it in a ``with`` block."""

    def __init__(
        self,
        folder: RunsFolder,
        *,
        interval: float = POLL_INTERVAL,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self.clock = clock
        """Returns the time in seconds since 1970."""

        self._interval = interval
        self._refreshing = threading.Lock()
        self._runs: dict[str, RunReader] = {}
        self._live: dict[str, LiveGamesSnapshot] = {}
        self._prioritized: frozenset[str] = frozenset()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self.refresh()  # the first page already lists all runs
        first = [run.name for run in self.overviews()[:FIRST_RUNS]]
        self.prioritize(first)
        deadline = time.monotonic() + FIRST_TIMEOUT
        while time.monotonic() < deadline and any(
            not self._runs[name].is_sampled for name in first
        ):
            self.read_chunk()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def runs(self) -> dict[str, RunReader]:
        """The runs by name."""
        return dict(self._runs)

    def find(self, name: str) -> RunReader | None:
        """Return a run by its name, even one that began a moment ago; None if unknown."""
        if name not in self._runs:
            self.refresh()
        return self._runs.get(name)

    def live(self, name: str) -> LiveGamesSnapshot | None:
        """Return the games in progress of a run; None if it has none."""
        return self._live.get(name)

    def prioritize(self, names: Collection[str]) -> None:
        """Read these runs before others: a page shows them."""
        self._prioritized |= set(names)

    def overviews(self) -> list[RunOverview]:
        """Return the overviews of all runs: running ones first, then newest first."""
        now = self.clock()
        found = [run.overview(now) for run in self._runs.values()]
        return sorted(found, key=lambda run: (run.state == "running", run.started), reverse=True)

    @property
    def version(self) -> int:
        """Changes whenever something new has been read."""
        runs = self._runs
        return hash((tuple(runs), *(run.version for run in runs.values())))

    def refresh(self) -> None:
        """Find new runs and removed ones, and read the news of runs that were read to the end."""
        with self._refreshing:
            runs = {}
            for name in self.folder.runs():
                run = self._runs.get(name)
                if run is None:
                    run = RunReader(self.folder, name)
                    run.read_tail()
                elif run.is_read:
                    run.read()
                run.read_small_files()
                runs[name] = run
            self._runs = runs
            now = self.clock()
            live = {}
            for name, run in runs.items():
                if run.overview(now).state == "running":
                    found = read_live(self.folder, name, self._live.get(name))
                    if found is not None:
                        live[name] = found
            self._live = live

    def read_chunk(self) -> bool:
        """Read a chunk of the run with the highest priority; returns whether one was unread."""
        unread = [run for run in self._runs.values() if not run.is_read]
        if not unread:
            return False
        run = max(
            unread,
            key=lambda run: (run.name in self._prioritized, not run.is_sampled, run.last_written),
        )
        is_urgent = run.name in self._prioritized and not run.is_sampled
        started = time.monotonic()
        run.read()
        if not is_urgent:
            # Leave half of the time to the threads that build pages.
            self._ended.wait(time.monotonic() - started)
        return True

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                deadline = time.monotonic() + self._interval
                while (
                    not self._ended.is_set() and time.monotonic() < deadline and self.read_chunk()
                ):
                    pass
                self._ended.wait(max(0.0, deadline - time.monotonic()))
                self.refresh()
            except Exception:  # a problem with one file must not end the watch
                logger.exception("cannot refresh the runs")
                self._ended.wait(self._interval)
