"""Game files on disk: the suffix selects the format, the bytes decide the encoding."""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from keisei.errors import IllegalMoveError, IllegalPositionError, NotationError
from keisei.shogi.notation.csa import CsaVersion, iter_csa, write_csa
from keisei.shogi.notation.japanese import MARKS
from keisei.shogi.notation.ki2 import read_ki2, write_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.last_words import begins_as_move
from keisei.shogi.notation.reader import (
    SHIFT_JIS,
    UTF8,
    Scanner,
    SourceLine,
    decode,
    encode,
    known_encoding,
    split_lines,
)
from keisei.shogi.notation.record import (
    Ending,
    GameRecord,
    RecordedMove,
    Result,
)
from keisei.shogi.notation.sfen import parse_position
from keisei.shogi.notation.western import MOVE_PATTERN, read_western
from keisei.system import read_bytes, write_atomically


def read_usi(text: str) -> list[GameRecord]:
    """Read a game from each line: a USI ``position`` command or an SFEN; ``#`` starts a comment.

    Words behind the last move end the game: ``resign``, ``win``, and others as a comment.

    >>> [game] = read_usi("startpos moves 7g7f 3c3d  # a quiet beginning")
    >>> len(game.moves)
    2

    Raises:
        NotationError: A line is invalid or has an illegal move, or there is no game.
    """
    return list(iter_usi(text))


def iter_usi(text: str) -> Iterator[GameRecord]:
    """Yield the games of USI lines one by one; the text after the last one taken is not read."""
    is_empty = True
    for line in split_lines(text):
        command = line.text.partition("#")[0]
        if not command.strip():
            continue
        command, result = _split_last_words(command)
        try:
            start, moves = parse_position(command)
            record = GameRecord.from_moves(moves, start=start, result=result)
        except NotationError as error:
            raise NotationError(error.reason, line=line.number, column=error.column) from error
        except (IllegalMoveError, IllegalPositionError) as error:
            raise line.error(str(error)) from error
        yield record
        is_empty = False
    if is_empty:
        raise NotationError(
            "there is no game; expected lines such as: startpos moves 7g7f 3c3d", line=1
        )


_USI_ENDINGS: Final = {"resign": Ending.RESIGNATION, "win": Ending.DECLARATION}
_LETTER: Final = re.compile(r"[^\W\d]")
_DIGIT: Final = re.compile(r"\d")


def _split_last_words(command: str) -> tuple[str, Result | None]:
    """Split words that end the game from a USI command, and return what they mean."""
    words = list(re.finditer(r"\S+", command))
    moves = next((at for at, word in enumerate(words) if word[0] == "moves"), len(words))
    first = len(words)
    while first > moves + 1 and _ends_game(words[first - 1][0]):
        first -= 1
    if first == len(words):
        return command, None
    begin = words[first].start()
    text = command[begin:].strip()
    ending = _USI_ENDINGS.get(text.lower())
    if ending is not None:
        return command[:begin], Result(ending)
    if first == moves + 1:
        return command, None  # without a move before it this is no game
    return command[:begin], Result(Ending.INTERRUPTED, comment=text)


def _ends_game(word: str) -> bool:
    """Return whether a word of a USI command is no move, not even a misspelt one."""
    if _DIGIT.search(word) or _LETTER.search(word) is None:
        return False
    return not begins_as_move(Scanner(SourceLine(1, word)))


class Detail(Enum):
    """Details of a record that some formats cannot store; singular and plural."""

    VARIATION = ("variation", "variations")
    BOOKMARK = ("bookmark", "bookmarks")
    TIME = ("time", "times")
    FRACTION = ("fraction of a second", "fractions of a second")
    MOVE_NUMBER = ("move number of the start", "move numbers of the start")
    DEFAULT = ("result by default", "results by default")


class Loss(NamedTuple):
    """A detail that is left out, and the number of times.

    >>> str(Loss(Detail.VARIATION, 2))
    '2 variations'
    """

    detail: Detail
    number: int

    def __str__(self) -> str:
        singular, plural = self.detail.value
        return f"{self.number} {singular if self.number == 1 else plural}"


def losses(records: Iterable[GameRecord], lacking: Collection[Detail]) -> list[Loss]:
    """Count the details that these games lose in a format that is lacking some."""
    totals: Counter[Detail] = Counter()
    for record in records:
        totals += _details(record, with_variations=Detail.VARIATION not in lacking)
    return [
        Loss(detail, totals[detail]) for detail in Detail if detail in lacking and totals[detail]
    ]


def _details(record: GameRecord, *, with_variations: bool) -> Counter[Detail]:
    """Count the details of a record; those within a variation only `with_variations`."""
    moves, results = list(record.moves), [record.result]
    for variation in record.variations if with_variations else ():
        moves += variation.moves
        results.append(variation.result)
    ends = [result for result in results if result is not None]
    timed: list[RecordedMove | Result] = [*moves, *ends]
    times = [one.seconds for one in timed if one.seconds is not None]
    return Counter(
        {
            Detail.VARIATION: len(record.variations),
            Detail.BOOKMARK: sum(bool(recorded.bookmark) for recorded in moves),
            Detail.TIME: len(times),
            Detail.FRACTION: sum(seconds != int(seconds) for seconds in times),
            Detail.MOVE_NUMBER: int(record.start.move_number > 1),
            Detail.DEFAULT: sum(
                result.ending in (Ending.DEFAULT_WIN, Ending.DEFAULT_LOSS) for result in ends
            ),
        }
    )


class _Format(NamedTuple):
    """Reader, writer and encoding of the files with a suffix."""

    name: str
    games: Callable[[str], Iterator[GameRecord]]
    """Yields all games; the text after the last one taken is not read."""

    main_line: Callable[[str], GameRecord]
    """The first game alone, without variations."""

    write: Callable[[GameRecord], str] | None
    """None for CSA, which can hold several games and takes options, and for what is only read."""

    encoding: str
    """Encoding of the files that are written; those that are read can have any."""

    lacking: frozenset[Detail]
    """Details that the format cannot store."""


_CSA: Final = _Format(
    "CSA",
    iter_csa,
    lambda text: next(iter_csa(text)),
    None,
    UTF8,
    frozenset({Detail.VARIATION, Detail.BOOKMARK, Detail.MOVE_NUMBER, Detail.DEFAULT}),
)
_KIF: Final = _Format(
    "KIF",
    lambda text: iter([read_kif(text)]),
    partial(read_kif, variations=False),
    write_kif,
    SHIFT_JIS,
    frozenset({Detail.FRACTION}),
)
_KI2: Final = _Format(
    "KI2",
    lambda text: iter([read_ki2(text)]),
    partial(read_ki2, variations=False),
    write_ki2,
    SHIFT_JIS,
    frozenset({Detail.TIME}),
)

_USI: Final = _Format("USI", iter_usi, lambda text: next(iter_usi(text)), None, UTF8, frozenset())
_WESTERN: Final = _Format(
    "western", lambda text: iter([read_western(text)]), read_western, None, UTF8, frozenset()
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
"""The suffixes of files with a USI ``position`` command per line, which can only be read."""

_READ_ONLY: Final = {**dict.fromkeys(USI_SUFFIXES, _USI), ".psn": _WESTERN}

TEXT_SUFFIX: Final = ".txt"
"""The suffix of text in any of the formats, which is recognised by its content."""

_SFEN_START: Final = re.compile(
    r"\s*+(position\b|startpos\b|sfen\b|[\w+]++(/[\w+]++){8}\s)", re.ASCII
)
_CSA_LINE: Final = re.compile(
    r"^(V\d|PI\b|P[1-9][ +-]|P[+-](\d\d[A-Z]|$)|N[+-]|\$[A-Z_]++:|[+-]$|[+-]\d{4}[A-Z]{2})",
    re.MULTILINE,
)
_KIF_MOVE: Final = re.compile(r"^[ \t　]*+[1１][ \t　]++(?![A-Z+])\S", re.MULTILINE)
_WESTERN_MOVE: Final = re.compile(rf"(?:^|[\s.]){MOVE_PATTERN.pattern}", re.MULTILINE)


def recognized_suffix(text: str) -> str:
    """Return the suffix of the format that a text is written in; KI2 if it looks like none.

    >>> recognized_suffix("1. P-7f P-3d")
    '.psn'
    """
    if _SFEN_START.match(text):
        return ".sfen"
    if _CSA_LINE.search(text):
        return ".csa"
    if _KIF_MOVE.search(text):
        return ".kif"
    is_western = not any(mark in text for mark in MARKS) and _WESTERN_MOVE.search(text)
    return ".psn" if is_western else ".ki2"


def load_games(path: str | os.PathLike[str]) -> list[GameRecord]:
    """Load all games of a file; `NotationError` names line, column and file of a fault."""
    path = Path(path)
    _readable(path)  # fail before reading a file with another suffix
    return read_games(read_bytes(path), path)


def read_games(data: bytes, name: str | os.PathLike[str]) -> list[GameRecord]:
    """Read all games of a file's content; the suffix of its `name` selects the format."""
    path = Path(name)
    try:
        text = decode(data)
        return list(_readable(path, text).games(text))
    except NotationError as error:
        raise _in_file(error, path) from error


def read_first_game(
    data: bytes, name: str | os.PathLike[str], *, variations: bool = False
) -> GameRecord:
    """Read the first game of a file's content; the following ones are not read."""
    path = Path(name)
    try:
        text = decode(data)
        chosen = _readable(path, text)
        return next(chosen.games(text)) if variations else chosen.main_line(text)
    except NotationError as error:
        raise _in_file(error, path) from error


def load_game(path: str | os.PathLike[str]) -> GameRecord:
    """Load the game of a file; `NotationError` if the file holds several."""
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

    By convention .kif and .ki2 are Shift-JIS and the others UTF-8; `encoding` overrides that. The
    file is written atomically. Details that the format cannot store are dropped: `left_out`
    returns them.
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
    """Return the content of the file that `save_games` would write."""
    path = Path(name)
    chosen = _format_of(path)
    encoding = chosen.encoding if encoding is None else known_encoding(encoding)
    if not records:
        raise NotationError(f"there is no game to write to {path}")
    if chosen.write is None:
        declared = "SHIFT_JIS" if encoding == SHIFT_JIS else "UTF-8"
        text = write_csa(records, csa_version, encoding=declared)
    elif len(records) == 1:
        text = chosen.write(records[0])
    else:
        raise NotationError(f"a {path.suffix} file holds one game, not {len(records)}; use .csa")
    if encoding == SHIFT_JIS:
        text = text.replace("\n", "\r\n")  # as on Windows, where most Shift-JIS files come from
    try:
        return encode(text, encoding)
    except NotationError as error:
        raise _in_file(error, path) from error


def left_out(records: Sequence[GameRecord], path: str | os.PathLike[str]) -> list[Loss]:
    """Count the details that are lost by saving games in the format of a suffix (CSA 3.0)."""
    return losses(records, _format_of(Path(path)).lacking)


def format_name(path: str | os.PathLike[str]) -> str:
    """Return the format of a file by its suffix: ``CSA``, ``KIF`` or ``KI2``."""
    return _format_of(Path(path)).name


def _readable(path: Path, text: str = "") -> _Format:
    """Return the format of a file to read; `text` is the content of one that is recognised."""
    if path.suffix.lower() == TEXT_SUFFIX:
        path = path.with_suffix(recognized_suffix(text))
    return _READ_ONLY.get(path.suffix.lower()) or _format_of(path)


def _format_of(path: Path) -> _Format:
    try:
        return _FORMATS[path.suffix.lower()]
    except KeyError:
        *others, last = (*_READ_ONLY, TEXT_SUFFIX)
        raise NotationError(
            f"{path}: a game file ends in one of {' '.join(SUFFIXES)}, not in {path.suffix!r}; "
            f"{', '.join(others)} and {last} can be read, not written"
        ) from None


def _in_file(error: NotationError, path: Path) -> NotationError:
    return NotationError(f"{error.reason} (in {path})", line=error.line, column=error.column)
