"""WorkItems: whatever workers do, each is played once, in its turn, with weights that may play it."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from keisei.selfplay.workers.messages import WorkItems


def test_nothing_is_drawn_before_the_first_weights() -> None:
    assert WorkItems[int](shares=3, max_lag=4).take() is None


def test_workers_may_be_ahead_by_the_permitted_lag() -> None:
    work_items = WorkItems[int](shares=2, max_lag=1)
    work_items.begin_round()
    assert [work_items.take() for _ in range(5)] == [0, 1, 2, 3, None]
    work_items.complete(1, 1)
    assert not work_items.is_complete
    work_items.complete(0, 0)
    assert work_items.collect() == [0, 1]
    assert work_items.take() is None, "there are no weights for the update after the next"
    work_items.begin_round()
    assert [work_items.take() for _ in range(3)] == [4, 5, None]


@given(st.data(), st.integers(1, 4), st.integers(0, 3))
def test_nothing_is_lost_doubled_or_too_old(data: Any, shares: int, max_lag: int) -> None:
    work_items = WorkItems[tuple[int, int]](shares=shares, max_lag=max_lag)
    version = 0
    work_items.begin_round()
    held: dict[int, int] = {}
    learned: list[int] = []
    for _ in range(data.draw(st.integers(1, 60), label="steps")):
        action = data.draw(st.sampled_from(["draw", "play", "die", "learn"]))
        if action == "draw" and (number := work_items.take()) is not None:
            assert number not in held
            held[number] = version
        elif action == "play" and held:
            number = data.draw(st.sampled_from(sorted(held)))
            work_items.complete(number, (number, held.pop(number)))
        elif action == "die" and held:
            number = data.draw(st.sampled_from(sorted(held)))
            del held[number]
            work_items.put_back(number)
        elif action == "learn" and work_items.is_complete:
            for number, played_version in work_items.collect():
                learned.append(number)
                assert 0 <= version - played_version <= max_lag
            version += 1
            work_items.begin_round()
    assert learned == list(range(version * shares))
    # Nobody waits for ever: one worker alone can bring every update to its end.
    for _ in range(3):
        for number, played_version in list(held.items()):
            work_items.complete(number, (number, played_version))
        held.clear()
        while not work_items.is_complete:
            number = work_items.take()
            assert number is not None
            work_items.complete(number, (number, version))
        assert all(version - played <= max_lag for _, played in work_items.collect())
        version += 1
        work_items.begin_round()
