"""The process of a USI engine: lines to it, lines from it, and its end.

An engine is somebody else's program, and anything may go wrong with it. So every wait has an end,
nothing that it prints can fill the memory, and it ends together with the processes it started.
Pipes can't be waited for with a time limit on Windows; therefore three threads do the reading and
writing, and who waits, waits for a queue.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, Full, Queue, SimpleQueue
from threading import Lock, Thread
from typing import IO, Any, Final

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


class TroubleError(Exception):
    """What went wrong, without the engine's name and its last words."""


class Deadline:
    """So many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._time = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds that are left, below 0 when it has passed."""
        return self._time - time.monotonic()


class EngineProcess:
    """The program, its pipes and their threads."""

    def __init__(self, command: tuple[str, ...]) -> None:
        """Start the program, with its arguments."""
        program = shutil.which(command[0])
        if program is None:
            raise TroubleError(f"no program {command[0]}; is it installed and on the PATH?")
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
            raise TroubleError(f"{command[0]} can't be started: {error}") from None
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
        """As the operating system numbers it."""
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
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
            raise TroubleError(self._how_it_ended())
        self._commands.put(f"{command}\n".encode())

    def forget_answers(self) -> None:
        """Drop what was printed unasked: it would be taken for the next answer."""
        self._answers = Queue(MOST_LINES)

    def answer_until(self, last: str, deadline: Deadline) -> list[str]:
        """The lines up to the one that begins with the word `last`."""
        lines: list[str] = []
        while len(lines) < MOST_LINES:
            lines.append(self._next_answer(last, deadline))
            if lines[-1].partition(" ")[0] == last:
                return lines
        raise TroubleError(f"it printed {MOST_LINES} lines without {last!r} among them")

    def _next_answer(self, wanted: str, deadline: Deadline) -> str:
        while True:
            # Trouble with the pipes may be the first that is seen of its end: look twice.
            if self._trouble is not None and not self._ends_within(_LOOK_SECONDS):
                raise TroubleError(self._trouble)
            lives = self.is_running
            if not lives and self._reader.is_alive():
                # What it printed before its end still counts, up to what its children hold open.
                _signal_group(self._popen, force=True)
                self._reader.join(QUIT_SECONDS)
            remaining = deadline.remaining
            if lives and remaining <= 0.0:
                raise TroubleError(
                    f"it did not answer with {wanted!r} within the {deadline.seconds:g} s it has"
                )
            with suppress(Empty):
                return self._answers.get(timeout=min(remaining, _LOOK_SECONDS) if lives else 0.0)
            if not lives:
                raise TroubleError(f"{self._how_it_ended()} when {wanted!r} was waited for")

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
