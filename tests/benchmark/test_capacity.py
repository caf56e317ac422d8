"""The plan for a cluster agrees with a simulation of the work items."""

import itertools

import pytest

from keisei.benchmark.capacity import Capacity, simulated_update_seconds
from keisei.ppo.buffer import Experience


def capacity(shares: int, max_lag: int, learner_rate: float) -> Capacity:
    return Capacity(
        games=256,
        rollout_plies=64,
        shares=shares,
        max_lag=max_lag,
        learner_rate=learner_rate,
        worker_rate=1_000.0,
        weights_bytes=800_000,
        update_overhead=0.1,
    )


@pytest.mark.parametrize("max_lag", [0, 1, 2, 4])
def test_the_plan_is_what_a_simulation_finds(max_lag: int) -> None:
    ratios = []
    for shares, workers, learner_rate in itertools.product(
        (1, 2, 4, 8, 16), (1, 2, 3, 4, 8, 12, 16, 32), (500.0, 5_000.0, 50_000.0)
    ):
        plan = capacity(shares, max_lag, learner_rate)
        ratios.append(simulated_update_seconds(plan, workers, 100) / plan.update_seconds(workers))
    # Updates may alternate between short and long, which an average over 50 of them shows.
    assert min(ratios) > 0.97, "nothing is faster than the plan"
    assert sum(abs(ratio - 1.0) < 0.02 for ratio in ratios) > 0.9 * len(ratios)
    assert max(ratios) < 1.15, "workers whose number does not divide the work items lose a little"


def test_enough_workers_are_enough() -> None:
    plan = capacity(shares=16, max_lag=1, learner_rate=5_000.0)
    assert plan.enough_workers == 5
    assert plan.update_seconds(5) == plan.learning_seconds
    assert plan.update_seconds(4) > plan.learning_seconds


def test_bytes_are_those_of_the_arrays() -> None:
    plan = capacity(shares=4, max_lag=1, learner_rate=5_000.0)
    arrays = Experience(64, 256).arrays().values()
    assert plan.bytes_per_ply == pytest.approx(sum(a.nbytes for a in arrays) / plan.plies, 1e-3)
    into, out = plan.learner_traffic(workers=8, nodes=2)
    assert into == pytest.approx(plan.bytes_per_ply * plan.plies_per_second(8))
    assert out == pytest.approx(1_600_000 / plan.update_seconds(8))
