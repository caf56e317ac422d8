"""Workers: the same games as without them, and nothing lost, doubled or left behind."""

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from keisei.config_schema import AppConfig, DeviceConfig
from keisei.errors import KeiseiError
from keisei.models.compute import choose_compute
from keisei.models.factory import build_model
from keisei.models.network import ActorCritic
from keisei.ppo.experience import Experience
from keisei.ppo.inference import Inference
from keisei.selfplay import sources
from keisei.selfplay.parallel import ParallelSelfPlay, WorkersFailedError
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.shared_blocks import create_block, remove_orphans
from keisei.selfplay.source import SelfPlay
from keisei.selfplay.sources import learner_compute, number_of_workers
from keisei.selfplay.timing import SectionTimer
from keisei.shogi.features import feature_spec
from tests.tiny import tiny_config

SHARED = Path("/dev/shm")
pytestmark = pytest.mark.slow


def config_with(*overrides: str) -> AppConfig:
    return tiny_config("env.num_games=8", "selfplay.rollout_plies=30", *overrides)


def model_of(config: AppConfig) -> ActorCritic:
    torch.manual_seed(1)
    spec = feature_spec(config.env.input_features)
    return build_model(config.model, spec.num_planes).eval()


def fingerprints(experience: Experience) -> Counter[bytes]:
    """Each game's plies: positions and moves."""
    return Counter(
        experience.packed[:, game].tobytes() + experience.actions[:, game].tobytes()
        for game in range(experience.games)
    )


def collected(
    play: SelfPlay | ParallelSelfPlay, config: AppConfig
) -> tuple[Experience, RolloutStats]:
    experience = Experience(config.selfplay.rollout_plies, config.env.num_games)
    return experience, play.collect(experience, SectionTimer())


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    blocks = {path.name for path in SHARED.glob("keisei-*")} if SHARED.is_dir() else set()
    yield
    assert multiprocessing.active_children() == []
    if SHARED.is_dir():
        assert {path.name for path in SHARED.glob("keisei-*")} <= blocks


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_play_the_same_games_as_one_process(workers: int) -> None:
    config = config_with("parallel.max_lag=0")
    model = model_of(config)
    spec = feature_spec(config.env.input_features)
    compute = choose_compute(config.device)
    alone = SelfPlay(config, Inference(compute.prepare(model), compute, spec), games=8, threads=1)
    with ParallelSelfPlay(config, workers=workers) as together:
        for update in range(2):
            together.take_weights(model, update)
            expected, expected_stats = collected(alone, config)
            experience, stats = collected(together, config)
            assert fingerprints(experience) == fingerprints(expected)
            assert (experience.ends == expected.ends).all()
            assert np.allclose(experience.values, expected.values, atol=1e-5)
            assert sorted(stats.outcomes) == sorted(expected_stats.outcomes)
            assert stats.plies == len(expected)
            assert stats.lag == 0


def test_lag_is_bounded_and_measured() -> None:
    config = config_with("parallel.max_lag=1")
    model = model_of(config)
    with ParallelSelfPlay(config, workers=2) as play:
        lags = []
        for update in range(4):
            play.take_weights(model, update)
            time.sleep(0.3)  # the learner learns; the workers go on as far as they may
            lags.append(collected(play, config)[1].lag)
        assert lags[0] == 0
        assert set(lags[1:]) == {1}


def test_workers_wait_while_paused_and_while_nothing_is_read() -> None:
    config = config_with("parallel.max_lag=0")
    with ParallelSelfPlay(config, workers=2) as play:
        play.take_weights(model_of(config), 0)
        collected(play, config)
        time.sleep(0.5)
        play.pause()
        play.take_weights(model_of(config), 1)
        play.resume()
        _, stats = collected(play, config)
        assert len(stats.workers) == 2
        assert len({worker.process for worker in stats.workers}) == 2


def test_reset_abandons_the_games() -> None:
    config = config_with("parallel.max_lag=0")
    with ParallelSelfPlay(config, workers=1) as play:
        play.take_weights(model_of(config), 0)
        collected(play, config)
        play.reset()
        play.take_weights(model_of(config), 1)
        experience, _ = collected(play, config)
        assert (experience.packed[0].ply <= config.env.opening_plies).all()
        assert play.abandoned_games == 8


def test_killed_workers_are_replaced_and_nothing_is_lost_or_doubled() -> None:
    config = config_with("parallel.max_lag=1", "parallel.max_failures=30")
    model = model_of(config)
    seen: Counter[bytes] = Counter()
    with ParallelSelfPlay(config, workers=2) as play:
        for update in range(8):
            play.take_weights(model, update)
            if update % 2:
                kill_a_worker(signal.SIGKILL)
            experience, stats = collected(play, config)
            assert stats.plies == len(experience)
            seen += fingerprints(experience)
        assert play.failures == 4
        assert play.abandoned_games == 4 * 4
    assert max(seen.values()) == 1, "no game was handed over twice"


def kill_a_worker(how: signal.Signals) -> None:
    process = multiprocessing.active_children()[0].pid
    assert process is not None
    os.kill(process, how)


def test_a_worker_that_hangs_is_replaced() -> None:
    config = config_with("parallel.hang_seconds=2.5")
    model = model_of(config)
    with ParallelSelfPlay(config, workers=1) as play:
        play.take_weights(model, 0)
        collected(play, config)
        kill_a_worker(signal.SIGSTOP)
        play.take_weights(model, 1)
        for update in (1, 2, 3):
            collected(play, config)
            play.take_weights(model, update + 1)
        assert play.failures == 1


def test_a_worker_that_cannot_build_its_model_stops_the_run_with_its_traceback() -> None:
    good = config_with("parallel.max_failures=1")
    broken = good.model_copy(
        update={"model": good.model.model_copy(update={"type": "no such network"})}
    )
    with ParallelSelfPlay(broken, workers=1) as play:
        play.take_weights(model_of(good), 0)
        with pytest.raises(WorkersFailedError, match="no such network"):
            collected(play, broken)
        assert play.failures == 2


def test_games_must_be_shared_fairly() -> None:
    with pytest.raises(KeiseiError, match="must be a multiple"):
        ParallelSelfPlay(config_with(), workers=3)


def test_numbers_are_chosen_by_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "usable_cpus", lambda: 8)
    cpu = choose_compute(DeviceConfig(device="cpu"))
    gpu = replace(cpu, device=torch.device("cuda"))
    auto = config_with("parallel.num_workers=auto", "device.torch_threads=0")
    assert number_of_workers(auto, gpu) == 8
    assert number_of_workers(auto, cpu) == 4, "8 games cannot be shared by 7"
    assert learner_compute(auto).threads == 4
    assert number_of_workers(config_with("parallel.num_workers=3"), cpu) == 3
    twice = config_with("parallel.num_workers=auto", "parallel.worker_threads=4")
    assert number_of_workers(twice, gpu) == 2


@pytest.mark.skipif(not SHARED.is_dir(), reason="this system does not list shared memory")
def test_memory_of_dead_processes_is_removed_at_the_next_start() -> None:
    orphan = SHARED / "keisei-999999999-abc123"
    orphan.write_bytes(b"left")
    own = create_block(64)
    assert remove_orphans() == 1
    assert not orphan.exists()
    assert (SHARED / own.name).exists()
    own.close()
    own.unlink()
