"""Shogi as a Gymnasium vector environment: N games in lockstep over `VectorShogi`.

>>> envs = ShogiVectorEnv(num_envs=4)
>>> observations, infos = envs.reset(seed=0)
>>> for _ in range(10):
...     actions = envs.games.sample_actions()
...     observations, rewards, terminations, truncations, infos = envs.step(actions)
>>> observations["observation"].shape, observations["action_mask"].shape
((4, 46, 9, 9), (4, 13527))
>>> envs.close()
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from keisei.constants import NUM_ACTIONS
from keisei.shogi.envs.env_game import (
    RENDER_FPS,
    IllegalAction,
    Info,
    Observation,
    action_space,
    observation_space,
    render_game,
    require_illegal_action,
    require_render_mode,
)
from keisei.shogi.features import FeatureSpec
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.position import Records
from keisei.shogi.rules import DeclarationRule, Termination
from keisei.shogi.types import Diagram
from keisei.shogi.vector import VectorShogi, VectorStep

Bools = npt.NDArray[np.bool_]
VectorResult = tuple[Observation, npt.NDArray[np.float64], Bools, Bools, Info]


class ShogiVectorEnv(VectorEnv[Observation, npt.ArrayLike, npt.NDArray[Any]]):
    """`num_envs` games, each a single stream of moves like `ShogiEnv`.

    A game that ends is begun anew in the same step. As Gymnasium defines it for `SAME_STEP`, the
    observation is then the first of the next game, and ``infos["final_obs"]`` and
    ``infos["final_info"]`` hold the last one of the game that ended.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["ansi", "svg"],
        "render_fps": RENDER_FPS,
    }

    games: VectorShogi
    """The games; its legal lists and packed positions cost no copy."""

    def __init__(
        self,
        num_envs: int = 1,
        *,
        features: str | FeatureSpec = "core46",
        starts: Sequence[str | Diagram] = (STARTPOS_SFEN,),
        opening_plies: int = 0,
        ply_limit: int = 512,
        declaration: DeclarationRule = DeclarationRule.POINTS_27,
        illegal: IllegalAction = "lose",
        threads: int = 1,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """Make the environment; `reset` begins the games.

        Args:
            num_envs: how many games are stepped together.
            features: which planes are observed, by name or spec.
            starts: where games begin, one chosen at random: SFENs or diagrams.
            opening_plies: how many random legal moves are played before a game is handed out.
            ply_limit: the ply at which a game is truncated.
            declaration: by which rule a side that may declare a win does so at once.
            illegal: an illegal action loses its game (``lose``), or makes `step` raise
                `IllegalMoveError`, which names the game and says why, and change nothing
                (``raise``).
            threads: how many threads share the work of a step.
            copy: whether observations are new arrays; if not, the next step overwrites them.
            render_mode: ``ansi`` or ``svg``: what `render` returns of each game.
        """
        require_render_mode(render_mode, self.metadata["render_modes"])
        require_illegal_action(illegal)
        self.games = VectorShogi(
            num_envs,
            features,
            starts=starts,
            opening_plies=opening_plies,
            ply_limit=ply_limit,
            declaration=declaration,
            illegal=illegal,
            threads=threads,
        )
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = observation_space(self.games.features)
        self.single_action_space = action_space()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._planes = (
            None if copy else np.empty((num_envs, *self.games.features.shape), np.float32)
        )
        self._mask = None if copy else np.empty((num_envs, NUM_ACTIONS), np.bool_)

    @cached_property
    def observation_space(self) -> gymnasium.Space[Any]:  # type: ignore[override]
        """The batched space; made when asked for: its bounds take more memory than the games."""
        return batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin all games anew. There are no options: `starts` is given to the constructor."""
        if options:
            raise ValueError(
                f"reset of many games takes no options, got {', '.join(map(repr, options))}; "
                "start positions are given when the environment is made: starts=[...]"
            )
        super().reset(seed=seed)
        self.games.reset(seed=int(self.np_random.integers(1 << 63)))
        return self._observe(), _position_infos(self.games.packed, np.ones(self.num_envs, np.bool_))

    def step(self, actions: npt.ArrayLike) -> VectorResult:
        """Play one action in each game, for the side to move; rewards are those sides'."""
        step = self.games.step(actions)
        truncations = step.terminations == Termination.PLY_LIMIT
        ended = step.terminations != 0
        infos = _position_infos(step.packed, np.ones(self.num_envs, np.bool_))
        if ended.any():
            infos |= self._final_infos(step, ended)
        rewards = step.rewards.astype(np.float64)
        return self._observe(), rewards, ended & ~truncations, truncations, infos

    def render(self) -> tuple[str | None, ...]:  # type: ignore[override]
        """The boards as text, one of each game."""
        return tuple(
            render_game(self.games.game(index), self.render_mode) for index in range(self.num_envs)
        )

    def close_extras(self, **_: Any) -> None:
        """End the threads."""
        self.games.close()

    def _observe(self) -> Observation:
        return {
            "observation": self.games.planes(self._planes),
            "action_mask": self.games.legal_mask(self._mask).view(np.int8),
        }

    def _final_infos(self, step: VectorStep, ended: Bools) -> Info:
        """`final_obs` and `final_info`, laid out as Gymnasium's own vector environments do."""
        indices = np.flatnonzero(ended)
        planes = self.games.features.encode(step.final_packed[indices])
        final_obs = np.full(self.num_envs, None, dtype=object)
        for row, index in enumerate(indices):
            mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
            final_obs[index] = {"observation": planes[row], "action_mask": mask}
        final_info = _position_infos(step.final_packed, ended)
        for name, values in (("termination", step.terminations), ("winner", step.winners)):
            final_info |= _info(name, values, ended)
        return {
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": final_info,
            "_final_info": ended.copy(),
        }


def _position_infos(packed: Records, where: Bools) -> Info:
    return _info("turn", packed["turn"], where) | _info("ply", packed["ply"], where)


def _info(name: str, values: npt.NDArray[Any], where: Bools) -> Info:
    """An entry of a vector environment's infos: values, and in which games they are there."""
    return {name: np.where(where, values, 0).astype(np.int64), f"_{name}": where.copy()}
