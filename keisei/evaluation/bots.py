"""Fixed opponents that need no network: they choose moves for many games at once."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.shogi.material import greedy_columns
from keisei.shogi.vector import VectorShogi

Columns = npt.NDArray[np.int64]
Bot = Callable[[VectorShogi, Columns, np.random.Generator], Columns]
"""``bot(env, games, random)``: for each of the `games` (indices) a column of its legal list."""


class UnknownOpponentError(KeiseiError, ValueError):
    """An opponent that does not exist; the message lists those that do."""


def random_bot(env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
    """Any legal move, all equally likely: the anchor of every rating."""
    return random.integers(env.legal_counts[games])


def greedy_bot(env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
    """The move that wins most material at once, ties at random; it looks one ply ahead."""
    columns = np.zeros(len(games), dtype=np.int64)
    luck = random.integers(1, 1 << 63, size=len(games), dtype=np.uint64)
    greedy_columns(
        env.positions[games], env.legal_actions[games], env.legal_counts[games], luck, columns
    )
    return columns


BOTS: dict[str, Bot] = {"random": random_bot, "greedy": greedy_bot}


def find_bot(name: str) -> Bot:
    """The bot of a name."""
    try:
        return BOTS[name]
    except KeyError:
        raise UnknownOpponentError(
            f"there is no opponent {name!r}; there are {', '.join(BOTS)}"
        ) from None
