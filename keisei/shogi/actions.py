"""The 13,527 actions of the policy, and how they map to moves.

An action is written for the mover: for White every square is ``80 - sq``.

- Board move: ``from * 160 + (to - (to > from)) * 2 + promote``, 0 to 12,959.
- Drop: ``12960 + to * 7 + piece``, pieces P L N S G B R.

>>> PolicyOutputMapper().index(Move.from_usi("7g7f"), Color.BLACK)
9054
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from keisei.constants import BOARD_SIZE, NUM_ACTIONS, NUM_SQUARES
from keisei.shogi.position import LAST_SQUARE, decode, encode
from keisei.shogi.types import HAND_KINDS, Color, Move, PieceKind

if TYPE_CHECKING:
    from keisei.shogi.game import ShogiGame


def mirrored_square(sq: int) -> int:
    """The square on the other side of the middle file: 7g becomes 3g."""
    row, column = divmod(sq, BOARD_SIZE)
    return row * BOARD_SIZE + BOARD_SIZE - 1 - column


class PolicyOutputMapper:
    """Maps moves to policy indices and back, for every action, and marks the legal ones."""

    num_actions: int = NUM_ACTIONS
    """Size of the policy output: 13,527."""

    def index(self, move: Move, turn: Color) -> int:
        """The action of a move that `turn` plays; ValueError for what is no move at all."""
        _require_move(move)
        to = _turned(move.to_square, turn)
        if move.drop is not None:
            return int(encode(NUM_SQUARES + int(move.drop), to, 0))
        assert move.from_square is not None
        return int(encode(_turned(move.from_square, turn), to, int(move.promote)))

    def move(self, index: int, turn: Color) -> Move:
        """The move that an action stands for when `turn` is to move."""
        if not 0 <= index < NUM_ACTIONS:
            raise ValueError(f"action {index} is out of range: 0 to {NUM_ACTIONS - 1}")
        origin, to, promote = (int(part) for part in decode(int(index)))
        if origin >= NUM_SQUARES:
            return Move(None, _turned(to, turn), False, PieceKind(origin - NUM_SQUARES))
        return Move(_turned(origin, turn), _turned(to, turn), bool(promote))

    def legal_mask(self, game: "ShogiGame") -> npt.NDArray[np.bool_]:
        """``bool[13527]``: which actions are legal moves of `game`."""
        mask = np.zeros(NUM_ACTIONS, dtype=np.bool_)
        mask[game.legal_actions] = True
        return mask

    def mirrored(self, index: int) -> int:
        """The same action on the board mirrored left to right."""
        return int(MIRRORED_ACTIONS[index])


def _require_move(move: Move) -> None:
    """Refuse what has no index of its own: its arithmetic would give another move's."""
    squares = [move.to_square] if move.from_square is None else [move.from_square, move.to_square]
    if not all(0 <= sq < NUM_SQUARES for sq in squares) or len(set(squares)) != len(squares):
        raise ValueError(f"{tuple(move)} does not go from one square of the board to another")
    is_drop = move.drop is not None
    if is_drop != (move.from_square is None) or (is_drop and move.promote):
        raise ValueError(f"{tuple(move)} is neither a board move nor a drop")
    if is_drop and move.drop not in HAND_KINDS:
        raise ValueError(f"{tuple(move)}: only P L N S G B R can be dropped")


def _turned(sq: int, turn: Color) -> int:
    return LAST_SQUARE - sq if turn is Color.WHITE else sq


def _mirrored_actions() -> npt.NDArray[np.uint16]:
    """By plain arithmetic on the definition above, for all actions at once."""
    mirrored = np.empty(NUM_ACTIONS, dtype=np.uint16)
    column_flip = np.array([mirrored_square(sq) for sq in range(NUM_SQUARES)])
    origins, targets = np.divmod(np.arange(NUM_SQUARES * LAST_SQUARE), LAST_SQUARE)
    targets += targets >= origins
    origins, targets = column_flip[origins], column_flip[targets]
    board = origins * 2 * LAST_SQUARE + (targets - (targets > origins)) * 2
    mirrored[: 2 * board.size : 2] = board
    mirrored[1 : 2 * board.size : 2] = board + 1
    drops = 2 * board.size + column_flip[:, None] * 7 + np.arange(7)
    mirrored[2 * board.size :] = drops.ravel()
    return mirrored


MIRRORED_ACTIONS = _mirrored_actions()
"""``uint16[13527]``: the action that the left-right mirror image of the board turns each into."""
