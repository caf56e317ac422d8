"""Fixed opponents that need no network.

A bot that may change has a `VERSION`, which is part of its identity. It is raised by every change
after which the bot may choose other moves: games that were stored before then count for the old
bot, not for the new one.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from keisei.errors import KeiseiError
from keisei.players.player import Columns, Player
from keisei.search.alphabeta import AlphaBeta
from keisei.shogi.material import greedy_legal_indices
from keisei.shogi.rng import seed_rng_states
from keisei.shogi.vector import VectorShogi


class RandomPlayer:
    """Any legal move, all equally likely: the anchor of every rating. It will never change."""

    name = identity = "random"

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """Throw the dice."""
        return random.integers(env.legal_counts[games])

    def close(self) -> None:
        """Nothing is held."""


class GreedyPlayer:
    """The move that wins most material at once, ties at random; it looks one ply ahead."""

    VERSION: Final = 1
    name = "greedy"
    identity = f"{name} v{VERSION}"

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """Take what there is."""
        legal_indices = np.zeros(len(games), dtype=np.int64)
        greedy_legal_indices(
            env.positions[games],
            env.legal_actions[games],
            env.legal_counts[games],
            seed_rng_states(random, len(games)),
            legal_indices,
        )
        return legal_indices

    def close(self) -> None:
        """Nothing is held."""


class Careless:
    """Another player who makes a random move now and then: a rung between two bots."""

    def __init__(self, player: Player, share: float) -> None:
        """Make a player.

        Args:
            player: who plays the other moves.
            share: how many of its moves are random, from 0 to 1.
        """
        if not 0.0 <= share <= 1.0:
            raise KeiseiError(f"the share of random moves is {share:g}, it must be from 0 to 1")
        self.name = f"{player.name},random={share:g}"
        self.identity = f"{player.identity},random={share:g}"
        self._player = player
        self._share = share

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """Throw the dice for each game, then for the moves."""
        is_random = random.random(len(games)) < self._share
        legal_indices = random.integers(env.legal_counts[games])
        thinking = np.flatnonzero(~is_random)
        if len(thinking):
            legal_indices[thinking] = self._player.choose(env, games[thinking], random)
        return legal_indices

    def close(self) -> None:
        """Let go of what the player holds."""
        self._player.close()


class AlphaBetaPlayer:
    """Looks a few plies ahead, over material; `threads` share the games."""

    VERSION: Final = 1

    def __init__(
        self, depth: int, *, quiet_plies: int = 0, margin: int = 0, threads: int = 1
    ) -> None:
        self.name = f"alphabeta:{depth}"
        self.name += f",quiet={quiet_plies}" if quiet_plies else ""
        self.name += f",margin={margin}" if margin else ""
        self.identity = f"{self.name} v{self.VERSION}"
        self._searchers = [
            AlphaBeta(depth, quiet_plies=quiet_plies, margin=margin) for _ in range(threads)
        ]
        self._threads = ThreadPoolExecutor(threads) if threads > 1 else None

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """Search each game for itself."""
        rng_states = seed_rng_states(
            random, len(games)
        )  # drawn here: the same for any number of threads
        legal_indices = np.zeros(len(games), dtype=np.int64)

        def search(part: int) -> None:
            mine = slice(part, None, len(self._searchers))
            legal_indices[mine] = self._searchers[part].search(
                env.positions[games[mine]],
                env.legal_actions[games[mine]],
                env.legal_counts[games[mine]],
                rng_states[mine],
            )[0]

        parts = range(min(len(self._searchers), len(games)))
        if self._threads is None:
            search(0)
        else:
            list(self._threads.map(search, parts))
        return legal_indices

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()
