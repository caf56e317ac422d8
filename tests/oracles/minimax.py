"""Plain minimax, as one would write it on a blackboard: no pruning, no table, no ordering."""

import numpy as np

from keisei.constants import MOVE_BUFFER
from keisei.search.alphabeta import MATE
from keisei.shogi.attacks import king_is_attacked
from keisei.shogi.game import ShogiGame
from keisei.shogi.jit import int64, jit
from keisei.shogi.material import HAND_VALUES, SQUARE_VALUES, evaluate
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import (
    Array,
    Record,
    play,
    undo,
)
from keisei.shogi.types import Color


def static_value(game: ShogiGame) -> int:
    """Material and place, counted piece by piece, for the side to move."""
    values = {Color.BLACK: 0, Color.WHITE: 0}
    for square in range(81):
        piece = game.piece_at(square)
        if piece is not None:
            own_view = square if piece.color is Color.BLACK else 80 - square
            values[piece.color] += int(SQUARE_VALUES[piece.kind, own_view])
    for color in Color:
        for kind, number in enumerate(game.hand(color)):
            values[color] += number * int(HAND_VALUES[kind])
    return values[game.turn] - values[game.turn.opponent]


def minimax(game: ShogiGame, depth: int, *, quiet_plies: int = 0) -> int:
    """The mover's value `depth` plies ahead."""
    moves = np.zeros((depth + quiet_plies + 1, MOVE_BUFFER), dtype=np.uint16)
    position = game.position.reshape(1).copy().view(np.recarray)
    return int(_minimax(position[0], moves, 0, depth, quiet_plies))


@jit
def _minimax(position: Record, moves: Array, level: int, depth: int, quiet_plies: int) -> int:
    number, _ = legal_moves(position, moves[level])
    if number == 0 and (depth > 0 or king_is_attacked(position, int64(position.turn))):
        return level - MATE
    if depth == 0:
        return _quiet(position, moves, level, quiet_plies)
    best = -10 * MATE
    for place in range(number):
        move = int64(moves[level, place])
        captured = play(position, move)
        best = max(best, -_minimax(position, moves, level + 1, depth - 1, quiet_plies))
        undo(position, move, captured)
    return best


@jit
def _quiet(position: Record, moves: Array, level: int, plies: int) -> int:
    """The best of stopping here and of any capture."""
    best = int64(evaluate(position))
    if plies == 0:
        return best
    number, _ = legal_moves(position, moves[level])
    for place in range(number):
        move = int64(moves[level, place])
        captured = play(position, move)
        if captured:
            best = max(best, -_quiet(position, moves, level + 1, plies - 1))
        undo(position, move, captured)
    return best
