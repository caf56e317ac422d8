"""Expert iteration: games played by search, and a policy that learns what the search chose."""

from pathlib import Path

import numpy as np
import pytest

from keisei.config import ConfigError
from keisei.network.predictor import Prediction
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import LearnSettings
from keisei.search.mcts import SearchResult
from keisei.shogi.packed import Positions, legal_from_packed
from keisei.shogi.position import new_positions
from keisei.training.trainer import Trainer
from tests.tiny import tiny_config, tiny_trainer

EXPERT = ("selfplay.simulations=8", "env.ply_limit=60", "ppo.entropy=0", "ppo.entropy_end=0")


def positions_of(buffer: ExperienceBuffer) -> Positions:
    """All positions of a rollout, with the legal moves that the learner sees."""
    packed = buffer.packed.reshape(-1)
    legal = np.zeros((len(packed), 593), dtype=np.uint16)
    counts = np.zeros(len(packed), dtype=np.int32)
    legal_from_packed(packed, legal, counts, new_positions(2), 0, len(packed))
    return Positions(packed, legal, counts)


def cross_entropy(trainer: Trainer) -> float:
    """Mean cross-entropy of the targets of the rollout and the network's policy."""
    buffer = trainer.buffer
    positions = positions_of(buffer)
    prediction: Prediction = trainer.learner.network.predict(positions)
    losses = []
    for row in np.flatnonzero(buffer.learns_policy.reshape(-1)):
        legal = positions.legal_actions[row, : positions.legal_counts[row]].tolist()
        actions = buffer.target_actions.reshape(len(buffer), -1)[row]
        probs = buffer.target_probs.reshape(len(buffer), -1)[row]
        losses.append(
            -sum(
                float(p) * float(prediction.log_probs[row, legal.index(action)])
                for action, p in zip(actions.tolist(), probs, strict=True)
                if p > 0.0
            )
        )
    return float(np.mean(losses))


@pytest.mark.parametrize("mirror", ["true", "false"])
def test_targets_are_distributions_over_legal_moves(
    tmp_path: Path, family: str, mirror: str
) -> None:
    trainer = tiny_trainer(
        tmp_path, family, *EXPERT, f"ppo.mirror={mirror}", "selfplay.search_temperature=1"
    )
    trainer.train_step()
    buffer = trainer.buffer
    positions = positions_of(buffer)
    learns = buffer.learns_policy.reshape(-1)
    assert learns.any()
    actions = buffer.target_actions.reshape(len(buffer), -1)
    probs = buffer.target_probs.reshape(len(buffer), -1)
    assert np.allclose(probs[learns].sum(axis=1), 1.0, atol=1e-6)
    assert not probs[~learns].any()
    played = buffer.actions.reshape(-1)
    for row in np.flatnonzero(learns):
        legal = positions.legal_actions[row, : positions.legal_counts[row]]
        chosen = actions[row][probs[row] > 0.0]
        assert len(set(chosen.tolist())) == len(chosen)
        assert np.isin(chosen, legal).all()
        assert played[row] in chosen  # eight simulations try at most eight moves
        visits = probs[row] * 8
        assert np.allclose(visits, np.round(visits), atol=1e-5) or len(chosen) == 1


def test_the_policy_learns_the_targets(tmp_path: Path, family: str) -> None:
    trainer = tiny_trainer(tmp_path, family, *EXPERT)
    trainer.train_step()
    before = cross_entropy(trainer)
    for _ in range(30):
        stats = trainer.learner.learn(trainer.buffer, LearnSettings(0.01, 0.0))
    assert cross_entropy(trainer) < before - 0.5
    assert stats.metrics["losses/approx_kl"] == stats.metrics["losses/clip_fraction"] == 0.0


def test_values_are_those_of_the_search(tmp_path: Path) -> None:
    """What the network says of the position itself is not what it learns from."""
    trainer = tiny_trainer(tmp_path, "model.type=sparse", *EXPERT)
    before = trainer.learner.network.copy()
    trainer.train_step()
    own = before.predict(positions_of(trainer.buffer)).values
    found = trainer.buffer.values.reshape(-1)
    learns = trainer.buffer.learns_policy.reshape(-1)
    assert np.abs(found - own)[learns].max() > 1e-3
    assert np.allclose(found[~learns], own[~learns], atol=1e-5)


@pytest.mark.parametrize("mirror", ["true", "false"])
def test_mates_played_by_rule_are_targets_if_they_are_learned(
    tmp_path: Path, family: str, mirror: str
) -> None:
    trainer = tiny_trainer(
        tmp_path, family, "selfplay.simulations=2", "selfplay.learn_mates=true",
        f"ppo.mirror={mirror}", "env.ply_limit=200", "selfplay.rollout_plies=150",
        "env.num_games=32",
    )  # fmt: skip
    buffer = trainer.buffer
    buffer.target_probs[...] = 0.25  # of an earlier rollout
    stats = trainer.selfplay.collect(buffer, trainer.timer)
    assert stats.forced_plies > 0
    assert buffer.learns_policy.all()
    assert np.allclose(buffer.target_probs.sum(axis=2), 1.0, atol=1e-6)
    mates = buffer.ends & (buffer.rewards == 1.0)
    assert mates.sum() >= stats.forced_plies
    certain = mates & (buffer.target_probs[:, :, 0] == 1.0)
    assert certain.sum() >= stats.forced_plies
    assert (buffer.target_actions[certain][:, 0] == buffer.actions[certain]).all()


def test_the_policy_that_a_search_found() -> None:
    result = SearchResult(
        legal_indices=np.array([0, 1, 2]),
        values=np.array([0.5, 1.0, 0.1]),
        visits=np.array([[4, 2, 2, 0], [6, 2, 0, 0], [0, 0, 0, 0]]),
        lines=[(), (), ()],
    )
    expected = [[0.5, 0.25, 0.25, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    assert np.allclose(np.exp(result.log_probs(1.0)), expected)
    sharper = np.exp(result.log_probs(0.5))[0]
    assert np.allclose(sharper, [16 / 24, 4 / 24, 4 / 24, 0.0])


def test_a_limit_of_ppo_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"ppo\.target_kl belongs to PPO"):
        tiny_config("selfplay.simulations=8", "ppo.target_kl=0.02")
