"""The process of a USI engine: its pipes, its timeouts and its end.

An engine is a foreign program in which anything may go wrong. So every wait has a timeout, its
output cannot fill the memory, and it is ended together with its child processes. On Windows a pipe
cannot be read with a timeout; therefore three threads read and write, and callers wait on a queue.
"""

import os
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, Full, Queue, SimpleQueue
from threading import Lock, Thread
from typing import IO, Any, Final

from keisei.system import ended_by
from keisei.usi.process_tree import start_tree

MAX_LINE_BYTES: Final = 1 << 16
"""An engine that prints a longer line is considered broken."""

MAX_ANSWER_LINES: Final = 4096
"""An engine that prints more lines per answer, ``info`` not counted, is considered broken."""

REMEMBERED_LINES: Final = 5
REMEMBERED_LENGTH: Final = 200

QUIT_TIMEOUT: Final = 1.0
"""Seconds to wait after ``quit``, and again after SIGTERM."""

_POLL_INTERVAL: Final = 0.05
_ANSWERS: Final = frozenset({"id", "option", "usiok", "readyok", "bestmove"})


class EngineProcessError(Exception):
    """A failure of the process; the message lacks the engine's name and its last output."""


class Deadline:
    """A point in time, given as seconds from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._time = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds left, negative once it has passed."""
        return self._time - time.monotonic()


class EngineProcess:
    """A running program with its pipes and their threads."""

    def __init__(self, command: tuple[str, ...]) -> None:
        """Start the program, with its arguments."""
        program = shutil.which(command[0])
        if program is None:
            raise EngineProcessError(
                f"program {command[0]} not found; is it installed and on the PATH?"
            )
        try:
            self._tree = start_tree((program, *command[1:]))
        except OSError as error:
            raise EngineProcessError(f"{command[0]} can't be started: {error}") from None
        self._popen = self._tree.popen
        self._commands: SimpleQueue[bytes | None] = SimpleQueue()
        self._answers: Queue[str] = Queue(MAX_ANSWER_LINES)
        self._last_lines: deque[str] = deque(maxlen=REMEMBERED_LINES)
        self._unfinished = b""
        self._failure: str | None = None
        self._ending = Lock()
        self._is_gone = False
        self._writer = self._start_thread(self._write, self._popen.stdin)
        self._reader = self._start_thread(self._read, self._popen.stdout, self._receive)
        self._listener = self._start_thread(self._read, self._popen.stderr, self._remember)

    @property
    def id(self) -> int:
        """Process id."""
        return self._tree.id

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._popen.poll() is None

    @property
    def last_output(self) -> str:
        """The last lines that it printed, on either pipe."""
        lines = [*self._last_lines.copy(), *([_text(self._unfinished)] if self._unfinished else [])]
        if not lines:
            return "it printed nothing"
        return f"it last printed {', '.join(repr(line[:REMEMBERED_LENGTH]) for line in lines)}"

    def send(self, command: str) -> None:
        """Queue a line for the writer thread; write errors surface while waiting for the answer."""
        if not self.is_running:
            raise EngineProcessError(self._how_it_ended())
        self._commands.put(f"{command}\n".encode())

    def forget_answers(self) -> None:
        """Drop unsolicited lines, which would be mistaken for the next answer."""
        self._answers = Queue(MAX_ANSWER_LINES)

    def answer_until(self, last: str, deadline: Deadline) -> list[str]:
        """Return the lines up to the one whose first word is `last`."""
        lines: list[str] = []
        while len(lines) < MAX_ANSWER_LINES:
            lines.append(self._next_answer(last, deadline))
            if lines[-1].partition(" ")[0] == last:
                return lines
        raise EngineProcessError(f"it printed {MAX_ANSWER_LINES} lines without {last!r} among them")

    def _next_answer(self, wanted: str, deadline: Deadline) -> str:
        while True:
            # A broken pipe may be the first sign of the process's end: check that first.
            if self._failure is not None and not self._ends_within(_POLL_INTERVAL):
                raise EngineProcessError(self._failure)
            lives = self.is_running
            if not lives and self._reader.is_alive():
                # Its last output still counts; its children may hold the pipe open.
                self._tree.kill()
                self._reader.join(QUIT_TIMEOUT)
            remaining = deadline.remaining
            if lives and remaining <= 0.0:
                raise EngineProcessError(
                    f"it did not answer with {wanted!r} within {deadline.seconds:g} s"
                )
            # Before the last look into the queue: what it printed until then still counts.
            is_silent = lives and not self._reader.is_alive()
            with suppress(Empty):
                return self._answers.get(timeout=min(remaining, _POLL_INTERVAL) if lives else 0.0)
            if is_silent and not self._ends_within(_POLL_INTERVAL):
                raise EngineProcessError(f"it has closed its output while waiting for {wanted!r}")
            if not lives:
                raise EngineProcessError(f"{self._how_it_ended()} while waiting for {wanted!r}")

    def end(self) -> None:
        """End the process: by ``quit``, then SIGTERM, then SIGKILL."""
        with self._ending:
            if self._is_gone:
                return
            self._commands.put(b"quit\n")
            self._commands.put(None)
            if not self._ends_within(QUIT_TIMEOUT):
                self._tree.terminate()
                self._ends_within(QUIT_TIMEOUT)
            self._force()

    def kill(self) -> None:
        """Kill the process at once."""
        with self._ending:
            self._force()

    def _force(self) -> None:
        """Kill all that is left; after a regular end, these may be child processes."""
        if self._is_gone:  # its process id may have been reused
            return
        self._tree.kill()
        self._ends_within(QUIT_TIMEOUT)
        self._is_gone = True
        self._tree.close()
        self._commands.put(None)
        for thread in (self._writer, self._reader, self._listener):
            thread.join(QUIT_TIMEOUT)

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
        return f"it was ended by {ended_by(code)}"

    # ---- threads ----

    def _start_thread(self, work: Callable[..., None], *args: Any) -> Thread:
        """Start a thread, which closes its pipe at its end.

        They are daemons: a process that can't be killed must not keep this one alive.
        """
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
                        self._failure = "it has closed its input"
                        return
                    command = command[written:]

    def _read(self, pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
        """Split the output into lines until its end; a full pipe would block the engine."""
        rest = b""
        with suppress(OSError), pipe:
            while chunk := os.read(pipe.fileno(), MAX_LINE_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    take(line)
                if len(rest) > MAX_LINE_BYTES:
                    take(rest)
                    rest = b""
                self._unfinished = rest
        self._unfinished = b""
        if rest:
            take(rest)

    def _remember(self, line: bytes) -> None:
        if line.strip():
            self._last_lines.append(_text(line[:REMEMBERED_LENGTH]))

    def _receive(self, line: bytes) -> None:
        """Queue an answer; ``info`` lines are only remembered, as there may be millions."""
        self._remember(line)
        if len(line) > MAX_LINE_BYTES:
            self._failure = f"it printed a line of more than {MAX_LINE_BYTES} bytes"
            return
        text = _text(line)
        if text.partition(" ")[0] in _ANSWERS:
            try:
                self._answers.put_nowait(text)
            except Full:
                self._failure = f"it printed {MAX_ANSWER_LINES} lines that were not requested"


def _text(line: bytes) -> str:
    """Decode a line of any bytes; USI itself is plain ASCII."""
    return line.decode(errors="backslashreplace").strip()
