"""Base of the worker pools: the division of games and work, and the accounting.

`WorkerPool` is the base of `keisei.selfplay.workers.process_pool.ParallelSelfPlay` and
`keisei.selfplay.workers.ray_pool.RaySelfPlay`.
"""

import heapq
import logging
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.network.predictor import Network, Weights
from keisei.ppo.buffer import Experience
from keisei.ppo.learner import Ranks
from keisei.selfplay.rollout import RolloutStats, WorkerStats, num_pool_games, with_snapshot
from keisei.selfplay.source import WorkersFailedError, abandoned_games
from keisei.selfplay.workers.inference_server import ServerAddress
from keisei.selfplay.workers.model_sync import pack_weights
from keisei.selfplay.workers.worker import GamesPlan, PoolSnapshots
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import unpack_diagram
from keisei.shogi.rules import Outcome

logger = logging.getLogger(__name__)

Played = TypeVar("Played")


class GameShares:
    """The games of a learner in equal shares, one for each worker.

    Every game has a number, from which its seeds follow. A round gives each game of all learners a
    number; replaced workers and resumed runs take theirs from later rounds, so none is used twice.
    """

    def __init__(
        self, config: AppConfig, *, shares: int, ranks: Ranks, first_round: int = 0
    ) -> None:
        """Divide the games.

        Args:
            config: the settings of the run.
            shares: number of shares.
            ranks: all learners of the run; the games are those of this one.
            first_round: number of rounds that were used before.

        Raises:
            KeiseiError: The games cannot be divided evenly, or no share has a pool game.
        """
        if config.env.num_games % shares:
            raise KeiseiError(
                f"{config.env.num_games} games cannot be divided evenly among {shares} workers: "
                "env.num_games must be a multiple of parallel.num_workers"
            )
        self.shares = shares
        self.games = config.env.num_games // shares
        """Games of one share."""

        num_pool_games(config.selfplay.pool_share, self.games)
        self._next_share = first_round * shares
        """Counts through all rounds."""

        self._config = config
        self._ranks = ranks

    @property
    def games_given(self) -> int:
        """Upper bound of all game numbers in use, by any learner: that of whole rounds."""
        return -(-self._next_share // self.shares) * self._games_per_round

    def skip(self, games: int) -> None:
        """Continue behind the first `games` numbers, whatever shares they were given out in."""
        self._next_share = -(-games // self._games_per_round) * self.shares

    @property
    def _games_per_round(self) -> int:
        return self._ranks.size * self._config.env.num_games

    def next_plan(self, snapshots: PoolSnapshots, server: ServerAddress | None = None) -> GamesPlan:
        """Return the plan of the next worker, whose games have unused numbers.

        Args:
            snapshots: opponents in its pool games.
            server: the inference server, if there is one.
        """
        rounds, share = divmod(self._next_share, self.shares)
        self._next_share += 1
        first_of_round = (rounds * self._ranks.size + self._ranks.rank) * self._config.env.num_games
        return GamesPlan(
            config_json=self._config.model_dump_json(),
            first_game=first_of_round + share * self.games,
            games=self.games,
            threads=self._config.parallel.worker_threads or 1,
            snapshots=snapshots,
            server=server,
        )


class WorkItems(Generic[Played]):
    """Work items for workers that may come and go: each is played once, in the order of updates.

    The rollout of an update is divided into work items of equal size, one for each share of the
    games. Any worker may play any item, and the item of a lost worker is given to another. Update
    ``u`` consists of the items ``u * shares`` to ``(u + 1) * shares - 1``. So nothing is lost or
    counted twice, and no weights are older than permitted, whichever workers are fast.

    >>> work_items = WorkItems[str](shares=2, max_lag=0)
    >>> work_items.begin_round()
    >>> work_items.take(), work_items.take(), work_items.take()
    (0, 1, None)
    >>> work_items.put_back(0)  # its worker died
    >>> work_items.take()
    0
    >>> work_items.complete(1, "plies of 1")
    >>> work_items.complete(0, "plies of 0")
    >>> work_items.is_complete
    True
    >>> work_items.collect()
    ['plies of 0', 'plies of 1']
    """

    def __init__(self, *, shares: int, max_lag: int) -> None:
        """Start with the first update.

        Args:
            shares: work items of one update.
            max_lag: number of updates that may be played ahead of the newest weights.
        """
        self.shares = shares
        self._max_lag = max_lag
        self._update = 0
        """The update that is collected next."""

        self._newest = -1
        """The update that the newest weights are for; no items before the first weights."""

        self._next = 0
        self._returned: list[int] = []
        self._played: dict[int, Played] = {}

    def begin_round(self) -> None:
        """Permit the items of the next update, with new weights or once more with the old ones."""
        self._newest = self._update

    def take(self) -> int | None:
        """Return the first item that no worker has; None if newer weights are needed for it."""
        if self._returned:
            return heapq.heappop(self._returned)
        if self._newest < 0 or self._next // self.shares > self._newest + self._max_lag:
            return None
        self._next += 1
        return self._next - 1

    def put_back(self, number: int) -> None:
        """Return an item that was taken but will not be played."""
        heapq.heappush(self._returned, number)

    def complete(self, number: int, played: Played) -> None:
        """Store the result of an item."""
        self._played[number] = played

    @property
    def completed(self) -> int:
        """Number of items of the next update that have been played."""
        return sum(number in self._played for number in self._numbers)

    @property
    def is_complete(self) -> bool:
        """Whether all items of the next update have been played."""
        return self.completed == self.shares

    def collect(self) -> list[Played]:
        """Return the results of the next update, in the order of its items."""
        played = [self._played.pop(number) for number in self._numbers]
        self._update += 1
        return played

    @property
    def _numbers(self) -> range:
        return range(self._update * self.shares, (self._update + 1) * self.shares)


class WorkerPool:
    """The learner's side of its workers; use it as a context."""

    _shares: GameShares

    def __init__(self, config: AppConfig) -> None:
        self._config = config
        self._version = 0
        self._snapshots: list[Weights] = []
        """Snapshots of the opponent pool, for workers that start later and for a resumed run."""

        self._board: ShogiGame | None = None
        self._failures_in_a_row = 0
        self.abandoned_games = 0
        self.failures = 0

    @property
    def board(self) -> ShogiGame | None:
        """A position of a game in progress, for display."""
        return self._board

    @property
    def games_in_progress(self) -> int:
        """Games that are lost if the pool is closed now."""
        return self._config.env.num_games

    def state(self) -> dict[str, Any]:
        """Return counts and snapshots. Games are not kept: a resumed run starts new ones."""
        return {
            "abandoned_games": self.abandoned_games + self.games_in_progress,
            "games_given": self._shares.games_given,
            "pool": {"snapshots": self._snapshots},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue with the counts and snapshots that `state` returned."""
        self.begin_new_games(state)  # workers always do

    def can_continue(self, state: Mapping[str, Any]) -> bool:
        """Return whether `state` is that of a pool of workers."""
        return "games_given" in state

    def begin_new_games(self, state: Mapping[str, Any]) -> None:
        """Keep snapshots and count abandoned games; see `GameSource.begin_new_games`."""
        self.abandoned_games = abandoned_games(state)
        if "games_given" in state:
            self._shares.skip(int(state["games_given"]))
        if self._config.selfplay.pool_share > 0.0:  # else no game needs them
            newest = state["pool"]["snapshots"][-self._config.selfplay.pool_size :]
            self._snapshots = [dict(weights) for weights in newest]

    def close(self) -> None:
        """End all workers and free all resources."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin_version(self, network: Network, version: int) -> None:
        """Note the version of the new weights; if a snapshot is due, add a copy to the pool."""
        self._version = version
        selfplay = self._config.selfplay
        is_due = version % selfplay.pool_interval == 0 or not self._snapshots
        if selfplay.pool_share > 0.0 and is_due:
            self._snapshots = with_snapshot(self._snapshots, network.weights(), selfplay.pool_size)

    @property
    def _pool_snapshots(self) -> PoolSnapshots:
        """The snapshots for a worker that starts now."""
        packed = tuple(pack_weights(weights, compress=False) for weights in self._snapshots)
        return PoolSnapshots(packed, self._version)

    def _count_failure(
        self, worker: int, reason: str, *, lost_games: int, is_repeated: bool = True
    ) -> None:
        """Count and log the failure of a worker.

        Args:
            worker: its number.
            reason: its traceback where there is one.
            lost_games: number of its games in progress.
            is_repeated: whether it counts towards the failures in a row that stop a run.

        Raises:
            WorkersFailedError: There were too many failures in a row.
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

    def _finish_rollout(
        self,
        total: RolloutStats,
        experience: Experience,
        workers: tuple[WorkerStats, ...],
        on_game_end: Callable[[Outcome, int], None],
    ) -> RolloutStats:
        """Complete the statistics of a rollout to which all chunks have been added."""
        for outcome, plies in total.outcomes:
            on_game_end(outcome, plies)
        total.abandoned_games, total.failures = self.abandoned_games, self.failures
        total.workers = workers
        self._board = ShogiGame(unpack_diagram(experience.last_packed[0]))
        return total
