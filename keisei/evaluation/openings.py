"""Openings in a text file: one position per line, for matches that begin there."""

from pathlib import Path

from keisei.errors import KeiseiError
from keisei.files import read_bytes
from keisei.shogi.game import ShogiGame


def read_openings(path: Path) -> tuple[str, ...]:
    """The positions of a file, as SFENs.

    A line holds an SFEN, or ``startpos moves 7g7f ...``; what follows a ``#`` is a comment.

    Raises:
        KeiseiError: The file cannot be read, holds no position, or one that cannot be played from;
            the message names the line.
    """
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise KeiseiError(f"{path} is not UTF-8 text: {error}") from error
    openings = []
    for number, line in enumerate(lines, start=1):
        if text := line.partition("#")[0].strip():
            try:
                game = ShogiGame(text)
            except KeiseiError as error:
                raise KeiseiError(f"{path}, line {number}: {error}") from error
            if outcome := game.outcome(claim_declaration=True):
                ending = outcome.termination.words
                raise KeiseiError(f"{path}, line {number}: the game is over already: {ending}")
            openings.append(game.sfen())
    if not openings:
        raise KeiseiError(f"{path} holds no position")
    return tuple(openings)
