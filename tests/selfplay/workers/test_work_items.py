"""Tickets: whatever workers do, each is played once, in its turn, with weights that may play it."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from keisei.selfplay.workers.messages import Tickets


def test_nothing_is_drawn_before_the_first_weights() -> None:
    assert Tickets[int](shares=3, max_lag=4).draw() is None


def test_workers_may_be_ahead_by_the_permitted_lag() -> None:
    tickets = Tickets[int](shares=2, max_lag=1)
    tickets.begin_round()
    assert [tickets.draw() for _ in range(5)] == [0, 1, 2, 3, None]
    tickets.hand_in(1, 1)
    assert not tickets.is_complete
    tickets.hand_in(0, 0)
    assert tickets.collect() == [0, 1]
    assert tickets.draw() is None, "there are no weights for the update after the next"
    tickets.begin_round()
    assert [tickets.draw() for _ in range(3)] == [4, 5, None]


@given(st.data(), st.integers(1, 4), st.integers(0, 3))
def test_nothing_is_lost_doubled_or_too_old(data: Any, shares: int, max_lag: int) -> None:
    tickets = Tickets[tuple[int, int]](shares=shares, max_lag=max_lag)
    version = 0
    tickets.begin_round()
    held: dict[int, int] = {}
    learned: list[int] = []
    for _ in range(data.draw(st.integers(1, 60), label="steps")):
        action = data.draw(st.sampled_from(["draw", "play", "die", "learn"]))
        if action == "draw" and (number := tickets.draw()) is not None:
            assert number not in held
            held[number] = version
        elif action == "play" and held:
            number = data.draw(st.sampled_from(sorted(held)))
            tickets.hand_in(number, (number, held.pop(number)))
        elif action == "die" and held:
            number = data.draw(st.sampled_from(sorted(held)))
            del held[number]
            tickets.give_back(number)
        elif action == "learn" and tickets.is_complete:
            for number, played_version in tickets.collect():
                learned.append(number)
                assert 0 <= version - played_version <= max_lag
            version += 1
            tickets.begin_round()
    assert learned == list(range(version * shares))
    # Nobody waits for ever: one worker alone can bring every update to its end.
    for _ in range(3):
        for number, played_version in list(held.items()):
            tickets.hand_in(number, (number, played_version))
        held.clear()
        while not tickets.is_complete:
            number = tickets.draw()
            assert number is not None
            tickets.hand_in(number, (number, version))
        assert all(version - played <= max_lag for _, played in tickets.collect())
        version += 1
        tickets.begin_round()
