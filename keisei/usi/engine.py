"""The USI engine: it handles commands at any time and searches in another thread.

Three threads: the reader reads lines; the main thread handles them at once and never computes; the
search thread computes. Whatever must happen in order (loading, positions, searches) waits in a
queue for the search thread; ``stop`` and ``ponderhit``, which concern a running search, go to its
`Job` directly.
"""

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Final

from keisei import __version__
from keisei.errors import KeiseiError
from keisei.network.loading import LoadedNetwork
from keisei.usi.limits import Job, SearchLimits, parse_go
from keisei.usi.options import OptionError, Settings
from keisei.usi.thinker import Thinker
from keisei.usi.usi_io import MAX_LINE_BYTES, TooLongLine, UsiWriter, quoted

logger = logging.getLogger(__name__)

SHUTDOWN_TIMEOUT: Final = 2.0
"""Default seconds to wait for the search thread; loading a network can't be interrupted."""

Task = Callable[[], None]


class Engine:
    """A USI engine, from its first line of input until ``quit`` or the end of the input."""

    def __init__(
        self,
        load: Callable[[int], LoadedNetwork],
        writer: UsiWriter,
        *,
        name: str = "",
        settings: Settings | None = None,
        shutdown_timeout: float = SHUTDOWN_TIMEOUT,
    ) -> None:
        """Create an engine.

        Args:
            load: loads the network, given the number of threads.
            writer: where replies go.
            name: name of the network, for the GUI's list of engines.
            settings: defaults of the options.
            shutdown_timeout: seconds to wait for the search thread at the end.
        """
        self._writer = writer
        self._shutdown_timeout = shutdown_timeout
        self._name = f"Keisei {__version__} {name}".strip()
        self._defaults = settings or Settings()
        self._settings = self._defaults
        self._thinker = Thinker(load, writer)
        self._events: SimpleQueue[str | BaseException | None] = SimpleQueue()
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._jobs: list[Job] = []
        """Jobs without an answer yet, the latest at the end."""

        self._pending_readyok: list[str] = []
        """A ``readyok`` for each ``isready`` without an answer yet."""

        self._last_answer = 0.0
        """Time of the last answer, by `time.monotonic`."""

        writer.when_closed = lambda: self._events.put("quit")
        self._commands: dict[str, Callable[[str], None]] = {
            "usi": self._identify,
            "isready": self._get_ready,
            "setoption": self._set_option,
            "usinewgame": self._new_game,
            "position": self._set_position,
            "go": self._go,
            "stop": self._stop,
            "ponderhit": self._ponder_hit,
            "gameover": self._stop,
        }

    def run(self, lines: Iterable[str]) -> None:
        """Handle the lines of the GUI until ``quit`` or the end of the lines.

        At the end of the lines, searches that end by themselves are finished; ``quit`` abandons
        them. Without one, both end the engine at once, also while it loads the network.

        Raises:
            KeiseiError: The network can't be loaded.
        """
        reader = Thread(target=self._read, args=(lines,), name="usi-reader", daemon=True)
        search = Thread(target=self._work, name="usi-search", daemon=True)
        reader.start()
        search.start()
        # GUIs read the name and the options first: time in which the network can be loaded.
        self._tasks.put(self._load)
        try:
            while True:
                event = self._events.get()
                if isinstance(event, BaseException):
                    raise event
                if event is None:
                    if not self._jobs and not self._pending_readyok:
                        break
                    self._finish()
                elif not self._handle(event):
                    break
        finally:
            for job in list(self._jobs):
                job.abandon()
            self._tasks.put(None)
            search.join(self._shutdown_timeout)

    # ---- reader thread ----

    def _read(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self._events.put(line)
                if line.split() == ["quit"]:  # a blocked read can't be interrupted
                    return
        except (OSError, ValueError) as error:
            logger.info("the GUI has closed its end: %s", error)
        self._events.put(None)

    # ---- main thread ----

    def _handle(self, line: str) -> bool:
        """Handle a line; return False for ``quit``."""
        logger.debug("< %s", line)
        command, _, rest = line.strip().partition(" ")
        if isinstance(line, TooLongLine):
            self._writer.send_info(f"ignored a line of more than {MAX_LINE_BYTES} bytes: {line!r}")
            if command == "position":  # the old one is not what the next search is about
                self._tasks.put(self._thinker.forget_position)
            return True
        if command == "quit":
            return False
        if command in self._commands:
            self._commands[command](rest)
        elif command:
            self._writer.send_info(f"unknown command {quoted(line.strip())}")
        return True

    def _finish(self) -> None:
        """Quit when all searches that end by themselves are done."""
        for job in list(self._jobs):
            if not job.may_answer:
                job.stop()
        self._tasks.put(lambda: self._events.put("quit"))

    def _identify(self, _: str) -> None:
        self._writer.send(f"id name {self._name}")
        self._writer.send("id author The Keisei authors")
        for line in self._defaults.announcements():
            self._writer.send(line)
        self._writer.send("usiok")

    def _get_ready(self, _: str) -> None:
        self._pending_readyok.append("readyok")
        self._confirm()
        if self._pending_readyok:
            settings = self._settings
            self._tasks.put(lambda: self._load_for(settings))

    def _confirm(self) -> None:
        """Send the pending ``readyok`` if the engine is ready.

        During a search the answer comes at once: new settings apply to the next search, which may
        be far away.
        """
        thinker = self._thinker
        if thinker.is_ready_for(self._settings) or (thinker.is_loaded and self._jobs):
            while self._pending_readyok:
                with suppress(IndexError):  # the other thread was faster
                    self._writer.send(self._pending_readyok.pop())

    def _set_option(self, rest: str) -> None:
        words = rest.split()
        if len(words) < 2 or words[0] != "name":
            self._writer.send_info(f"setoption {quoted(rest)}: expected name NAME value VALUE")
            return
        end = words.index("value", 2) if "value" in words[2:] else len(words)
        name, value = " ".join(words[1:end]), " ".join(words[end + 1 :])
        try:
            self._settings = self._settings.with_option(name, value)
        except OptionError as error:
            self._writer.send_info(str(error))

    def _new_game(self, _: str) -> None:
        self._stop_all()
        self._tasks.put(self._thinker.new_game)

    def _set_position(self, rest: str) -> None:
        self._tasks.put(lambda: self._thinker.set_position(rest))

    def _go(self, rest: str) -> None:
        for job in list(self._jobs):  # jobs that end by themselves are answered first
            if not job.may_answer:
                job.stop()
        limits, unknown = parse_go(rest.split())
        if unknown:
            self._writer.send_info(f"go: unknown arguments: {quoted(' '.join(unknown))}")
        job = Job(limits, self._settings)
        self._jobs.append(job)
        self._tasks.put(lambda: self._answer(job))

    def _stop(self, _: str) -> None:
        self._stop_all()

    def _ponder_hit(self, rest: str) -> None:
        limits: SearchLimits | None = None
        if rest.split():
            limits, _ = parse_go(rest.split())
        for job in self._jobs[-1:]:
            job.ponder_hit(limits)

    def _stop_all(self) -> None:
        for job in list(self._jobs):
            job.stop()

    # ---- search thread ----

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._attempt(task)

    def _attempt(self, task: Task) -> None:
        """Run a task; if it fails the engine continues, as it may be in the middle of a game."""
        try:
            task()
        except KeiseiError as error:
            self._writer.send_info(f"error: {error}")
        except Exception as error:
            logger.exception("a command failed")
            self._writer.send_info(f"internal error: {error!r}")
            self._thinker.new_game()  # the tree may be inconsistent

    def _load(self) -> None:
        self._load_for(self._settings)

    def _load_for(self, settings: Settings) -> None:
        try:
            self._thinker.get_ready(settings)
        except Exception as error:  # noqa: BLE001 -- raised by the main thread
            self._writer.send_info(f"error: {error}")
            self._events.put(error)
        self._confirm()

    def _answer(self, job: Job) -> None:
        """Search and answer, whatever happens: without an answer the GUI would wait forever."""
        answers = ["checkmate timeout" if job.limits.mate else "bestmove resign"]

        def think() -> None:
            if job.limits.mate:
                answers.append(f"checkmate {self._thinker.solve(job)}")
            else:
                answers.append(f"bestmove {self._thinker.think(job)}")

        job.begin(self._last_answer)
        self._load_for(job.settings)
        self._attempt(think)
        self._last_answer = time.monotonic()
        self._jobs.remove(job)
        if not job.is_abandoned:
            self._writer.send(answers[-1])
