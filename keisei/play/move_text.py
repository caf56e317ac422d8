"""Moves as text for a list of moves: Japanese notation, or Western letters."""

from collections.abc import Iterable

from keisei.shogi.notation.ki2 import format_move
from keisei.shogi.notation.record import Replay
from keisei.shogi.notation.western import format_western
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color, Diagram, Move


def move_texts(start: Diagram, moves: Iterable[Move], lettering: Lettering) -> list[str]:
    """Return each of the moves in the notation that goes with the lettering of the pieces."""
    replay = Replay(start)
    texts = []
    for move in moves:
        if lettering == "letters":
            texts.append(format_western(replay, move))
        else:
            mark = "☗" if replay.turn is Color.BLACK else "☖"
            texts.append(mark + format_move(replay, move).replace("　", ""))
        replay.play(move)
    return texts
