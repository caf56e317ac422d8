"""A running `keisei play` and a real browser, shared by the tests of pages."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.tiny_runs import tiny_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ENGINE = """
import pathlib, sys
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
        print("bestmove", ["7g7f", "3c3d", "2g2f", "8c8d"][plies], flush=True)
    elif words[0] == "quit":
        break
alive.unlink()
"""
"""An engine that plays four moves by heart; a file is there for as long as it runs."""


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one run, and with something that is none."""
    directory = tmp_path_factory.mktemp("runs")
    tiny_run(directory / "tiny", checkpoints=2)
    (directory / "no-run").mkdir()
    return directory


class Engine:
    """The engine by heart, as a player's word, and whether it runs."""

    def __init__(self, directory: Path) -> None:
        program = directory / "engine.py"
        program.write_text(ENGINE)
        self._alive = directory / "alive"
        self.word = f'usi:"{sys.executable}" "{program}" "{self._alive}"'

    def is_running(self) -> bool:
        return self._alive.exists()


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


class Server:
    """``keisei play`` as users start it."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "keisei", "play", "--no-browser", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"},
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

    def interrupt(self) -> int:
        """Press Ctrl-C; the exit code. What was printed meanwhile is kept."""
        if self._process.poll() is None:
            # Windows can send Ctrl-Break alone to another group of processes.
            self._process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT))
        try:
            printed, _ = self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        self.printed += printed
        return self._process.returncode


@pytest.fixture(scope="session")
def server(runs: Path) -> Iterator[Server]:
    pytest.importorskip("nicegui")
    server = Server("--runs", str(runs), "--seed", "1")
    yield server
    server.interrupt()
    assert "Traceback" not in server.printed, server.printed


def chromium() -> str | None:
    """The system's browser; none is downloaded."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


# Not for the session: while Playwright is open, an event loop runs, and other tests need their own.
@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    playwright = pytest.importorskip("playwright.sync_api")
    program = chromium()
    if program is None:
        pytest.skip("there is no Chromium here")
    with playwright.sync_playwright() as play:
        launched: Any = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()
