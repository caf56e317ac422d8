"""Logging of a run: everything into ``run.log``, the important part onto the terminal.

Messages for the terminal go through the same rich console as the live display. While that display
owns the terminal, it receives the messages instead (`diverted`), so that neither overwrites the
other.
"""

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO, cast

from rich.console import Console
from rich.text import Text

from keisei import run_files
from keisei.system import FileAccessError

FILE_FORMAT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"

logger = logging.getLogger(__name__)

_PACKAGE: Final = "keisei"
_LEVEL_STYLES: Final = {
    logging.WARNING: "yellow",
    logging.ERROR: "bold red",
    logging.CRITICAL: "bold white on red",
}


class LastingStream(io.TextIOBase):
    """A stream that may go away, as a closed terminal or a pipe to ``head`` does.

    What cannot be written any more is dropped, so that a run continues without its display: rich
    would end the program.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_gone = False

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute there
        """Encoding of the stream."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Return whether it is a terminal that is still there."""
        return not self._is_gone and self._stream.isatty()

    def fileno(self) -> int:
        """Return the file descriptor of the stream."""
        return self._stream.fileno()

    def write(self, text: str, /) -> int:
        """Write a text, or drop it."""
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if it is still there."""
        self._attempt(self._stream.flush)

    def _attempt(self, action: Callable[[], object]) -> None:
        if self._is_gone:
            return
        try:
            action()
        except ValueError:  # a stream that this program has closed
            self._is_gone = True
        except OSError as error:
            self._is_gone = True
            logger.warning("the display is off, as its output has gone: %s", error)


def lasting_console(stream: TextIO | None = None) -> Console:
    """Return a console on a stream, by default stderr, that may go away."""
    return Console(file=cast("TextIO", LastingStream(stream or sys.stderr)))


Sink = Callable[[logging.LogRecord], None]
"""Receives messages while a live display owns the terminal."""


class ConsoleHandler(logging.Handler):
    """Prints messages to a rich console, one per line, or passes them to a sink."""

    def __init__(self, console: Console, level: int = logging.INFO) -> None:
        super().__init__(level)
        self.console = console
        self.sink: Sink | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message, or pass it to the sink."""
        try:
            if self.sink is not None:
                self.sink(record)
            else:
                # soft_wrap: without a terminal, a message stays on one line.
                self.console.print(self._line(record), soft_wrap=True, highlight=False)
        except Exception:  # noqa: BLE001 - as in the standard library: logging never raises
            self.handleError(record)

    def _line(self, record: logging.LogRecord) -> Text:
        style = _LEVEL_STYLES.get(record.levelno, "")
        line = Text(f"{clock_time(record)} ", style="dim")
        if record.levelno >= logging.WARNING:
            line.append(f"{record.levelname.lower()}: ", style=f"not dim {style}")
        return line.append(self.format(record), style="not dim")


def clock_time(record: logging.LogRecord) -> str:
    """Return the time of day of a message, as ``12:34:56``."""
    return logging.Formatter().formatTime(record, "%H:%M:%S")


class LogFile(logging.FileHandler):
    """Appends messages to ``run.log``; what does not fit on the disk is dropped without a word.

    The error that matters, that of the checkpoint, is on the terminal.
    """

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - of the base class
        """Ignore errors of the system; report those of the message."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)

    def close(self) -> None:
        """Close the file, even if its last lines can't be written."""
        with suppress(OSError):
            super().close()


class LoggingSession:
    """Log handlers that are in place until `close`, which restores the previous state."""

    def __init__(self, handlers: list[logging.Handler]) -> None:
        self._handlers = handlers
        self._package_level = logging.getLogger(_PACKAGE).level
        logging.getLogger(_PACKAGE).setLevel(logging.INFO)
        for handler in handlers:
            logging.getLogger().addHandler(handler)
        logging.captureWarnings(True)
        self._thread_hook = threading.excepthook
        threading.excepthook = _log_thread_error

    def close(self) -> None:
        """Remove the handlers and close the file; a second call does nothing."""
        if not self._handlers:
            return
        logging.captureWarnings(False)
        threading.excepthook = self._thread_hook
        for handler in self._handlers:
            logging.getLogger().removeHandler(handler)
            handler.close()
        logging.getLogger(_PACKAGE).setLevel(self._package_level)
        self._handlers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _log_thread_error(failed: threading.ExceptHookArgs) -> None:
    """Log why a thread has ended: an error of the system, such as a full disk, in one line."""
    name = "a thread" if failed.thread is None else failed.thread.name
    if isinstance(failed.exc_value, OSError):
        logger.error("%s has ended: %s", name, failed.exc_value)
    elif failed.exc_value is not None:
        logger.error("%s has ended", name, exc_info=failed.exc_value)


def configure_logging(
    run_directory: Path, console: Console | None, *, console_level: int = logging.INFO
) -> LoggingSession:
    """Log to ``run.log`` in a run's directory, and to a console if one is given.

    Includes Keisei's messages from level INFO, those of other packages from level WARNING, and
    Python's warnings. Logging starts at once; close the returned session, or use it as a context.
    """
    path = run_directory / run_files.LOG
    try:
        file = LogFile(path, encoding="utf-8")
    except OSError as error:
        raise FileAccessError(f"cannot write {path}: {error.strerror or error}") from error
    file.setFormatter(logging.Formatter(FILE_FORMAT))
    handlers: list[logging.Handler] = [file]
    if console is not None:
        handlers.append(ConsoleHandler(console, console_level))
    return LoggingSession(handlers)


def show_errors(process: str) -> LoggingSession:
    """Log errors to stderr only, each with the name of this process."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.ERROR)
    handler.setFormatter(logging.Formatter(f"{process}: %(levelname)s: %(message)s"))
    return LoggingSession([handler])


@contextmanager
def diverted(sink: Sink) -> Iterator[None]:
    """Pass messages for the terminal to `sink` inside the context."""
    handlers = _console_handlers()
    for handler in handlers:
        handler.sink = sink
    try:
        yield
    finally:
        for handler in handlers:
            handler.sink = None


def show_again(records: Iterable[logging.LogRecord]) -> None:
    """Print diverted messages to the terminal, without tracebacks, which are in ``run.log``."""
    for record in records:
        short = logging.makeLogRecord({**vars(record), "exc_info": None, "exc_text": None})
        for handler in _console_handlers():
            handler.handle(short)


def _console_handlers() -> list[ConsoleHandler]:
    handlers = logging.getLogger().handlers
    return [handler for handler in handlers if isinstance(handler, ConsoleHandler)]
