"""Moves as people type them: ``7g7f``, ``P-7f``, ``７六歩`` or ``76歩``.

>>> from keisei.shogi.game import ShogiGame
>>> [parse_move(ShogiGame(), text).usi for text in ("7g7f", "P-7f", "P-76", "７六歩", "76歩(77)")]
['7g7f', '7g7f', '7g7f', '7g7f', '7g7f']
"""

import re
from typing import Final

from keisei.errors import NotationError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import ki2, kif
from keisei.shogi.notation.japanese import KIND_BY_NAME, scan_mark
from keisei.shogi.notation.reader import Scanner, SourceLine, half_width, quote
from keisei.shogi.notation.record import Replay
from keisei.shogi.notation.western import MOVE_PATTERN, scan_western_move
from keisei.shogi.types import Move

MAX_MOVE_LENGTH: Final = 40
"""Characters of a typed move."""

_USI: Final = re.compile(r"(?:[1-9][a-i]){2}\+?|[PLNSGBR]\*[1-9][a-i]")


def parse_move(game: ShogiGame, text: str) -> Move:
    """Return the move that a person typed: in USI, western or Japanese notation.

    USI moves may be illegal, for which `ShogiGame.push` raises the error that names the rule.

    Raises:
        NotationError: The text is no move, or may mean none or several of the legal ones.
    """
    word = text.strip()
    scanner = Scanner(SourceLine(1, word[:MAX_MOVE_LENGTH]))
    if len(word) <= MAX_MOVE_LENGTH:
        if _USI.fullmatch(half_width(word)):
            return Move.from_usi(half_width(word))
        replay = Replay(game.diagram)
        last = game.last_move
        replay.last_target = None if last is None else last.to_square
        try:
            if scanner.match(MOVE_PATTERN):
                scanner.index = 0
                return scan_western_move(scanner, replay)[0]
            if any(name in word for name in KIND_BY_NAME):
                return _japanese(scanner, replay)
        except NotationError as error:
            raise NotationError(error.reason) from None
    raise NotationError(
        f"{quote(word)} is not a move; expected something like 7g7f, P-7f or ７六歩"
    )


def _japanese(scanner: Scanner, replay: Replay) -> Move:
    scan_mark(scanner, replay.turn)
    scan = kif.scan_move if "(" in half_width(scanner.line.text) else ki2.scan_move
    move = scan(scanner, replay)
    if not scanner.at_end:
        raise scanner.error(f"{scanner.found} after the move")
    return move
