"""Who plays what when workers come and go: tickets.

A rollout is divided into shares of equal size, and a ticket is the order to play one of them. Any
worker may play any ticket, so their number may change at any time: a ticket whose worker is lost is
drawn again by another. Update `u` takes exactly the tickets ``u * shares`` and following, once
each; so nothing is lost or doubled, and weights are never older than permitted, whoever is fast.

>>> tickets = Tickets[str](shares=2, max_lag=0)
>>> tickets.begin_round()
>>> tickets.draw(), tickets.draw(), tickets.draw()
(0, 1, None)
>>> tickets.give_back(0)  # its worker died
>>> tickets.draw()
0
>>> tickets.hand_in(1, "plies of 1")
>>> tickets.hand_in(0, "plies of 0")
>>> tickets.is_complete
True
>>> tickets.collect()
['plies of 0', 'plies of 1']
"""

import heapq
from typing import Generic, TypeVar

Played = TypeVar("Played")


class Tickets(Generic[Played]):
    """The tickets of a run, in the order of the updates that they are for."""

    def __init__(self, *, shares: int, max_lag: int) -> None:
        """Begin with the first update.

        Args:
            shares: tickets of one update.
            max_lag: how many updates ahead of the newest weights may be played.
        """
        self.shares = shares
        self._max_lag = max_lag
        self._update = 0
        """The one that is collected next."""

        self._newest = -1
        """The one that the newest weights are for; before the first weights, nothing is drawn."""

        self._next = 0
        self._returned: list[int] = []
        self._played: dict[int, Played] = {}

    def begin_round(self) -> None:
        """There are new weights; or there are none, and the old ones shall do once more."""
        self._newest = self._update

    def draw(self) -> int | None:
        """The oldest ticket that may be played with the newest weights and that nobody has."""
        if self._returned:
            return heapq.heappop(self._returned)
        if self._newest < 0 or self._next // self.shares > self._newest + self._max_lag:
            return None
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        """It was drawn, but will not be played."""
        heapq.heappush(self._returned, number)

    def hand_in(self, number: int, played: Played) -> None:
        """It has been played."""
        self._played[number] = played

    @property
    def is_complete(self) -> bool:
        """Whether all tickets of the next update have been played."""
        return all(number in self._played for number in self._numbers)

    def collect(self) -> list[Played]:
        """What was played for the next update, in the order of the tickets."""
        played = [self._played.pop(number) for number in self._numbers]
        self._update += 1
        return played

    @property
    def _numbers(self) -> range:
        return range(self._update * self.shares, (self._update + 1) * self.shares)
