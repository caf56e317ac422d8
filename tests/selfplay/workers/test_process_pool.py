"""Workers: the same games as without them, and nothing lost, doubled or left behind."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.network.model_factory import make_network
from keisei.network.predictor import Network, Weights
from keisei.network.towers.torch_predictor import TorchPredictor
from keisei.ppo.buffer import Experience
from keisei.ppo.learner import Ranks
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.source import SelfPlay, WorkersFailedError
from keisei.selfplay.workers import process_pool
from keisei.selfplay.workers import worker as worker_module
from keisei.selfplay.workers.inference_server import uses_inference_server
from keisei.selfplay.workers.messages import (
    Chunk,
    Command,
    CommandKind,
    Failure,
    SlotRing,
    WorkerCommunicator,
)
from keisei.selfplay.workers.model_sync import ModelSynchronizer
from keisei.selfplay.workers.process_pool import ParallelSelfPlay
from keisei.selfplay.workers.worker import (
    MAX_UNACKNOWLEDGED,
    PoolSnapshots,
    ProcessPlan,
    SelfPlayWorker,
    WorkerProcess,
)
from keisei.selfplay.workers.worker_pool import GameShares
from keisei.shogi.packed import PACKED
from keisei.timing import SectionTimer
from tests.tiny import tiny_config

SERVER = ("parallel.inference=server", "parallel.num_workers=auto")
SHARED = Path("/dev/shm")
ROOT = Path(__file__).parents[3]
posix_only = pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")
lists_shared_memory = pytest.mark.skipif(
    not SHARED.is_dir(), reason="this system does not list shared memory"
)


def config_with(*overrides: str) -> AppConfig:
    return tiny_config("env.num_games=8", "selfplay.rollout_plies=30", *overrides)


def network_of(config: AppConfig) -> Network:
    torch.manual_seed(1)
    return make_network(config, config.device)


def fingerprints(experience: Experience) -> Counter[bytes]:
    """Count the plies of each game: positions and moves."""
    fields = [experience.packed[name] for name in PACKED.names or ()]  # without the gaps between
    return Counter(
        b"".join(array[:, game].tobytes() for array in (*fields, experience.actions))
        for game in range(experience.games)
    )


def shared_blocks(process: int | None = None) -> set[str]:
    """Return the names of this process's blocks; other tests run beside these."""
    if not SHARED.is_dir():
        return set()
    return {path.name for path in SHARED.glob(f"keisei-*-{process or os.getpid()}-*")}


class Running:
    """Running workers, updated again and again with the same weights."""

    def __init__(self, config: AppConfig, play: ParallelSelfPlay) -> None:
        self.config, self.play = config, play
        self.version = -1
        self.seen: Counter[bytes] = Counter()
        """The plies of all games that were collected."""

    def publish(self) -> None:
        self.version += 1
        self.play.sync_weights(network_of(self.config), self.version)

    def collect(self) -> tuple[Experience, RolloutStats]:
        experience = experience_of(self.config)
        progress: list[int] = []
        stats = self.play.collect(experience, SectionTimer(), on_progress=progress.append)
        assert stats.plies == len(experience)
        shares = len(self.play._workers)
        assert set(progress) <= {len(experience) * ready // shares for ready in range(shares)}
        self.seen += fingerprints(experience)
        return experience, stats

    def update(self) -> tuple[Experience, RolloutStats]:
        self.publish()
        return self.collect()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the first worker."""
        process = next(p for p in multiprocessing.active_children() if p.name == "keisei-worker-0")
        assert process.pid is not None
        os.kill(process.pid, number)


@pytest.fixture(scope="module", params=["resnet", "sparse"])
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    """Two workers of each family for many tests, as it takes seconds to start them."""
    blocks = shared_blocks()
    config = config_with(
        f"model.type={request.param}", "parallel.max_lag=1", "parallel.max_failures=2",
        "parallel.hang_seconds=20",
    )  # fmt: skip
    with ParallelSelfPlay(config, workers=2) as play:
        started = Running(config, play)
        yield started
        assert max(started.seen.values()) == 1, "something was collected twice"
    assert multiprocessing.active_children() == []
    assert shared_blocks() <= blocks


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"no {what} in {seconds} s"
        time.sleep(0.05)


def test_workers_play_the_same_games_as_one_process(running: Running) -> None:
    require_same_games(running)


def test_workers_search_as_one_process_does() -> None:
    config = config_with("model.type=sparse", "selfplay.simulations=4")
    with ParallelSelfPlay(config, workers=2) as play:
        require_same_games(Running(config, play))


def experience_of(config: AppConfig) -> Experience:
    """Memory for a rollout."""
    settings = config.selfplay
    return Experience(settings.rollout_plies, config.env.num_games, targets=settings.num_targets)


def require_same_games(running: Running) -> None:
    """Compare the games of workers with those of one process."""
    config = running.config
    alone = SelfPlay(config, network_of(config), games=8, threads=1)
    for _ in range(2):
        expected = experience_of(config)
        expected_stats = alone.collect(expected, SectionTimer())
        experience, stats = running.update()
        assert fingerprints(experience) == fingerprints(expected)
        assert (experience.ends == expected.ends).all()
        assert np.allclose(experience.values, expected.values, atol=1e-5)
        assert np.allclose(experience.last_values, expected.last_values, atol=1e-5)
        assert np.array_equal(experience.target_actions, expected.target_actions)
        assert np.allclose(experience.target_probs, expected.target_probs, atol=1e-5)
        assert Counter(stats.outcomes) == Counter(expected_stats.outcomes)


def test_a_full_ring_makes_workers_wait_and_the_lag_is_bounded(running: Running) -> None:
    running.update()
    running.publish()
    waited = [worker.waited for worker in running.collect()[1].workers]
    # They may be one update ahead, and then wait for newer weights, however long that takes.
    time.sleep(3.0)
    running.publish()
    assert running.collect()[1].lag == 1
    stats = running.update()[1]
    assert stats.lag <= 1
    assert all(
        after.waited > before + 1.0 for before, after in zip(waited, stats.workers, strict=True)
    )
    assert len({worker.process for worker in stats.workers}) == 2
    assert all(worker.memory > 10.0 and worker.plies > 0 for worker in stats.workers)


def test_commands_are_obeyed_while_waiting(running: Running) -> None:
    running.update()
    time.sleep(1.0)  # by now all workers wait for weights
    running.play.pause()
    running.publish()
    running.collect()  # played before the pause
    running.publish()
    assert not any(worker.chunks for worker in running.play._workers)
    running.play.resume()
    running.collect()


def test_collecting_stands_still_while_paused(running: Running) -> None:
    running.update()
    calls = 0
    plies: list[int] = []

    def is_paused() -> bool:
        """Return True for a few calls, and note the plies that the workers have reported."""
        nonlocal calls
        calls += 1
        plies.append(sum(worker.stats.plies for worker in running.play._workers))
        return calls < 8

    running.publish()
    experience = Experience(running.config.selfplay.rollout_plies, running.config.env.num_games)
    stats = running.play.collect(experience, SectionTimer(), is_paused=is_paused)
    running.seen += fingerprints(experience)
    assert stats.plies == len(experience)
    assert calls >= 8, "it waited until the pause was over"
    assert plies[7] == plies[5], "workers did not play while they were paused"
    running.update()


def test_reset_abandons_the_games() -> None:
    """Games that no limit ends: without a reset their plies would only grow."""
    config = config_with("model.type=sparse", "env.ply_limit=4096", "selfplay.mate_plies=0")
    with ParallelSelfPlay(config, workers=1) as play:
        running = Running(config, play)
        for _ in range(3):
            experience, _ = running.update()
        assert experience.packed.ply.max() > 60
        before = play.abandoned_games
        play.reset()
        assert play.abandoned_games == before + 8
        running.update()  # may have been played before the command was received
        experience, _ = running.update()
        assert experience.packed.ply.max() < 60


def test_games_are_staggered_when_they_begin_and_after_a_reset() -> None:
    config = config_with("model.type=sparse", "env.stagger_plies=19")
    alone = SelfPlay(config, network_of(config), games=8, threads=1)
    shares = GameShares(config, shares=2, ranks=Ranks())
    worker = SelfPlayWorker(shares.next_plan(PoolSnapshots((), 0)))
    assert worker._selfplay.env.packed.ply.tolist() == alone.env.packed.ply[:4].tolist()
    for games in (alone, worker._selfplay):
        games.env.reset()
    worker.reset()
    alone.begin_again()
    plies = alone.env.packed.ply.tolist()
    assert len(set(plies)) == len(plies)
    assert worker._selfplay.env.packed.ply.tolist() == plies[:4]


@posix_only
def test_killed_workers_are_replaced_and_nothing_is_lost_or_doubled(running: Running) -> None:
    failures, abandoned = running.play.failures, running.play.abandoned_games
    for killed in (1, 2):
        running.publish()
        running.send_signal(signal.SIGKILL)
        running.collect()
        updates = 0
        while running.play.failures < failures + killed:  # what it had sent before is used first
            running.update()
            updates += 1
            assert updates <= running.config.parallel.max_lag + 1
    assert running.play.failures == failures + 2
    assert running.play.abandoned_games == abandoned + 2 * 4


@pytest.mark.soak
@posix_only
def test_a_worker_that_hangs_is_replaced(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running.update()  # workers that are just starting need longer than the time below
    failures = running.play.failures
    hurried = running.config.parallel.model_copy(update={"hang_seconds": 4.0})
    monkeypatch.setattr(
        running.play, "_config", running.config.model_copy(update={"parallel": hurried})
    )
    running.update()
    running.send_signal(signal.SIGSTOP)
    while running.play.failures == failures:
        running.update()
    assert "worker 0 failed and is replaced: no heartbeat" in caplog.text
    monkeypatch.undo()
    running.update()


@pytest.mark.soak
@posix_only
def test_twenty_kills_in_one_run(running: Running) -> None:
    failures = running.play.failures
    for kill in range(20):
        running.publish()
        running.send_signal(signal.SIGKILL)
        running.collect()  # may have been played before
        while running.play.failures == failures + kill:
            running.update()
    assert running.play.failures == failures + 20


def test_a_worker_that_cannot_build_its_model_stops_the_run_with_its_traceback() -> None:
    good = config_with("parallel.max_failures=1")
    broken = good.model_copy(
        update={"model": good.model.model_copy(update={"type": "no such network"})}
    )
    with ParallelSelfPlay(broken, workers=1) as play:
        play.sync_weights(network_of(good), 0)
        with pytest.raises(WorkersFailedError, match=r"2 times in a row(.|\n)*no such network"):
            Running(broken, play).collect()
        assert play.failures == 2


LEARNER = """
import sys, time
import multiprocessing
from tests.selfplay.workers.test_process_pool import Running, config_with
from keisei.selfplay.workers.process_pool import ParallelSelfPlay
if __name__ == "__main__":
    config = config_with()
    with ParallelSelfPlay(config, workers=2) as play:
        running = Running(config, play)
        running.update()
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        while True:
            running.update()
"""


@posix_only
@lists_shared_memory
def test_workers_end_with_a_learner_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "learner.py"
    script.write_text(LEARNER)
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the resource tracker reports there what it removed
    ) as learner:
        assert learner.stdout is not None
        workers = [int(number) for number in learner.stdout.readline().split()]
        assert len(workers) == 2
        assert len(shared_blocks(learner.pid)) == 3, "two rings and the weights"
        learner.kill()
    wait_for(lambda: not any(is_alive(worker) for worker in workers), "end of the workers")
    wait_for(lambda: not shared_blocks(learner.pid), "end of the shared memory")


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@lists_shared_memory
def test_too_little_shared_memory_is_noticed_before_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    blocks = shared_blocks()
    config = config_with()
    with (
        ParallelSelfPlay(config, workers=2) as play,
        pytest.raises(KeiseiError, match=r"no room for .* MB of shared memory.*--shm-size"),
    ):
        play.sync_weights(network_of(config), 0)
    assert shared_blocks() == blocks


def test_workers_map_the_files_that_take_the_place_of_too_little_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("keisei.shared_memory._reserve", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    config = config_with("model.type=sparse", "parallel.max_failures=0")
    with ParallelSelfPlay(config, workers=1) as play:
        running = Running(config, play)
        running.update()
        assert len([*tmp_path.iterdir()]) == 2, "the ring and the weights"
    assert caplog.text.count(f"A file in {tmp_path} takes its place") == 2
    assert sum(running.seen.values()) == 8
    assert [*tmp_path.iterdir()] == []


def test_a_worker_that_starts_in_the_middle_of_a_run_has_the_snapshots(family: str) -> None:
    config = config_with(family, "selfplay.pool_share=0.5", "selfplay.pool_interval=4")
    network = network_of(config)
    with ParallelSelfPlay(config, workers=1) as play:
        for version in (0, 1, 4, 6):
            play._begin_version(network, version)
        plan = play._shares.next_plan(play._pool_snapshots)
        state = play.state()
    worker = SelfPlayWorker(plan)
    pool = worker._selfplay.pool
    assert len(pool.snapshots) == 2
    for name, value in network.weights().items():
        assert np.array_equal(pool.snapshots[1][name], value)
    for version, known in ((6, 2), (7, 2), (9, 3), (10, 3)):
        worker.load_weights(network.weights(), version)
        assert len(pool.snapshots) == known
    with ParallelSelfPlay(config, workers=2) as resumed:
        resumed.restore(state)
        assert len(resumed._pool_snapshots.weights) == 2
    with ParallelSelfPlay(config_with(family), workers=2) as without_pool:
        without_pool.restore(state)
        assert not without_pool._pool_snapshots.weights, "no game needs them"


class WorkerHere(NamedTuple):
    """The worker's side in this process, and the learner's end of its pipe."""

    process: WorkerProcess
    pipe: Connection
    weights_buffer: ModelSynchronizer
    network: Network

    def send(self, kind: CommandKind, argument: int = 0) -> None:
        self.pipe.send(Command(kind, argument))

    def received(self) -> list[object]:
        """Return the messages that have arrived."""
        messages: list[object] = []
        while self.pipe.poll():
            messages.append(self.pipe.recv())
        return messages


@pytest.fixture
def worker_here() -> Iterator[WorkerHere]:
    config = config_with("model.type=sparse")
    network = network_of(config)
    ours, other = multiprocessing.Pipe()
    with ModelSynchronizer(network.weights()) as weights_buffer:
        play = ParallelSelfPlay(config, workers=1)
        ring = play.new_ring()
        games = play._shares.next_plan(PoolSnapshots((), 0))
        plan = ProcessPlan(0, games, 0, 1, weights_buffer.name, ring.plan([0]))
        with WorkerCommunicator(other, ring, deque([0, 1])) as link:
            process = WorkerProcess(plan, SelfPlayWorker(games), link)
            yield WorkerHere(process, ours, weights_buffer, network)
            process._weights_buffer.close()
    ours.close()
    other.close()


def test_heartbeats_do_not_fill_the_pipe(
    worker_here: WorkerHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "HEARTBEAT_INTERVAL", -1.0)

    def heartbeats() -> int:
        for _ in range(100):
            worker_here.process._before_ply()
        return len(worker_here.received())

    assert heartbeats() == MAX_UNACKNOWLEDGED
    assert heartbeats() == 0, "the learner is busy"
    worker_here.send(CommandKind.ACKNOWLEDGE)
    assert heartbeats() == MAX_UNACKNOWLEDGED


def test_only_the_newest_of_several_waiting_weights_are_applied(
    worker_here: WorkerHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = {name: array.copy() for name, array in worker_here.network.weights().items()}
    for version in range(4):
        changed = {name: array + version for name, array in weights.items()}
        worker_here.weights_buffer.publish(changed, version)
        worker_here.send(CommandKind.WEIGHTS, version)
    worker = worker_here.process._worker
    applied: list[int] = []
    load = worker.load_weights

    def load_weights(weights: Weights, version: int) -> None:
        applied.append(version)
        load(weights, version)

    monkeypatch.setattr(worker, "load_weights", load_weights)
    worker_here.process._play_chunk(SectionTimer())
    assert applied == [3]
    for name, array in worker.network.weights().items():
        assert np.array_equal(array, weights[name] + 3), name
    (chunk,) = (message for message in worker_here.received() if isinstance(message, Chunk))
    assert chunk.version == 3, "what was played with"


@pytest.mark.parametrize("is_paused", [False, True], ids=["waiting for weights", "paused"])
def test_a_worker_that_plays_nothing_stops_at_once(
    worker_here: WorkerHere, is_paused: bool
) -> None:
    if is_paused:
        worker_here.send(CommandKind.PAUSE)
        worker_here.weights_buffer.publish(worker_here.network.weights(), 0)
        worker_here.send(CommandKind.WEIGHTS, 0)
        worker_here.send(CommandKind.RESET)
    thread = threading.Thread(target=worker_here.process.run)
    thread.start()
    time.sleep(0.3)
    assert thread.is_alive()
    worker_here.send(CommandKind.STOP)
    thread.join(20.0)
    assert not thread.is_alive()
    assert not any(isinstance(message, Chunk) for message in worker_here.received())


def test_a_worker_that_is_paused_begins_new_games_at_once(worker_here: WorkerHere) -> None:
    process = worker_here.process
    worker_here.weights_buffer.publish(worker_here.network.weights(), 0)
    worker_here.send(CommandKind.WEIGHTS, 0)
    process._play_chunk(SectionTimer())
    plies = process._worker._selfplay.env.packed["ply"]
    assert plies.any(), "games are in progress"
    worker_here.send(CommandKind.PAUSE)
    worker_here.send(CommandKind.RESET)
    worker_here.received()
    messages: list[object] = []

    def received_chunks() -> list[Chunk]:
        messages.extend(worker_here.received())
        return [message for message in messages if isinstance(message, Chunk)]

    thread = threading.Thread(target=process.run)
    thread.start()
    try:
        wait_for(lambda: not plies.any(), "reset while paused")
        time.sleep(0.2)
        assert not plies.any(), "nothing is played before it is resumed"
        assert not received_chunks()
        worker_here.send(CommandKind.RESUME)
        wait_for(lambda: bool(received_chunks()), "chunk of the new games")
    finally:
        worker_here.send(CommandKind.STOP)
        thread.join(20.0)
    assert not thread.is_alive()
    (chunk,) = received_chunks()
    played = process._link.ring[chunk.slot].packed.ply
    assert not played[0].any(), "plies begin at 0"
    assert (played[1] == 1).all()


@lists_shared_memory
def test_a_communicator_is_a_context_that_frees_its_memory_after_an_error_too() -> None:
    before = shared_blocks()
    pipe, other = multiprocessing.Pipe()
    with (
        suppress(ZeroDivisionError),
        WorkerCommunicator(pipe, SlotRing(plies=2, games=2, slots=1)) as link,
    ):
        assert len(shared_blocks() - before) == 1
        link.send(Failure("reason"))
        raise ZeroDivisionError
    assert shared_blocks() == before
    assert other.recv() == Failure("reason")
    pipe.close()
    other.close()


def test_a_worker_that_is_silent_for_too_long_is_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The learner's side alone; see above for a process that hangs."""
    started: list[int] = []

    def start(worker: process_pool._Worker, first_chunk: int) -> None:
        started.append(worker.number)
        worker.pipe, _ = pipes[worker.number]
        worker.is_up = True
        worker.last_message = time.monotonic()

    monkeypatch.setattr(process_pool._Worker, "start", start)
    monkeypatch.setattr(process_pool, "POLL_INTERVAL", 0.01)
    pipes = [multiprocessing.Pipe() for _ in range(2)]
    config = config_with("parallel.hang_seconds=60")
    with ParallelSelfPlay(config, workers=2) as play:
        play.sync_weights(network_of(config), 0)
        play._receive()
        assert started == [0, 1]
        play._workers[1].last_message -= 61.0
        play._receive()
        assert started == [0, 1, 1]
        assert (play.failures, play.abandoned_games) == (1, 4)
        assert "worker 1 failed and is replaced: no heartbeat for 61 s" in caplog.text
        commands = [pipes[1][1].recv() for _ in range(2)]
        assert commands == [Command(CommandKind.WEIGHTS, 0)] * 2, "it has the newest weights again"
    for _, other in pipes:
        other.close()


def test_games_must_be_divided_evenly() -> None:
    with pytest.raises(KeiseiError, match="must be a multiple"):
        ParallelSelfPlay(config_with(), workers=3)


def test_a_share_of_pool_games_that_is_no_game_of_a_worker_is_refused() -> None:
    config = config_with("selfplay.pool_share=0.1")  # of 8 games one, of 4 games none
    ParallelSelfPlay(config, workers=1).close()
    with pytest.raises(KeiseiError, match=r"pool_share=0\.1 of 4 games .* to 0\.25 or more"):
        ParallelSelfPlay(config, workers=2)
    with pytest.raises(KeiseiError, match=r"pool_share=0\.01 of 8 games"):
        SelfPlay(config_with("selfplay.pool_share=0.01"), network_of(config), games=8, threads=1)


def test_workers_step_their_games_with_the_threads_of_the_settings() -> None:
    config = config_with("env.threads=2")
    plan = GameShares(config, shares=2, ranks=Ranks()).next_plan(PoolSnapshots((), 0))
    assert SelfPlayWorker(plan)._selfplay.env.pool.threads == 2


def test_a_server_answers_as_the_workers_own_networks_do(family: str) -> None:
    config = config_with(family, *SERVER, "parallel.max_failures=4")
    alone = SelfPlay(config, network_of(config), games=8, threads=1)
    blocks, others = shared_blocks(), multiprocessing.active_children()
    with ParallelSelfPlay(config, workers=2) as play:
        running = Running(config, play)
        for _ in range(2):
            expected = Experience(config.selfplay.rollout_plies, config.env.num_games)
            alone.collect(expected, SectionTimer())
            experience, _ = running.update()
            assert fingerprints(experience) == fingerprints(expected)
            assert np.allclose(experience.values, expected.values, atol=1e-5)
    assert set(multiprocessing.active_children()) <= set(others)
    assert shared_blocks() <= blocks


@pytest.mark.soak
@posix_only
def test_a_server_that_is_killed_is_replaced_with_its_workers() -> None:
    signal_server(signal.SIGKILL)


@pytest.mark.soak
@posix_only
def test_a_server_that_hangs_is_replaced_with_its_workers() -> None:
    signal_server(signal.SIGSTOP, "parallel.hang_seconds=4")


def signal_server(number: signal.Signals, *overrides: str) -> None:
    """Send a signal to the inference server: one failure, although all workers fail."""
    config = config_with(*SERVER, "parallel.max_failures=1", *overrides)
    with ParallelSelfPlay(config, workers=4) as play:
        running = Running(config, play)
        running.update()
        server = next(
            p for p in multiprocessing.active_children() if p.name == "keisei-inference-server"
        )
        assert server.pid is not None
        os.kill(server.pid, number)
        for _ in range(3):
            running.update()
        assert play.failures >= 4, "all workers failed, and have a new server"
        assert max(running.seen.values()) == 1


def test_auto_uses_a_server_only_for_a_network_on_a_gpu() -> None:
    sparse = config_with("model.type=sparse")
    assert not uses_inference_server(sparse, network_of(sparse))
    network = network_of(config_with())
    assert isinstance(network, TorchPredictor)
    assert not uses_inference_server(config_with(), network)
    compute = replace(network.compute, device=torch.device("cuda"))
    on_gpu = TorchPredictor(network.model, compute, network.spec)
    assert uses_inference_server(config_with(), on_gpu)
    assert not uses_inference_server(config_with("parallel.inference=workers"), on_gpu)
