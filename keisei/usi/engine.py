"""The USI engine: hears the GUI at any time, and thinks in another thread.

Three threads: one reads lines, one acts on them at once and never computes, one computes. What has
to happen in order - loading, positions, searches - waits in a queue for the last one; what a search
must hear while it runs - ``stop``, ``ponderhit`` - goes to its `Job` directly.
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
from keisei.usi.limits import Job, Limits, parse_go
from keisei.usi.options import OptionError, Settings
from keisei.usi.thinker import Thinker
from keisei.usi.usi_io import Output, quoted

logger = logging.getLogger(__name__)

END_SECONDS: Final = 2.0
"""How long the thinking thread may take to end; loading a network can't be interrupted."""

Task = Callable[[], None]


class Engine:
    """Speaks USI until it is told to quit, or nobody speaks to it any more."""

    def __init__(
        self,
        load: Callable[[int], LoadedNetwork],
        output: Output,
        *,
        name: str = "",
        settings: Settings | None = None,
    ) -> None:
        """Make an engine.

        Args:
            load: makes the network, given the number of threads.
            output: where it answers.
            name: of the network, for the GUI's list of engines.
            settings: the defaults of the options.
        """
        self._output = output
        self._name = f"Keisei {__version__} {name}".strip()
        self._defaults = settings or Settings()
        self._settings = self._defaults
        self._thinker = Thinker(load, output)
        self._events: SimpleQueue[str | BaseException | None] = SimpleQueue()
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._jobs: list[Job] = []
        """Those that are not answered yet, the last one asked for at the end."""

        self._waiting: list[str] = []
        """A ``readyok`` for each ``isready`` that is not answered yet."""

        self._answered = 0.0
        """When the last answer was given."""

        output.when_closed = lambda: self._events.put("quit")
        self._commands: dict[str, Callable[[str], None]] = {
            "usi": self._introduce,
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
        """Do what the GUI says, line by line.

        At the end of the lines, searches that end by themselves still do; at ``quit`` nothing does.

        Raises:
            KeiseiError: The network can't be loaded.
        """
        reader = Thread(target=self._read, args=(lines,), name="usi-reader", daemon=True)
        worker = Thread(target=self._work, name="usi-thinker", daemon=True)
        reader.start()
        worker.start()
        # GUIs ask for the name and the options first: time in which the network can be loaded.
        self._tasks.put(self._load)
        try:
            while True:
                event = self._events.get()
                if isinstance(event, BaseException):
                    raise event
                if event is None:
                    self._finish()
                elif not self._hear(event):
                    break
        finally:
            for job in list(self._jobs):
                job.abandon()
            self._tasks.put(None)
            worker.join(END_SECONDS)

    # ---- the reading thread ----

    def _read(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self._events.put(line)
                if line.split() == ["quit"]:  # a thread that reads can't be ended
                    return
        except (OSError, ValueError) as error:
            logger.info("nobody speaks any more: %s", error)
        self._events.put(None)

    # ---- the thread that hears ----

    def _hear(self, line: str) -> bool:
        """Act on a line; returns whether there is more to do."""
        logger.debug("< %s", line)
        command, _, rest = line.strip().partition(" ")
        if command == "quit":
            return False
        if command in self._commands:
            self._commands[command](rest)
        elif command:
            self._output.explain(f"unknown command {quoted(line.strip())}")
        return True

    def _finish(self) -> None:
        """Quit when all is done that has an end."""
        for job in list(self._jobs):
            if not job.may_answer:
                job.stop()
        self._tasks.put(lambda: self._events.put("quit"))

    def _introduce(self, _: str) -> None:
        self._output.say(f"id name {self._name}")
        self._output.say("id author The Keisei authors")
        for line in self._defaults.announcements():
            self._output.say(line)
        self._output.say("usiok")

    def _get_ready(self, _: str) -> None:
        self._waiting.append("readyok")
        self._confirm()
        if self._waiting:
            settings = self._settings
            self._tasks.put(lambda: self._load_for(settings))

    def _confirm(self) -> None:
        """Say that it is ready, if it is and somebody waits for it.

        Whoever asks while it thinks gets the answer at once: new settings are for the next search,
        which may be far away.
        """
        thinker = self._thinker
        if thinker.is_ready_for(self._settings) or (thinker.is_loaded and self._jobs):
            while self._waiting:
                with suppress(IndexError):  # the other thread was quicker
                    self._output.say(self._waiting.pop())

    def _set_option(self, rest: str) -> None:
        words = rest.split(maxsplit=1)
        if len(words) < 2 or words[0] != "name":
            self._output.explain(f"setoption {quoted(rest)}: expected name NAME value VALUE")
            return
        name, _, value = words[1].partition(" value ")
        try:
            self._settings = self._settings.with_option(name.strip(), value.strip())
        except OptionError as error:
            self._output.explain(str(error))

    def _new_game(self, _: str) -> None:
        self._stop_all()
        self._tasks.put(self._thinker.new_game)

    def _set_position(self, rest: str) -> None:
        self._tasks.put(lambda: self._thinker.set_position(rest))

    def _go(self, rest: str) -> None:
        for job in list(self._jobs):  # those with an end are answered first
            if not job.may_answer:
                job.stop()
        limits, unknown = parse_go(rest.split())
        if unknown:
            self._output.explain(f"go: not understood: {quoted(' '.join(unknown))}")
        job = Job(limits, self._settings)
        self._jobs.append(job)
        self._tasks.put(lambda: self._answer(job))

    def _stop(self, _: str) -> None:
        self._stop_all()

    def _ponder_hit(self, rest: str) -> None:
        limits: Limits | None = None
        if rest.split():
            limits, _ = parse_go(rest.split())
        for job in self._jobs[-1:]:
            job.ponder_hit(limits)

    def _stop_all(self) -> None:
        for job in list(self._jobs):
            job.stop()

    # ---- the thread that thinks ----

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._attempt(task)

    def _attempt(self, task: Task) -> None:
        """Do something; the engine goes on if it fails: it may be in the middle of a game."""
        try:
            task()
        except KeiseiError as error:
            self._output.explain(f"error: {error}")
        except Exception as error:
            logger.exception("a command failed")
            self._output.explain(f"internal error: {error!r}")
            self._thinker.new_game()  # what it was about to write may be half written

    def _load(self) -> None:
        self._load_for(self._settings)

    def _load_for(self, settings: Settings) -> None:
        try:
            self._thinker.get_ready(settings)
        except Exception as error:  # noqa: BLE001 -- raised by the thread that hears
            self._output.explain(f"error: {error}")
            self._events.put(error)
        self._confirm()

    def _answer(self, job: Job) -> None:
        """Think, and answer whatever happens: a GUI would wait for ever."""
        answers = ["checkmate timeout" if job.limits.mate else "bestmove resign"]

        def think() -> None:
            if job.limits.mate:
                answers.append(f"checkmate {self._thinker.solve(job)}")
            else:
                answers.append(f"bestmove {self._thinker.think(job)}")

        job.begin(self._answered)
        self._load_for(job.settings)
        self._attempt(think)
        self._answered = time.monotonic()
        self._jobs.remove(job)
        if not job.is_abandoned:
            self._output.say(answers[-1])
