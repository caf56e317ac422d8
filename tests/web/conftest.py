"""A server as users start it, and a real browser: fixtures of the tests of pages."""

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import psutil
import pytest

from tests.tiny_runs import tiny_run
from tests.web.windows import Windows

if TYPE_CHECKING:
    from playwright.sync_api import Browser

THIS_MACHINE_ONLY = Path(__file__).with_name("this_machine_only")
"""A module that a Python imports first; it refuses connections to other machines."""

NO_OTHER_HOST = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
"""The browser's argument that leaves it nothing but loopback, for sockets and prefetching too."""

ENGINE = """
import pathlib, sys, time
alive = pathlib.Path(sys.argv[1])
alive.write_text("yes")
plies = 0
for line in sys.stdin:
    words = line.split()
    if words[0] == "usi":
        print("id name stub\\nusiok", flush=True)
    elif words[0] == "isready":
        print("readyok", flush=True)
    elif words[0] == "position":
        plies = len(words) - words.index("moves") - 1 if "moves" in words else 0
    elif words[0] == "go":
        time.sleep(float(sys.argv[2]))
        print("bestmove", ["7g7f", "", "2g2f", "", "2f2e", "", "2e2d"][plies], flush=True)
    elif words[0] == "quit":
        break
alive.unlink()
"""
"""A USI engine with four fixed moves of Black; a file exists while it runs."""


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one run and a directory that is not a run."""
    directory = tmp_path_factory.mktemp("runs")
    tiny_run(directory / "tiny", checkpoints=2)
    (directory / "no-run").mkdir()
    return directory


class Engine:
    """The engine with fixed moves: its player spec, and whether it runs."""

    def __init__(self, directory: Path, *, seconds: float = 0.0) -> None:
        """Write the program, which takes some seconds for each move."""
        program = directory / "engine.py"
        program.write_text(ENGINE)
        self._program, self._alive = program, directory / "alive"
        self.spec = f'usi:"{sys.executable}" "{program}" "{self._alive}" {seconds}'

    def remove(self) -> None:
        """Remove the program, so that it cannot start any more."""
        self._program.unlink()

    def is_running(self) -> bool:
        return self._alive.exists()


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def without_network() -> dict[str, str]:
    """Return the environment of a Python that can reach this machine only."""
    places = [str(THIS_MACHINE_ONLY), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(place for place in places if place)}


class Server:
    """``keisei play`` or ``keisei dashboard`` as users start it, without any other machine."""

    def __init__(
        self,
        command: str,
        *arguments: str,
        games: Path | None = None,
        program: Sequence[str] = ("-m", "keisei"),
    ) -> None:
        self._has_own_games = games is None
        self.games = games or Path(tempfile.mkdtemp(prefix="keisei-games-"))
        self._process = subprocess.Popen(
            [sys.executable, *program, command, "--no-browser", "--port=0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env=without_network()
            | {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "KEISEI_GAMES": str(self.games)},
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        assert self._process.stdout is not None
        self.printed = ""
        self.address = ""
        for line in self._process.stdout:
            self.printed += line
            if found := re.search(r"http://\S+", line):
                self.address = found[0]
                return
        raise AssertionError(f"no address was printed: {self.printed}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.interrupt()

    def memory(self) -> int:
        """Return the bytes that the process keeps in memory."""
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def request(
        self, path: str, *, method: str = "GET", body: bytes = b"", **headers: str
    ) -> tuple[int, str]:
        """Return status and text of a response; the path is sent as it is."""
        parts = urlsplit(self.address)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def interrupt(self) -> int:
        """Send Ctrl-C and return the exit code; what was printed meanwhile is kept."""
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return self._process.returncode  # it has been interrupted before
        if self._process.poll() is None:
            # On Windows only Ctrl-Break can be sent to another process group.
            self._process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT))
        try:
            printed, _ = self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        self.printed += printed
        if self._has_own_games:
            shutil.rmtree(self.games, ignore_errors=True)
        assert "Traceback" not in self.printed, self.printed
        assert "refused to reach" not in self.printed, self.printed
        return self._process.returncode


@pytest.fixture(scope="session")
def server(runs: Path) -> Iterator[Server]:
    """``keisei play``; tests of another server have a fixture of their own."""
    pytest.importorskip("nicegui")
    server = Server("play", "--runs", str(runs), "--seed", "1")
    yield server
    server.interrupt()


def chromium() -> str | None:
    """Return the path of the system's browser; none is downloaded."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


REQUIRE_BROWSER = "KEISEI_REQUIRE_BROWSER"
"""Variable of the environment: if it is set, tests fail where they would be skipped otherwise,
because there is no browser, or nothing that drives or examines it."""


def missing_tools() -> list[str]:
    """Return what the tests in a browser lack."""
    modules = ("nicegui", "playwright", "axe_playwright_python")
    missing = [name for name in modules if find_spec(name) is None]
    return missing if chromium() else [*missing, "Chromium"]


def require_browser() -> None:
    """Fail if a browser is required, and something is missing."""
    if os.environ.get(REQUIRE_BROWSER) and (missing := missing_tools()):
        pytest.fail(f"{REQUIRE_BROWSER} is set, but these are missing: {', '.join(missing)}")


@pytest.fixture(scope="session", autouse=True)
def browser_is_there_where_required() -> None:
    require_browser()


# Not for the session: while Playwright is open, an event loop runs, and other tests need their own.
@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    playwright = pytest.importorskip("playwright.sync_api")
    program = chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as play:
        launched: Any = play.chromium.launch(
            executable_path=program, args=["--no-sandbox", NO_OTHER_HOST]
        )
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def windows(browser: "Browser") -> Windows:
    return Windows(browser)
