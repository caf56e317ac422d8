"""Watching a folder of runs: a thread reads what they write, the most wanted ones first.

Nothing is ever written or locked, so training does not notice, and the dashboard can be started,
stopped or killed at any time.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Final, Self

from keisei.runs.folder import RunsFolder
from keisei.runs.run_reader import LiveGames, RunData, Summary, read_live

logger = logging.getLogger(__name__)

INTERVAL: Final = 0.5
"""Seconds between two looks at the folder."""

FIRST_RUNS: Final = 5
"""So many of the newest runs are what people want to see first."""

FIRST_SECONDS: Final = 1.0
"""So long the first page may wait for their curves: usually they take a tenth of it."""


class Watch:
    """All runs of a folder, as far as they have been read. Use it in a ``with`` block."""

    def __init__(
        self,
        folder: RunsFolder,
        *,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self.clock = clock
        """Tells the time in seconds since 1970."""

        self._interval = interval
        self._looking = threading.Lock()
        self._runs: dict[str, RunData] = {}
        self._live: dict[str, LiveGames] = {}
        self._wanted: frozenset[str] = frozenset()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self.look()  # the first page already knows what there is
        first = [run.name for run in self.summaries()[:FIRST_RUNS]]
        self.want(first)
        due = time.monotonic() + FIRST_SECONDS
        while time.monotonic() < due and any(not self._runs[name].is_skimmed for name in first):
            self.load()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def runs(self) -> dict[str, RunData]:
        """The runs by name."""
        return dict(self._runs)

    def find(self, name: str) -> RunData | None:
        """A run by its name, also one that was begun a moment ago; None if there is none."""
        if name not in self._runs:
            self.look()
        return self._runs.get(name)

    def live(self, name: str) -> LiveGames | None:
        """The games that a run is playing; None if it says nothing of any."""
        return self._live.get(name)

    def want(self, names: Collection[str]) -> None:
        """Read these first: somebody is looking at them."""
        self._wanted |= set(names)

    def summaries(self) -> list[Summary]:
        """How all runs are doing: those that train first, then the newest."""
        now = self.clock()
        found = [run.summary(now) for run in self._runs.values()]
        return sorted(found, key=lambda run: (run.state == "running", run.started), reverse=True)

    @property
    def version(self) -> int:
        """Changes whenever anything does."""
        runs = self._runs
        return hash((tuple(runs), *(run.version for run in runs.values())))

    def look(self) -> None:
        """See which runs there are, and read what those that were read have written since."""
        with self._looking:
            runs = {}
            for name in self.folder.runs():
                run = self._runs.get(name)
                if run is None:
                    run = RunData(self.folder, name)
                    run.glimpse()
                elif run.is_read:
                    run.read()
                runs[name] = run
            self._runs = runs
            now = self.clock()
            live = {}
            for name, run in runs.items():
                if run.summary(now).state == "running":
                    found = read_live(self.folder, name, self._live.get(name))
                    if found is not None:
                        live[name] = found
            self._live = live

    def load(self) -> bool:
        """Read a piece of the run that is wanted most; returns whether there was one to read."""
        waiting = [run for run in self._runs.values() if not run.is_read]
        if not waiting:
            return False
        run = max(
            waiting,
            key=lambda run: (run.name in self._wanted, not run.is_skimmed, run.heard),
        )
        is_urgent = run.name in self._wanted and not run.is_skimmed
        begun = time.monotonic()
        run.read()
        if not is_urgent:
            # Nobody waits for it, but somebody may wait for a page, which is made meanwhile.
            self._ended.wait(time.monotonic() - begun)
        return True

    def load_all(self) -> None:
        """Read everything there is."""
        while self.load():
            pass

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                due = time.monotonic() + self._interval
                while not self._ended.is_set() and time.monotonic() < due and self.load():
                    pass
                self._ended.wait(max(0.0, due - time.monotonic()))
                self.look()
            except Exception:  # whatever is wrong with a file, the other runs go on
                logger.exception("the runs could not be looked at")
                self._ended.wait(self._interval)
