"""Several learners: together they do what one would do with all of their samples."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.network.predictor import weights_checksum
from keisei.network.towers.device import Compute
from keisei.ppo.agent import PPOAgent
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.distributed import TorchRanks
from keisei.ppo.learner import LearnSettings, Ranks, require_launched
from keisei.ppo.losses import Minibatch
from tests.ppo.practice import AnyLearner, Practice, tiny_learner
from tests.threaded_ranks import ThreadedRanks, make_ranks, run_all

GAMES, PLIES = 8, 24


@pytest.fixture
def practice(family: str) -> Practice:
    """A rollout with forced moves, that is with samples that count for the value only."""
    return practice_of(family)


@pytest.fixture
def tower_practice() -> Practice:
    """The same, for what is about torch itself."""
    return practice_of("model.type=resnet")


def practice_of(family: str) -> Practice:
    practice = Practice(*config_of(family))
    buffer = practice.play()
    random = np.random.default_rng(5)
    buffer.advantages[...] = random.normal(0.3, 2.0, buffer.advantages.shape)
    buffer.returns[...] = random.uniform(-1.0, 1.0, buffer.returns.shape)
    buffer.learns_policy[...] = random.random(buffer.learns_policy.shape) < 0.7
    return practice


def part_of(whole: ExperienceBuffer, rank: int, size: int) -> ExperienceBuffer:
    """The games of one of `size` ranks."""
    games = whole.games // size
    part = ExperienceBuffer(whole.plies, games)
    mine = slice(rank * games, (rank + 1) * games)
    for name, array in part.arrays().items():
        source = whole.arrays()[name]
        array[...] = source[mine] if name.startswith("last_") else source[:, mine]
    part.advantages[...] = whole.advantages[:, mine]
    part.returns[...] = whole.returns[:, mine]
    return part


def config_of(*overrides: str) -> tuple[str, ...]:
    return (
        f"env.num_games={GAMES}",
        f"selfplay.rollout_plies={PLIES}",
        f"ppo.minibatch_size={GAMES * PLIES}",
        *overrides,
    )


def learned(
    practice: Practice,
    size: int,
    *overrides: str,
    prepare: Callable[[AnyLearner, int, ExperienceBuffer], None] = lambda *_: None,
) -> list[AnyLearner]:
    """Learners after one update from the rollout, of which each rank has a part."""
    whole, start = practice.buffer, practice.learner.network.weights()
    family = "model.type=" + ("resnet" if isinstance(practice.learner, PPOAgent) else "sparse")
    ranks = make_ranks(size)
    learners = []
    for rank in ranks:  # one after the other: they set torch's global seed
        learner = tiny_learner(*config_of(family, *overrides), seed=rank.rank, ranks=rank)
        for network in (learner.network, learner.evaluation_network):
            network.load_weights(start)
        learners.append(learner)
    parts = [part_of(whole, rank.rank, size) for rank in ranks]
    for learner, rank, part in zip(learners, ranks, parts, strict=True):
        prepare(learner, rank.rank, part)

    def learn(rank: ThreadedRanks) -> None:
        learners[rank.rank].learn(parts[rank.rank], LearnSettings(0.01, 0.02))

    run_all(ranks, learn)
    return learners


def towers(learners: list[AnyLearner]) -> list[PPOAgent]:
    agents = [learner for learner in learners if isinstance(learner, PPOAgent)]
    assert len(agents) == len(learners)
    return agents


def together(learners: Sequence[AnyLearner], do: Callable[[AnyLearner], None]) -> None:
    """Let all learners do something at the same time."""
    ranks = [learner.ranks for learner in learners if isinstance(learner.ranks, ThreadedRanks)]
    run_all(ranks, lambda rank: do(learners[rank.rank]))


class GradientRecorder:
    """The gradients that learners took their last step with: torch keeps them, kernels don't."""

    def __init__(self) -> None:
        self._kept: dict[int, list[npt.NDArray[np.float32]]] = {}

    def prepare(self, learner: AnyLearner, rank: int, buffer: ExperienceBuffer) -> None:
        if isinstance(learner, PPOAgent):
            return
        real, sparse = learner.reduce_gradient, learner

        def reduce_gradient() -> float:
            norm = real()
            self._kept[rank] = [array.copy() for array in sparse.gradient]
            return norm

        learner.reduce_gradient = reduce_gradient  # type: ignore[method-assign]

    def of(self, learner: AnyLearner) -> list[npt.NDArray[np.float32]]:
        if not isinstance(learner, PPOAgent):
            return self._kept[learner.ranks.rank]
        return [p.grad.numpy() for p in learner.model.parameters() if p.grad is not None]


@pytest.mark.parametrize(("size", "threads"), [(2, 1), (4, 1), (2, 2)])
def test_ranks_take_the_step_that_one_takes_with_all_samples(
    practice: Practice, size: int, threads: int
) -> None:
    """Also where they learn the policy from unequally many samples, and are scaled by them."""
    recorder = GradientRecorder()
    (alone,) = learned(practice, 1, prepare=recorder.prepare)
    expected = recorder.of(alone)
    assert len(expected) == len(alone.network.weights())
    assert max(float(np.abs(gradient).max()) for gradient in expected) > 1e-3
    threaded = f"device.threads={threads}"
    for learner in learned(practice, size, threaded, prepare=recorder.prepare):
        assert learner.fingerprint != practice.learner.fingerprint, "something was learned"
        for one, many in zip(expected, recorder.of(learner), strict=True):
            assert np.allclose(one, many, rtol=1e-4, atol=1e-7)


def test_ranks_keep_the_same_weights_bit_by_bit(practice: Practice) -> None:
    one, other = learned(
        practice, 2, "ppo.minibatch_size=16", "ppo.epochs=2", "ppo.ema_decay=0.9", "ppo.ema_kl=0.1"
    )
    assert one.fingerprint == other.fingerprint
    averages = (learner.evaluation_network.weights() for learner in (one, other))
    assert len({weights_checksum(average) for average in averages}) == 1


def test_what_overflows_in_one_rank_is_skipped_in_all(
    tower_practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a scaler, as for float16; autocast itself is left out: not every CPU survives it."""
    monkeypatch.setattr(Compute, "autocast", lambda self: nullcontext())

    def overflow_in_the_second(agent: AnyLearner, rank: int, buffer: ExperienceBuffer) -> None:
        assert isinstance(agent, PPOAgent)
        agent.scaler = torch.amp.GradScaler("cpu")
        if rank == 1:
            parameter = next(agent.model.parameters())
            parameter.register_hook(lambda gradient: gradient * torch.inf)  # type: ignore[no-untyped-call]

    for agent in towers(learned(tower_practice, 2, prepare=overflow_in_the_second)):
        assert agent.fingerprint == tower_practice.agent.fingerprint, "nothing was changed"
        assert agent.scaler.get_scale() == 2.0**15, "and the scale lowered"


def test_a_non_finite_loss_in_one_rank_is_skipped_in_all(practice: Practice) -> None:
    def spoil_the_second(learner: AnyLearner, rank: int, buffer: ExperienceBuffer) -> None:
        if rank == 1:
            buffer.returns[...] = np.nan

    for learner in learned(practice, 2, prepare=spoil_the_second):
        assert learner.fingerprint == practice.learner.fingerprint
        assert learner.state()["bad_minibatches"] == 1


def test_memory_that_runs_out_in_one_rank_makes_all_minibatches_smaller(
    tower_practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PPOAgent._loss

    def small_memory(agent: PPOAgent, minibatch: Minibatch, *rest: Any) -> object:
        if agent.ranks.rank == 1 and len(minibatch.counts) > 40:
            raise torch.OutOfMemoryError
        return real(agent, minibatch, *rest)

    monkeypatch.setattr(PPOAgent, "_loss", small_memory)
    agents = learned(tower_practice, 2, "ppo.minibatch_size=auto")
    assert [agent.minibatch_size for agent in agents] == [32, 32]
    assert agents[0].fingerprint == agents[1].fingerprint != tower_practice.agent.fingerprint


def test_weights_that_drifted_apart_come_together_again(
    practice: Practice, caplog: pytest.LogCaptureFixture
) -> None:
    learners = learned(practice, 2)
    together(learners, lambda learner: learner.stay_together())
    assert caplog.text == ""
    second = learners[1].network
    second.load_weights({name: array * 1.0001 for name, array in second.weights().items()})
    together(learners, lambda learner: learner.stay_together())
    assert "have diverged" in caplog.text
    assert learners[0].fingerprint == learners[1].fingerprint


def test_ranks_with_minibatches_of_different_sizes_do_not_learn_together(
    practice: Practice,
) -> None:
    learners = learned(practice, 2)
    learners[1].minibatch_size //= 2
    with pytest.raises(KeiseiError, match=r"ppo\.minibatch_size"):
        together(learners, lambda learner: learner.join_ranks())


def test_ranks_with_and_without_a_scaler_do_not_learn_together(tower_practice: Practice) -> None:
    agents = towers(learned(tower_practice, 2))
    agents[1].compute = replace(agents[1].compute, autocast_dtype=torch.float16)
    with pytest.raises(KeiseiError, match=r"device\.mixed_precision"):
        together(agents, lambda agent: agent.join_ranks())


def test_ranks_agree() -> None:
    def ask(rank: ThreadedRanks) -> tuple[object, ...]:
        return (
            rank.all_min(rank.rank + 5),
            rank.any(rank.rank == 2),
            rank.any(False),
            rank.is_same(7),
            rank.is_same(rank.rank),
            rank.sums([1.0, rank.rank]),
            rank.means([float(rank.rank)]),
            rank.all_gather(str(rank)),
            rank.broadcast(f"from {rank.rank}"),
        )

    expected = (
        *(5, True, False, True, False, [3.0, 3.0], [1.0]),
        ["learner 1 of 3", "learner 2 of 3", "learner 3 of 3"],
        "from 0",
    )
    assert run_all(make_ranks(3), ask) == [expected] * 3


def test_ranks_exchange_arrays() -> None:
    def exchange(rank: ThreadedRanks) -> tuple[object, ...]:
        means, weights = (np.array([rank.rank, 1.0], np.float32) for _ in range(2))
        marks = np.zeros(3, dtype=np.uint8)
        marks[rank.rank] = 1
        rank.average_arrays([means])
        rank.max_arrays([marks])
        rank.broadcast_arrays([weights])
        return means.tolist(), marks.tolist(), weights.tolist()

    assert run_all(make_ranks(2), exchange) == [([0.5, 1.0], [1, 1, 0], [0.0, 1.0])] * 2


@pytest.mark.parametrize("alone", [Ranks(), TorchRanks()], ids=["of any learner", "of torch"])
def test_one_rank_waits_for_no_other(alone: Ranks) -> None:
    assert alone.is_first
    assert alone.all_min(3) == 3
    assert alone.any(True)
    assert not alone.any(False)
    assert alone.is_same(4)
    assert alone.means([2.0]) == [2.0]
    assert alone.all_gather("x") == ["x"]
    assert alone.broadcast("y") == "y"
    numbers, marks = np.array([1.0, 2.0], np.float32), np.ones(2, dtype=np.uint8)
    alone.average_arrays([numbers])
    alone.broadcast_arrays([numbers])
    alone.max_arrays([marks])
    assert (numbers.tolist(), marks.tolist()) == ([1.0, 2.0], [1, 1])
    alone.leave()


def test_one_rank_keeps_its_gradients_and_weights() -> None:
    alone = TorchRanks()
    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(2)).sum().backward()
    before = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
    alone.average_gradients(layer.parameters())
    alone.broadcast_weights(layer)
    assert all(map(torch.equal, before, (p.grad for p in layer.parameters())))  # type: ignore[arg-type]


def test_a_launch_that_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    require_launched(ddp=False)
    with pytest.raises(KeiseiError, match="torchrun --nproc-per-node 2 -m keisei train --ddp"):
        require_launched(ddp=True)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    require_launched(ddp=True)
    with pytest.raises(KeiseiError, match=r"2 processes.*add --ddp"):
        require_launched(ddp=False)
