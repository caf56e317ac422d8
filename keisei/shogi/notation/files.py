"""Game files on disk: the suffix says which format, a look at the bytes says which encoding."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from keisei.errors import NotationError
from keisei.files import read_bytes, write_atomically
from keisei.shogi.notation.csa import iter_csa, read_csa, write_csa
from keisei.shogi.notation.csa_headers import CsaVersion
from keisei.shogi.notation.ki2 import read_ki2, write_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.losses import Detail, Loss, losses
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.text import SHIFT_JIS, UTF8, decode, encode, known_encoding
from keisei.shogi.notation.usi import iter_usi, read_usi


class _Format(NamedTuple):
    """How the files of a suffix are read and written."""

    name: str
    read: Callable[[str], list[GameRecord]]
    read_first: Callable[[str], GameRecord]
    """The first game alone, without variations."""

    write: Callable[[GameRecord], str] | None
    """None for CSA, which can hold several games and takes options."""

    encoding: str
    """Of the files that are written; those that are read may have any."""

    lacking: frozenset[Detail]
    """What is left out of the files that are written, for want of a place."""


_CSA: Final = _Format(
    "CSA",
    read_csa,
    lambda text: next(iter_csa(text)),
    None,
    UTF8,
    frozenset({Detail.VARIATION, Detail.BOOKMARK, Detail.MOVE_NUMBER, Detail.DEFAULT}),
)
_KIF: Final = _Format(
    "KIF",
    lambda text: [read_kif(text)],
    partial(read_kif, variations=False),
    write_kif,
    SHIFT_JIS,
    frozenset({Detail.FRACTION}),
)
_KI2: Final = _Format(
    "KI2",
    lambda text: [read_ki2(text)],
    partial(read_ki2, variations=False),
    write_ki2,
    SHIFT_JIS,
    frozenset({Detail.TIME}),
)

_FORMATS: Final = {
    ".csa": _CSA,
    ".kif": _KIF,
    ".kifu": _KIF._replace(encoding=UTF8),
    ".ki2": _KI2,
    ".ki2u": _KI2._replace(encoding=UTF8),
}

SUFFIXES: Final = tuple(_FORMATS)
"""The suffixes of game files."""

USI_SUFFIXES: Final = (".sfen", ".usi")
"""The suffixes of files with a USI ``position`` command per line, which are only read."""


def load_games(path: str | os.PathLike[str]) -> list[GameRecord]:
    """All the games of a file. `NotationError` tells line, column and file of a fault."""
    path = Path(path)
    _reader_of(path)  # what is no game file is not read
    return read_games(read_bytes(path), path)


def read_games(data: bytes, name: str | os.PathLike[str]) -> list[GameRecord]:
    """All the games of a file's content; the suffix of its `name` says which format it is."""
    path = Path(name)
    reader = _reader_of(path)
    try:
        return reader(decode(data))
    except NotationError as error:
        raise _in_file(error, path) from error


def read_first_game(data: bytes, name: str | os.PathLike[str]) -> GameRecord:
    """The first game of a file's content, without variations; nothing after it is read."""
    path = Path(name)
    is_usi = path.suffix.lower() in USI_SUFFIXES
    reader = _first_of_usi if is_usi else _format_of(path).read_first
    try:
        return reader(decode(data))
    except NotationError as error:
        raise _in_file(error, path) from error


def load_game(path: str | os.PathLike[str]) -> GameRecord:
    """The game of a file that holds one; `NotationError` if it holds several."""
    games = load_games(path)
    if len(games) > 1:
        raise NotationError(f"{path} holds {len(games)} games; load_games reads them all")
    return games[0]


def save_game(
    record: GameRecord,
    path: str | os.PathLike[str],
    encoding: str | None = None,
    *,
    csa_version: CsaVersion = "3.0",
) -> None:
    """Write a game in the format of the suffix: .csa .kif .kifu .ki2 .ki2u.

    By custom .kif and .ki2 are Shift-JIS and the others UTF-8; `encoding` overrides that. A
    reader of the file never sees half of it: it is written aside and moved into place. What the
    format has no place for is dropped: `left_out` tells it.
    """
    save_games([record], path, encoding, csa_version=csa_version)


def save_games(
    records: Sequence[GameRecord],
    path: str | os.PathLike[str],
    encoding: str | None = None,
    *,
    csa_version: CsaVersion = "3.0",
) -> None:
    """Write several games into one CSA file, or a single one as `save_game` does."""
    write_atomically(Path(path), games_as_bytes(records, path, encoding, csa_version=csa_version))


def games_as_bytes(
    records: Sequence[GameRecord],
    name: str | os.PathLike[str],
    encoding: str | None = None,
    *,
    csa_version: CsaVersion = "3.0",
) -> bytes:
    """The content of the file that `save_games` would write."""
    path = Path(name)
    chosen = _format_of(path)
    encoding = chosen.encoding if encoding is None else known_encoding(encoding)
    if not records:
        raise NotationError(f"no game to write to {path}")
    if chosen.write is None:
        declared = "SHIFT_JIS" if encoding == SHIFT_JIS else "UTF-8"
        text = write_csa(records, csa_version, encoding=declared)
    elif len(records) == 1:
        text = chosen.write(records[0])
    else:
        raise NotationError(f"a {path.suffix} file holds one game, not {len(records)}; use .csa")
    if encoding == SHIFT_JIS:
        text = text.replace("\n", "\r\n")  # such files are at home on Windows
    try:
        return encode(text, encoding)
    except NotationError as error:
        raise _in_file(error, path) from error


def left_out(records: Sequence[GameRecord], path: str | os.PathLike[str]) -> list[Loss]:
    """What these games lose when they are saved in the format of this suffix (CSA being 3.0)."""
    return losses(records, _format_of(Path(path)).lacking)


def format_name(path: str | os.PathLike[str]) -> str:
    """The format of a file by its suffix: ``CSA``, ``KIF`` or ``KI2``."""
    return _format_of(Path(path)).name


def _reader_of(path: Path) -> Callable[[str], list[GameRecord]]:
    return read_usi if path.suffix.lower() in USI_SUFFIXES else _format_of(path).read


def _first_of_usi(text: str) -> GameRecord:
    return next(iter_usi(text))


def _format_of(path: Path) -> _Format:
    try:
        return _FORMATS[path.suffix.lower()]
    except KeyError:
        raise NotationError(
            f"{path}: a game file ends in one of {' '.join(SUFFIXES)}, not in {path.suffix!r}; "
            f"{' and '.join(USI_SUFFIXES)} can be read"
        ) from None


def _in_file(error: NotationError, path: Path) -> NotationError:
    return NotationError(f"{error.reason} (in {path})", line=error.line, column=error.column)
