"""Ctrl-C: one line however early it comes, never lost, and the second one ends at once."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from keisei.interrupts import INTERRUPTED, CtrlC
from keisei.system import InterruptFlag, ctrl_c_held_back, module_environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGINT can't be sent there")

PRESSED_AFTER = """
import os, signal, sys, threading, time
seconds = float(sys.argv.pop(1))
threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
from keisei.__main__ import main
main()
"""

LOST_IN_A_CALLBACK = """
import ctypes, os, signal, time
from keisei.interrupts import CtrlC
CtrlC().install()

def compare(a, b):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):  # the exception is raised in here, and ctypes drops it
        pass
    return 0

prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
numbers = (ctypes.c_int * 2)(2, 1)
ctypes.CDLL(None).qsort(numbers, 2, ctypes.sizeof(ctypes.c_int), prototype(compare))
print("lost", flush=True)
start = time.monotonic()
try:
    time.sleep(20.0)
except KeyboardInterrupt:
    print("raised again" if time.monotonic() - start < 10.0 else "too late", flush=True)
"""

CLEARED_BY_NUMBA = """
import signal, sys, time
from keisei.interrupts import CtrlC, like_ctrl_c
import numpy as np
from numba import njit

number = getattr(signal, sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)
CtrlC().install()

@njit
def first(array):
    return array[0].x

records = np.zeros(2, dtype=[("x", np.int64)]).view(np.recarray)
first(records)
sent = False

def press(frame, event, argument):
    # As if the key were pressed while Numba looks at the array.
    global sent
    if not sent and frame.f_code.co_name == "__getattribute__" and event == "call":
        sent = True
        sys.setprofile(None)
        signal.raise_signal(number)

with like_ctrl_c():
    try:
        sys.setprofile(press)
        first(records)
        sys.setprofile(None)
        print("sent" if sent else "not sent", flush=True)
        time.sleep(20.0)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""

PRESSED_TWICE = """
import os, signal, time
from keisei.interrupts import CtrlC
CtrlC().install()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20.0)
finally:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20.0)
    print("still here", flush=True)
"""


def run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=module_environment(),
        check=False,
    )


@pytest.mark.parametrize("seconds", ["0.05", "0.6", "1.5"])
def test_ctrl_c_while_the_program_starts_is_one_line(seconds: str, tmp_path: Path) -> None:
    """Beyond that the run has begun, which ends after its update."""
    result = run(PRESSED_AFTER, seconds, "train", "--set", f"run.root={tmp_path}")
    assert result.returncode == INTERRUPTED
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr
    if "ending after this update" not in result.stderr:
        assert result.stderr.endswith("interrupted\n")


def test_ctrl_c_is_not_lost_in_a_callback() -> None:
    result = run(LOST_IN_A_CALLBACK)
    assert result.stdout == "lost\nraised again\n"
    assert result.stderr == ""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_ctrl_c_is_not_cleared_by_a_call_of_a_kernel(number: str) -> None:
    result = run(CLEARED_BY_NUMBA, number)
    assert (result.stdout, result.stderr) == ("sent\ninterrupted\n", "")


def test_the_second_ctrl_c_ends_at_once() -> None:
    start = time.monotonic()
    result = run(PRESSED_TWICE)
    assert (result.returncode, result.stdout, result.stderr) == (INTERRUPTED, "", "")
    assert time.monotonic() - start < 15.0


@pytest.fixture
def restored_signals() -> Iterator[None]:
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    hook = sys.unraisablehook
    yield
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("restored_signals")
def test_an_ignored_ctrl_c_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    CtrlC().install()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.usefixtures("restored_signals")
@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP"])
def test_a_flag_is_set_by_what_ends_a_process_however_often(number: str) -> None:
    """A terminal that is closed may send SIGHUP twice: from the kernel and from the shell."""
    signal.signal(getattr(signal, number), signal.SIG_DFL)  # ignored if pytest runs under nohup
    with InterruptFlag() as flag:
        for _ in range(3):
            signal.raise_signal(getattr(signal, number))
        assert flag.is_set
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("restored_signals")
def test_a_run_under_nohup_outlives_its_terminal() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with InterruptFlag() as flag:
        signal.raise_signal(signal.SIGHUP)
    assert not flag.is_set


def test_processes_start_with_ctrl_c_held_back() -> None:
    program = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    with ctrl_c_held_back():
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.communicate(timeout=30)[0] == "True\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


BREAKS_SOMETHING = """
import sys
from keisei import __main__, interrupts

def main():
    {program}
    raise RuntimeError("no compiled object yet")

import keisei.cli
keisei.cli.main = main
__main__.main()
"""


def test_what_a_lost_ctrl_c_broke_is_one_line() -> None:
    """Numba raises RuntimeError if its callback could not finish."""
    lines = LOST_IN_A_CALLBACK.replace("CtrlC().install()\n", "").partition("print(")[0]
    program = "\n".join(f"    {line}" for line in lines.splitlines())
    result = run(BREAKS_SOMETHING.replace("    {program}", program))
    assert (result.returncode, result.stderr) == (INTERRUPTED, "interrupted\n")
