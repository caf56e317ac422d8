"""Shogi as a Gymnasium environment: one game, in which every step is a move of the side to move.

>>> env = ShogiEnv()
>>> observation, info = env.reset(seed=0)
>>> env.action_space.seed(0)
0
>>> terminated = truncated = False
>>> while not (terminated or truncated):
...     action = env.action_space.sample(observation["action_mask"])
...     observation, reward, terminated, truncated, info = env.step(action)
>>> env.close()
"""

from collections.abc import Sequence
from typing import Any, ClassVar, SupportsInt

import gymnasium
import numpy as np

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
from keisei.shogi.rules import DeclarationRule, Termination


class ShogiEnv(gymnasium.Env[Observation, np.int64]):
    """One game of Shogi as a single stream: Black's move, White's move, Black's move ...

    Observation, action and reward are those of the side to move: an observation is what the side
    that acts next sees, a reward belongs to the side that has just acted. So a value target has to
    change its sign from one step to the next.
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
        """Make the environment; `reset` begins a game.

        Args:
            features: which planes are observed, by name or spec.
            starts: where games begin, one chosen at random: SFENs, USI positions or diagrams.
            opening_plies: how many random legal moves are played before a game is handed out.
            ply_limit: the ply at which a game is truncated.
            declaration: by which rule a side that may declare a win does so at once.
            illegal: an illegal action loses the game (``lose``, the rule of Shogi), or makes
                `step` raise `IllegalMoveError`, which says why it is illegal (``raise``).
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
        """The game being played; read it as you like, `step` alone should change it."""
        if self._game is None:
            raise gymnasium.error.ResetNeeded("there is no game yet: call reset() first")
        return self._game

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin a game: with ``options["start"]`` at that position, without opening plies."""
        super().reset(seed=seed)
        self._game = self.settings.begin(self.np_random, start_option(options))
        self._is_over = False
        self._show()
        return self._observe(), position_info(self._game)

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, Info]:
        """Play an action for the side to move; the reward is that side's."""
        game, chosen = self.game, int(action)
        if self._is_over:
            raise gymnasium.error.ResetNeeded("the game is over: call reset() to begin the next")
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
        """The board as text (``ansi``, ``svg``) or printed (``human``)."""
        return render_game(self.game, self.render_mode)

    def _forfeit(self, game: ShogiGame) -> tuple[Observation, float, bool, bool, Info]:
        """What a step with an illegal action returns: the position is left as it was."""
        self._is_over = True
        info = position_info(game) | ending_info(Termination.ILLEGAL_MOVE, game.turn.opponent)
        return self._observe(), -1.0, True, False, info

    def _observe(self) -> Observation:
        game = self.game
        return self.settings.observe(game, game.turn, may_move=not self._is_over)

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()
