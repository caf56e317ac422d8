"""Workers on a Ray cluster: the same games, and nodes that come and go.

The cluster is a real one as far as Ray is concerned: each of its nodes has processes of its own.
"""

import os
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.source import GameSource, SelfPlay, WorkersFailedError
from keisei.selfplay.workers import ray_pool
from keisei.selfplay.workers.ray_pool import RaySelfPlay, import_ray
from keisei.timing import SectionTimer
from tests.tiny import tiny_config, tiny_trainer

pytestmark = pytest.mark.slow
PROCESSES = Path("/proc")
STORE = {"object_store_memory": 80 << 20}
ROLLOUT_PLIES = 30


class Nodes:
    """A cluster on this machine, whose nodes have one CPU each."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster: Any = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False, **STORE},
        )
        self.address = str(self._cluster.address)
        self._others: list[Any] = []

    def have(self, number: int) -> None:
        """Add or kill nodes until there are `number`, the head included."""
        while 1 + len(self._others) < number:
            self._others.append(self._cluster.add_node(num_cpus=1, **STORE))
        while 1 + len(self._others) > number:
            self.kill_one()
        self._cluster.wait_for_nodes()

    def kill_one(self) -> None:
        """Kill a node with all its processes, without notifying the cluster."""
        self._cluster.remove_node(self._others.pop(), allow_graceful=False)

    def shutdown(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    pytest.importorskip("ray", reason="Ray is an extra")
    if sys.platform != "linux":
        pytest.skip("elsewhere Ray has no clusters of several nodes on one machine")
    before = children()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else Ray writes one to the home
        import_ray()
        cluster = Nodes()
        yield cluster
        cluster.shutdown()
    assert children() == before


def children() -> set[int]:
    """Return the processes that this one has started, where the system lists them."""
    if not PROCESSES.is_dir():
        return set()
    found = set()
    for path in PROCESSES.glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(path.parent.name))
    return found


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
def test_a_lost_node_costs_its_games_and_a_new_node_is_used(nodes: Nodes) -> None:
    nodes.have(2)
    config = config_for(nodes, "parallel.num_workers=auto", "parallel.max_failures=0")
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
def test_a_worker_that_hangs_is_replaced(nodes: Nodes) -> None:
    nodes.have(1)
    config = config_for(nodes, "parallel.num_workers=1", "parallel.hang_seconds=6")
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
def test_a_run_starts_ray_by_itself_and_leaves_nothing_behind(nodes: Nodes, tmp_path: Path) -> None:
    import ray

    before = children()
    steps = Steps()
    trainer = tiny_trainer(
        tmp_path, "parallel.backend=ray", "parallel.compression=bf16+gzip", callbacks=[steps]
    )
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
