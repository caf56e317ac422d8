"""Every parser of a stranger's text takes a time proportional to its length."""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from keisei import config
from keisei.errors import KeiseiError
from keisei.play.session import GameSession
from keisei.play.transfer import MAX_GAME_BYTES, read_session, read_tree
from keisei.players.spec import make_player
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers, preamble, sfen
from keisei.shogi.notation.csa import read_csa
from keisei.shogi.notation.files import read_usi, recognized_suffix
from keisei.shogi.notation.japanese import parse_summary
from keisei.shogi.notation.ki2 import read_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.move_input import parse_move
from keisei.shogi.notation.reader import MAX_LINE_LENGTH, SourceLine, decode, half_width
from keisei.shogi.notation.record import Ending, GameRecord, Result, Variation
from keisei.shogi.notation.western import read_western
from keisei.shogi.types import Color, Move
from keisei.usi.client import EngineOption
from tests.cpu_time import allowed

MAX_SECONDS = 1.0
"""Of this thread's processor time: the machine may be busy with other things."""

LINES: dict[str, Callable[[str], object]] = {
    "row": lambda text: preamble.parse_row(SourceLine(1, text)),
    "hand": lambda text: preamble.parse_hand(SourceLine(1, text), 0),
    "header": lambda text: preamble.Preamble().read(SourceLine(1, text)),
    "duration": preamble.parse_duration,
    "moment": headers.parse_moment,
    "time limit": headers.TimeLimit.parse,
    "summary": lambda text: parse_summary(half_width(text), Color.BLACK),
    "sfen": sfen.parse_sfen,
    "position": sfen.parse_position,
    "session": GameSession,
    "typed move": lambda text: parse_move(ShogiGame(), text),
    "USI option": EngineOption.parse,
}
TEXTS: dict[str, Callable[[str], object]] = {
    "KIF": read_kif,
    "KI2": read_ki2,
    "CSA": read_csa,
    "USI": read_usi,
    "western": read_western,
    "recognition": recognized_suffix,
    "upload": lambda text: read_session(text.encode()[:MAX_GAME_BYTES]),
    "upload with variations": lambda text: read_tree(text.encode()[:MAX_GAME_BYTES]),
    "bytes": lambda text: decode(text.encode("cp932", "replace")),
}
MANY_GAMES = "PI\n+\n/\n"
"""Of a file with many games strangers have only the first read."""

REPEATED = (
    *(
        " ",
        "　",
        "\n",
        "1",
        "7六",
        "A",
        "歩",
        "。",
        ",",
        ".",
        ":",
        "/",
        "-",
        "+",
        "*",
        "(",
        "|",
        "▲",
    ),
    *("P+00FU", "変化：", "7g7f ", "|・", "T\n", "[{"),
    MANY_GAMES,
)
"""Characters of each class, and some words."""

FRAMES = (
    "{}",
    "{}x",
    "変化：1{}x",
    "まで{}x",
    "まで1手{}x",
    "まで1手で先手{}の勝ち",
    "|{}",
    "|・|{}xx",
    "| ・ ・ ・ ・ ・ ・ ・ ・ ・|一{}x",
    "先手の持駒：{}x",
    "手数＝1{}x",
    "持ち時間：各1時間{}x",
    "開始日時：2026/01/01{}x",
    "2026/01/01{}x",
    "各10分{}x",
    "先手：あかね\n   1 ７六歩(77)   ({}x",
    "先手：あかね\n   1 ７六歩(77)   ( 0:01{}x",
    "先手：あかね\n   1 ７六歩{}x",
    "先手：あかね\n   1{}x",
    "▲７六歩{}x",
    "PI\n+\n+7776FU{}x",
    "V2{}x",
    "1. P-7f {{{}",
    "1. P-7f {}x",
    '[Sente "{}',
    "position startpos moves {}x",
    "option name {} type",
)


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """Keep out of the measurements what other tests have left in memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def longest(seconds: dict[str, float]) -> str:
    """Describe the slowest input."""
    text, taken = max(seconds.items(), key=lambda item: item[1])
    return f"{taken:.1f} s for {text!r}"


@pytest.mark.parametrize("parser", [*LINES, *TEXTS])
def test_256_kb_of_each_character_are_parsed_within_a_second(parser: str) -> None:
    """Before, `_KIF_MOVES`, `_TIME`, `_BRANCH`, `_ROW` and `_SUMMARY` took minutes for some."""
    parse = (LINES | TEXTS)[parser]
    for frame in FRAMES:  # loads modules and kernels
        with contextlib.suppress(KeiseiError):
            parse(frame.format(""))
    # In all frames 16 kB are enough to find what is quadratic: it took half a second and more.
    for frames, size, limit in ((FRAMES, 1 << 14, 0.2), (FRAMES[:1], MAX_GAME_BYTES, MAX_SECONDS)):
        seconds = {}
        for frame, piece in product(frames, REPEATED[:18] if len(frames) > 1 else REPEATED):
            if (parser, piece) == ("CSA", MANY_GAMES):  # reads them all: 6,000 in a second
                continue
            text = frame.format(piece * (size // len(piece.encode())))
            start = time.thread_time()
            with contextlib.suppress(KeiseiError):
                parse(text)
            seconds[f"{frame} with {piece!r}"] = time.thread_time() - start
        assert max(seconds.values()) < allowed(limit), longest(seconds)


@pytest.mark.parametrize("parse", [read_kif, read_ki2, read_csa, read_usi, read_western])
def test_the_length_of_a_line_is_bounded(parse: Callable[[str], object]) -> None:
    with pytest.raises(KeiseiError, match=r"line 2, column 65537: this line has 65,537 characters"):
        parse("\n" + "x" * (MAX_LINE_LENGTH + 1))


def test_many_variations_are_read_in_linear_time() -> None:
    """Before, the whole line was played again for each of them."""
    moves = ["２八飛(38)", "８二飛(72)", "３八飛(28)", "７二飛(82)"]
    lines = ["1 ３八飛(28)", "2 ７二飛(82)"]
    lines += [f"{ply} {moves[(ply - 3) % 4]}" for ply in range(3, 2001)]
    lines += [f"変化：{2001}手"] * 1000
    start = time.thread_time()
    assert len(read_kif("\n".join(lines)).moves) == 2000
    assert time.thread_time() - start < allowed(2.0)


@pytest.mark.parametrize("piece", REPEATED)
def test_settings_and_player_specs(piece: str) -> None:
    text = piece * ((1 << 14) // len(piece))
    start = time.thread_time()
    with contextlib.suppress(KeiseiError):
        config.parse(text, "file")
    for spec in (text, text[:1000], f"usi:{text}"):
        with contextlib.suppress(KeiseiError):
            make_player(spec).close()
    assert time.thread_time() - start < allowed(MAX_SECONDS)


def test_many_variations_are_written_in_linear_time() -> None:
    """Before, the clock and the later variations of each line were looked through again."""
    line = ["2h3h", "8b7b", "3h2h", "7b8b"]
    record = GameRecord.from_moves([line[ply % 4] for ply in range(2000)])
    end = Result(Ending.MATE, 1.0)
    record.variations = [Variation(2001, [], end) for _ in range(6000)]
    start = time.thread_time()
    text = write_kif(record)
    assert time.thread_time() - start < allowed(1.0)
    assert text.count("変化：") == 6000


BAD: dict[str, Callable[[str], object]] = {
    "手番": lambda text: read_kif(f"手番：{text}"),
    "version": lambda text: read_csa(f"V{text}"),
    "startpos": lambda text: sfen.parse_position(f"startpos {text}"),
    "rank": lambda text: sfen.parse_sfen("/".join(["1" * 50_000] * 9) + " b - 1"),
    "turn": lambda text: sfen.parse_sfen(f"{'/'.join(['9'] * 9)} {text} - 1"),
    "number": lambda text: sfen.parse_sfen(f"{sfen.STARTPOS_SFEN.rpartition(' ')[0]} {text}"),
    "move": Move.from_usi,
    "typed move": lambda text: parse_move(ShogiGame(), text),
    **{name: parse for name, parse in TEXTS.items() if name not in ("recognition", "bytes")},
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_message_quotes_only_the_first_characters(name: str) -> None:
    with pytest.raises(KeiseiError) as caught:
        BAD[name]("x" * 50_000)
    assert len(str(caught.value)) < 300
