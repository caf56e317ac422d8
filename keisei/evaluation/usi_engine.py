"""One Shogi engine, run as a process of its own and spoken to in USI.

>>> settings = UsiSettings(command=("fairy-stockfish",), limit=Limit(nodes=1000))
>>> settings.limit.command
'go nodes 1000'

An engine is somebody else's program, and anything may go wrong with it. So every wait has an end,
nothing that it prints can fill the memory, and whatever goes wrong becomes a `UsiEngineError` with
the process, and those it started, gone. Pipes can't be waited for with a time limit on Windows;
therefore three threads do the reading and writing, and who waits, waits for a queue.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Full, Queue, SimpleQueue
from threading import Lock, Thread
from typing import IO, Any, Final, Self

from keisei.errors import KeiseiError

LONGEST_LINE: Final = 1 << 16
"""Bytes without an end of line after which an engine is taken for broken."""

MOST_LINES: Final = 4096
"""Lines of one answer, thoughts not counted, after which an engine is taken for broken."""

REMEMBERED_LINES: Final = 5
REMEMBERED_LENGTH: Final = 200

QUIT_SECONDS: Final = 1.0
"""How long an engine may take to end itself, first when asked to and then when told to."""

_LOOK_SECONDS: Final = 0.05
_ANSWERS: Final = frozenset({"id", "option", "usiok", "readyok", "bestmove"})
_NEED_NO_ANNOUNCEMENT: Final = ("USI_Hash", "USI_Ponder")


class UsiEngineError(KeiseiError):
    """An engine that can't be started, breaks off, keeps silent, or is asked for what it lacks."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much an engine thinks about a move: one of the three."""

    nodes: int | None = None
    """Positions to visit."""

    depth: int | None = None
    """Plies to look ahead."""

    byoyomi: int | None = None
    """Milliseconds to think. The moves then depend on the machine and on what else it does."""

    def __post_init__(self) -> None:
        given = [value for value in (self.nodes, self.depth, self.byoyomi) if value is not None]
        if len(given) != 1:
            raise UsiEngineError("an engine needs one limit: nodes, depth or byoyomi")
        if given[0] < 1:
            raise UsiEngineError(f"the limit of an engine is {given[0]}, it must be at least 1")

    @property
    def command(self) -> str:
        """The USI command that starts the search."""
        if self.nodes is not None:
            return f"go nodes {self.nodes}"
        if self.depth is not None:
            return f"go depth {self.depth}"
        return f"go btime 0 wtime 0 byoyomi {self.byoyomi}"

    def __str__(self) -> str:
        if self.nodes is not None:
            return f"nodes {self.nodes}"
        if self.depth is not None:
            return f"depth {self.depth}"
        return f"byoyomi {self.byoyomi} ms"


@dataclass(frozen=True, kw_only=True)
class UsiSettings:
    """Which engine, set up how."""

    command: tuple[str, ...]
    """The program and its arguments."""

    options: tuple[tuple[str, str], ...] = ()
    """Names and values of the engine's options, in the order in which they are set."""

    limit: Limit
    """How much it thinks about a move."""

    startup_seconds: float = 30.0
    """How long it may take to get ready."""

    move_seconds: float = 60.0
    """How long it may take for a move."""

    def __post_init__(self) -> None:
        if not self.command:
            raise UsiEngineError("an engine needs a command")
        if any(not text.isprintable() for option in self.options for text in option):
            raise UsiEngineError(f"{self.command[0]}: an option holds a control character")
        if (self.limit.byoyomi or 0) >= 1000 * self.move_seconds:
            raise UsiEngineError(
                f"{self.command[0]}: byoyomi {self.limit.byoyomi} ms leaves no time to answer "
                f"within {self.move_seconds:g} s"
            )


class UsiEngine:
    """A running engine that is ready to play. After any error its process is gone."""

    name: str
    """What it calls itself."""

    def __init__(self, settings: UsiSettings) -> None:
        """Start the program and wait until it is ready."""
        self.settings = settings
        self.name = Path(settings.command[0]).name
        self._process = _EngineProcess(settings.command)
        # The threads know the process, not this object: forgotten engines end.
        self._finalizer = weakref.finalize(self, self._process.kill)
        with self._gone_after_an_error():
            self._get_ready(_Deadline(settings.startup_seconds))

    @property
    def is_running(self) -> bool:
        """Whether it can be asked for a move."""
        return self._process.is_running

    @property
    def process_id(self) -> int:
        """The process, as the operating system numbers it."""
        return self._process.id

    def new_game(self) -> None:
        """Tell it that the next position is of another game."""
        with self._gone_after_an_error():
            self._process.send("usinewgame")

    def best_move(self, start: str, moves: Sequence[str]) -> str:
        """What it plays after `moves` from `start`, which is ``startpos`` or an SFEN.

        The answer is what the engine wrote: a move, ``resign``, ``win``, or any nonsense.
        """
        position = start if start == "startpos" else f"sfen {start}"
        played = f" moves {' '.join(moves)}" if moves else ""
        with self._gone_after_an_error():
            self._process.forget_answers()
            self._process.send(f"position {position}{played}")
            self._process.send(self.settings.limit.command)
            deadline = _Deadline(self.settings.move_seconds)
            *_, answer = self._process.answer_until("bestmove", deadline)
        words = answer.split()
        return words[1] if len(words) > 1 else ""

    def close(self) -> None:
        """Ask it to end, and end it. May be called more than once, from any thread."""
        self._process.end()
        self._finalizer.detach()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._finalizer.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, process {self.process_id}>"

    def _get_ready(self, deadline: "_Deadline") -> None:
        self._process.send("usi")
        announced: dict[str, _Option] = {}
        for line in self._process.answer_until("usiok", deadline):
            if line.startswith("id name ") and (name := line[8:].strip()):
                self.name = name
            elif (option := _Option.parse(line)) is not None:
                announced[option.name.casefold()] = option
        for name, value in self.settings.options:
            self._process.send(_setting(announced, name, value))
        self._process.send("isready")
        self._process.answer_until("readyok", deadline)

    @contextmanager
    def _gone_after_an_error(self) -> Iterator[None]:
        """An interrupt counts, too: an answer that nobody waited for would come with the next."""
        try:
            yield
        except _TroubleError as trouble:
            self._process.kill()
            raise UsiEngineError(f"{self.name}: {trouble}; {self._process.last_words}") from None
        except _WrongOptionError as mistake:
            self._process.kill()
            raise UsiEngineError(f"{self.name}: {mistake}") from None
        except BaseException:
            self._process.kill()
            raise


# ---- the options an engine has ----


class _WrongOptionError(Exception):
    """What is wrong with an option."""


@dataclass(frozen=True)
class _Option:
    """An option as the engine announces it."""

    name: str
    kind: str
    least: int | None
    most: int | None
    choices: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> "_Option | None":
        """Read an ``option`` line; names and choices may contain spaces."""
        match = re.match(r"option name (.+?) type (\w+)(.*)", line)
        if match is None:
            return None
        name, kind, rest = match.groups()
        limits = dict(re.findall(r" (min|max) (-?\d{1,30})", rest)) if kind == "spin" else {}
        choices = re.findall(r" var (.*?)(?= var |$)", rest) if kind == "combo" else []
        return cls(
            name,
            kind,
            int(limits["min"]) if "min" in limits else None,
            int(limits["max"]) if "max" in limits else None,
            tuple(choices),
        )

    def checked(self, value: str) -> str:
        """The value in the engine's spelling; raises if it does not take it."""
        if self.kind == "spin":
            return self._checked_number(value)
        choices = {"check": ("true", "false"), "combo": self.choices, "button": ("",)}
        if self.kind not in choices:
            return value
        for choice in choices[self.kind]:
            if choice.casefold() == value.casefold():
                return choice
        wanted = ", ".join(choices[self.kind]) or "no value"
        raise _WrongOptionError(f"option {self.name!r} can't be {value!r}, it takes {wanted}")

    def _checked_number(self, value: str) -> str:
        if re.fullmatch(r"-?[0-9]{1,30}", value) is None:
            raise _WrongOptionError(f"option {self.name!r} is {value!r}, it must be a whole number")
        too_low = self.least is not None and int(value) < self.least
        if too_low or (self.most is not None and int(value) > self.most):
            raise _WrongOptionError(
                f"option {self.name!r} is {value}, it must be from {self.least} to {self.most}"
            )
        return value


def _setting(announced: dict[str, _Option], name: str, value: str) -> str:
    """The command that sets an option; names are found as GUIs do, whatever their case."""
    option = announced.get(name.casefold())
    if option is not None:
        name, value = option.name, option.checked(value)
    elif name not in _NEED_NO_ANNOUNCEMENT:
        known = ", ".join(option.name for option in announced.values()) or "none at all"
        raise _WrongOptionError(f"it has no option {name!r}; it has {known}")
    return f"setoption name {name} value {value}" if value else f"setoption name {name}"


# ---- the process ----


class _TroubleError(Exception):
    """What went wrong, for the engine to complete with its name and its last words."""


class _Deadline:
    """So many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._time = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds that are left, below 0 when it has passed."""
        return self._time - time.monotonic()


class _EngineProcess:
    """The program, its pipes and their threads."""

    def __init__(self, command: tuple[str, ...]) -> None:
        program = shutil.which(command[0])
        if program is None:
            raise UsiEngineError(f"no program {command[0]}; is it installed and on the PATH?")
        try:
            self._popen = subprocess.Popen(
                (program, *command[1:]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                **_own_group(),
            )
        except OSError as error:
            raise UsiEngineError(f"{command[0]} can't be started: {error}") from None
        self._commands: SimpleQueue[bytes | None] = SimpleQueue()
        self._answers: Queue[str] = Queue(MOST_LINES)
        self._last_lines: deque[str] = deque(maxlen=REMEMBERED_LINES)
        self._unfinished = b""
        self._trouble: str | None = None
        self._ending = Lock()
        self._is_gone = False
        self._writer = self._start_thread(self._write, self._popen.stdin)
        self._reader = self._start_thread(self._read, self._popen.stdout, self._hear)
        self._listener = self._start_thread(self._read, self._popen.stderr, self._remember)

    @property
    def id(self) -> int:
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    @property
    def last_words(self) -> str:
        """The last lines it printed, on either pipe."""
        lines = [*self._last_lines.copy(), *([_text(self._unfinished)] if self._unfinished else [])]
        if not lines:
            return "it printed nothing"
        return f"it last printed {', '.join(repr(line[:REMEMBERED_LENGTH]) for line in lines)}"

    def send(self, command: str) -> None:
        """Hand a line to the writer; whether it arrives shows when the answer is waited for."""
        if not self.is_running:
            raise _TroubleError(self._how_it_ended())
        self._commands.put(f"{command}\n".encode())

    def forget_answers(self) -> None:
        """Drop what was printed unasked: it would be taken for the next answer."""
        self._answers = Queue(MOST_LINES)

    def answer_until(self, last: str, deadline: _Deadline) -> list[str]:
        """The lines up to the one that begins with the word `last`."""
        lines: list[str] = []
        while len(lines) < MOST_LINES:
            lines.append(self._next_answer(last, deadline))
            if lines[-1].partition(" ")[0] == last:
                return lines
        raise _TroubleError(f"it printed {MOST_LINES} lines without {last!r} among them")

    def _next_answer(self, wanted: str, deadline: _Deadline) -> str:
        while True:
            # Trouble with the pipes may be the first that is seen of its end: look twice.
            if self._trouble is not None and not self._ends_within(_LOOK_SECONDS):
                raise _TroubleError(self._trouble)
            lives = self.is_running
            if not lives and self._reader.is_alive():
                # What it printed before its end still counts, up to what its children hold open.
                _signal_group(self._popen, force=True)
                self._reader.join(QUIT_SECONDS)
            remaining = deadline.remaining
            if lives and remaining <= 0.0:
                raise _TroubleError(
                    f"it did not answer with {wanted!r} within the {deadline.seconds:g} s it has"
                )
            with suppress(Empty):
                return self._answers.get(timeout=min(remaining, _LOOK_SECONDS) if lives else 0.0)
            if not lives:
                raise _TroubleError(f"{self._how_it_ended()} when {wanted!r} was waited for")

    def end(self) -> None:
        """Ask, tell, force."""
        with self._ending:
            if self._is_gone:
                return
            self._commands.put(b"quit\n")
            self._commands.put(None)
            if not self._ends_within(QUIT_SECONDS):
                _signal_group(self._popen, force=False)
                self._ends_within(QUIT_SECONDS)
            self._force()

    def kill(self) -> None:
        """End it at once."""
        with self._ending:
            self._force()

    def _force(self) -> None:
        """Also where it ended by itself: those that it started may be left."""
        if self._is_gone:  # and its number may be another's by now
            return
        _signal_group(self._popen, force=True)
        self._ends_within(QUIT_SECONDS)
        self._is_gone = True
        self._commands.put(None)
        for thread in (self._writer, self._reader, self._listener):
            thread.join(QUIT_SECONDS)

    def _ends_within(self, seconds: float) -> bool:
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _how_it_ended(self) -> str:
        code = self._popen.returncode
        if code >= 0:
            return f"it ended with exit code {code}"
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"

    # ---- the threads ----

    def _start_thread(self, work: Callable[..., None], *args: Any) -> Thread:
        """Each closes its pipe. Daemons: a process that can't be killed must not keep us."""
        thread = Thread(target=work, args=args, name=f"usi-{self.id}", daemon=True)
        thread.start()
        return thread

    def _write(self, pipe: IO[bytes]) -> None:
        with suppress(OSError), pipe:
            while (command := self._commands.get()) is not None:
                while command:
                    try:
                        written = os.write(pipe.fileno(), command)
                    except OSError:
                        self._trouble = "it has closed its input"
                        return
                    command = command[written:]

    def _read(self, pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
        """Cut what arrives into lines; to the end, as a full pipe would stop the engine."""
        rest = b""
        with suppress(OSError), pipe:
            while chunk := os.read(pipe.fileno(), LONGEST_LINE):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    take(line)
                if len(rest) > LONGEST_LINE:
                    take(rest)
                    rest = b""
                self._unfinished = rest
        self._unfinished = b""
        if rest:
            take(rest)

    def _remember(self, line: bytes) -> None:
        if line.strip():
            self._last_lines.append(_text(line[:REMEMBERED_LENGTH]))

    def _hear(self, line: bytes) -> None:
        """Keep an answer; thoughts are only remembered, as there may be millions of them."""
        self._remember(line)
        if len(line) > LONGEST_LINE:
            self._trouble = f"it printed a line of more than {LONGEST_LINE} bytes"
            return
        text = _text(line)
        if text.partition(" ")[0] in _ANSWERS:
            try:
                self._answers.put_nowait(text)
            except Full:
                self._trouble = f"it printed {MOST_LINES} lines that nobody asked for"


def _text(line: bytes) -> str:
    """Readable whatever it is; USI itself is plain ASCII."""
    return line.decode(errors="backslashreplace").strip()


def _own_group() -> dict[str, Any]:
    """Ctrl-C is for us, not for the engine; and a group can be ended as a whole."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    else:
        return {"start_new_session": True}


def _signal_group(popen: "subprocess.Popen[bytes]", *, force: bool) -> None:
    """End the process and those that it started; Windows knows no polite way."""
    if sys.platform == "win32":
        if popen.poll() is None:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    ("taskkill", "/F", "/T", "/PID", str(popen.pid)),
                    capture_output=True,
                    check=False,
                    timeout=10,
                )
            with suppress(OSError):
                popen.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, signal.SIGKILL if force else signal.SIGTERM)
