"""Ranges shared among threads."""

import copy
import os
import subprocess
import sys
import threading
import time
import weakref

import pytest

from keisei.shogi.threads import MIN_RANGE, RangePool


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("number", [1, MIN_RANGE - 1, MIN_RANGE, 3 * MIN_RANGE + 1, 1_001])
def test_ranges_cover_everything_once(threads: int, number: int) -> None:
    done = [0] * number
    lock = threading.Lock()

    def work(start: int, stop: int) -> None:
        with lock:
            for index in range(start, stop):
                done[index] += 1

    pool = RangePool(threads)
    pool.run(work, number)
    pool.run(work, number)
    pool.close()
    assert done == [2] * number


@pytest.mark.parametrize("failing", ["first", "last"])
def test_an_error_in_any_range_reaches_the_caller(failing: str) -> None:
    pool = RangePool(3)

    def work(start: int, stop: int) -> None:
        if (start == 0) == (failing == "first"):
            raise ValueError(f"range {failing}")

    with pytest.raises(ValueError, match=f"range {failing}"):
        pool.run(work, 10 * MIN_RANGE)
    pool.close()


def test_several_threads_really_work() -> None:
    pool = RangePool(2)
    meeting = threading.Barrier(2, timeout=10)
    pool.run(lambda start, stop: meeting.wait(), 2 * MIN_RANGE)
    pool.close()


def test_no_threads_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="threads is 0"):
        RangePool(0)


@pytest.mark.parametrize("slow", ["caller", "workers"])
def test_the_share_of_the_caller_is_steered_to_where_it_ends_last(slow: str) -> None:
    pool = RangePool(3)
    shares: list[int] = []

    def work(start: int, stop: int) -> None:
        if start == 0:
            shares.append(stop)
        if (start == 0) == (slow == "caller"):
            time.sleep(0.05)

    for _ in range(12):
        pool.run(work, 1000)
    pool.close()
    if slow == "workers":
        assert shares[0] < shares[5] < shares[-1] < 1000
    else:
        assert set(shares) == {334}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("number", [1, 10 * MIN_RANGE])
def test_a_closed_pool_says_so(threads: int, number: int) -> None:
    pool = RangePool(threads)
    pool.run(lambda start, stop: None, number)
    pool.close()
    pool.close()
    with pytest.raises(RuntimeError, match="this environment is closed"):
        pool.run(lambda start, stop: None, number)


def test_a_copy_has_threads_of_its_own() -> None:
    pool = RangePool(2)
    copied = copy.deepcopy(pool)
    pool.close()
    meeting = threading.Barrier(2, timeout=10)
    copied.run(lambda start, stop: meeting.wait(), 2 * MIN_RANGE)
    copied.close()


def test_threads_end_with_the_pool() -> None:
    pool = RangePool(2)
    (worker,) = pool._workers
    del pool
    worker.join(timeout=10)
    assert not worker.is_alive()


def test_results_are_not_kept_alive_while_waiting() -> None:
    class Payload:
        pass

    pool = RangePool(2)
    payload = Payload()
    gone = weakref.ref(payload)
    pool.run(lambda payload, start, stop: None, 2 * MIN_RANGE, payload)
    pool.run(lambda start, stop: None, 2 * MIN_RANGE)  # the worker has let go of the task before
    del payload
    assert gone() is None
    pool.close()


def test_an_open_pool_does_not_hinder_the_end_of_the_program() -> None:
    program = (
        "from keisei.shogi.threads import MIN_RANGE, RangePool\n"
        "pool = RangePool(3)\n"
        "pool.run(lambda start, stop: None, 9 * MIN_RANGE)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stderr) == (0, "")


FORK = """
import os, signal, sys, warnings
from keisei.shogi.threads import MIN_RANGE, RangePool

warnings.simplefilter("ignore")  # Python 3.12 and later warn of forks beside threads
done = []
pool = RangePool(2)
pool.run(lambda start, stop: done.append((start, stop)), 2 * MIN_RANGE)
child = os.fork()
if child == 0:
    signal.alarm(20)  # in place of waiting for ever
    if sys.argv[1] == "run":
        pool.run(lambda start, stop: done.append((start, stop)), 2 * MIN_RANGE)
        assert len(done) == 4, done
    pool.close()
else:
    _, status = os.waitpid(child, 0)
    pool.run(lambda start, stop: done.append((start, stop)), 2 * MIN_RANGE)
    assert len(done) == 4, done
    print("child ended with", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("use", ["run", "only close"])
def test_a_forked_process_starts_threads_of_its_own(use: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", FORK, use], capture_output=True, text=True, check=False
    )
    assert result.stdout == "child ended with 0\n", result.stderr
