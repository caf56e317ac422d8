"""Workers on a Ray cluster: the same games, and nodes that come and go.

The cluster is a real one as far as Ray is concerned: each of its nodes has processes of its own.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from keisei import metric_names as names
from keisei.callbacks import Callback, StepEnd
from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.network.model_factory import make_network
from keisei.network.predictor import Network
from keisei.ppo.buffer import Experience
from keisei.selfplay.rollout import RolloutStats, WorkerStats
from keisei.selfplay.source import GameSource, SelfPlay, WorkersFailedError
from keisei.selfplay.workers import ray_pool
from keisei.selfplay.workers.ray_actor import ActorStatus, WeightsMessage
from keisei.selfplay.workers.ray_pool import CONTROL, RaySelfPlay
from keisei.selfplay.workers.worker import GamesPlan
from keisei.timing import SectionTimer
from tests.ray_nodes import Nodes, children, ray_cluster
from tests.tiny import tiny_config, tiny_trainer

pytestmark = pytest.mark.slow
ROLLOUT_PLIES = 30


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with ray_cluster() as cluster:
        yield cluster


def config_for(nodes: Nodes, *overrides: str) -> AppConfig:
    return tiny_config(
        "env.num_games=8",
        f"selfplay.rollout_plies={ROLLOUT_PLIES}",
        "parallel.backend=ray",
        f"parallel.ray_address={nodes.address}",
        *overrides,
    )


def network_of(config: AppConfig) -> Network:
    torch.manual_seed(1)
    return make_network(config, config.device)


def fingerprints(experience: Experience) -> list[bytes]:
    """Return the plies of each game: positions without the gaps of their records, and moves."""
    fields = [experience.packed[name] for name in ("board", "hands", "ply", "turn")]
    fields.append(experience.actions)
    return [
        b"".join(np.ascontiguousarray(field[:, game]).tobytes() for field in fields)
        for game in range(experience.games)
    ]


def collected(
    play: GameSource, is_paused: Callable[[], bool] = lambda: False
) -> tuple[Experience, RolloutStats]:
    experience = Experience(ROLLOUT_PLIES, 8)
    return experience, play.collect(experience, SectionTimer(), is_paused=is_paused)


@pytest.mark.soak
def test_workers_play_the_same_games_as_one_process(nodes: Nodes, family: str) -> None:
    nodes.have(2)
    settings = ("parallel.num_workers=2", "parallel.max_lag=0", "parallel.compression=gzip")
    config = config_for(nodes, family, *settings)
    network = network_of(config)
    alone = SelfPlay(config, network, games=8, threads=1)
    with RaySelfPlay(config, local_cpus=1) as together:
        for update in range(2):
            together.sync_weights(network, update)
            expected, expected_stats = collected(alone)
            pauses = iter([True, True])
            experience, stats = collected(together, is_paused=lambda: next(pauses, False))  # noqa: B023
            assert next(pauses, None) is None, "it waited until the pause was over"
            assert fingerprints(experience) == fingerprints(expected)
            assert (experience.ends == expected.ends).all()
            assert np.allclose(experience.values, expected.values, atol=1e-5)
            assert np.allclose(experience.last_values, expected.last_values, atol=1e-5)
            assert sorted(stats.outcomes) == sorted(expected_stats.outcomes)
            assert stats.plies == len(expected)
            assert stats.lag == 0
            assert len({worker.process for worker in stats.workers}) == 2


@pytest.mark.soak
def test_a_lost_node_costs_its_games_and_a_new_node_is_used(nodes: Nodes, family: str) -> None:
    nodes.have(2)
    config = config_for(nodes, family, "parallel.num_workers=auto", "parallel.max_failures=0")
    network = network_of(config)
    seen: Counter[bytes] = Counter()
    lags = []
    with RaySelfPlay(config, local_cpus=1) as play:
        for update in range(6):
            play.sync_weights(network, update)
            if update == 2:
                nodes.kill_one()
            experience, stats = collected(play)
            assert stats.plies == len(experience)
            assert np.isfinite(experience.last_values).all()
            seen.update(fingerprints(experience))
            lags.append(stats.lag)
        assert play.failures == stats.failures == 1
        assert play.abandoned_games == stats.abandoned_games == 4
        assert play.state() == {
            "abandoned_games": 8,
            "games_given": 16,  # a second round has begun
            "pool": {"snapshots": []},
        }
        assert [worker.plies > 0 for worker in stats.workers] == [True]
        nodes.have(2)
        while not (len(stats.workers) == 2 and all(worker.plies for worker in stats.workers)):
            update += 1
            play.sync_weights(network, update)
            experience, stats = collected(play)
            seen.update(fingerprints(experience))
            lags.append(stats.lag)
    assert max(seen.values()) == 1, "no game was collected twice"
    assert lags[0] == 0
    assert max(lags) == 1


@pytest.mark.soak
def test_workers_without_a_node_are_not_waited_for(nodes: Nodes) -> None:
    nodes.have(1)
    config = config_for(nodes, "parallel.num_workers=4", "parallel.max_lag=2")
    network = network_of(config)
    with RaySelfPlay(config, local_cpus=1) as play:
        for update in range(3):
            play.sync_weights(network, update)
            experience, stats = collected(play)
            assert len(set(fingerprints(experience))) == 8
            assert stats.lag <= 2
        assert len(stats.workers) == 1
        assert play.failures == 0


@pytest.mark.soak
def test_a_worker_that_hangs_is_replaced(nodes: Nodes, family: str) -> None:
    nodes.have(1)
    config = config_for(nodes, family, "parallel.num_workers=1", "parallel.hang_seconds=6")
    network = network_of(config)
    with RaySelfPlay(config, local_cpus=1) as play:
        play.sync_weights(network, 0)
        hanging = collected(play)[1].workers[0].process
        os.kill(hanging, signal.SIGSTOP)
        processes = set()
        for update in (1, 2, 3):
            play.sync_weights(network, update)
            processes |= {worker.process for worker in collected(play)[1].workers}
        assert play.failures >= 1
        assert processes - {hanging}


@pytest.mark.soak
def test_a_worker_that_cannot_build_its_model_stops_the_run_with_its_traceback(
    nodes: Nodes,
) -> None:
    nodes.have(1)
    good = config_for(nodes, "parallel.num_workers=1", "parallel.max_failures=1")
    broken = good.model_copy(
        update={"model": good.model.model_copy(update={"type": "no such network"})}
    )
    with RaySelfPlay(broken, local_cpus=1) as play:
        play.sync_weights(network_of(good), 0)
        with pytest.raises(WorkersFailedError, match="no such network"):
            collected(play)
        assert play.failures == 2
        assert play.abandoned_games == 0


class Steps(Callback):
    """Keeps the metrics of all steps."""

    def __init__(self) -> None:
        self.metrics: list[dict[str, float]] = []

    def on_step_end(self, event: StepEnd) -> None:
        self.metrics.append(dict(event.metrics))


@pytest.mark.soak
def test_a_run_starts_ray_by_itself_and_leaves_nothing_behind(
    nodes: Nodes, family: str, tmp_path: Path
) -> None:
    import ray

    before = children()
    steps = Steps()
    settings = (family, "parallel.backend=ray", "parallel.compression=bf16+gzip")
    trainer = tiny_trainer(tmp_path, *settings, callbacks=[steps])
    assert trainer.run() == "finished"
    assert trainer.timestep == 192
    assert [step["workers/policy_lag"] for step in steps.metrics] == [0.0, 1.0, 1.0]
    for step in steps.metrics:
        seconds = sum(step.get(name, 0.0) for name in names.TIMES)
        assert step[names.SPS] == pytest.approx(64 / seconds)
    assert not ray.is_initialized()
    assert children() == before


def test_a_cluster_that_cannot_be_reached() -> None:
    pytest.importorskip("ray", reason="Ray is an extra")
    config = tiny_config("parallel.backend=ray", "parallel.ray_address=127.0.0.1:1")
    with pytest.raises(KeiseiError, match=r"cannot join the Ray cluster at '127.0.0.1:1'"):
        RaySelfPlay(config, local_cpus=1)


def test_games_must_be_divided_evenly() -> None:
    config = tiny_config("parallel.backend=ray", "parallel.num_workers=3")
    with pytest.raises(KeiseiError, match="must be a multiple"):
        RaySelfPlay(config, local_cpus=1)


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(KeiseiError, match=r'pip install "keisei\[ray\]"'):
        RaySelfPlay(tiny_config("parallel.backend=ray"), local_cpus=1)


class BrokenRay:
    """Ray on a machine where it cannot start."""

    def is_initialized(self) -> bool:
        return False

    def init(self, *_: object, **__: object) -> None:
        raise Exception("\nThe current node timed out during startup.\nThe log:\n" + "x\n" * 60)


@pytest.mark.parametrize("address", ["", "127.0.0.1:6379"])
def test_a_ray_that_cannot_start_is_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_pool, "_try_connection", lambda _: None)
    config = tiny_config(
        "parallel.backend=ray", "parallel.num_workers=1", f'parallel.ray_address="{address}"'
    )
    with pytest.raises(KeiseiError) as caught:
        ray_pool._join(BrokenRay(), config, 1)
    assert str(caught.value).endswith(": The current node timed out during startup.")
    assert "\n" not in str(caught.value)


class NotingRay:
    """Ray that keeps what is put into its store."""

    class exceptions:  # noqa: N801 - as in Ray
        """Errors that are translated."""

        class RayError(Exception):
            pass

    def __init__(self) -> None:
        self.stored: list[WeightsMessage] = []

    def is_initialized(self) -> bool:
        return True

    def put(self, message: WeightsMessage) -> None:
        self.stored.append(message)


@pytest.mark.parametrize(
    ("compression", "is_compressed", "dtype"),
    [
        ("off", False, "float32"),
        ("gzip", True, "float32"),
        ("bf16", False, "bfloat16"),
        ("bf16+gzip", True, "bfloat16"),
    ],
)
def test_weights_are_compressed_as_the_settings_say(
    compression: str, is_compressed: bool, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = NotingRay()
    monkeypatch.setattr(ray_pool, "import_ray", lambda: ray)
    for name in ("_adjust_actors", "_hand_out"):
        monkeypatch.setattr(RaySelfPlay, name, lambda self: None)
    settings = ("parallel.num_workers=2", f"parallel.compression={compression}")
    config = tiny_config("model.type=sparse", "parallel.backend=ray", *settings)
    with RaySelfPlay(config, local_cpus=1) as play:
        play.sync_weights(make_network(config, config.device), 3)
    (message,) = ray.stored
    assert message.version == 3
    for tensor in message.messages.values():
        assert (tensor["compressed"], tensor["dtype"]) == (is_compressed, dtype)
        assert tensor["data"].startswith(b"\x1f\x8b") == is_compressed, "the mark of gzip"


class StubMethod:
    """A method of a stub's handle: it notes its calls, with the concurrency group."""

    def __init__(self, handle: "StubHandle", name: str, group: str = "") -> None:
        self._handle, self._name, self._group = handle, name, group

    def options(self, concurrency_group: str) -> "StubMethod":
        return StubMethod(self._handle, self._name, concurrency_group)

    def remote(self, *arguments: object) -> tuple["StubHandle", str]:
        self._handle.calls.append((self._name, self._group, *arguments))
        return self._handle, self._name


class StubHandle:
    """The handle of an actor that obeys every command at once and plays nothing."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.calls: list[tuple[object, ...]] = []

    def __getattr__(self, name: str) -> StubMethod:
        return StubMethod(self, name)

    def commands(self) -> list[tuple[object, ...]]:
        """Return the commands since the last look."""
        calls, self.calls = self.calls, []
        return [call for call in calls if call[0] in ("pause", "reset")]


class StubRay(NotingRay):
    """Ray whose actors answer requests for their status, and never end a work item."""

    def __init__(self) -> None:
        super().__init__()
        self.handles: list[StubHandle] = []

    def remote(self, **options: object) -> Callable[[type], "StubRay.ActorClass"]:
        return lambda actor: StubRay.ActorClass(self)

    class ActorClass:
        """What a class becomes for Ray."""

        def __init__(self, ray: "StubRay") -> None:
            self._ray = ray

        def remote(self, number: int, plan: GamesPlan, plies: int) -> StubHandle:
            self._ray.handles.append(StubHandle(number))
            return self._ray.handles[-1]

    def wait(
        self, refs: list[tuple[StubHandle, str]], num_returns: int, timeout: float
    ) -> tuple[list[tuple[StubHandle, str]], list[tuple[StubHandle, str]]]:
        ready = [ref for ref in refs if ref[1] == "status"][:num_returns]
        return ready, [ref for ref in refs if ref not in ready]

    def get(self, ref: tuple[StubHandle, str], timeout: float = 0.0) -> ActorStatus:
        handle, method = ref
        if method != "status":
            raise self.exceptions.RayError
        return ActorStatus(WorkerStats(handle.number, process=7), progress=0, node="node")

    def kill(self, handle: StubHandle) -> None:
        handle.calls.append(("kill",))

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def nodes(self) -> list[dict[str, object]]:
        return []


def test_all_actors_are_paused_and_reset_while_they_play(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = StubRay()
    monkeypatch.setattr(ray_pool, "import_ray", lambda: ray)
    config = tiny_config("model.type=sparse", "parallel.backend=ray", "parallel.num_workers=2")
    with RaySelfPlay(config, local_cpus=2) as play:
        play.sync_weights(make_network(config, config.device), 0)
        first, second = ray.handles
        play.reset()
        assert play.abandoned_games == 0, "no worker has started, so there are no games yet"
        assert first.commands() == second.commands() == [("reset", CONTROL)]
        play._receive()
        play._hand_out()
        assert play.games_in_progress == 8

        play.pause()
        assert first.commands() == second.commands() == [("pause", CONTROL, True)]
        play.reset()
        assert play.abandoned_games == 8
        assert first.commands() == second.commands() == [("reset", CONTROL)], "also while paused"

        play._replace(play._actors[0], "its node is gone")
        assert play.abandoned_games == 12, "its four games are lost"
        third = ray.handles[2]
        assert third.commands() == [("pause", CONTROL, True)], "a new worker is paused too"
        play.reset()
        assert play.abandoned_games == 16, "those of the worker that has started"

        second.commands()
        third.commands()
        play.resume()
        assert second.commands() == third.commands() == [("pause", CONTROL, False)]
        assert first.commands() == [], "nothing is sent to a worker that is gone"
