"""Logging of a run: everything into ``run.log``, the important part onto the terminal.

Messages for the terminal go through the same rich console as the live display. While that display
owns the terminal, it receives the messages instead (`diverted`), so that neither overwrites the
other.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.text import Text

from keisei import run_files
from keisei.system import FileAccessError

FILE_FORMAT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"

_PACKAGE: Final = "keisei"
_LEVEL_STYLES: Final = {
    logging.WARNING: "yellow",
    logging.ERROR: "bold red",
    logging.CRITICAL: "bold white on red",
}

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


class LoggingSession:
    """Log handlers that are in place until `close`, which restores the previous state."""

    def __init__(self, handlers: list[logging.Handler]) -> None:
        self._handlers = handlers
        self._package_level = logging.getLogger(_PACKAGE).level
        logging.getLogger(_PACKAGE).setLevel(logging.INFO)
        for handler in handlers:
            logging.getLogger().addHandler(handler)
        logging.captureWarnings(True)

    def close(self) -> None:
        """Remove the handlers and close the file; a second call does nothing."""
        if not self._handlers:
            return
        logging.captureWarnings(False)
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


def configure_logging(
    run_directory: Path, console: Console | None, *, console_level: int = logging.INFO
) -> LoggingSession:
    """Log to ``run.log`` in a run's directory, and to a console if one is given.

    Includes Keisei's messages from level INFO, those of other packages from level WARNING, and
    Python's warnings. Logging starts at once; close the returned session, or use it as a context.
    """
    path = run_directory / run_files.LOG
    try:
        file = logging.FileHandler(path, encoding="utf-8")
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
