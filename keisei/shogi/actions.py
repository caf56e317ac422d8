"""The 13,527 actions of the policy, and their mapping to moves.

An action is in the mover's view: for White every square is ``80 - sq``.

- Board move: ``from * 160 + (to - (to > from)) * 2 + promote``, 0 to 12,959.
- Drop: ``12960 + to * 7 + piece``, pieces P L N S G B R.

>>> PolicyOutputMapper().index(Move.from_usi("7g7f"), Color.BLACK)
9054
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from keisei.constants import BOARD_SIZE, NUM_ACTIONS, NUM_SQUARES
from keisei.shogi.position import LAST_SQUARE, MOVES_PER_ORIGIN, decode, encode
from keisei.shogi.types import HAND_KINDS, Color, Move, PieceKind, in_view_of

if TYPE_CHECKING:
    from keisei.shogi.game import ShogiGame


def mirrored_square(sq: int) -> int:
    """Mirror a square left to right: 7g becomes 3g."""
    row, column = divmod(sq, BOARD_SIZE)
    return row * BOARD_SIZE + BOARD_SIZE - 1 - column


class PolicyOutputMapper:
    """Maps moves to policy indices and back, and makes masks of the legal ones."""

    num_actions: int = NUM_ACTIONS
    """Size of the policy output: 13,527."""

    def index(self, move: Move, turn: Color) -> int:
        """Return the policy index of a move that `turn` plays; ValueError if it is not a move."""
        _require_move(move)
        to = in_view_of(turn, move.to_square)
        if move.drop is not None:
            return int(encode(NUM_SQUARES + int(move.drop), to, 0))
        assert move.from_square is not None
        return int(encode(in_view_of(turn, move.from_square), to, int(move.promote)))

    def move(self, index: int, turn: Color) -> Move:
        """Return the move of a policy index if `turn` is to move."""
        if not 0 <= index < NUM_ACTIONS:
            raise ValueError(f"action {index} is out of range: 0 to {NUM_ACTIONS - 1}")
        origin, to, promote = (int(part) for part in decode(int(index)))
        if origin >= NUM_SQUARES:
            return Move(None, in_view_of(turn, to), False, PieceKind(origin - NUM_SQUARES))
        return Move(in_view_of(turn, origin), in_view_of(turn, to), bool(promote))

    def legal_mask(self, game: "ShogiGame") -> npt.NDArray[np.bool_]:
        """Return the mask, ``bool[13527]``, of the legal actions of `game`."""
        mask = np.zeros(NUM_ACTIONS, dtype=np.bool_)
        mask[game.legal_actions] = True
        return mask

    def mirrored(self, index: int) -> int:
        """Return the index of an action's mirror image, left to right."""
        return int(MIRRORED_ACTIONS[index])


def _require_move(move: Move) -> None:
    """Raise ValueError for a move that has no policy index: the formula would give a wrong one."""
    squares = [move.to_square] if move.from_square is None else [move.from_square, move.to_square]
    if not all(0 <= sq < NUM_SQUARES for sq in squares) or len(set(squares)) != len(squares):
        raise ValueError(f"{tuple(move)} does not go from one square of the board to another")
    is_drop = move.drop is not None
    if is_drop != (move.from_square is None) or (is_drop and move.promote):
        raise ValueError(f"{tuple(move)} is neither a board move nor a drop")
    if is_drop and move.drop not in HAND_KINDS:
        raise ValueError(f"{tuple(move)}: only P L N S G B R can be dropped")


def _mirrored_actions() -> npt.NDArray[np.uint16]:
    """Compute the mirror images of all actions at once, from the formulas above."""
    mirrored = np.empty(NUM_ACTIONS, dtype=np.uint16)
    column_flip = np.array([mirrored_square(sq) for sq in range(NUM_SQUARES)])
    origins, targets = np.divmod(np.arange(NUM_SQUARES * LAST_SQUARE), LAST_SQUARE)
    targets += targets >= origins
    origins, targets = column_flip[origins], column_flip[targets]
    board = origins * MOVES_PER_ORIGIN + (targets - (targets > origins)) * 2
    mirrored[: 2 * board.size : 2] = board
    mirrored[1 : 2 * board.size : 2] = board + 1
    drops = 2 * board.size + column_flip[:, None] * 7 + np.arange(7)
    mirrored[2 * board.size :] = drops.ravel()
    return mirrored


MIRRORED_ACTIONS = _mirrored_actions()
"""``uint16[13527]``: the mirror image, left to right, of each action."""
