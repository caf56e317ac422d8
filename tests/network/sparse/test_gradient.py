"""The gradient of the kernels against torch's gradient of the same loss."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from keisei.network.sparse.forward import PluginRows, SparseWeights
from keisei.network.sparse.gradient import (
    APPROX_KL,
    CLIPPED,
    EMA_KL,
    ENTROPY,
    NEGLIGIBLE,
    POLICY_LOSS,
    VALUE_LOSS,
    Derivatives,
    Gradient,
    LossSettings,
    Samples,
    add_gradient,
)
from keisei.network.sparse.row_store import NOTHING_KEPT
from keisei.network.sparse.sparse_network import SparseNetwork
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import LearnSettings, Ranks
from keisei.ppo.losses import LossWeights
from keisei.ppo.sparse_learner import SparseLearner, make_learner
from keisei.selfplay.source import SelfPlay
from keisei.shogi.packed import Positions, legal_from_packed
from keisei.shogi.position import new_positions
from keisei.timing import SectionTimer
from tests.network.sparse.samples import rows_of, small_network, some_positions
from tests.oracles.torch_sparse import Targets, TorchSparse
from tests.sampling import sample
from tests.tiny import tiny_config

LOSS = LossWeights(clip_range=0.2, value=0.7, entropy=0.03, ema_kl=0.2, dual_clip=2.0)


def random_samples(
    network: SparseNetwork, positions: Positions, seed: int = 0
) -> tuple[Samples, Targets]:
    """Samples whose probability ratios are on all sides of the clip ranges."""
    random = np.random.default_rng(seed)
    number = len(positions.packed)
    legal_indices = random.integers(0, positions.legal_counts)
    actions = np.take_along_axis(positions.legal_actions, legal_indices[:, None], 1)[:, 0]
    log_probs = network.predict(positions).log_probs
    old = np.take_along_axis(log_probs, legal_indices[:, None], 1)[:, 0]
    old = (old + random.normal(0.0, 0.6, number)).astype(np.float32)
    advantages = random.normal(0.0, 1.0, number).astype(np.float32)
    returns = random.uniform(-1.0, 1.0, number).astype(np.float32)
    learns_policy = random.random(number) < 0.8
    samples = Samples(
        indices=np.arange(number),
        advantages=advantages,
        packed=positions.packed,
        actions=actions,
        log_probs=old,
        returns=returns,
        learns_policy=learns_policy,
        target_actions=np.zeros((number, 0), dtype=np.uint16),
        target_probs=np.zeros((number, 0), dtype=np.float32),
        plugins=PluginRows(
            np.zeros((number, 0), dtype=np.int32), np.zeros((number, 0, 0), dtype=np.int32)
        ),
        kept=NOTHING_KEPT,
    )
    targets = Targets(
        torch.from_numpy(legal_indices),
        torch.from_numpy(old).double(),
        torch.from_numpy(advantages).double(),
        torch.from_numpy(returns).double(),
        torch.from_numpy(learns_policy),
    )
    return samples, targets


def loss_settings(samples: Samples, weights: LossWeights, negligible: float = 0.0) -> LossSettings:
    return LossSettings(
        clip_range=weights.clip_range,
        dual_clip=weights.dual_clip,
        policy_scale=1.0 / samples.learns_policy[samples.indices].sum(),
        value_scale=weights.value / len(samples.indices),
        entropy_weight=weights.entropy,
        ema_kl_weight=weights.ema_kl,
        negligible=negligible,
    )


def kernel_gradient(
    network: SparseNetwork, reference: SparseNetwork, samples: Samples, settings: LossSettings
) -> Gradient:
    gradient = Gradient.like(network.arrays)
    work = network.new_workspace()
    add_gradient(
        network.arrays,
        reference.arrays,
        network.rows,
        work,
        Derivatives.of(work),
        gradient,
        samples,
        settings,
        0,
        len(samples.indices),
    )
    return gradient


def assert_same_gradient(
    found: SparseWeights, expected: Mapping[str, npt.NDArray[Any]], tolerance: float = 1e-5
) -> None:
    for name, array in found._asdict().items():
        largest = np.abs(expected[name]).max()
        assert largest > 0.0, name
        assert np.abs(array - expected[name]).max() <= tolerance * largest, name


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(sample(5, 1)))
@pytest.mark.parametrize("rows", [("all", "all"), ("all-threats", "origin+gives_check")])
def test_all_derivatives_equal_those_of_torch(seed: int, rows: tuple[str, str]) -> None:
    """Surrogate with both clips, value, entropy, and KL to the averaged weights."""
    network = small_network(seed=seed, position_rows=rows[0], move_rows=rows[1])
    reference = small_network(seed=seed + 100, position_rows=rows[0], move_rows=rows[1])
    positions = some_positions(sample(48, 4), seed=seed)
    samples, targets = random_samples(network, positions, seed)
    settings = loss_settings(samples, LOSS)
    found = kernel_gradient(network, reference, samples, settings)

    oracle, averaged = TorchSparse(network.arrays), TorchSparse(reference.arrays)
    terms = oracle.loss(rows_of(network, positions), targets, LOSS, averaged)
    # Without rows for most moves their derivatives nearly cancel: more is lost to rounding.
    tolerance = 1e-5 if rows == ("all", "all") else 3e-5
    assert_same_gradient(found.values, oracle.gradient(terms.total), tolerance)
    sums, scale = found.sums, settings.policy_scale
    assert sums[POLICY_LOSS] * scale == pytest.approx(terms.policy.item(), rel=1e-5, abs=1e-6)
    assert sums[VALUE_LOSS] / len(positions.packed) == pytest.approx(terms.value.item(), rel=1e-5)
    assert sums[ENTROPY] * scale == pytest.approx(terms.entropy.item(), rel=1e-5)
    assert sums[EMA_KL] * scale == pytest.approx(terms.ema_kl.item(), rel=1e-5, abs=5e-6)
    assert sums[APPROX_KL] * scale == pytest.approx(terms.approx_kl.item(), rel=1e-4, abs=1e-6)
    assert sums[CLIPPED] * scale == pytest.approx(terms.clip_fraction.item())


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(sample(3, 1)))
def test_derivatives_of_a_target_policy_equal_those_of_torch(seed: int) -> None:
    network, reference = small_network(seed=seed), small_network(seed=seed + 100)
    positions = some_positions(sample(48, 4), seed=seed)
    samples, targets = random_samples(network, positions, seed)
    random = np.random.default_rng(seed)
    number, width = len(positions.packed), int(positions.legal_counts.max())
    policy = np.zeros((number, width), dtype=np.float32)
    actions = np.zeros((number, 5), dtype=np.uint16)
    probs = np.zeros((number, 5), dtype=np.float32)
    for row, count in enumerate(positions.legal_counts.tolist()):
        chosen = random.permutation(count)[: random.integers(1, 6)]
        weights = random.dirichlet(np.ones(len(chosen))).astype(np.float32)
        policy[row, chosen] = weights
        actions[row, : len(chosen)] = positions.legal_actions[row, chosen]
        probs[row, : len(chosen)] = weights
    samples = samples._replace(target_actions=actions, target_probs=probs)
    targets = targets._replace(policy=torch.from_numpy(policy).double())
    settings = loss_settings(samples, LOSS)
    found = kernel_gradient(network, reference, samples, settings)

    oracle, averaged = TorchSparse(network.arrays), TorchSparse(reference.arrays)
    terms = oracle.loss(rows_of(network, positions), targets, LOSS, averaged)
    assert_same_gradient(found.values, oracle.gradient(terms.total))
    scale = settings.policy_scale
    assert found.sums[POLICY_LOSS] * scale == pytest.approx(terms.policy.item(), rel=1e-5)
    assert found.sums[APPROX_KL] == terms.approx_kl.item() == 0.0


@pytest.mark.kernels
def test_marks_are_the_rows_with_a_derivative() -> None:
    network = small_network()
    positions = some_positions(sample(20, 3))
    samples, _ = random_samples(network, positions)
    found = kernel_gradient(network, network, samples, loss_settings(samples, LOSS))
    rows = rows_of(network, positions)
    position_rows = {row for active in rows for row in active.position}
    move_rows = {
        row
        for active, learns in zip(rows, samples.learns_policy, strict=True)
        for row in (row for move in active.moves for row in move)
        if learns
    }
    assert set(np.flatnonzero(found.position_marks)) == position_rows
    assert set(np.flatnonzero(found.move_marks)) == move_rows
    assert not found.values.position_table[found.position_marks == 0].any()
    assert not found.values.move_table[found.move_marks == 0].any()


@pytest.mark.kernels
def test_the_cases_of_the_surrogate_all_occur() -> None:
    """Ratios below, within and above the clip range, with advantages of both signs."""
    network = small_network()
    samples, targets = random_samples(network, some_positions(48, seed=0), 0)
    log_probs = network.predict(some_positions(48, seed=0)).log_probs
    chosen = np.take_along_axis(log_probs, targets.legal_indices.numpy()[:, None], 1)[:, 0]
    ratios = np.exp(chosen - samples.log_probs)
    cases = {
        (int(np.digitize(ratio, [0.8, 1.2, 2.0])), bool(advantage > 0))
        for ratio, advantage in zip(ratios, samples.advantages, strict=True)
    }
    assert len(cases) == 8


PLY_LIMIT = "env.ply_limit=100"


def sparse_learner(*overrides: str, threads: int = 1, negligible: float = 0.0) -> SparseLearner:
    config = tiny_config(
        "model.type=sparse", "model.accumulators=32", "model.hidden=16", "model.context=16",
        "ppo.minibatch_size=256", "ppo.ema_decay=0.9", "ppo.ema_kl=0.1", PLY_LIMIT, *overrides,
    )  # fmt: skip
    learner = make_learner(config, seed=0, random=np.random.default_rng(0), ranks=Ranks())
    network = learner.network
    if threads != network.threads:
        network = SparseNetwork(
            network.arrays,
            network.position_spec,
            network.move_spec,
            network.spec,
            threads=threads,
            ply_limit=network.ply_limit,
        )
    return SparseLearner(config, network, np.random.default_rng(0), negligible=negligible)


def rollout(
    learner: SparseLearner, *overrides: str, games: int = 32, plies: int = 16
) -> tuple[SelfPlay, ExperienceBuffer]:
    config = tiny_config("model.type=sparse", PLY_LIMIT, *overrides)
    selfplay = SelfPlay(config, learner.network, games=games, threads=1)
    selfplay.pool.add(learner.network.weights())
    buffer = ExperienceBuffer(plies, games)
    selfplay.collect(buffer, SectionTimer())
    buffer.finish(gamma=0.99, gae_lambda=0.9)
    return selfplay, buffer


def backward(
    learner: SparseLearner, buffer: ExperienceBuffer, indices: npt.NDArray[np.int64]
) -> Any:
    policy = learner.policy_samples(buffer, indices)
    figures, _ = learner._backward(buffer, indices, policy, LearnSettings(1e-3, 0.02))
    assert figures is not None
    learner.reduce_gradient()
    return policy, figures


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    "plugin_rows",
    [(), ("model.position_rows=all+mover_pawns", "model.move_rows=all+drops")],
    ids=["built-in rows", "with plug-ins"],
)
def test_the_first_minibatch_of_a_rollout(plugin_rows: tuple[str, ...]) -> None:
    """As the learner computes it: figures, normalized advantages, forced moves and all."""
    learner = sparse_learner(*plugin_rows)
    _, buffer = rollout(learner, *plugin_rows)
    random = np.random.default_rng(3)
    for array in (*learner.network.arrays, *learner.evaluation_network.arrays):
        array[...] += random.normal(0.0, 0.02, array.shape).astype(np.float32)
    indices = buffer.sample_order(np.random.default_rng(0))[:128]
    policy, figures = backward(learner, buffer, indices)

    packed = buffer.packed.reshape(-1)[indices]
    legal = np.zeros((len(indices), 593), dtype=np.uint16)
    counts = np.zeros(len(indices), dtype=np.int32)
    legal_from_packed(packed, legal, counts, new_positions(2), 0, len(indices))
    actions = buffer.actions.reshape(-1)[indices]
    targets = Targets(
        torch.from_numpy((legal == actions[:, None]).argmax(axis=1)),
        torch.from_numpy(buffer.log_probs.reshape(-1)[indices]).double(),
        torch.from_numpy(policy.advantages).double(),
        torch.from_numpy(buffer.returns.reshape(-1)[indices]).double(),
        torch.from_numpy(buffer.learns_policy.reshape(-1)[indices]),
    )
    settings = learner.settings
    weights = LossWeights(
        settings.clip_range, settings.value_weight, 0.02, settings.ema_kl, settings.dual_clip
    )
    oracle = TorchSparse(learner.network.arrays)
    averaged = TorchSparse(learner.evaluation_network.arrays)
    active = rows_of(learner.network, Positions(packed, legal, counts))
    terms = oracle.loss(active, targets, weights, averaged, policy.divisor)
    assert_same_gradient(learner.gradient, oracle.gradient(terms.total))
    if plugin_rows:
        first = learner.network.move_spec.first_row("drops")
        assert learner.gradient.move_table[first : first + 2].any(axis=1).all()
    assert figures == pytest.approx(terms.figures(), rel=1e-4, abs=1e-6)


@pytest.mark.slow
def test_negligible_moves_hardly_change_the_gradient() -> None:
    """Of a policy that has learned to prefer few moves, in 7 seconds."""
    learner = sparse_learner("ppo.minibatch_size=1024", "ppo.ema_kl=0", negligible=NEGLIGIBLE)
    selfplay, buffer = rollout(learner, games=128, plies=32)
    for _ in range(30):
        learner.learn(buffer, LearnSettings(1e-2, 0.03))
        selfplay.collect(buffer, SectionTimer())
        buffer.finish(gamma=0.99, gae_lambda=0.8)
    indices = buffer.sample_order(np.random.default_rng(0))[:1024]
    gradients = []
    for negligible in (0.0, NEGLIGIBLE, 30 * NEGLIGIBLE):
        learner._negligible = negligible
        _, figures = backward(learner, buffer, indices)
        assert figures.entropy < 2.5
        gradients.append(
            np.concatenate([array.reshape(-1) for array in learner.gradient]).astype(float)
        )
        learner._drop_gradient()
    exact, *others = gradients
    errors = [float(np.linalg.norm(other - exact) / np.linalg.norm(exact)) for other in others]
    assert 0.0 < errors[0] < 0.01
    assert errors[1] > 3 * errors[0]


@pytest.mark.parametrize("threads", [1, 2])
def test_updates_can_be_repeated_bit_by_bit(threads: int) -> None:
    results = []
    for _ in range(2):
        learner = sparse_learner(threads=threads)
        _, buffer = rollout(learner)
        for _ in range(2):
            learner.learn(buffer, LearnSettings(1e-3, 0.02))
        results.append([array.copy() for array in learner.network.arrays])
    assert all(map(np.array_equal, *results))


def test_two_threads_compute_the_gradient_of_one() -> None:
    gradients, figures = [], []
    for threads in (1, 2):
        learner = sparse_learner(threads=threads)
        _, buffer = rollout(learner)
        indices = buffer.sample_order(np.random.default_rng(0))
        figures.append(backward(learner, buffer, indices)[1])
        gradients.append(learner.gradient)
    assert_same_gradient(gradients[1], gradients[0]._asdict())
    assert figures[0] == pytest.approx(figures[1], rel=1e-6, abs=1e-9)
