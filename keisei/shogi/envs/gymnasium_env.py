"""Shogi as Gymnasium environments: `ShogiEnv` has one game, `ShogiVectorEnv` N in lockstep.

>>> env = ShogiEnv()
>>> observation, info = env.reset(seed=0)
>>> env.action_space.seed(0)
0
>>> terminated = truncated = False
>>> while not (terminated or truncated):
...     action = env.action_space.sample(observation["action_mask"])
...     observation, reward, terminated, truncated, info = env.step(action)
>>> env.close()

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
from typing import Any, ClassVar, SupportsInt

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from keisei.constants import NUM_ACTIONS
from keisei.errors import IllegalMoveError
from keisei.shogi.envs.env_game import (
    RENDER_FPS,
    GameSettings,
    IllegalAction,
    Info,
    Observation,
    Start,
    action_space,
    ending_info,
    is_truncated,
    observation_space,
    outcome_of,
    position_info,
    render_game,
    require_illegal_action,
    require_render_mode,
    start_option,
)
from keisei.shogi.features import FeatureSpec
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.position import Records
from keisei.shogi.rules import DeclarationRule, Termination
from keisei.shogi.types import Diagram
from keisei.shogi.vector import VectorShogi, VectorStep

Bools = npt.NDArray[np.bool_]
VectorResult = tuple[Observation, npt.NDArray[np.float64], Bools, Bools, Info]


class ShogiEnv(gymnasium.Env[Observation, np.int64]):
    """One game of Shogi as a single stream: Black's move, White's move, Black's move ...

    Observations and actions are in the view of the side to move; a reward belongs to the side that
    has just moved. So a value target changes its sign from one step to the next.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["human", "ansi", "svg"],
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        *,
        features: str | FeatureSpec = "core46",
        starts: Sequence[Start] = (STARTPOS_SFEN,),
        opening_plies: int = 0,
        ply_limit: int = 512,
        declaration: DeclarationRule = DeclarationRule.POINTS_27,
        illegal: IllegalAction = "lose",
        render_mode: str | None = None,
    ) -> None:
        """Make the environment; `reset` starts a game.

        Args:
            features: the feature set of the observations, by name or spec.
            starts: start positions, chosen at random: SFENs, USI positions or diagrams.
            opening_plies: number of random legal moves at the start of each game.
            ply_limit: the ply at which a game is truncated.
            declaration: the rule by which a side that may declare a win does so at once.
            illegal: an illegal action loses the game (``lose``, the rule of Shogi), or makes
                `step` raise `IllegalMoveError` with the reason (``raise``).
            render_mode: ``human`` prints the board after every move, ``ansi`` and ``svg`` make
                `render` return it as text.
        """
        require_render_mode(render_mode, self.metadata["render_modes"])
        require_illegal_action(illegal)
        self.render_mode = render_mode
        self.illegal = illegal
        self.settings = GameSettings(features, starts, opening_plies, ply_limit, declaration)
        self.observation_space = observation_space(self.settings.features)
        self.action_space = action_space()
        self._game: ShogiGame | None = None
        self._is_over = True

    @property
    def game(self) -> ShogiGame:
        """The current game, to read; only `step` should change it."""
        if self._game is None:
            raise gymnasium.error.ResetNeeded("there is no game yet: call reset() first")
        return self._game

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start a game; ``options["start"]`` sets the position and skips the opening plies."""
        super().reset(seed=seed)
        self._game = self.settings.begin(self.np_random, start_option(options))
        self._is_over = False
        self._show()
        return self._observe(), position_info(self._game)

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, Info]:
        """Play an action for the side to move; the reward is that side's."""
        game, chosen = self.game, int(action)
        if self._is_over:
            raise gymnasium.error.ResetNeeded(
                "the game is over: call reset() to start the next one"
            )
        mover = game.turn
        try:
            game.push_action(chosen)
        except IllegalMoveError:
            if self.illegal == "raise" or not 0 <= chosen < NUM_ACTIONS:
                raise
            return self._forfeit(game)
        self._show()
        info = position_info(game)
        outcome = outcome_of(game)
        if outcome is None:
            return self._observe(), 0.0, False, False, info
        self._is_over = True
        truncated = is_truncated(outcome)
        reward = 0.0 if outcome.winner is None else 1.0 if outcome.winner is mover else -1.0
        info |= ending_info(outcome.termination, outcome.winner)
        return self._observe(), reward, not truncated, truncated, info

    def render(self) -> str | None:
        """Return the board as text (``ansi``, ``svg``) or print it (``human``)."""
        return render_game(self.game, self.render_mode)

    def _forfeit(self, game: ShogiGame) -> tuple[Observation, float, bool, bool, Info]:
        """Return the result of an illegal action, which leaves the position unchanged."""
        self._is_over = True
        info = position_info(game) | ending_info(Termination.ILLEGAL_MOVE, game.turn.opponent)
        return self._observe(), -1.0, True, False, info

    def _observe(self) -> Observation:
        game = self.game
        return self.settings.observe(game, game.turn, may_move=not self._is_over)

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()


class ShogiVectorEnv(VectorEnv[Observation, npt.ArrayLike, npt.NDArray[Any]]):
    """`num_envs` games, each a single stream of moves like `ShogiEnv`.

    A game that ends is reset in the same step. As Gymnasium defines it for `SAME_STEP`, the
    observation is then the first one of the next game, and ``infos["final_obs"]`` and
    ``infos["final_info"]`` hold the last ones of the game that ended.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["ansi", "svg"],
        "render_fps": RENDER_FPS,
    }

    games: VectorShogi
    """The games, with legal lists and packed positions that need no copy."""

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
        """Make the environment; `reset` starts the games.

        Args:
            num_envs: number of games that are stepped together.
            features: the feature set of the observations, by name or spec.
            starts: start positions, chosen at random: SFENs or diagrams.
            opening_plies: number of random legal moves at the start of each game.
            ply_limit: the ply at which a game is truncated.
            declaration: the rule by which a side that may declare a win does so at once.
            illegal: an illegal action loses its game (``lose``), or makes `step` raise
                `IllegalMoveError` with the game and the reason, and change nothing (``raise``).
            threads: number of threads that share the work of a step.
            copy: whether observations are new arrays; if not, the next step overwrites them.
            render_mode: ``ansi`` or ``svg``: the format of the boards that `render` returns.
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
        """The batched space, made at first use: its bounds take more memory than the games."""
        return batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start new games. There are no options: `starts` is an argument of the constructor."""
        if options:
            raise ValueError(
                f"reset of many games takes no options, got {', '.join(map(repr, options))}; "
                "start positions are given when the environment is made: starts=[...]"
            )
        super().reset(seed=seed)
        self.games.reset(seed=int(self.np_random.integers(1 << 63)))
        return self._observe(), _position_infos(self.games.packed, np.ones(self.num_envs, np.bool_))

    def step(self, actions: npt.ArrayLike) -> VectorResult:
        """Play one action in each game for the side to move, who gets the reward."""
        step = self.games.step(actions)
        truncations = step.terminations == Termination.PLY_LIMIT
        ended = step.terminations != 0
        infos = _position_infos(step.packed, np.ones(self.num_envs, np.bool_))
        if ended.any():
            infos |= self._final_infos(step, ended)
        rewards = step.rewards.astype(np.float64)
        return self._observe(), rewards, ended & ~truncations, truncations, infos

    def render(self) -> tuple[str | None, ...]:  # type: ignore[override]
        """Return the boards as text, one for each game."""
        return tuple(
            render_game(self.games.game(index), self.render_mode) for index in range(self.num_envs)
        )

    def close_extras(self, **_: Any) -> None:
        """Stop the threads."""
        self.games.close()

    def _observe(self) -> Observation:
        return {
            "observation": self.games.planes(self._planes),
            "action_mask": self.games.legal_mask(self._mask).view(np.int8),
        }

    def _final_infos(self, step: VectorStep, ended: Bools) -> Info:
        """Return `final_obs` and `final_info` in Gymnasium's layout for vector environments."""
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
    """Return an entry of a vector environment's infos: values, and the mask of their games."""
    return {name: np.where(where, values, 0).astype(np.int64), f"_{name}": where.copy()}
