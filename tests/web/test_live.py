"""The running server as an attacker sees it: files, hosts, origins, sizes. Without a browser."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import keisei
from tests.web.conftest import Server

pytest.importorskip("nicegui")

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    Pong,
    Request,
    TextMessage,
)


def test_the_page_is_there(server: Server) -> None:
    status, body = server.request("/")
    assert status == 200
    assert "Keisei" in body


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/_nicegui/{version}/static/../../../../../../etc/passwd",
        "/_nicegui/{version}/static/%2e%2e/%2e%2e/ui_run.py",
        "/_nicegui/{version}/static/..%2f..%2fui_run.py",
        "/_nicegui/{version}/components/../../ui_run.py",
        "/_nicegui/{version}/resources/x/../../../../etc/passwd",
        "/runs/tiny/config.json",
        "/tiny/config.json",
        "/static/../server.py",
        "/?room=../../etc/passwd",
    ],
)
def test_no_path_leads_to_a_file(server: Server, path: str) -> None:
    import nicegui

    status, body = server.request(path.format(version=nicegui.__version__))
    assert "root:" not in body
    assert "tower_depth" not in body, "a run's settings"
    assert "def run(" not in body
    assert "def serve(" not in body
    assert status == 404 or path.startswith("/?room"), status


def test_foreign_hosts_and_origins_are_refused(server: Server) -> None:
    assert server.request("/", Host="rebound.example")[0] == 421
    assert server.request("/", Origin="http://evil.example")[0] == 403
    socket_path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    assert server.request(socket_path, Origin="http://evil.example")[0] == 403
    assert server.request(socket_path, Host="rebound.example")[0] == 421
    assert server.request("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403


def test_what_is_too_large_is_refused(server: Server) -> None:
    path = "/_nicegui/client/some-client/upload/4"
    status, _ = server.request(path, method="POST", Content_Length=str(50 << 20))
    assert status == 413
    assert server.request(path, method="POST", Transfer_Encoding="chunked")[0] == 411
    status, _ = server.request(path, method="POST", Transfer_Encoding="chunked", Content_Length="5")
    assert status in (400, 411)
    assert server.request(path, method="POST", body=b"x" * 1000)[0] in (404, 405)


@pytest.mark.parametrize(("length", "code"), [(1 << 20, None), ((1 << 20) + 1, 1009)])
def test_a_message_that_is_too_long_ends_its_connection(
    server: Server, length: int, code: int | None
) -> None:
    """Pages use a WebSocket; its messages have the same size limit as requests."""
    parts = urlsplit(server.address)
    connection = WSConnection(ConnectionType.CLIENT)
    target = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20) as wire:
        wire.sendall(connection.send(Request(host=parts.netloc, target=target)))
        # After the message, a ping: an answer to it means that the message was accepted.
        message = [TextMessage("6" + "x" * (length - 1)), Ping()]
        for event in received(wire, connection):
            if isinstance(event, AcceptConnection):
                wire.sendall(b"".join(map(connection.send, message)))
            elif isinstance(event, Pong):
                assert code is None
                return
            elif isinstance(event, CloseConnection):
                assert event.code == code
                return
    raise AssertionError("the server did not respond")


MALFORMED = (
    *("42[", "42{}", '42["event"]', '42["event",{}]', '42["event",{"id":1}]', '42["ack",{}]', "9"),
    *('42["log",{}]', '45-["x"]', "4999", "b!!!", "4", "", "\x00", '42["event",' + "[" * 5000),
)


def test_malformed_events_are_ignored(server: Server) -> None:
    """Each is one line of the log; the fixture looks for tracebacks in the end."""
    parts = urlsplit(server.address)
    target = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket&client_id=x&document_id=y"
    for message in MALFORMED:
        connection = WSConnection(ConnectionType.CLIENT)
        with (
            socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20) as wire,
            # A server that closes the connection before it has read the ping resets it.
            contextlib.suppress(ConnectionError),
        ):
            wire.sendall(connection.send(Request(host=parts.netloc, target=target)))
            for event in received(wire, connection):
                if isinstance(event, AcceptConnection):
                    for text in ("40", message):
                        wire.sendall(connection.send(TextMessage(text)))
                    wire.sendall(connection.send(Ping()))
                elif isinstance(event, Pong | CloseConnection):
                    break
    assert server.request("/")[0] == 200


def test_headers_are_limited(server: Server) -> None:
    assert server.request("/", X_Long="x" * 100_000)[0] in (400, 431)


def received(wire: socket.socket, connection: WSConnection) -> Iterator[Event]:
    while data := wire.recv(1 << 16):
        connection.receive_data(data)
        yield from connection.events()


def test_a_port_in_use_is_an_error_if_it_was_given(
    server: Server,
) -> None:
    port = str(urlsplit(server.address).port)
    result = subprocess.run(
        [sys.executable, "-m", "keisei", "play", "random", "--no-browser", "--port", port],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert result.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr


def test_scripts_and_styles_are_packaged() -> None:
    static = Path(keisei.__file__).parent / "web" / "static"
    texts = [path for path in static.rglob("*") if path.suffix in (".css", ".js")]
    names = {path.name for path in texts}
    assert names >= {"theme.css", "dashboard.css", "dashboard.js", "play.css", "board.js"}
    for path in texts:
        text = path.read_text(encoding="utf-8")
        assert "http://" not in text
        assert "https://" not in text, "nothing is loaded from elsewhere"
