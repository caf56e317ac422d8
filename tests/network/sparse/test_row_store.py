"""Rows that self-play keeps: the same predictions, and the same gradient bit by bit."""

from pathlib import Path

import numpy as np
import pytest

from keisei.network.sparse.forward import SparseWeights
from keisei.network.sparse.row_store import WORDS_PER_PLY
from keisei.network.sparse.sparse_network import RowStore
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import LearnSettings, Ranks, make_learner
from keisei.ppo.sparse_learner import SparseLearner
from keisei.selfplay.source import SelfPlay
from keisei.timing import SectionTimer
from tests.network.sparse.samples import small_network, some_positions
from tests.network.sparse.test_gradient import (
    LOSS,
    kernel_gradient,
    loss_settings,
    random_samples,
)
from tests.sampling import sample
from tests.tiny import tiny_config, tiny_trainer


def assert_equal_gradients(one: SparseWeights, other: SparseWeights) -> None:
    assert all(map(np.array_equal, one, other))
    assert one.move_table.any()


@pytest.mark.kernels
@pytest.mark.parametrize("room", [WORDS_PER_PLY, 300], ids=["enough room", "for some of them"])
def test_kept_rows_give_the_same_predictions_and_gradient(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, reference = small_network(), small_network(seed=1)
    positions = some_positions(sample(24, 6))
    number = len(positions.packed)
    store = RowStore(network, number)
    if room < WORDS_PER_PLY:  # as if `MAX_BYTES` were reached
        store.rows = store.rows._replace(words=store.rows.words[: room * number])
    expected = network.predict(positions)
    half = number // 2
    for first, some in ((0, slice(0, half)), (half, slice(half, None))):
        found = store.predict(positions.take(some), first)
        np.testing.assert_array_equal(found.values, expected.values[some])
    kept = store.rows.starts >= 0
    assert kept.all() if room == WORDS_PER_PLY else 0 < kept.sum() < number

    samples, _ = random_samples(network, positions)
    settings = loss_settings(samples, LOSS)
    assert not len(samples.kept.starts)
    written, read = (
        kernel_gradient(network, reference, part, settings)
        for part in (samples, samples._replace(kept=store.rows))
    )
    assert_equal_gradients(written.values, read.values)
    np.testing.assert_array_equal(written.sums, read.sums)


def test_kept_rows_are_those_that_are_learned_from() -> None:
    """What is kept is read: the rows of other positions give another gradient."""
    network = small_network()
    positions = some_positions(8)
    samples, _ = random_samples(network, positions)
    store = RowStore(network, 8)
    store.predict(positions.take(slice(None, None, -1)), 0)
    settings = loss_settings(samples, LOSS)
    right = kernel_gradient(network, network, samples, settings).values
    wrong = kernel_gradient(network, network, samples._replace(kept=store.rows), settings).values
    assert not np.array_equal(right.position_table, wrong.position_table)


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("model.position_rows=all+mover_pawns", "model.move_rows=all+drops"),
        ("selfplay.pool_share=0.5",),
        ("selfplay.simulations=4",),
    ],
    ids=["plain", "with plug-ins", "against the past", "with search"],
)
def test_updates_with_kept_rows_are_the_same(overrides: tuple[str, ...], threads: int) -> None:
    config = tiny_config("model.type=sparse", f"device.threads={threads}", *overrides)
    results = []
    for keeps in (False, True):
        random = np.random.default_rng(0)
        learner = make_learner(config, seed=0, random=random, ranks=Ranks())
        assert isinstance(learner, SparseLearner)
        selfplay = SelfPlay(config, learner.network, games=64, threads=threads)
        selfplay.pool.add(learner.network.weights())
        buffer = ExperienceBuffer(8, 64, targets=config.selfplay.num_targets)
        if keeps:
            learner.prepare(buffer)
        for _ in range(2):
            selfplay.collect(buffer, SectionTimer())
            buffer.finish(gamma=0.99, gae_lambda=0.9)
            learner.learn(buffer, LearnSettings(1e-3, 0.02))
        assert (buffer.row_store is not None) == keeps
        if buffer.row_store:
            assert (buffer.row_store.rows.starts >= 0).all()
        results.append(learner.fingerprint)
    assert results[0] == results[1]


def test_runs_keep_rows_unless_half_of_the_positions_are_mirrored(tmp_path: Path) -> None:
    """Mirrored lists of moves are in another order, in which sums may differ in the last bit."""

    def buffer_of(*overrides: str) -> ExperienceBuffer:
        trainer = tiny_trainer(tmp_path, "model.type=sparse", *overrides)
        trainer.train_step()
        return trainer.buffer

    store = buffer_of().row_store
    assert store is not None
    assert (store.rows.starts >= 0).all()
    assert buffer_of("ppo.mirror=true").row_store is None
