"""Perft in Python over the boards of rsshogi, a library in Rust (it offers no perft of its own).

Import this module only where rsshogi is installed; Keisei itself never needs it.
"""

from typing import Any

from rsshogi.core import Board


def board_of(sfen: str) -> Any:
    """A board with the position of `sfen`."""
    board = Board()
    board.set_sfen(sfen)
    return board


def counted_leaves(board: Any, depth: int) -> int:
    """Perft with bulk counting: the moves of the last ply are counted, not played."""
    if depth == 1:
        return len(board.legal_moves())
    nodes = 0
    for move in board.legal_moves():
        board.apply_move(move)
        nodes += counted_leaves(board, depth - 1)
        board.undo_move(move)
    return nodes


def played_leaves(board: Any, depth: int) -> int:
    """Perft that plays and takes back every leaf."""
    if depth == 0:
        return 1
    nodes = 0
    for move in board.legal_moves():
        board.apply_move(move)
        nodes += played_leaves(board, depth - 1)
        board.undo_move(move)
    return nodes
