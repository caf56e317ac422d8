"""The rollout buffer: its size, and what it hands to the learner."""

import numpy as np
import pytest

from keisei.ppo.buffer import ExperienceBuffer
from keisei.shogi.game import ShogiGame
from keisei.shogi.material import PIECE_POINTS, material_potentials
from keisei.shogi.packed import pack_game


def test_a_ply_takes_less_than_512_bytes() -> None:
    assert ExperienceBuffer(64, 256).bytes_per_ply <= 160


def test_an_empty_buffer_is_not_taken_for_a_missing_one() -> None:
    """Nothing has been played into it, and one of no games never holds anything."""
    for buffer in (ExperienceBuffer(2, 3), ExperienceBuffer(2, 0)):
        assert buffer
        assert (buffer or None) is buffer
        assert len(buffer.sample_order(np.random.default_rng(0))) == 0
    assert len(ExperienceBuffer(2, 0)) == 0, "by its length alone it would be falsy"


def test_returns_are_advantages_plus_values() -> None:
    buffer = ExperienceBuffer(2, 1)
    buffer.rewards[1] = 1.0
    buffer.values[:] = 0.25
    buffer.ends[1] = True
    buffer.finish(gamma=1.0, gae_lambda=1.0)
    assert buffer.returns[:, 0].tolist() == [-1.0, 1.0]
    assert buffer.advantages[:, 0].tolist() == [-1.25, 0.75]


def test_the_value_can_learn_by_another_lambda() -> None:
    """By the outcomes here, while the advantages rely on the values."""
    buffer = ExperienceBuffer(2, 1)
    buffer.rewards[1] = 1.0
    buffer.values[:] = 0.25
    buffer.ends[1] = True
    buffer.finish(gamma=1.0, gae_lambda=0.0, value_lambda=1.0)
    assert buffer.returns[:, 0].tolist() == [-1.0, 1.0]
    assert buffer.advantages[:, 0].tolist() == [-0.5, 0.75]


def test_only_useful_plies_are_sampled_each_once() -> None:
    buffer = ExperienceBuffer(3, 2)
    buffer.learns_value[0] = True
    buffer.learns_policy[1, 1] = True
    order = buffer.sample_order(np.random.default_rng(0))
    assert sorted(order.tolist()) == [0, 1, 3]


def test_shaping_rewards_a_gain_of_material() -> None:
    """Black takes a pawn with the second position's view turned: Black's move is rewarded."""
    game = ShogiGame("4k4/9/9/9/4p4/4R4/9/9/4K4 b - 1")
    buffer = ExperienceBuffer(1, 1)
    buffer.packed[0, 0] = pack_game(game)[0]
    game.push("5f5e")
    after = pack_game(game)
    buffer.last_packed[...] = after
    buffer.finish(gamma=1.0, gae_lambda=1.0, shaping=1.0)
    gain = -float(material_potentials(after)[0]) - float(material_potentials(buffer.packed[0])[0])
    assert buffer.advantages[0, 0] == pytest.approx(gain)
    assert gain > 0


def test_material_is_the_movers() -> None:
    sfen = "4k4/9/9/9/9/9/9/9/4K4 {} R2Pb 1"
    black = float(material_potentials(pack_game(ShogiGame(sfen.format("b"))))[0])
    white = float(material_potentials(pack_game(ShogiGame(sfen.format("w"))))[0])
    points = PIECE_POINTS[6] + 2 * PIECE_POINTS[0] - PIECE_POINTS[5]
    assert black == -white == pytest.approx(float(np.tanh(points / 30)))
    assert float(material_potentials(pack_game(ShogiGame()))[0]) == 0.0
