"""`ExperienceBuffer`: the experience of one rollout with advantages and returns, 140 bytes a ply.

Legal lists and planes are not stored: a kernel recomputes them for each minibatch, in the same
order (`docs/decisions/006-legal-lists-are-regenerated.md`).
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.shogi.material import material_potentials
from keisei.shogi.packed import PACKED
from keisei.shogi.position import Records

if TYPE_CHECKING:
    from keisei.network.sparse.sparse_network import RowStore

Floats = npt.NDArray[np.float32]


def two_player_advantages(
    rewards: Floats,
    values: Floats,
    ends: npt.NDArray[np.bool_],
    last_values: Floats,
    *,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Compute advantages ``[T, N]`` of `T` consecutive plies in each of `N` games.

    Args:
        rewards: ``[T, N]``, each for the player who moved.
        values: ``[T, N]``, of the position before the move, for its mover.
        ends: ``[T, N]``, whether the move ended its game; the next row starts another.
        last_values: ``[N]``, of the position after the last row, for its mover.
        gamma: discount per ply.
        gae_lambda: 0 relies on the values only, 1 on the outcomes only.
    """
    advantages = np.empty_like(rewards)
    next_values, next_advantages = last_values, np.zeros_like(last_values)
    for t in range(len(rewards) - 1, -1, -1):
        continues = np.where(ends[t], np.float32(0.0), np.float32(1.0))
        delta = rewards[t] - gamma * continues * next_values - values[t]
        advantages[t] = delta - gamma * gae_lambda * continues * next_advantages
        next_values, next_advantages = values[t], advantages[t]
    return advantages


def shaped_rewards(
    rewards: Floats,
    potentials: Floats,
    ends: npt.NDArray[np.bool_],
    last_potentials: Floats,
    *,
    gamma: float,
    weight: float,
) -> Floats:
    """Add `weight` times the discounted gain of a potential to rewards ``[T, N]``.

    The potential is from the mover's point of view too, so the gain of a move is
    ``-gamma * P(s_t+1) - P(s_t)``; after the end of a game it is 0. Such shaping does not change
    which policy is optimal (Ng, Harada and Russell, 1999): over a game it adds up to the potential
    of the first position.
    """
    following = np.concatenate([potentials[1:], last_potentials[None]])
    gain = -gamma * np.where(ends, np.float32(0.0), following) - potentials
    return (rewards + np.float32(weight) * gain).astype(np.float32)


class _Field(NamedTuple):
    """An array of `Experience`."""

    name: str
    dtype: np.dtype[np.generic]
    is_per_ply: bool
    """Whether its shape is ``[T, N]`` instead of ``[N]``."""

    is_per_target: bool = False
    """Whether it has an entry for each of the ``K`` moves of a target policy."""


_FIELDS: Final = (
    _Field("packed", PACKED, True),
    _Field("actions", np.dtype(np.uint16), True),
    _Field("log_probs", np.dtype(np.float32), True),
    _Field("values", np.dtype(np.float32), True),
    _Field("rewards", np.dtype(np.float32), True),
    _Field("ends", np.dtype(np.bool_), True),
    _Field("learns_policy", np.dtype(np.bool_), True),
    _Field("learns_value", np.dtype(np.bool_), True),
    _Field("target_actions", np.dtype(np.uint16), True, is_per_target=True),
    _Field("target_probs", np.dtype(np.float32), True, is_per_target=True),
    _Field("last_packed", PACKED, False),
    _Field("last_values", np.dtype(np.float32), False),
)


ALIGNMENT: Final = 64
"""Arrays begin at multiples of this many bytes, the size of a processor's cache line."""


class _Place(NamedTuple):
    """Where an array lies in a block."""

    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class ArrayLayout:
    """Places named arrays one after the other in a block of memory, each on its own cache line."""

    def __init__(self, arrays: Mapping[str, tuple[npt.DTypeLike, tuple[int, ...]]]) -> None:
        """Compute the offsets.

        Args:
            arrays: dtype and shape of each array, by name.
        """
        self._places: dict[str, _Place] = {}
        self.size = 0
        """Bytes of memory that all arrays take together."""

        for name, (dtype, shape) in arrays.items():
            place = self._places[name] = _Place(self.size, np.dtype(dtype), shape)
            self.size += -(-place.dtype.itemsize * math.prod(shape) // ALIGNMENT) * ALIGNMENT

    def views(self, memory: memoryview | bytearray, offset: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name, as views of `memory`; structured ones are record arrays."""
        views: dict[str, npt.NDArray[Any]] = {}
        for name, place in self._places.items():
            view = np.ndarray(place.shape, place.dtype, memory, offset + place.offset)
            views[name] = view if place.dtype.names is None else view.view(np.recarray)
        return views


class Experience:
    """`T` plies of `N` games, allocated once and filled in place by self-play."""

    packed: Records
    """``[T, N]``: positions as the network saw them, each from its mover's point of view."""

    actions: npt.NDArray[np.uint16]
    """``[T, N]``: the moves played."""

    log_probs: npt.NDArray[np.float32]
    """``[T, N]``: their log-probabilities when they were played."""

    values: npt.NDArray[np.float32]
    """``[T, N]``: the network's values of the positions."""

    rewards: npt.NDArray[np.float32]
    """``[T, N]``: each for the player who moved."""

    ends: npt.NDArray[np.bool_]
    """``[T, N]``: whether the move ended its game."""

    learns_policy: npt.NDArray[np.bool_]
    """``[T, N]``: False for moves that the network did not choose: the opponent's, and mates played
    by rule, unless they are to be learned."""

    learns_value: npt.NDArray[np.bool_]
    """``[T, N]``: False for the positions of a frozen opponent."""

    target_actions: npt.NDArray[np.uint16]
    """``[T, N, K]``: moves that a search chose; ``K`` is 0 without one."""

    target_probs: npt.NDArray[np.float32]
    """``[T, N, K]``: their probabilities, which the policy learns; they add up to 1."""

    last_packed: Records
    """``[N]``: positions after the last ply."""

    last_values: npt.NDArray[np.float32]
    """``[N]``: the network's values of them."""

    row_store: "RowStore | None" = None
    """Where self-play keeps the rows that a sparse network has read; learning reads them again."""

    def __init__(
        self, plies: int, games: int, memory: memoryview | None = None, *, targets: int = 0
    ) -> None:
        """Allocate the arrays.

        Args:
            plies: `T`, plies of each game.
            games: `N`, number of games.
            memory: `experience_bytes` of memory for the arrays; None: new memory.
            targets: `K`, moves of the target policies of a search.
        """
        self.plies, self.games, self.targets = plies, games, targets
        if memory is None:
            memory = memoryview(bytearray(experience_bytes(plies, games, targets)))
        for name, array in _layout(plies, games, targets).views(memory).items():
            setattr(self, name, array)

    def __len__(self) -> int:
        """Number of plies of all games together."""
        return self.plies * self.games

    def __bool__(self) -> bool:
        """Return True, also without plies: an empty experience is not a missing one."""
        return True

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Arrays that self-play fills, by name."""
        return {field.name: getattr(self, field.name) for field in _FIELDS}

    def take(self, other: "Experience", first_game: int) -> None:
        """Copy the experience of some games into the games from `first_game` on."""
        games = slice(first_game, first_game + other.games)
        own = self.arrays()
        for field in _FIELDS:
            target = own[field.name]
            source = getattr(other, field.name)
            if field.is_per_ply:
                target[:, games] = source
            else:
                target[games] = source


def experience_bytes(plies: int, games: int, targets: int = 0) -> int:
    """Memory of an `Experience`, in bytes."""
    return _layout(plies, games, targets).size


def _layout(plies: int, games: int, targets: int) -> ArrayLayout:
    def shape(field: _Field) -> tuple[int, ...]:
        per_game = (plies, games) if field.is_per_ply else (games,)
        return (*per_game, targets) if field.is_per_target else per_game

    return ArrayLayout({field.name: (field.dtype, shape(field)) for field in _FIELDS})


class ExperienceBuffer(Experience):
    """Experience of `T` plies of `N` games, with advantages and returns ``[T, N]``."""

    def __init__(self, plies: int, games: int, *, targets: int = 0) -> None:
        super().__init__(plies, games, targets=targets)
        self.advantages = np.zeros((plies, games), dtype=np.float32)
        self.returns = np.zeros((plies, games), dtype=np.float32)

    @property
    def bytes_per_ply(self) -> float:
        """Memory of one ply, in bytes."""
        arrays = [*self.arrays().values(), self.advantages, self.returns]
        return sum(array.nbytes for array in arrays) / len(self)

    def finish(
        self,
        *,
        gamma: float,
        gae_lambda: float,
        value_lambda: float | None = None,
        shaping: float = 0.0,
    ) -> None:
        """Compute advantages and returns after self-play has filled all arrays.

        Args:
            gamma: discount per ply.
            gae_lambda: lambda of the advantages.
            value_lambda: lambda of the returns, which the value learns; None: the same.
            shaping: weight of potential-based shaping.
        """
        rewards = self.rewards
        if shaping > 0.0:
            potentials = material_potentials(self.packed.reshape(-1)).reshape(self.rewards.shape)
            last_potentials = material_potentials(self.last_packed)
            rewards = shaped_rewards(
                rewards, potentials, self.ends, last_potentials, gamma=gamma, weight=shaping
            )

        def advantages(lambda_: float) -> Floats:
            return two_player_advantages(
                rewards, self.values, self.ends, self.last_values, gamma=gamma, gae_lambda=lambda_
            )

        self.advantages[...] = advantages(gae_lambda)
        residuals = self.advantages if value_lambda is None else advantages(value_lambda)
        np.add(residuals, self.values, out=self.returns)

    def sample_order(
        self, random: np.random.Generator, share: float = 1.0
    ) -> npt.NDArray[np.int64]:
        """Flat indices of the plies to train on, shuffled.

        Args:
            random: shuffles them.
            share: fraction of these plies to choose, those with the largest absolute advantages;
                of equal ones the earlier.
        """
        useful = np.flatnonzero((self.learns_policy | self.learns_value).reshape(-1))
        if share < 1.0 and len(useful):
            sizes = np.abs(self.advantages.reshape(-1)[useful])
            chosen = np.argsort(-sizes, kind="stable")[: max(1, round(share * len(useful)))]
            useful = useful[np.sort(chosen)]
        return random.permutation(useful)
