"""`LineSearch`: several good lines of one position, each of them searched.

One tree visits what it thinks best and little else, so that its second and third move are known by
a few simulations only. Here the lines after the first have trees of their own, which leave out the
moves of the lines before them at the root; half of the simulations go to the first.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from keisei.errors import KeiseiError
from keisei.network.predictor import Predictor
from keisei.search.game_search import GameSearch
from keisei.search.mcts import PrincipalVariation
from keisei.shogi.game import ShogiGame

BATCH_SIZE: Final = 16
_SHARE_OF_MEMORY: Final = 8
"""A tree of another line has one part in 8 of the memory of the first."""


@dataclass
class _Alternative:
    """The tree of another line."""

    search: GameSearch
    without: frozenset[int] = field(default_factory=frozenset)
    """Actions that it leaves out at the root; empty: it is not in use."""


class LineSearch:
    """Searches the best line of a position, and others beside it."""

    def __init__(self, predictor: Predictor, *, megabytes: int) -> None:
        """Reserve the memory of the first tree, `megabytes`; those of others come when needed."""
        self._predictor = predictor
        self._megabytes = megabytes
        self._main = self._new_tree(megabytes)
        self._others: list[_Alternative] = []
        self._game = ShogiGame()
        self._ply_limit = 0

    def begin(self, game: ShogiGame, *, ply_limit: int) -> None:
        """Begin the search of a position, with what the first tree knows of it."""
        self._game, self._ply_limit = game, ply_limit
        self._main.begin(game, ply_limit=ply_limit)
        for other in self._others:
            other.without = frozenset()

    @property
    def is_proven(self) -> bool:
        """Whether the result of the best line is proven."""
        return self._main.is_proven

    @property
    def is_full(self) -> bool:
        """Whether there is no memory left for the first tree."""
        return self._main.is_full

    @property
    def simulations(self) -> int:
        """Simulations of all lines."""
        used = [other.search for other in self._others if other.without]
        return sum(search.simulations for search in [self._main, *used])

    @property
    def max_depth(self) -> int:
        """Plies of the longest simulation."""
        return self._main.max_depth

    def step(self, lines: int) -> None:
        """Run some simulations for the first of `lines` lines, and as many for all others."""
        others = self._alternatives(lines)
        for _ in range(max(1, len(others))):
            self._main.step()
        for other in others:
            if not (other.search.is_full or other.search.is_proven):
                other.search.step()

    def lines(self, most: int) -> list[PrincipalVariation]:
        """Return up to `most` lines, the best first.

        Of the lines with trees of their own, the move that was searched most counts. A move that
        the first tree has searched more than one of them, and finds better, comes before it: trees
        know little when they have just begun again. Then come the others, as the first tree ranks
        them.
        """
        ranked = self._main.variations(most)
        found = {line.actions[0]: line for line in ranked}
        leading = []
        for other in self._others:
            if other.without:
                [best] = other.search.variations(1)
                known = found.get(best.actions[0])
                if known is None or known.visits < best.visits:
                    found[best.actions[0]] = best
                leading.append(best.actions[0])
        first = ranked[0].actions[0]
        searched = [found[action] for action in dict.fromkeys(leading) if action != first]
        better = [
            line
            for line in ranked[1:]
            if line.actions[0] not in leading
            and any(line.visits > one.visits and line.value > one.value for one in searched)
        ]
        shown = [found[first], *sorted(searched + better, key=lambda line: -line.value)]
        taken = {line.actions[0] for line in shown}
        return [*shown, *(line for line in ranked if line.actions[0] not in taken)][:most]

    def _alternatives(self, lines: int) -> list[_Alternative]:
        """Return the trees of all lines but the first, each without the moves of those before it.

        A tree whose moves to leave out have changed begins again.
        """
        legal = self._game.legal_actions
        number = min(lines, len(legal)) - 1
        while len(self._others) < number:
            megabytes = max(1, self._megabytes // _SHARE_OF_MEMORY)
            self._others.append(_Alternative(self._new_tree(megabytes)))
        for other in self._others[number:]:
            other.without = frozenset()
        before = {self._main.variations(1)[0].actions[0]}
        for other in self._others[:number]:
            without = frozenset(before)
            if other.without != without:
                only = legal[~np.isin(legal, list(without))]
                other.search.begin(self._game, ply_limit=self._ply_limit, only=only)
                other.without = without
                other.search.step()
            before.add(other.search.variations(1)[0].actions[0])
        return self._others[:number]

    def _new_tree(self, megabytes: int) -> GameSearch:
        try:
            return GameSearch(self._predictor, batch_size=BATCH_SIZE, megabytes=megabytes)
        except MemoryError:
            raise KeiseiError(f"not enough memory for a tree of {megabytes} MB") from None
