"""What all kinds of workers have in common: whose games are whose, and what is counted."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Self

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.network.predictor import Network, Weights
from keisei.ppo.buffer import Experience
from keisei.ppo.learner import Ranks
from keisei.selfplay.opponent_pool import with_snapshot
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.workers.inference_server import ServerAddress
from keisei.selfplay.workers.messages import WorkersFailedError, WorkerStats
from keisei.selfplay.workers.model_sync import pack_weights
from keisei.selfplay.workers.worker import GamesPlan, PoolSnapshots
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import unpack_diagram
from keisei.shogi.rules import Outcome

logger = logging.getLogger(__name__)


class GameShares:
    """The games of a run in equal shares, one for each worker.

    Games have numbers, which count on through replacements and all learners of a run.
    """

    def __init__(self, config: AppConfig, *, shares: int, ranks: Ranks, rounds: int = 0) -> None:
        """Share the games.

        Args:
            config: the settings of the run.
            shares: how many there are.
            ranks: all learners, of which one has these games.
            rounds: how often all numbers have been given away before.
        """
        if config.env.num_games % shares:
            raise KeiseiError(
                f"{config.env.num_games} games cannot be shared fairly by {shares} workers: "
                "env.num_games must be a multiple of parallel.num_workers"
            )
        self.shares = shares
        self.games = config.env.num_games // shares
        """Of one share."""

        self.given = rounds * shares
        """Shares that have been given away so far."""

        self._config = config
        self._ranks = ranks

    @property
    def games_given(self) -> int:
        """Games that all learners together have begun, in rounds: all have lower numbers."""
        return -(-self.given // self.shares) * self._games_of_round

    def skip(self, games: int) -> None:
        """Go on after so many games, however they were shared."""
        self.given = -(-games // self._games_of_round) * self.shares

    @property
    def _games_of_round(self) -> int:
        return self._ranks.size * self._config.env.num_games

    def next_plan(
        self, snapshots: PoolSnapshots, server_address: ServerAddress | None = None
    ) -> GamesPlan:
        """For the next worker: games of numbers that nobody had.

        Args:
            snapshots: whom the network meets in pool games.
            server_address: where it asks a server, if there is one.
        """
        rounds, share = divmod(self.given, self.shares)
        self.given += 1
        first_of_round = (rounds * self._ranks.size + self._ranks.rank) * self._config.env.num_games
        return GamesPlan(
            config_json=self._config.model_dump_json(),
            first_game=first_of_round + share * self.games,
            games=self.games,
            threads=self._config.parallel.worker_threads or 1,
            snapshots=snapshots,
            server_address=server_address,
        )


class WorkerPool:
    """The learner's side of some workers; use it as a context."""

    _shares: GameShares

    def __init__(self, config: AppConfig) -> None:
        self._config = config
        self._version = 0
        self._snapshots: list[Weights] = []
        """Earlier selves, for workers that come later and for a resumed run."""

        self._board: ShogiGame | None = None
        self._failures_in_a_row = 0
        self.abandoned_games = 0
        self.failures = 0

    @property
    def board(self) -> ShogiGame | None:
        """A position of a game under way, to look at."""
        return self._board

    @property
    def games_in_progress(self) -> int:
        """That are lost if it is closed now."""
        return self._config.env.num_games

    def state(self) -> dict[str, Any]:
        """Games in workers are not kept: a resumed run begins new ones."""
        return {
            "abandoned_games": self.abandoned_games + self.games_in_progress,
            "games_given": self._shares.games_given,
            "pool": {"snapshots": self._snapshots},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on counting."""
        self.abandoned_games = int(state["abandoned_games"])
        self._shares.skip(int(state["games_given"]))
        self._snapshots = [dict(weights) for weights in state["pool"]["snapshots"]]

    def close(self) -> None:
        """End all workers and leave nothing behind."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin_version(self, network: Network, version: int) -> None:
        """New weights: if it is time for it, a copy of them joins the earlier selves."""
        self._version = version
        selfplay = self._config.selfplay
        is_time = version % selfplay.pool_interval == 0 or not self._snapshots
        if selfplay.pool_share > 0.0 and is_time:
            self._snapshots = with_snapshot(self._snapshots, network.weights(), selfplay.pool_size)

    @property
    def _pool_snapshots(self) -> PoolSnapshots:
        """For a worker that begins now."""
        packed = tuple(pack_weights(weights, compress=False) for weights in self._snapshots)
        return PoolSnapshots(packed, self._version)

    def _count_failure(
        self, worker: int, reason: str, *, lost_games: int, is_repeated: bool = True
    ) -> None:
        """Report that a worker failed.

        Args:
            worker: its number.
            reason: why, its traceback if it has one.
            lost_games: that it was in the middle of.
            is_repeated: whether it counts towards the failures that stop a run.

        Raises:
            WorkersFailedError: These were too many in a row.
        """
        self.failures += 1
        self._failures_in_a_row += is_repeated
        self.abandoned_games += lost_games
        logger.error("worker %d failed and is replaced: %s", worker, reason)
        if self._failures_in_a_row > self._config.parallel.max_failures:
            raise WorkersFailedError(
                f"workers failed {self._failures_in_a_row} times in a row, the last one because: "
                f"{reason}"
            )

    def _finished(
        self,
        total: RolloutStats,
        experience: Experience,
        workers: tuple[WorkerStats, ...],
        on_game_end: Callable[[Outcome, int], None],
    ) -> RolloutStats:
        """A rollout to which all chunks have been added."""
        for outcome, plies in total.outcomes:
            on_game_end(outcome, plies)
        total.abandoned_games, total.failures = self.abandoned_games, self.failures
        total.workers = workers
        self._board = ShogiGame(unpack_diagram(experience.last_packed[0]))
        return total
