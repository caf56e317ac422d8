"""Bots: fixed opponents without a network.

A bot that may change has a `VERSION`, which is part of its identity. Every change after which it
may choose other moves raises it: games that were stored before count for the old bot.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.players.player import LegalIndices, Player
from keisei.search.alphabeta import AlphaBeta
from keisei.shogi.material import greedy_legal_indices
from keisei.shogi.rng import seed_rng_states
from keisei.shogi.vector import VectorShogi


class RandomPlayer:
    """Plays uniformly random legal moves: the anchor of all ratings. It will never change."""

    name = identity = "random"

    def choose(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> LegalIndices:
        """Sample a legal move for each game."""
        return random.integers(env.legal_counts[games])

    def close(self) -> None:
        """Do nothing."""


class GreedyPlayer:
    """Plays the move that gains most material at once, ties at random."""

    VERSION: Final = 1
    name = "greedy"
    identity = f"{name} v{VERSION}"

    def choose(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> LegalIndices:
        """Choose the move with the largest gain for each game."""
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
        """Do nothing."""


class RandomizedPlayer:
    """Another player with a share of random moves: a rung between two bots."""

    def __init__(self, player: Player, share: float) -> None:
        """Make a player.

        Args:
            player: chooses the other moves.
            share: probability of a random move, from 0 to 1.
        """
        if not 0.0 <= share <= 1.0:
            raise KeiseiError(f"the share of random moves is {share:g}, it must be from 0 to 1")
        self.name = f"{player.name},random={share:g}"
        self.identity = f"{player.identity},random={share:g}"
        self._player = player
        self._share = share

    def choose(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> LegalIndices:
        """Sample which games get a random move; the player chooses in the others."""
        is_random = random.random(len(games)) < self._share
        legal_indices = random.integers(env.legal_counts[games])
        others = np.flatnonzero(~is_random)
        if len(others):
            legal_indices[others] = self._player.choose(env, games[others], random)
        return legal_indices

    def close(self) -> None:
        """Close the other player."""
        self._player.close()


class AlphaBetaPlayer:
    """Plays by alpha-beta search over material; `threads` share the games."""

    VERSION: Final = 1

    def __init__(
        self, depth: int, *, quiet_plies: int = 0, margin: int = 0, threads: int = 1
    ) -> None:
        self.name = f"alphabeta:{depth}"
        self.name += f",quiet={quiet_plies}" if quiet_plies else ""
        self.name += f",margin={margin}" if margin else ""
        self.identity = f"{self.name} v{self.VERSION}"
        self._searches = [
            AlphaBeta(depth, quiet_plies=quiet_plies, margin=margin) for _ in range(threads)
        ]
        self._threads = ThreadPoolExecutor(threads) if threads > 1 else None

    def choose(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> LegalIndices:
        """Search each game on its own."""
        # Drawn here, so that they are the same for any number of threads.
        rng_states = seed_rng_states(random, len(games))
        legal_indices = np.zeros(len(games), dtype=np.int64)

        def search(part: int) -> None:
            mine = slice(part, None, len(self._searches))
            legal_indices[mine] = self._searches[part].search(
                env.positions[games[mine]],
                env.legal_actions[games[mine]],
                env.legal_counts[games[mine]],
                rng_states[mine],
            )[0]

        parts = range(min(len(self._searches), len(games)))
        if self._threads is None:
            search(0)
        else:
            list(self._threads.map(search, parts))
        return legal_indices

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()
