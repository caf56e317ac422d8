"""Other people's Shogi libraries, behind one small interface each. All are optional."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

LegalMoves = Callable[[str], set[str]]


def _rsshogi_moves(sfen: str) -> set[str]:
    from rsshogi.core import Board

    board = Board()
    board.set_sfen(sfen)
    return {move.to_usi() for move in board.legal_moves()}


def _cshogi_moves(sfen: str) -> set[str]:
    import cshogi

    return {cshogi.move_to_usi(move) for move in cshogi.Board(sfen).legal_moves}


def rsshogi_perft(sfen: str, depth: int) -> int:
    from rsshogi.core import Board

    board = Board()
    board.set_sfen(sfen)

    def count(level: int) -> int:
        moves = board.legal_moves()
        if level == 1:
            return len(moves)
        total = 0
        for move in moves:
            board.push_move(move)
            total += count(level - 1)
            board.pop()
        return total

    return count(depth)


def cshogi_perft(sfen: str, depth: int) -> int:
    import cshogi

    board = cshogi.Board(sfen)

    def count(level: int) -> int:
        moves = list(board.legal_moves)
        if level == 1:
            return len(moves)
        total = 0
        for move in moves:
            board.push(move)
            total += count(level - 1)
            board.pop()
        return total

    return count(depth)


def _optional(library: str, function: Callable[..., Any]) -> Any:
    missing = pytest.mark.skipif(find_spec(library) is None, reason=f"{library} is not installed")
    return pytest.param(function, id=library, marks=missing)


LEGAL_MOVES = [_optional("rsshogi", _rsshogi_moves), _optional("cshogi", _cshogi_moves)]
"""Parameters of a test: functions from an SFEN to the set of legal moves in USI."""

PERFTS = [_optional("rsshogi", rsshogi_perft), _optional("cshogi", cshogi_perft)]
"""Parameters of a test: functions from an SFEN and a depth to the number of leaves."""
