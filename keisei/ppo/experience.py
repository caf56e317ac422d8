"""What self-play hands to the learner: some plies of some games, and how they stand after the last.

Its arrays may lie in memory that several processes share; about 130 bytes a ply.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.shogi.packed import PACKED
from keisei.shogi.position import Records

ALIGNMENT: Final = 64
"""Arrays begin at multiples of this, a processor's cache line."""


class _Field(NamedTuple):
    """An array of an experience."""

    name: str
    dtype: np.dtype[np.generic]
    is_per_ply: bool
    """Whether it is ``[T, N]``; else ``[N]``."""


_FIELDS: Final = (
    _Field("packed", PACKED, True),
    _Field("actions", np.dtype(np.uint16), True),
    _Field("log_probs", np.dtype(np.float32), True),
    _Field("values", np.dtype(np.float32), True),
    _Field("rewards", np.dtype(np.float32), True),
    _Field("ends", np.dtype(np.bool_), True),
    _Field("learns_policy", np.dtype(np.bool_), True),
    _Field("learns_value", np.dtype(np.bool_), True),
    _Field("last_packed", PACKED, False),
    _Field("last_values", np.dtype(np.float32), False),
)


class Experience:
    """`T` plies of `N` games, allocated once and filled in place."""

    packed: Records
    """``[T, N]``: positions as the network saw them, each in its mover's view."""

    actions: npt.NDArray[np.uint16]
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    rewards: npt.NDArray[np.float32]
    ends: npt.NDArray[np.bool_]
    learns_policy: npt.NDArray[np.bool_]
    """False for moves that the network did not choose: forced ones, the frozen side's."""

    learns_value: npt.NDArray[np.bool_]
    """False for the positions of a frozen opponent."""

    last_packed: Records
    """``[N]``: the positions after the last ply."""

    last_values: npt.NDArray[np.float32]
    """``[N]``: what the network thinks of them."""

    def __init__(self, plies: int, games: int, memory: memoryview | None = None) -> None:
        """Make the arrays.

        Args:
            plies: of each game.
            games: how many there are.
            memory: where the arrays lie, `experience_bytes` of it; new memory if None.
        """
        self.plies, self.games = plies, games
        if memory is None:
            memory = memoryview(bytearray(experience_bytes(plies, games)))
        offset = 0
        for field in _FIELDS:
            shape = (plies, games) if field.is_per_ply else (games,)
            array: npt.NDArray[np.generic] = np.ndarray(shape, field.dtype, memory, offset)
            is_record = field.dtype.names is not None
            setattr(self, field.name, array.view(np.recarray) if is_record else array)
            offset += _aligned(array.nbytes)

    def __len__(self) -> int:
        """How many plies there are in all."""
        return self.plies * self.games

    def __bool__(self) -> bool:
        """Always true: by its length, one without plies would be taken for a missing one."""
        return True

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """What self-play writes, by name."""
        return {field.name: getattr(self, field.name) for field in _FIELDS}

    def take(self, other: "Experience", first_game: int) -> None:
        """Copy the experience of some games, which are `first_game` and the following ones here."""
        games = slice(first_game, first_game + other.games)
        own = self.arrays()
        for field in _FIELDS:
            target = own[field.name]
            source = getattr(other, field.name)
            if field.is_per_ply:
                target[:, games] = source
            else:
                target[games] = source


def experience_bytes(plies: int, games: int) -> int:
    """Memory that an experience takes."""
    return sum(
        _aligned(field.dtype.itemsize * games * (plies if field.is_per_ply else 1))
        for field in _FIELDS
    )


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
