"""Limits of the server's connections: size of headers, time for a request to arrive, log lines.

A browser sends a request at once. A client that sends a byte now and then ("slowloris") would keep
a connection for ever, and a server has only some hundreds.
"""

import asyncio
import logging
import traceback
from pathlib import Path
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

import keisei

REQUEST_TIMEOUT: Final = 20.0
"""Seconds in which a request has to arrive, its body included: up to 1 MiB."""

MAX_CONNECTIONS: Final = 500
"""Connections at a time; a page needs one, and some for a moment when it is loaded."""

_ARRIVING: Final = (h11.IDLE, h11.SEND_BODY)
_PACKAGE: Final = str(Path(keisei.__file__).parent)
_LOGGERS: Final = ("asyncio", "engineio.server", "socketio.server", "nicegui", "uvicorn.error")


class TimedProtocol(H11Protocol):
    """HTTP as uvicorn speaks it, over connections that end if a request takes too long to arrive.

    h11 limits the size of headers while they arrive; the faster httptools does not.
    """

    timeout = REQUEST_TIMEOUT
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the time of the first request."""
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; the time of a next one starts with its first byte."""
        super().data_received(data)
        if self.conn.their_state not in _ARRIVING:
            self._clear_deadline()
        elif self._deadline is None:
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time."""
        self._clear_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.timeout, self.transport.abort)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class OneLineFilter(logging.Filter):
    """Logs exceptions that a malformed message of a browser caused as one line each.

    Those are raised in the libraries under the pages. An exception that went through code of
    Keisei is a bug of ours, and keeps its traceback.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten a record if need be; every record is logged."""
        if record.exc_info is None or record.exc_info[1] is None:
            return True
        error = record.exc_info[1]
        frames = traceback.extract_tb(error.__traceback__)
        if not any(_is_ours(frame.filename) for frame in frames):
            text = f"{type(error).__name__}: {error}".replace("\n", " ")
            record.msg, record.args = "ignored a malformed message: %.200s", (text,)
            record.exc_info, record.exc_text = None, None
        return True


def _is_ours(filename: str) -> bool:
    """Return whether a frame is code of a page: the guard and this module only pass messages on."""
    path = Path(filename)
    is_passed_on = path.name in ("guard.py", "connections.py", "server.py", "cli.py")
    return filename.startswith(_PACKAGE) and not is_passed_on


def shorten_logs() -> None:
    """Log malformed messages of browsers as one line each, in this process."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(OneLineFilter())
