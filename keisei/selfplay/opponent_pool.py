"""Earlier selves as opponents: in some games one side is played by a frozen network."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.config_schema import SelfPlayConfig
from keisei.network.predictor import Network, Predictor, Weights


def with_snapshot(snapshots: list[Weights], weights: Weights, limit: int) -> list[Weights]:
    """Earlier selves and a copy of `weights`, the newest `limit` of them."""
    copies = {name: np.array(array) for name, array in weights.items()}
    return [*snapshots, copies][-limit:]


class OpponentPool:
    """Weights of earlier selves, and which games are played against them.

    The first games of the environment are pool games; in each the learner has one colour, drawn
    anew when a game ends. All pool games of a rollout meet the same earlier self.
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
        self._frozen: Network | None = None
        self._learner = network

    @property
    def is_active(self) -> bool:
        """Whether there are pool games and someone to play them."""
        return self.num_pool_games > 0 and bool(self.snapshots)

    def add(self, weights: Weights) -> None:
        """Add a copy of `weights`; the oldest snapshot leaves when the pool is full."""
        if self.num_pool_games:
            self.snapshots = with_snapshot(self.snapshots, weights, self.settings.pool_size)

    def choose_opponent(self) -> Predictor | None:
        """An earlier self for the next rollout, None while there is none."""
        if not self.is_active:
            return None
        if self._frozen is None:
            self._frozen = self._learner.copy()
        self._frozen.load_weights(self.snapshots[int(self.random.integers(len(self.snapshots)))])
        return self._frozen

    def frozen_moves(self, turns: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """``[N]``: in which games the frozen side is to move."""
        frozen = np.zeros(len(turns), dtype=np.bool_)
        if self.is_active:
            frozen[: self.num_pool_games] = turns[: self.num_pool_games] != self.learner_colors
        return frozen

    def redraw_colors(self, ended: npt.NDArray[np.bool_]) -> None:
        """Draw the learner's colour anew in the pool games that ended."""
        over = np.flatnonzero(ended[: self.num_pool_games])
        self.learner_colors[over] = self.random.integers(2, size=len(over))

    def state(self) -> dict[str, Any]:
        """Everything that the pool's games depend on."""
        return {"snapshots": self.snapshots, "learner_colors": self.learner_colors.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        self.snapshots = [dict(weights) for weights in state["snapshots"]]
        self.learner_colors = np.array(state["learner_colors"])
