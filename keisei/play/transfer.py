r"""Reading and writing sessions as files or pasted text: KIF, KI2, CSA, SFEN, western.

>>> session = read_session("position startpos moves 7g7f 3c3d".encode())
>>> session.length, write_session(session, "sfen")
(2, b'position startpos moves 7g7f 3c3d\n')
"""

from pathlib import PurePath
from typing import Final

from keisei.errors import NotationError
from keisei.play.session import GameSession
from keisei.shogi.notation.files import (
    TEXT_SUFFIX,
    games_as_bytes,
    read_first_game,
)
from keisei.shogi.notation.game_tree import GameTree
from keisei.shogi.notation.reader import UTF8
from keisei.shogi.notation.record import GameRecord

FORMATS: Final = ("kif", "csa", "sfen")
"""Formats that a session can be written in."""

MAX_GAME_BYTES: Final = 256 << 10
"""Largest file that is read; professional games with comments have at most a tenth of it."""

TOO_LARGE: Final = f"a game has at most {MAX_GAME_BYTES >> 10} kB"


def write_session(session: GameSession, kind: str) -> bytes:
    """Return the content of a file with the game; `kind` is one of `FORMATS`."""
    if kind == "sfen":
        return f"{session.game.usi_position()}\n".encode()
    if kind not in FORMATS:
        raise NotationError(f"a game is written as {', '.join(FORMATS)}, not as {kind}")
    return write_record(session.record(), kind)


def write_record(record: GameRecord, kind: str) -> bytes:
    """Return the content of a file with a game; `kind` is the suffix of a game file: ``kif``."""
    try:
        return games_as_bytes([record], f"game.{kind}")
    except NotationError:  # a name with characters that Shift-JIS lacks
        return games_as_bytes([record], f"game.{kind}", UTF8)


def read_session(data: bytes, name: str = "") -> GameSession:
    """Read a game, the first of several; the format is recognised if `name` does not say it.

    Raises:
        KeiseiError: The file is invalid or too large; the message says why, and in which line.
    """
    return GameSession.from_record(read_record(data, name))


def read_tree(data: bytes, name: str = "") -> GameTree:
    """Read a game as `read_session` does, with its variations.

    Raises:
        KeiseiError: The file is invalid or too large; the message says why, and in which line.
    """
    return GameTree.from_record(read_record(data, name, variations=True))


def read_record(data: bytes, name: str = "", *, variations: bool = False) -> GameRecord:
    """Read a game as `read_session` does, with or without its variations."""
    return read_first_game(data, _file_name(data, name), variations=variations)


def _file_name(data: bytes, name: str) -> str:
    """Return the name of a file of acceptable size, with a suffix if it has none."""
    if len(data) > MAX_GAME_BYTES:
        raise NotationError(TOO_LARGE)
    file = PurePath(name or "text")
    return (file if file.suffix else file.with_suffix(TEXT_SUFFIX)).name
