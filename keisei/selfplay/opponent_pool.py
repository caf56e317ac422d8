"""Opponent pool: in some games one side is played by a snapshot of the network, an earlier self."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.config_schema import SelfPlayConfig
from keisei.network.predictor import Network, Predictor, Weights


def with_snapshot(snapshots: list[Weights], weights: Weights, limit: int) -> list[Weights]:
    """Return `snapshots` and a copy of `weights`, but only the newest `limit` of all."""
    copies = {name: np.array(array) for name, array in weights.items()}
    return [*snapshots, copies][-limit:]


class OpponentPool:
    """Snapshots of the network's weights, and the games that are played against them.

    The first games of the environment are pool games; in each of them the learner has one colour,
    drawn again when a game ends. All pool games of a rollout have the same snapshot as opponent.
    """

    def __init__(
        self,
        settings: SelfPlayConfig,
        num_games: int,
        network: Network,
        random: np.random.Generator,
    ) -> None:
        self.settings = settings
        self.random = random
        self.num_pool_games = round(settings.pool_share * num_games)
        self.learner_colors = random.integers(2, size=self.num_pool_games)
        """``[pool games]``: the learner's colour."""

        self.snapshots: list[Weights] = []
        """The oldest first."""

        self._frozen: Network | None = None
        self._learner = network

    @property
    def is_active(self) -> bool:
        """Whether there are pool games, and at least one snapshot to play against."""
        return self.num_pool_games > 0 and bool(self.snapshots)

    def add(self, weights: Weights) -> None:
        """Add a copy of `weights`; if the pool is full, the oldest snapshot is dropped."""
        if self.num_pool_games:
            self.snapshots = with_snapshot(self.snapshots, weights, self.settings.pool_size)

    def choose_opponent(self) -> Predictor | None:
        """Return a random snapshot's network for the next rollout; None while there is none."""
        if not self.is_active:
            return None
        if self._frozen is None:
            self._frozen = self._learner.copy()
        self._frozen.load_weights(self.snapshots[int(self.random.integers(len(self.snapshots)))])
        return self._frozen

    def frozen_moves(self, turns: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Return ``[N]``: whether the frozen opponent is to move in each game."""
        frozen = np.zeros(len(turns), dtype=np.bool_)
        if self.is_active:
            frozen[: self.num_pool_games] = turns[: self.num_pool_games] != self.learner_colors
        return frozen

    def redraw_colors(self, ended: npt.NDArray[np.bool_]) -> None:
        """Draw the learner's colour again in the pool games that ended; `ended` is ``[N]``."""
        over = np.flatnonzero(ended[: self.num_pool_games])
        self.learner_colors[over] = self.random.integers(2, size=len(over))

    def state(self) -> dict[str, Any]:
        """Return everything that future pool games depend on."""
        return {"snapshots": self.snapshots, "learner_colors": self.learner_colors.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self.snapshots = [dict(weights) for weights in state["snapshots"]]
        self.learner_colors = np.array(state["learner_colors"])
