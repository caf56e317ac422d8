"""Shogi as a PettingZoo environment: two agents in turn (AEC).

>>> env = env(opening_plies=2)
>>> env.reset(seed=0)
>>> for agent in env.agent_iter():
...     observation, reward, termination, truncation, info = env.last()
...     if termination or truncation:
...         action = None
...     else:
...         action = env.action_space(agent).sample(observation["action_mask"])
...     env.step(action)
>>> env.close()
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv  # type: ignore[import-untyped]
from pettingzoo.utils import wrappers  # type: ignore[import-untyped]

from keisei.errors import IllegalMoveError
from keisei.shogi.envs.env_game import (
    RENDER_FPS,
    GameSettings,
    Observation,
    Start,
    action_space,
    ending_info,
    is_truncated,
    observation_space,
    outcome_of,
    position_info,
    render_game,
    require_render_mode,
    start_option,
)
from keisei.shogi.features import FeatureSpec
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.rules import DeclarationRule, Outcome
from keisei.shogi.types import Color

AGENTS: Final = ("black_0", "white_0")
"""The agents by `Color`, with names of PettingZoo's form ``<descriptor>_<number>``."""


def env(**settings: Any) -> Any:
    """Make the environment with PettingZoo's usual wrappers; `settings` as for `ShogiAECEnv`.

    An illegal action ends the game: its player gets -1, the other one 0. Actions outside of the
    action space and calls in the wrong order raise.
    """
    wrapped = wrappers.TerminateIllegalWrapper(raw_env(**settings), illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(wrapped))


class ShogiAECEnv(AECEnv):  # type: ignore[misc]
    """One game of Shogi between ``black_0`` and ``white_0``; illegal moves raise.

    Every agent can be observed at any time, in its own view of the board. The one that is not to
    move sees the position as if it were its turn, with an empty action mask.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "shogi_v0",
        "render_modes": ["human", "ansi", "svg"],
        "render_fps": RENDER_FPS,
        "is_parallelizable": False,
    }

    game: ShogiGame
    """The current game, to read; only `step` should change it."""

    def __init__(
        self,
        *,
        features: str | FeatureSpec = "core46",
        starts: Sequence[Start] = (STARTPOS_SFEN,),
        opening_plies: int = 0,
        ply_limit: int = 512,
        declaration: DeclarationRule = DeclarationRule.POINTS_27,
        render_mode: str | None = None,
    ) -> None:
        """Make the environment; `reset` starts a game.

        Args:
            features: the feature set of the observations, by name or spec.
            starts: start positions, chosen at random: SFENs, USI positions or diagrams.
            opening_plies: number of random legal moves before the first agent moves.
            ply_limit: the ply at which a game is truncated.
            declaration: the rule by which a side that may declare a win does so at once.
            render_mode: ``human`` prints the board after every move, ``ansi`` and ``svg`` make
                `render` return it as text.
        """
        super().__init__()
        require_render_mode(render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        self.settings = GameSettings(features, starts, opening_plies, ply_limit, declaration)
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        planes = self.settings.features
        self.observation_spaces = {name: observation_space(planes) for name in AGENTS}
        self.action_spaces = {name: action_space() for name in AGENTS}
        self._random = np.random.default_rng()

    def observation_space(self, agent: str) -> spaces.Space[Observation]:
        """Return the space of the planes and the action mask."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return the space of the 13,527 actions, in the view of the agent to move."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game; ``options["start"]`` sets the position and skips the opening plies."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self.game = self.settings.begin(self._random, start_option(options))
        self.agents = list(AGENTS)
        self.agent_selection = AGENTS[self.game.turn]
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos = {agent: position_info(self.game) for agent in AGENTS}
        self._show()

    def step(self, action: int | np.integer[Any] | None) -> None:
        """Play an action for `agent_selection`; `IllegalMoveError` leaves the game unchanged."""
        agent = self.agent_selection
        if not self._is_playing(agent):
            self._was_dead_step(action)
            return
        if action is None:
            raise IllegalMoveError(f"{agent} is to move: None is for agents whose game has ended")
        try:
            self.game.push_action(int(action))
        except IllegalMoveError as error:
            raise IllegalMoveError(f"{agent}: {error}") from None
        self._cumulative_rewards[agent] = 0.0
        self.infos = {agent: position_info(self.game) for agent in AGENTS}
        outcome = outcome_of(self.game)
        if outcome is not None:
            self._end(outcome)
        self._accumulate_rewards()
        self.agent_selection = AGENTS[self.game.turn]
        self._show()

    def observe(self, agent: str) -> Observation:
        """Return the position in the view of `agent`; only the one to move has legal actions."""
        viewer = Color(AGENTS.index(agent))
        may_move = viewer is self.game.turn and self._is_playing(agent)
        return self.settings.observe(self.game, viewer, may_move=may_move)

    def render(self) -> str | None:
        """Return the board as text (``ansi``, ``svg``) or print it (``human``)."""
        return render_game(self.game, self.render_mode)

    def close(self) -> None:
        """Do nothing: the environment holds no resources."""

    def _is_playing(self, agent: str) -> bool:
        return agent in self.agents and not (self.terminations[agent] or self.truncations[agent])

    def _end(self, outcome: Outcome) -> None:
        truncated = is_truncated(outcome)
        self.terminations = dict.fromkeys(AGENTS, not truncated)
        self.truncations = dict.fromkeys(AGENTS, truncated)
        for color, agent in zip(Color, AGENTS, strict=True):
            self.infos[agent].update(ending_info(outcome.termination, outcome.winner))
            if outcome.winner is not None:
                self.rewards[agent] = 1.0 if color is outcome.winner else -1.0

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()


raw_env = ShogiAECEnv
"""The environment without wrappers, by PettingZoo's usual name."""
