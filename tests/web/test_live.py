"""The running server as an attacker sees it: files, hosts, origins, sizes. No browser needed."""

import http.client
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import keisei
from tests.web.conftest import Server

pytest.importorskip("nicegui")


def ask(
    server: Server, path: str, *, method: str = "GET", body: bytes = b"", **headers: str
) -> tuple[int, bytes]:
    """One request, its path sent as it is."""
    address = urlsplit(server.address)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_the_page_is_there(server: Server) -> None:
    status, body = ask(server, "/")
    assert status == 200
    assert b"Keisei" in body


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
        "/?table=../../etc/passwd",
    ],
)
def test_no_path_leads_to_a_file(server: Server, path: str) -> None:
    import nicegui

    status, body = ask(server, path.format(version=nicegui.__version__))
    assert b"root:" not in body
    assert b"tower_depth" not in body, "a run's settings"
    assert b"def run(" not in body
    assert b"def serve(" not in body
    assert status == 404 or path.startswith("/?table"), status


def test_foreign_hosts_and_origins_are_refused(server: Server) -> None:
    assert ask(server, "/", Host="rebound.example")[0] == 421
    assert ask(server, "/", Origin="http://evil.example")[0] == 403
    socket_path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    assert ask(server, socket_path, Origin="http://evil.example")[0] == 403
    assert ask(server, socket_path, Host="rebound.example")[0] == 421


def test_what_is_too_large_is_refused(server: Server) -> None:
    path = "/_nicegui/client/some-client/upload/4"
    status, _ = ask(server, path, method="POST", Content_Length=str(50 << 20))
    assert status == 413
    assert ask(server, path, method="POST", Transfer_Encoding="chunked")[0] == 411
    assert ask(server, path, method="POST", body=b"x" * 1000)[0] in (404, 405)


def test_a_second_server_finds_another_port_but_says_so_if_one_was_asked_for(
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
    names = {path.name for path in static.iterdir()}
    board = {"play.css", "board.js", "moves.js", "graph.js"}
    assert names == {"theme.css", "dashboard.css", "dashboard.js"} | board
    for path in static.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "http://" not in text
        assert "https://" not in text, "nothing is loaded from elsewhere"
