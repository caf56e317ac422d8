"""Pages whose scripts send anything: each listener of each page ignores what it cannot use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.conftest import Server

pytest.importorskip("nicegui")

from tests.soak.live_page import LivePage

ANYTHING = (
    *("null", '"x"', "{}", "[]", '[{"a": 1}, [2], null]', "1e308", "-5", '""'),
    '{"value": 99, "added": true, "rows": [1], "keys": 5}',
)
"""JSON that no script of ours sends; the last one is what menus and tables begin to understand."""


@pytest.fixture(scope="module")
def play_server(runs: Path) -> Iterator[Server]:
    """Yield a server; its end fails if a traceback was logged."""
    server = Server("play", "--runs", str(runs), "--seed", "1")
    yield server
    server.interrupt()


@pytest.fixture(scope="module")
def dashboard_server(runs: Path) -> Iterator[Server]:
    server = Server("dashboard", str(runs))
    yield server
    server.interrupt()


def send_anything(server: Server, path: str) -> None:
    """Send each thing to a page of its own: what one starts may close the page or open dialogs."""
    for arguments in ANYTHING:
        with LivePage(server, path) as page:
            assert page.send_to_all(arguments) > 3
    assert server.request(path)[0] == 200


@pytest.mark.parametrize("path", ["/", "/analysis", "/editor", "/tsume"])
def test_events_of_the_board_with_anything(play_server: Server, path: str) -> None:
    send_anything(play_server, path)


@pytest.mark.parametrize("path", ["/", "/run/tiny", "/games", "/ladder"])
def test_events_of_the_dashboard_with_anything(dashboard_server: Server, path: str) -> None:
    send_anything(dashboard_server, path)
