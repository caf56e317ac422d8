"""Reads the games of strangers in a process of its own, within a time limit.

Reading is plain Python, and takes up to seconds for the largest file that is accepted. In a thread
it would share the processor with all pages of the server; a process it can use alone, and be killed
with. It starts with the first upload, or when someone is about to send one, and leaves when it has
had nothing to do for a while.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Final

from keisei.errors import KeiseiError, NotationError
from keisei.play.transfer import read_record
from keisei.shogi.notation.record import GameRecord
from keisei.system import ctrl_c_held_back, leave_signals_to_parent, spawn_context

Reader = Callable[..., GameRecord]
Answer = GameRecord | KeiseiError

TIME_LIMIT: Final = 10.0
"""Seconds for a game; 256 kB of legal moves take 1.3 s."""

START_TIMEOUT: Final = 60.0
"""Seconds for the start of the process: usually one, more on a busy machine."""

IDLE_SECONDS: Final = 600.0
"""Seconds without a game after which the process ends; it has some 100 MB."""

TOO_SLOW: Final = "the game takes too long to read"
ENDED: Final = "the process that reads games has ended; try it again"


class UploadReader:
    """A process that reads one game at a time. All methods may be called from any thread."""

    def __init__(self, read: Reader = read_record, *, time_limit: float = TIME_LIMIT) -> None:
        """Make a reader without a process; `read` is a function of a module."""
        self._read = read
        self._time_limit = time_limit
        self._one_at_a_time = threading.Lock()
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

    @property
    def process_id(self) -> int | None:
        """Id of the process that will read the next game, if there is one."""
        return None if self._process is None else self._process.pid

    def prepare(self) -> None:
        """Start the process, without waiting for it; do nothing if that is impossible now."""
        if self._one_at_a_time.acquire(blocking=False):
            try:
                with suppress(KeiseiError):  # `read` will say so
                    self._running()
            finally:
                self._one_at_a_time.release()

    def read(self, data: bytes, name: str = "", *, variations: bool = False) -> GameRecord:
        """Read a game as `read_record` does.

        Raises:
            KeiseiError: The game is invalid or too large, or reading it takes too long.
        """
        with self._one_at_a_time:
            answer = self._answer(data, name, variations) or self._answer(data, name, variations)
        if answer is None:
            raise KeiseiError(ENDED)
        if isinstance(answer, KeiseiError):
            raise answer
        return answer

    def close(self) -> None:
        """End the process; a later game starts another one."""
        with self._one_at_a_time:
            self._end()

    def _answer(self, data: bytes, name: str, variations: bool) -> Answer | None:
        """Return the game or what is wrong with it; None: the process was killed meanwhile."""
        pipe = self._running()
        try:
            if not pipe.poll(START_TIMEOUT):
                raise EOFError
            pipe.recv_bytes()  # it is ready
            pipe.send((data, name, variations))
            if not pipe.poll(self._time_limit):
                raise TimeoutError
            record, is_notation, message = pipe.recv()
        except TimeoutError:
            self._end()
            return KeiseiError(TOO_SLOW)
        except (EOFError, OSError):
            self._end()
            return None
        if isinstance(record, GameRecord):
            return record
        return NotationError(message) if is_notation else KeiseiError(message)

    def _running(self) -> Connection:
        """Return the pipe to the process, which is started if there is none."""
        if self._pipe is not None and self._process is not None and self._process.is_alive():
            return self._pipe
        self._end()
        context = spawn_context()
        self._pipe, theirs = context.Pipe()
        process = context.Process(
            target=_main, args=(theirs, self._read), name="keisei-uploads", daemon=True
        )
        try:
            with ctrl_c_held_back():
                process.start()
        except OSError as error:
            raise KeiseiError(f"cannot start the process that reads games: {error}") from error
        finally:
            theirs.close()
        self._process = process
        return self._pipe

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        self._pipe = self._process = None


def _main(pipe: Connection, read: Reader) -> None:
    """Read games until the server closes the pipe, which it does at the latest when it ends."""
    leave_signals_to_parent()
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(b"ready")
            if not pipe.poll(IDLE_SECONDS):
                return
            data, name, variations = pipe.recv()
            try:
                pipe.send((read(data, name, variations=variations), False, ""))
            except KeiseiError as error:
                pipe.send((None, isinstance(error, NotationError), str(error)))
