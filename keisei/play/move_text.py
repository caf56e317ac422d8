"""Moves as text for a list of moves: Japanese notation, or Western letters."""

from collections.abc import Iterable

from keisei.shogi.notation.ki2 import format_move, may_promote, origins
from keisei.shogi.notation.record import Replay
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import SQUARE_NAMES, Color, Diagram, Move


def move_texts(start: Diagram, moves: Iterable[Move], lettering: Lettering) -> list[str]:
    """Return each of the moves in the notation that goes with the lettering of the pieces."""
    replay = Replay(start)
    texts = []
    for move in moves:
        if lettering == "letters":
            texts.append(western(replay, move))
        else:
            mark = "☗" if replay.turn is Color.BLACK else "☖"
            texts.append(mark + format_move(replay, move).replace("　", ""))
        replay.play(move)
    return texts


def western(replay: Replay, move: Move) -> str:
    """Return the next move in letters: ``P-7f``, ``Bx2b+``, ``N*5e``, ``G4i-5h``, ``S-3c=``."""
    target = SQUARE_NAMES[move.to_square]
    piece = replay.moving_piece(move)
    if move.from_square is None:
        return f"{piece.kind.symbol}*{target}"
    rivals = origins(replay.board, piece, move.to_square)
    origin = SQUARE_NAMES[move.from_square] if len(rivals) > 1 else ""
    how = "-" if replay.board[move.to_square] is None else "x"
    end = "+" if move.promote else ""
    if not move.promote and may_promote(piece, move.from_square, move.to_square):
        end = "="
    return f"{piece.kind.symbol}{origin}{how}{target}{end}"
