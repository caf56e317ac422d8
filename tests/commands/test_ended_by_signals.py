"""Games that a job scheduler or a closed terminal ends: what was played is kept, as by Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.results import ResultStore
from keisei.interrupts import INTERRUPTED
from keisei.system import module_environment
from tests.tiny_runs import tiny_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such signals")

LIMIT = 120.0
"""Seconds that may pass on a busy machine."""

FOREGROUND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""What has no effect in a terminal; processes that run in the background ignore Ctrl-C."""

IN_A_TERMINAL = """
import os, sys
errors = os.dup(2)
os.login_tty(int(sys.argv.pop(1)))
os.dup2(errors, 2)
"""

MAIN = """
from keisei.__main__ import main
main()
"""


@pytest.fixture(autouse=True)
def unignored_hang_up() -> Iterator[None]:
    """Programs that are started can be hung up, also if pytest runs under nohup."""
    before = signal.signal(signal.SIGHUP, lambda *_: None)
    yield
    signal.signal(signal.SIGHUP, before)


def stored_games(path: Path) -> int:
    try:
        with ResultStore(path) as store:
            return sum(games for _, games in store.conditions())
    except KeiseiError:  # the process is creating it
        return 0


def wait_for_games(process: "subprocess.Popen[str]", store: Path) -> None:
    deadline = time.monotonic() + LIMIT
    while not stored_games(store):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def arguments_of(command: str, directory: Path, store: Path) -> list[str]:
    players = ["greedy", "random"]
    if command == "evaluate":
        players = [str(tiny_run(directory / "run")), "--opponents=random"]
    return [command, *players, "--games=1000000", "--threads=1", f"--store={store}"]


@pytest.mark.parametrize("command", ["match", "ladder", "evaluate"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_acts_like_ctrl_c(command: str, name: str, tmp_path: Path) -> None:
    store = tmp_path / "ladder.sqlite3"
    process = subprocess.Popen(
        [sys.executable, "-c", FOREGROUND + MAIN, *arguments_of(command, tmp_path, store)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=module_environment(),
    )  # fmt: skip
    try:
        wait_for_games(process, store)
        for _ in range(2):  # the kernel and the shell both send it
            process.send_signal(getattr(signal, name))
            time.sleep(0.01)
        shown, error = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, error) == (INTERRUPTED, "interrupted\n")
    assert ("Interrupted: the games that end first" in shown) == (command == "match")
    assert stored_games(store) > 0


@pytest.mark.parametrize("command", ["match", "ladder"])
def test_a_closed_terminal_is_no_traceback(command: str, tmp_path: Path) -> None:
    store, errors = tmp_path / "ladder.sqlite3", tmp_path / "errors.txt"
    terminal, inside = os.openpty()
    with errors.open("w") as written:
        program = FOREGROUND + IN_A_TERMINAL + MAIN
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(inside), *arguments_of(command, tmp_path, store)],
            stdout=inside, stderr=written, text=True, pass_fds=(inside,), env=module_environment(),
        )  # fmt: skip
    os.close(inside)
    try:
        wait_for_games(process, store)
        os.close(terminal)  # the kernel hangs up
        process.wait(LIMIT)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, errors.read_text()) == (INTERRUPTED, "interrupted\n")
