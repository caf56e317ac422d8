"""Division of work: game numbers are used once, and each work item is played once, in its turn."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from keisei.ppo.learner import Ranks
from keisei.selfplay.workers.worker import PoolSnapshots
from keisei.selfplay.workers.worker_pool import GameShares, WorkItems
from tests.tiny import tiny_config


def test_numbers_of_games_are_never_given_twice() -> None:
    """Also if a run is resumed with other numbers of workers and of learners."""
    config, seen = tiny_config("env.num_games=8"), set[int]()

    def give(shares: GameShares, plans: int) -> None:
        for _ in range(plans):
            plan = shares.next_plan(PoolSnapshots((), 0))
            numbers = set(range(plan.first_game, plan.first_game + plan.games))
            assert not numbers & seen
            seen.update(numbers)

    two = GameShares(config, shares=2, ranks=Ranks())
    give(two, 3)
    four = GameShares(config, shares=4, ranks=Ranks())
    four.skip(two.games_given)
    give(four, 5)
    first, second = (
        GameShares(config, shares=1, ranks=Ranks(rank=rank, size=2)) for rank in range(2)
    )
    for shares in (first, second):
        shares.skip(four.games_given)
        give(shares, 2)
    alone = GameShares(config, shares=8, ranks=Ranks())
    alone.skip(first.games_given)
    give(alone, 9)


def test_no_item_is_given_out_before_the_first_weights() -> None:
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
        action = data.draw(st.sampled_from(["take", "play", "die", "learn"]))
        if action == "take" and (number := work_items.take()) is not None:
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
    # There is no deadlock: one worker alone can complete every update.
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
