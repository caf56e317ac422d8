"""Clients that send too slowly or too much, and messages that are malformed."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("nicegui")

import uvicorn

from keisei.web.connections import MAX_CONNECTIONS, OneLineFilter, TimedProtocol
from keisei.web.guard import MAX_HEADER_BYTES, MAX_REQUEST_BYTES
from keisei.web.server import listen, server_config

TIMEOUT = 0.4
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the body of the request."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-length", str(len(body)).encode())]})  # fmt: skip
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Port of a server as `keisei play` runs it, which waits only for a moment."""
    with pytest.MonkeyPatch.context() as patch, listen(port=0) as listener:
        patch.setattr(TimedProtocol, "timeout", TIMEOUT)
        server = uvicorn.Server(server_config(echo))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(10)


def test_the_servers_of_pages_have_the_limits() -> None:
    config = server_config(echo)
    config.load()
    assert config.http_protocol_class is TimedProtocol
    assert config.h11_max_incomplete_event_size == MAX_HEADER_BYTES
    assert config.limit_concurrency == MAX_CONNECTIONS
    assert config.ws_max_size == MAX_REQUEST_BYTES
    assert not config.server_header


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def is_closed(wire: socket.socket) -> bool:
    """Wait for the end of a connection."""
    try:
        return wire.recv(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "begin",
    [b"", b"GET / HT", REQUEST, REQUEST + b"Content-Length: 100\r\n\r\nhalf of it"],
    ids=["nothing", "half a line", "headers without end", "half a body"],
)
def test_a_request_that_does_not_arrive_ends_its_connection(port: int, begin: bytes) -> None:
    """Before, such connections stayed for ever."""
    with connected(port) as wire:
        start = time.monotonic()
        wire.sendall(begin)
        assert is_closed(wire)
        assert time.monotonic() - start >= 0.9 * TIMEOUT


def test_a_byte_now_and_then_does_not_help(port: int) -> None:
    with connected(port) as wire:
        start = time.monotonic()
        with pytest.raises(ConnectionError):  # noqa: PT012 - the one or the other of them fails
            while time.monotonic() - start < 20:
                wire.sendall(b"G")
                time.sleep(TIMEOUT / 4)
        assert time.monotonic() - start < 20


def test_requests_that_arrive_are_answered_also_after_a_pause(port: int) -> None:
    with connected(port) as wire:
        for _ in range(2):
            wire.sendall(REQUEST + b"Content-Length: 2\r\n\r\nhi")
            assert wire.recv(1000).endswith(b"hi")
            time.sleep(2 * TIMEOUT)  # the connection is kept: nothing is on its way
        wire.sendall(b"GET ")
        assert is_closed(wire)


def test_headers_that_are_too_large_are_refused(port: int) -> None:
    with connected(port) as wire:
        wire.sendall(REQUEST + b"X: " + b"x" * (2 * MAX_HEADER_BYTES))
        assert wire.recv(1000).startswith(b"HTTP/1.1 400")


def logged(error: Exception) -> logging.LogRecord:
    try:
        raise error
    except type(error) as caught:
        info = (type(caught), caught, caught.__traceback__)
    record = logging.LogRecord("nicegui", logging.ERROR, "x.py", 1, "it failed", None, info)
    assert OneLineFilter().filter(record)
    return record


def test_malformed_messages_are_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logged(KeyError("client_id"))
    assert (record.getMessage(), record.exc_info) == (
        "ignored a malformed message: KeyError: 'client_id'", None,
    )  # fmt: skip
    assert "\n" not in logged(ValueError("of\nmany\nlines")).getMessage()
    monkeypatch.setattr("keisei.web.connections._PACKAGE", __file__)
    assert logged(KeyError("a bug")).exc_info is not None, "our own bugs keep their tracebacks"
