"""Several learners: together they do what one would do with all of their samples."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.network.towers.device import Compute
from keisei.ppo.agent import PPOAgent
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.distributed import TorchRanks
from keisei.ppo.learner import LearnSettings, Ranks, require_launched
from keisei.ppo.losses import Minibatch
from tests.ppo.practice import Practice
from tests.threaded_ranks import ThreadedRanks, make_ranks, run_all
from tests.tiny import tiny_config

GAMES, PLIES = 8, 24


@pytest.fixture
def practice() -> Practice:
    """A rollout with forced moves, that is with samples that count for the value only."""
    practice = Practice(*config_of())
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
        array[...] = source[..., mine] if source.ndim == array.ndim else source
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
    prepare: Callable[[PPOAgent, int, ExperienceBuffer], None] = lambda agent, rank, buffer: None,
) -> list[PPOAgent]:
    """Agents after one update from the rollout, of which each rank has a part."""
    whole, start = practice.buffer, practice.agent
    config = tiny_config(*config_of(*overrides))
    ranks = make_ranks(size)
    agents = []
    for rank in ranks:  # one after the other: they set torch's global seed
        random = np.random.default_rng(rank.rank)
        agent = PPOAgent(config, start.compute, start.spec, random, rank)
        for model in (agent.model, agent.evaluation_network.model):
            model.load_state_dict(start.model.state_dict())
        agents.append(agent)
    parts = [part_of(whole, rank.rank, size) for rank in ranks]
    for agent, rank, part in zip(agents, ranks, parts, strict=True):
        prepare(agent, rank.rank, part)

    def learn(rank: ThreadedRanks) -> None:
        agents[rank.rank].learn(parts[rank.rank], LearnSettings(0.01, 0.02))

    run_all(ranks, learn)
    return agents


def together(agents: list[PPOAgent], do: Callable[[PPOAgent], None]) -> None:
    """Let all agents do something at the same time."""
    ranks = [agent.ranks for agent in agents if isinstance(agent.ranks, ThreadedRanks)]
    run_all(ranks, lambda rank: do(agents[rank.rank]))


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_take_the_step_that_one_takes_with_all_samples(practice: Practice, size: int) -> None:
    """Also where they learn the policy from unequally many samples, and are scaled by them."""
    alone = learned(practice, 1)[0]
    for agent in learned(practice, size):
        assert agent.fingerprint != practice.agent.fingerprint, "something was learned"
        for one, many in zip(alone.model.parameters(), agent.model.parameters(), strict=True):
            assert one.grad is not None
            assert many.grad is not None
            assert torch.allclose(one.grad, many.grad, rtol=1e-4, atol=1e-7)


def test_ranks_keep_the_same_weights_bit_by_bit(practice: Practice) -> None:
    agents = learned(practice, 2, "ppo.minibatch_size=16", "ppo.epochs=2", "ppo.ema_decay=0.9")
    assert agents[0].fingerprint == agents[1].fingerprint
    for a, b in zip(
        *(agent.evaluation_network.model.parameters() for agent in agents), strict=True
    ):
        assert torch.equal(a, b)


def test_what_overflows_in_one_rank_is_skipped_in_all(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a scaler, as for float16; autocast itself is left out: not every CPU survives it."""
    monkeypatch.setattr(Compute, "autocast", lambda self: nullcontext())

    def overflow_in_the_second(agent: PPOAgent, rank: int, buffer: ExperienceBuffer) -> None:
        agent.scaler = torch.amp.GradScaler("cpu")
        if rank == 1:
            parameter = next(agent.model.parameters())
            parameter.register_hook(lambda gradient: gradient * torch.inf)  # type: ignore[no-untyped-call]

    agents = learned(practice, 2, prepare=overflow_in_the_second)
    for agent in agents:
        assert agent.fingerprint == practice.agent.fingerprint, "nothing was changed"
        assert agent.scaler.get_scale() == 2.0**15, "and the scale lowered"


def test_a_non_finite_loss_in_one_rank_is_skipped_in_all(practice: Practice) -> None:
    def spoil_the_second(agent: PPOAgent, rank: int, buffer: ExperienceBuffer) -> None:
        if rank == 1:
            buffer.returns[...] = np.nan

    for agent in learned(practice, 2, prepare=spoil_the_second):
        assert agent.fingerprint == practice.agent.fingerprint
        assert agent.state()["bad_minibatches"] == 1


def test_memory_that_runs_out_in_one_rank_makes_all_minibatches_smaller(
    practice: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PPOAgent._loss

    def small_memory(agent: PPOAgent, minibatch: Minibatch, *rest: Any) -> object:
        if agent.ranks.rank == 1 and len(minibatch.counts) > 40:
            raise torch.OutOfMemoryError
        return real(agent, minibatch, *rest)

    monkeypatch.setattr(PPOAgent, "_loss", small_memory)
    agents = learned(practice, 2, "ppo.minibatch_size=auto")
    assert [agent.minibatch_size for agent in agents] == [32, 32]
    assert agents[0].fingerprint == agents[1].fingerprint != practice.agent.fingerprint


def test_weights_that_drifted_apart_come_together_again(
    practice: Practice, caplog: pytest.LogCaptureFixture
) -> None:
    agents = learned(practice, 2)
    together(agents, PPOAgent.stay_together)
    assert caplog.text == ""
    with torch.no_grad():
        next(agents[1].model.parameters()).mul_(1.0 + 1e-6)
    together(agents, PPOAgent.stay_together)
    assert "have diverged" in caplog.text
    assert agents[0].fingerprint == agents[1].fingerprint


def test_ranks_with_and_without_a_scaler_do_not_learn_together(practice: Practice) -> None:
    agents = learned(practice, 2)
    agents[1].compute = replace(agents[1].compute, autocast_dtype=torch.float16)
    with pytest.raises(KeiseiError, match=r"device\.mixed_precision"):
        together(agents, PPOAgent.join_ranks)


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
