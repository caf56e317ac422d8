"""A server as users start it, and a real browser: fixtures of the tests of pages."""

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil
import pytest

from tests.tiny_runs import tiny_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DESK = (1280, 860)
PHONE = (360, 740)
OpenPage = Callable[..., "Page"]

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
        print("bestmove", ["7g7f", "3c3d", "2g2f", "8c8d", "2f2e"][plies], flush=True)
    elif words[0] == "quit":
        break
alive.unlink()
"""
"""A USI engine with five fixed moves; a file exists while it runs."""


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
        self._alive = directory / "alive"
        self.spec = f'usi:"{sys.executable}" "{program}" "{self._alive}" {seconds}'

    def is_running(self) -> bool:
        return self._alive.exists()


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


class Server:
    """``keisei play`` or ``keisei dashboard`` as users start it."""

    def __init__(self, command: str, *arguments: str, games: Path | None = None) -> None:
        self._has_own_games = games is None
        self.games = games or Path(tempfile.mkdtemp(prefix="keisei-games-"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "keisei", command, "--no-browser", "--port=0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env=os.environ
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


# Not for the session: while Playwright is open, an event loop runs, and other tests need their own.
@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    playwright = pytest.importorskip("playwright.sync_api")
    program = chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as play:
        launched: Any = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()


def accessibility_problems(page: "Page", *, popup: bool = False) -> list[str]:
    """Return what axe-core finds on a page: rule, and the elements that break it.

    An open menu (`popup`) is outside the landmarks: the widgets attach it to the document's body.
    """
    page.wait_for_function(  # colours are judged as they will stay
        "document.getAnimations().every(one => one.playState !== 'running'"
        " || one.effect.getTiming().iterations === Infinity)"
    )
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    results: Any = axe.run(page, options={"rules": {"region": {"enabled": not popup}}}).response
    return [
        f"{violation['id']}: {node['html'][:160]}"
        for violation in results["violations"]
        for node in violation["nodes"]
    ]


@contextmanager
def open_pages(browser: "Browser", server: Server, ready: str) -> Iterator[OpenPage]:
    """Yield a function that opens a page and waits for the selector `ready`.

    At the end, checks that no page had an error or sent a request to another server.
    """
    contexts = []
    problems: list[str] = []

    def block_others(route: Any, request: Any) -> None:
        """Nothing but this server can be reached."""
        if request.url.startswith((server.address, "data:", "blob:")):
            route.continue_()
        else:
            problems.append(request.url)
            route.abort()

    def open_page(
        path: str = "",
        size: tuple[int, int] = DESK,
        *,
        dark: bool = False,
        touch: bool = False,
        language: str = "en-US",
        motion: bool = False,
    ) -> "Page":
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            has_touch=touch or size == PHONE,
            is_mobile=touch,
            locale=language,
            reduced_motion="no-preference" if motion else "reduce",
        )
        context.route("**", block_others)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda message: problems.append(message.text) if message.type == "error" else None,
        )
        page.goto(server.address + path)
        page.wait_for_selector(ready)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
