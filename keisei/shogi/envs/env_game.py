"""Code shared by the environments: starts, observations, outcomes and rendering of a game."""

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args

import numpy as np
import numpy.typing as npt
from gymnasium import logger, spaces

from keisei.constants import MAX_PLY, NUM_ACTIONS, NUM_PIECE_KINDS
from keisei.errors import IllegalPositionError
from keisei.shogi.features import FeatureSpec, feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import NO_MOVE, pack_game
from keisei.shogi.position import FIRST_ENEMY_CODE, LAST_SQUARE, Records
from keisei.shogi.render.svg import board_svg
from keisei.shogi.rules import DeclarationRule, Outcome, Termination
from keisei.shogi.types import Color, Diagram
from keisei.shogi.vector_kernels import MAX_OPENING_TRIES

Observation = dict[str, npt.NDArray[Any]]
"""``observation``: float32 planes; ``action_mask``: int8, 1 for each legal action."""

Info = dict[str, Any]

Start = str | Diagram
"""An SFEN, a USI ``position`` command, or a diagram."""

IllegalAction = Literal["lose", "raise"]
"""Effect of an illegal action: it loses the game, or `step` raises `IllegalMoveError`."""

RENDER_FPS: Final = 2
_OTHER_SIDE: Final = np.array(
    [0, *range(FIRST_ENEMY_CODE, FIRST_ENEMY_CODE + NUM_PIECE_KINDS), *range(1, FIRST_ENEMY_CODE)],
    dtype=np.uint8,
)
"""Piece codes as the opponent sees them, by piece code."""


class GameSettings:
    """Settings of an environment: starts, openings, features, ply limit, declaration rule."""

    def __init__(
        self,
        features: str | FeatureSpec,
        starts: Sequence[Start],
        opening_plies: int,
        ply_limit: int,
        declaration: DeclarationRule,
    ) -> None:
        if isinstance(starts, str) or not starts:
            raise ValueError("starts must be a list of at least one position")
        if opening_plies < 0:
            raise ValueError(f"opening_plies is {opening_plies}, it must not be negative")
        if not 1 <= ply_limit <= MAX_PLY:
            raise ValueError(f"ply_limit is {ply_limit}, it must be from 1 to {MAX_PLY}")
        self.features = feature_spec(features) if isinstance(features, str) else features
        self.starts = tuple(starts)
        self.opening_plies = opening_plies
        self.ply_limit = ply_limit
        self.declaration = DeclarationRule(declaration)
        for start in self.starts:
            ply = self._set_up(start).ply
            if ply + opening_plies >= ply_limit:
                raise IllegalPositionError(
                    f"a start is at ply {ply}: adding {opening_plies} opening plies leaves nothing "
                    f"below the ply limit of {ply_limit}"
                )

    def begin(self, random: np.random.Generator, start: Start | None = None) -> ShogiGame:
        """Start a game: from exactly `start`, or from one of `starts` with random opening plies."""
        if start is not None:
            return self._set_up(start)
        for _ in range(MAX_OPENING_TRIES):
            game = self._set_up(self.starts[random.integers(len(self.starts))])
            if self._play_opening(game, random):
                return game
        return self._set_up(self.starts[random.integers(len(self.starts))])

    def observe(self, game: ShogiGame, viewer: Color, *, may_move: bool) -> Observation:
        """Return the observation of `viewer`; the mask is all zero unless `viewer` may move."""
        packed = pack_game(game)
        if viewer is not game.turn:
            packed = opponents_view(packed)
        mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
        if may_move:
            mask[game.legal_actions] = 1
        return {"observation": self.features.encode(packed)[0], "action_mask": mask}

    def _set_up(self, start: Start) -> ShogiGame:
        game = ShogiGame(start, ply_limit=self.ply_limit, declaration=self.declaration)
        outcome = outcome_of(game)
        if outcome is not None:
            raise IllegalPositionError(
                f"at the start the game is already over: {outcome.termination.words}"
            )
        return game

    def _play_opening(self, game: ShogiGame, random: np.random.Generator) -> bool:
        """Play the random opening plies; return whether the game is still open after them."""
        for _ in range(self.opening_plies):
            game.push_action(int(random.choice(game.legal_actions)))
            if outcome_of(game) is not None:
                return False
        return True


def observation_space(features: FeatureSpec) -> spaces.Space[Observation]:
    """Return the space of the planes and the action mask of one game."""
    planes = spaces.Box(0.0, 1.0, features.shape, np.float32)
    mask = spaces.Box(0, 1, (NUM_ACTIONS,), np.int8)
    return cast(
        "spaces.Space[Observation]", spaces.Dict({"observation": planes, "action_mask": mask})
    )


def action_space() -> spaces.Discrete:
    """Return the space of all actions, legal or not."""
    return spaces.Discrete(NUM_ACTIONS)


def opponents_view(packed: Records) -> Records:
    """Turn ``packed[B]`` to the view of the side that is *not* to move, as if it were its turn.

    That side is never in check: it has just moved.
    """
    turned = packed.copy()
    turned["board"] = _OTHER_SIDE[packed["board"][:, ::-1]]
    turned["hands"] = packed["hands"][:, ::-1]
    turned["turn"] = 1 - packed["turn"]
    turned["in_check"] = 0
    squares = packed["last_moves"]
    turned["last_moves"] = np.where(squares == NO_MOVE, NO_MOVE, LAST_SQUARE - squares)
    return turned


def outcome_of(game: ShogiGame) -> Outcome | None:
    """Return the outcome of a game, None if it is not over; possible wins are declared at once."""
    return game.outcome(claim_declaration=True)


def is_truncated(outcome: Outcome | None) -> bool:
    """Return whether a game was truncated by the ply limit."""
    return outcome is not None and outcome.termination is Termination.PLY_LIMIT


def position_info(game: ShogiGame) -> Info:
    """Return the side to move (a `Color`) and the plies played."""
    return {"turn": int(game.turn), "ply": game.ply}


def ending_info(termination: int, winner: Color | None) -> Info:
    """Return the `Termination` of a game and its winner, -1 for a draw."""
    return {"termination": int(termination), "winner": -1 if winner is None else int(winner)}


def start_option(options: Mapping[str, Any] | None) -> Start | None:
    """Return the start position in the options of `reset`; warn about unknown options."""
    unknown = [name for name in options or () if name != "start"]
    if unknown:
        warnings.warn(
            f"unknown option of reset: {', '.join(map(repr, unknown))}; the only one is 'start'",
            stacklevel=3,
        )
    return options.get("start") if options else None


def render_game(game: ShogiGame, mode: str | None) -> str | None:
    """Draw a game: ``ansi`` and ``svg`` return text, ``human`` prints it."""
    if mode is None:
        logger.warn("render draws nothing: the environment was made without a render_mode")
        return None
    if mode == "human":
        sys.stdout.write(f"{game}\n")
        return None
    return board_svg(game.diagram, last_move=game.last_move) if mode == "svg" else str(game)


def require_render_mode(mode: str | None, modes: Sequence[str]) -> None:
    """Raise ValueError for an unknown render mode."""
    if mode is not None and mode not in modes:
        raise ValueError(f"render mode {mode!r}: it must be one of {', '.join(modes)}")


def require_illegal_action(illegal: str) -> None:
    """Raise ValueError for an unknown way to treat illegal actions."""
    if illegal not in get_args(IllegalAction):
        raise ValueError(
            f"illegal={illegal!r}: it must be one of {', '.join(get_args(IllegalAction))}"
        )
