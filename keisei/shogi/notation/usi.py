"""Games as lines of USI: ``startpos moves 7g7f 3c3d``, as engines and their logs have them."""

from collections.abc import Iterator

from keisei.errors import IllegalMoveError, IllegalPositionError, NotationError
from keisei.shogi.notation.reader import split_lines
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.sfen import parse_position


def read_usi(text: str) -> list[GameRecord]:
    """A game for each line, a USI ``position`` command or an SFEN; after a ``#`` is a comment.

    >>> [game] = read_usi("startpos moves 7g7f 3c3d  # a quiet beginning")
    >>> len(game.moves)
    2

    Raises:
        NotationError: A line is faulty or has an illegal move, or there is none.
    """
    return list(iter_usi(text))


def iter_usi(text: str) -> Iterator[GameRecord]:
    """The same one game after the other: what comes after those that are taken is not read."""
    is_empty = True
    for line in split_lines(text):
        command = line.text.partition("#")[0]
        if not command.strip():
            continue
        try:
            start, moves = parse_position(command)
            record = GameRecord.from_moves(moves, start=start)
        except NotationError as error:
            raise NotationError(error.reason, line=line.number, column=error.column) from error
        except (IllegalMoveError, IllegalPositionError) as error:
            raise line.error(str(error)) from error
        yield record
        is_empty = False
    if is_empty:
        raise NotationError("there is no game: a line is like startpos moves 7g7f 3c3d", line=1)
