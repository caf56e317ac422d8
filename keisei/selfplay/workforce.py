"""What all kinds of workers have in common: whose games are whose, and what is counted."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Self

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.ppo.experience import Experience
from keisei.ppo.ranks import Ranks
from keisei.selfplay.communication import WorkersFailedError, WorkerStats
from keisei.selfplay.inference_server import Desk
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.worker import GamesPlan
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

    def next_plan(self, desk: Desk | None = None) -> GamesPlan:
        """For the next worker: games of numbers that nobody had. It may ask a server, at `desk`."""
        rounds, share = divmod(self.given, self.shares)
        self.given += 1
        first_of_round = (rounds * self._ranks.size + self._ranks.rank) * self._config.env.num_games
        return GamesPlan(
            config_json=self._config.model_dump_json(),
            first_game=first_of_round + share * self.games,
            games=self.games,
            threads=self._config.parallel.worker_threads or 1,
            desk=desk,
        )


class Workforce:
    """The learner's side of some workers; use it as a context."""

    _shares: GameShares

    def __init__(self, config: AppConfig) -> None:
        self._config = config
        self._version = 0
        self._board: ShogiGame | None = None
        self._failures_in_a_row = 0
        self.abandoned_games = 0
        self.failures = 0

    @property
    def board(self) -> ShogiGame | None:
        """A position of a game under way, to look at."""
        return self._board

    @property
    def games_under_way(self) -> int:
        """That are lost if it is closed now."""
        return self._config.env.num_games

    def state(self) -> dict[str, Any]:
        """Games in workers are not kept: a resumed run begins new ones."""
        return {
            "abandoned_games": self.abandoned_games + self.games_under_way,
            "shares_given": self._shares.given,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on counting."""
        self.abandoned_games = int(state["abandoned_games"])
        self._shares.given = int(state["shares_given"])

    def close(self) -> None:
        """End all workers and leave nothing behind."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
