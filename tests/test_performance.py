"""Ratios that must not turn round: batches are faster than loops. Bounds are generous.

Speeds themselves are measured by ``keisei benchmark``; see docs/benchmarks.md.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from keisei.config_schema import DeviceConfig
from keisei.network.model_factory import make_network
from keisei.shogi import ShogiGame, VectorShogi
from tests.tiny import tiny_config, tiny_trainer

GAMES = 128


def seconds(act: Callable[[], object], repetitions: int = 3) -> float:
    """Return the shortest duration of an action, after one to warm up."""
    act()
    durations = []
    for _ in range(repetitions):
        start = time.perf_counter()
        act()
        durations.append(time.perf_counter() - start)
    return min(durations)


@pytest.fixture(scope="module")
def positions() -> VectorShogi:
    env = VectorShogi(GAMES, seed=1, threads=1)
    for _ in range(20):
        env.step(env.sample_actions())
    return env


def test_many_games_step_faster_together_than_one_by_one(positions: VectorShogi) -> None:
    def one_by_one() -> None:
        for number in range(GAMES):
            game = ShogiGame()
            game.push_action(int(game.legal_actions[number % 30]))
            assert game.outcome() is None
            assert len(game.legal_actions)

    together = seconds(lambda: positions.step(positions.sample_actions()))
    assert together < seconds(one_by_one)


@pytest.mark.parametrize("family", ["sparse", "resnet"])
def test_a_batch_is_predicted_faster_than_its_positions_one_by_one(
    positions: VectorShogi, family: str
) -> None:
    config = tiny_config(f"model.type={family}")
    network = make_network(config, DeviceConfig(device="cpu", threads=1))
    games = np.arange(32)
    batch = positions.observe(games)
    singles = [positions.observe(games[number : number + 1]) for number in range(len(games))]
    alone = seconds(lambda: [network.predict(single) for single in singles])
    assert 1.5 * seconds(lambda: network.predict(batch)) < alone


def test_the_buffer_is_filled_in_place(tmp_path: Path) -> None:
    """Of a whole run: it is allocated once, by the trainer."""
    trainer = tiny_trainer(tmp_path, "model.type=sparse")

    def places() -> dict[str, int]:
        return {name: array.ctypes.data for name, array in trainer.buffer.arrays().items()}

    before, contents = places(), []
    for _ in range(2):
        trainer.train_step()
        contents.append(trainer.buffer.actions.copy())
    assert places() == before
    assert not np.array_equal(contents[0], contents[1]), "it was filled again"
