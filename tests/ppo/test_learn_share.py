"""``ppo.learn_share``: learning from the plies with the largest advantages only."""

import numpy as np
import numpy.typing as npt
import pytest

from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import LearnSettings, Ranks, make_learner
from keisei.ppo.ppo_learner import PPOLearner
from keisei.selfplay.source import SelfPlay
from keisei.timing import SectionTimer
from tests.tiny import tiny_config

every_family = pytest.mark.parametrize("model_type", ["resnet", "sparse"])


def some_buffer(plies: int = 8, games: int = 5) -> ExperienceBuffer:
    """A buffer with random advantages, in which one ply of six teaches nothing."""
    random = np.random.default_rng(3)
    buffer = ExperienceBuffer(plies, games)
    buffer.advantages[...] = random.normal(size=(plies, games))
    buffer.learns_value[...] = random.random((plies, games)) < 5 / 6
    buffer.learns_policy[...] = buffer.learns_value & (random.random((plies, games)) < 0.5)
    return buffer


def order(buffer: ExperienceBuffer, share: float) -> list[int]:
    return [int(ply) for ply in buffer.sample_order(np.random.default_rng(0), share)]


def test_all_plies_is_the_default_and_changes_nothing() -> None:
    buffer = some_buffer()
    useful = np.flatnonzero(buffer.learns_value.reshape(-1))
    expected = np.random.default_rng(0).permutation(useful).tolist()
    assert order(buffer, 1.0) == expected
    assert buffer.sample_order(np.random.default_rng(0)).tolist() == expected


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5, 0.9])
def test_the_largest_advantages_are_chosen(share: float) -> None:
    buffer = some_buffer()
    useful = np.flatnonzero(buffer.learns_value.reshape(-1)).tolist()
    sizes = np.abs(buffer.advantages.reshape(-1))
    by_size = sorted(useful, key=lambda ply: -sizes[ply])
    chosen = order(buffer, share)
    assert set(chosen) == set(by_size[: max(1, round(share * len(useful)))])
    assert len(chosen) == len(set(chosen))
    assert any(not buffer.learns_policy.reshape(-1)[ply] for ply in order(buffer, 0.9)), "value"


def test_of_equal_advantages_the_earlier_are_chosen() -> None:
    buffer = ExperienceBuffer(4, 2)
    buffer.learns_value[...] = True
    buffer.advantages[...] = [[1, -2], [2, 2], [1, 1], [0, -1]]
    assert sorted(order(buffer, 0.5)) == [0, 1, 2, 3]
    assert sorted(order(buffer, 0.75)) == [0, 1, 2, 3, 4, 5]


def test_nothing_to_learn_from() -> None:
    assert order(ExperienceBuffer(2, 3), 0.5) == []


def learned_plies(
    monkeypatch: pytest.MonkeyPatch, *overrides: str
) -> tuple[ExperienceBuffer, list[npt.NDArray[np.int64]], npt.NDArray[np.float32]]:
    """Play and learn once: the rollout, the plies of each minibatch, and a weight afterwards."""
    config = tiny_config("ppo.epochs=2", *overrides)
    learner = make_learner(config, seed=0, random=np.random.default_rng(0), ranks=Ranks())
    assert isinstance(learner, PPOLearner)
    selfplay = SelfPlay(config, learner.network, games=config.env.num_games, threads=1)
    buffer = ExperienceBuffer(config.selfplay.rollout_plies, config.env.num_games)
    selfplay.collect(buffer, SectionTimer())
    buffer.finish(gamma=0.99, gae_lambda=0.9)
    minibatches: list[npt.NDArray[np.int64]] = []
    backward = learner._backward

    def record(buffer, indices, *rest):  # type: ignore[no-untyped-def]
        minibatches.append(indices.copy())
        return backward(buffer, indices, *rest)

    monkeypatch.setattr(learner, "_backward", record)
    stats = learner.learn(buffer, LearnSettings(0.01, 0.0))
    assert stats.samples == sum(map(len, minibatches))
    return (
        buffer,
        minibatches,
        np.concatenate([array.reshape(-1) for array in learner.network.weights().values()]),
    )


@every_family
def test_both_learners_use_exactly_these_plies(
    model_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer, minibatches, _ = learned_plies(
        monkeypatch, f"model.type={model_type}", "ppo.learn_share=0.25"
    )
    sizes = np.abs(buffer.advantages.reshape(-1))
    useful = np.flatnonzero((buffer.learns_policy | buffer.learns_value).reshape(-1))
    expected = sorted(useful[np.argsort(-sizes[useful], kind="stable")][: round(len(useful) / 4)])
    assert len(expected) == 16
    for epoch in (minibatches[: len(minibatches) // 2], minibatches[len(minibatches) // 2 :]):
        assert sorted(np.concatenate(epoch)) == expected


@every_family
def test_a_share_of_one_learns_as_before(model_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family = f"model.type={model_type}"
    _, plain, weights = learned_plies(monkeypatch, family)
    _, whole, same_weights = learned_plies(monkeypatch, family, "ppo.learn_share=1.0")
    assert [part.tolist() for part in plain] == [part.tolist() for part in whole]
    assert sum(map(len, whole)) == 2 * 64
    assert np.array_equal(weights, same_weights)
