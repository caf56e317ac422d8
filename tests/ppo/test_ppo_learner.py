"""What both learners have in common: exactly what was played is learned, and it learns."""

import copy
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from keisei.checkpoints.store import load_checkpoint, save_checkpoint
from keisei.errors import KeiseiError
from keisei.network.predictor import Network, Weights
from keisei.network.sparse.adam import BETA1
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import LearnSettings, TrainingDivergedError
from keisei.ppo.ppo_learner import PolicySamples, explained_variance
from keisei.ppo.sparse_learner import SparseLearner
from keisei.shogi.vector import VectorShogi
from tests.checkpoints.states import same
from tests.ppo.practice import Practice, played, tiny_learner


def copied(network: Network) -> dict[str, npt.NDArray[np.float32]]:
    return {name: array.copy() for name, array in network.weights().items()}


def are_equal(one: Weights, other: Weights) -> bool:
    return all(np.array_equal(array, other[name]) for name, array in one.items())


@pytest.mark.parametrize("mirror", ["true", "false"])
def test_the_first_minibatch_reports_no_kl(family: str, mirror: str) -> None:
    """Acting and learning see the same position, the same legal moves, the same network."""
    practice = played(family, "ppo.minibatch_size=64", f"ppo.mirror={mirror}")
    for _ in range(3):  # a network that is not near its first, uniform, policy
        practice.learn()
    practice.play()
    stats = practice.learn(1e-3, 0.01)
    assert stats.metrics["losses/approx_kl"] == pytest.approx(0.0, abs=1e-5)
    assert stats.metrics["losses/clip_fraction"] == 0.0
    assert stats.samples == len(practice.buffer)


def test_a_buffer_with_nothing_to_learn_from_changes_nothing(family: str) -> None:
    learner = tiny_learner(family)
    before = copied(learner.network)
    stats = learner.learn(ExperienceBuffer(8, 8), LearnSettings(1e-3, 0.01))
    assert stats.samples == 0
    assert all(map(np.isfinite, stats.metrics.values()))
    assert are_equal(before, learner.network.weights())


def test_gradients_are_clipped_to_the_norm_of_the_settings(family: str) -> None:
    """Adam hides the size of a gradient, so its first moments are looked at."""
    norms = []
    for limit in (1e3, 1e-3):
        practice = played(family, f"ppo.max_grad_norm={limit}", "ppo.minibatch_size=64")
        reported = practice.learn().metrics["losses/grad_norm"]
        learner = practice.learner
        if isinstance(learner, SparseLearner):
            moments = list(learner._means)
        else:
            moments = [moment["exp_avg"].numpy() for moment in learner.optimizer.state.values()]
        squares = sum(float(np.square(moment, dtype=np.float64).sum()) for moment in moments)
        norms.append((reported, math.sqrt(squares) / (1.0 - BETA1)))
    (before, free), (reported, clipped) = norms
    assert before == pytest.approx(reported, rel=1e-3), "that before it is clipped is reported"
    assert free == pytest.approx(before, rel=1e-3)
    assert before > 1e-2
    assert clipped == pytest.approx(1e-3, rel=1e-3)


def test_target_kl_stops_an_update_early(family: str) -> None:
    practice = played(family, "ppo.target_kl=1e-9", "ppo.epochs=4", "ppo.minibatch_size=16")
    stats = practice.learn(0.05)
    assert stats.metrics["charts/epochs_done"] == 1.0
    assert stats.samples < len(practice.buffer)


def test_all_epochs_are_done_without_a_target(family: str) -> None:
    epochs: list[int] = []
    samples: list[tuple[int, int]] = []
    practice = played(family, "ppo.epochs=3")
    stats = practice.learner.learn(
        practice.buffer,
        LearnSettings(1e-3, 0.0),
        on_epoch=epochs.append,
        on_samples=lambda done, total: samples.append((done, total)),
    )
    assert epochs == [0, 1, 2]
    assert samples == sorted(set(samples)), "they only grow"
    assert samples[-1] == (stats.samples, stats.samples)
    assert stats.samples == 3 * len(practice.buffer)


def test_averaged_weights_follow_slowly(family: str) -> None:
    practice = played(family, "ppo.ema_decay=0.9", "ppo.ema_kl=0.1")
    learner = practice.learner
    before = copied(learner.network)
    stats = practice.learn()
    new = learner.network.weights()
    assert not are_equal(before, new)
    for name, mean in learner.evaluation_network.weights().items():
        assert np.allclose(mean, 0.9 * before[name] + 0.1 * new[name], atol=1e-6), name
    assert stats.metrics["losses/ema_kl"] >= 0.0
    plain = tiny_learner(family)
    assert are_equal(plain.network.weights(), plain.evaluation_network.weights())


def test_the_divergence_from_the_average_holds_the_policy_back(family: str) -> None:
    divergences = []
    for weight in (0.0, 30.0):
        practice = played(family, "ppo.ema_decay=0.999", f"ppo.ema_kl={weight}")
        for _ in range(8):
            practice.learn(0.02)
        divergences.append(kl_to_the_average(practice))
    free, held = divergences
    assert free > 1e-4, "without it, the policy goes away from its average"
    assert held < free / 2


def kl_to_the_average(practice: Practice) -> float:
    positions = VectorShogi(16, seed=3, opening_plies=20).observe()
    log_probs, averaged = (
        network.predict(positions).log_probs.astype(np.float64)
        for network in (practice.learner.network, practice.learner.evaluation_network)
    )
    legal = np.isfinite(log_probs)
    gaps = np.where(legal, log_probs, 0.0) - np.where(legal, averaged, 0.0)
    return float((np.exp(log_probs) * gaps).sum(axis=1).mean())


@pytest.mark.parametrize("spoiled", ["advantages", "returns"])
def test_a_non_finite_loss_is_skipped_and_then_stops_the_run(
    family: str, spoiled: str, caplog: pytest.LogCaptureFixture
) -> None:
    practice = played(family, "ppo.nan_limit=3", "ppo.minibatch_size=32")
    before = copied(practice.learner.network)
    good = copy.deepcopy(practice.buffer)
    getattr(practice.buffer, spoiled)[:] = np.nan
    stats = practice.learn()
    assert stats.metrics["losses/skipped_minibatches"] == 2.0
    assert "minibatch skipped: the loss is NaN or infinite" in caplog.text
    assert are_equal(before, practice.learner.network.weights())
    with pytest.raises(TrainingDivergedError, match="3 minibatches in a row"):
        practice.learn()
    practice.buffer = good
    stats = practice.learn()
    assert stats.metrics["losses/skipped_minibatches"] == 0.0, "nothing of it is left behind"
    assert practice.learner.bad_minibatches == 0
    assert all(np.isfinite(array).all() for array in practice.learner.network.weights().values())


def test_a_non_finite_gradient_is_skipped_too(
    family: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a loss that is finite itself: here its weight is so large that only its square is not."""
    practice = played(family, "ppo.nan_limit=3", "ppo.minibatch_size=32", "ppo.value_weight=1e37")
    before = copied(practice.learner.network)
    practice.buffer.returns[:] = 1.0
    stats = practice.learn()
    assert stats.metrics["losses/skipped_minibatches"] == 2.0
    assert "minibatch skipped: the gradient is NaN or infinite" in caplog.text
    assert are_equal(before, practice.learner.network.weights())
    with pytest.raises(TrainingDivergedError, match="3 minibatches in a row"):
        practice.learn()


RESUMED = ("ppo.ema_decay=0.9", "ppo.minibatch_size=16")


def test_a_restored_learner_learns_on_bit_by_bit(family: str, tmp_path: Path) -> None:
    practice = played(family, *RESUMED)
    practice.learn()
    twin = restored(practice, tmp_path, family)
    assert same(practice.learner.state(), twin.learner.state())
    twin.buffer = practice.play()
    practice.learn()
    learned = copy.deepcopy(practice.learner.state())
    twin.learn()
    assert same(learned, practice.learner.state()), "the two share no memory"
    assert same(learned, twin.learner.state())


def restored(practice: Practice, directory: Path, *overrides: str) -> Practice:
    """Another learner, which takes over the state of the first one from a checkpoint."""
    path = save_checkpoint(
        directory, timestep=0, update=0, state=practice.learner.state(), config_json="", keep=1
    )
    twin = Practice(*RESUMED, *overrides, seed=9)
    twin.learner.restore(load_checkpoint(path).state)
    twin.learner.random = copy.deepcopy(practice.learner.random)
    return twin


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("model.type=resnet", "model.tower_width=16"),
        ("model.type=sparse", "model.accumulators=24"),
        ("model.type=sparse", "model.move_rows=target+capture"),
        ("model.type=sparse", "model.type=resnet"),
        ("model.type=resnet", "model.type=sparse"),
    ],
)
def test_a_state_of_another_network_is_refused(own: str, other: str) -> None:
    with pytest.raises(KeiseiError, match=r"a run keeps its network.*run\.start_from"):
        tiny_learner(own).restore(tiny_learner(own, other).state())


def samples_of(
    advantages: list[float], learns: list[bool], *overrides: str
) -> tuple[npt.NDArray[np.float32], PolicySamples]:
    """The advantages of one minibatch as the policy sees them; also those before."""
    buffer = ExperienceBuffer(1, len(advantages))
    buffer.advantages[0] = advantages
    buffer.learns_policy[0] = learns
    learner = tiny_learner("model.type=sparse", *overrides)
    return buffer.advantages[0], learner.policy_samples(buffer, np.arange(len(advantages)))


def test_advantages_are_normalized_over_what_is_learned() -> None:
    learns = np.array([True, True, True, False])
    _, policy = samples_of([1.0, 2.0, 3.0, 100.0], learns.tolist())
    assert policy.divisor == 3.0
    assert policy.advantages.dtype == np.float32
    scaled = policy.advantages[learns]
    assert scaled.mean() == pytest.approx(0.0, abs=1e-6)
    assert scaled.std() == pytest.approx(1.0, abs=1e-5)
    assert samples_of([5.0], [True])[1].advantages.tolist() == [5.0], "one alone says nothing"
    assert samples_of([5.0, 5.0], [True, True])[1].advantages.tolist() == [0.0, 0.0]
    before, policy = samples_of([1.0, 2.0], [True, True], "ppo.normalize_advantages=false")
    assert np.array_equal(policy.advantages, before)
    assert samples_of([1.0, 2.0], [False, False])[1].divisor == 1.0, "nothing is divided by 0"


def test_large_advantages_are_clipped_after_they_are_normalized() -> None:
    advantages = [0.0] * 99 + [7.0]
    _, policy = samples_of(advantages, [True] * 100, "ppo.advantage_clip=5")
    assert policy.advantages[99] == 5.0
    assert policy.advantages[:99] == pytest.approx(-(99**-0.5), abs=1e-6), "the others are not"
    _, policy = samples_of(advantages, [True] * 100, "ppo.advantage_clip=50")
    assert policy.advantages[99] == pytest.approx(99**0.5, rel=1e-5)
    _, policy = samples_of([-value for value in advantages], [True] * 100)
    assert policy.advantages[99] == -5.0, "as by default"


def test_explained_variance() -> None:
    returns = np.array([1.0, -1.0, 1.0, -1.0], dtype=np.float32)
    assert explained_variance(returns, returns) == 1.0
    assert explained_variance(np.zeros(4), returns) == 0.0
    assert explained_variance(-returns, returns) < 0.0
    assert explained_variance(returns, np.ones(4)) == 0.0
    assert explained_variance(np.zeros(0), np.zeros(0)) == 0.0
