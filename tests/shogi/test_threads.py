"""Ranges shared among threads."""

import threading

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
