"""Earlier selves as opponents: in some games one side is played by a frozen network."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from keisei.config_schema import SelfPlayConfig
from keisei.network.towers.model import ActorCritic
from keisei.network.towers.torch_predictor import TorchPredictor

Weights = dict[str, Tensor]


def with_snapshot(snapshots: list[Weights], model: ActorCritic, most: int) -> list[Weights]:
    """Earlier selves and a copy of `model`: the newest ones, at most so many."""
    weights = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    return [*snapshots, weights][-most:]


class OpponentPool:
    """Weights of earlier selves, and which games are played against them.

    The first games of the environment are pool games; in each the learner has one colour, drawn
    anew when a game ends. All pool games of a rollout meet the same earlier self.
    """

    def __init__(
        self,
        settings: SelfPlayConfig,
        num_games: int,
        inference: TorchPredictor,
        random: np.random.Generator,
    ) -> None:
        self.settings = settings
        self.random = random
        self.num_pool_games = round(settings.pool_share * num_games)
        self.learner_colors = random.integers(2, size=self.num_pool_games)
        """``[pool games]``: the learner's colour."""

        self.snapshots: list[Weights] = []
        self._frozen: ActorCritic | None = None
        self._learner = inference

    @property
    def is_active(self) -> bool:
        """Whether there are pool games and someone to play them."""
        return self.num_pool_games > 0 and bool(self.snapshots)

    def add(self, model: ActorCritic) -> None:
        """Let a copy of `model` join; the oldest leaves when the pool is full."""
        if self.num_pool_games:
            self.snapshots = with_snapshot(self.snapshots, model, self.settings.pool_size)

    def choose_opponent(self) -> TorchPredictor | None:
        """An earlier self for the next rollout, None while there is none."""
        if not self.is_active:
            return None
        if self._frozen is None:
            self._frozen = copy.deepcopy(self._learner.network).requires_grad_(False)
        chosen = self.snapshots[int(self.random.integers(len(self.snapshots)))]
        self._frozen.load_state_dict(chosen)
        learner = self._learner
        return TorchPredictor(self._frozen, learner.compute, learner.spec, learner.stopwatch)

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
