"""A worker's games: a part of all games of a run, and a copy of the network that plays them.

How weights come to it and experience leaves it is the business of its transport: shared memory and
a pipe (`keisei.selfplay.workers.worker_process`), or Ray (`keisei.selfplay.workers.ray_pool`).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from keisei.config_schema import AppConfig
from keisei.network.model_factory import make_network
from keisei.network.predictor import Weights
from keisei.ppo.buffer import Experience
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.source import SelfPlay
from keisei.selfplay.workers.inference_server import RemotePredictor, ServerAddress
from keisei.selfplay.workers.model_sync import TensorMessage, unpack_weights
from keisei.timing import SectionTimer


class PoolSnapshots(NamedTuple):
    """Who plays the other side of pool games, for a worker that begins in mid-run."""

    weights: tuple[Mapping[str, TensorMessage], ...]
    """The oldest first; none if there are no pool games."""

    version: int
    """Of the network when they were all there are."""


class GamesPlan(NamedTuple):
    """Which games a worker plays."""

    config_json: str
    """The settings of the run."""

    first_game: int
    games: int
    threads: int
    """Of torch."""

    snapshots: PoolSnapshots
    server_address: ServerAddress | None = None
    """Where the network is asked; None: a copy of it here is."""


class SelfPlayWorker:
    """Plays its games with the weights that it was given last."""

    def __init__(self, plan: GamesPlan) -> None:
        config = _worker_config(plan)
        self.network = make_network(config, config.device)
        self.version = -1
        """Of its weights: the updates that went into them. Negative: it has none yet.

        A server that is asked instead has these weights or newer ones.
        """

        self._selfplay = SelfPlay(
            config,
            self.network,
            games=plan.games,
            first_game=plan.first_game,
            threads=1,
            predictor=RemotePredictor(plan.server_address)
            if plan.server_address is not None
            else None,
        )
        self._selfplay.pool.snapshots = [unpack_weights(one) for one in plan.snapshots.weights]
        self._pool_interval = config.selfplay.pool_interval
        self._interval = plan.snapshots.version // self._pool_interval
        """Of the newest of the earlier selves."""

    def load_weights(self, weights: Weights, version: int) -> None:
        """Play with these weights from now on."""
        self.network.load_weights(weights)
        # Versions may be left out, so it counts which interval they are of.
        if (interval := version // self._pool_interval) > self._interval:
            self._selfplay.pool.add(weights)
            self._interval = interval
        self.version = version

    def play(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_ply: Callable[[], None] = lambda: None,
    ) -> RolloutStats:
        """Fill `experience`; `on_ply` is called before each ply."""
        return self._selfplay.collect(experience, timer, on_ply=on_ply)

    def reset(self) -> None:
        """Abandon all games and begin new ones."""
        self._selfplay.env.reset()


def _worker_config(plan: GamesPlan) -> AppConfig:
    """The run's settings, but on the CPU and in the plainest way: workers are many."""
    config = AppConfig.model_validate_json(plan.config_json)
    device = config.device.model_copy(
        update={
            "device": "cpu",
            "mixed_precision": "off",
            "compile": "off",
            "torch_threads": plan.threads,
        }
    )
    return config.model_copy(update={"device": device})
