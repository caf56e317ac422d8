"""Whatever the text, readers return games or raise a `KeiseiError` with a place; nothing else."""

import contextlib
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keisei.errors import NotationError
from keisei.shogi.notation.csa import read_csa, write_csa
from keisei.shogi.notation.ki2 import read_ki2, write_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.reader import decode
from keisei.shogi.notation.record import GameRecord, RecordedMove, Variation
from tests.shogi.notation.random_records import crowded_start, random_moves, random_record

Reader = Callable[[str], Any]
Writer = Callable[[Any], str]

FORMATS: list[tuple[Reader, Writer]] = [
    (read_csa, write_csa),
    (read_kif, write_kif),
    (read_ki2, write_ki2),
]
SIGNS = (
    "0123456789０１７９abcPNVT+-%$'*&#/,:：|　 \n\r\t()（）.一二七九十同成不打左右直上寄引行"
    "歩香桂銀金角飛玉王と馬龍全"
    "▲△☗☖先手後手番合割数変化まで勝ち負投了中断千日反則FUKYTORYOAL²٣🦆\u2028\x00"
)

moderate = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _seeds() -> list[GameRecord]:
    rng = random.Random(11)
    usual = random_record(rng, plies=12)
    crowded = random_record(rng, crowded_start(rng), plies=8)
    main = random_moves(rng, plies=6)
    branch = Variation(2, [RecordedMove(move) for move in main[1:3]])
    forked = GameRecord(moves=[RecordedMove(move) for move in main], variations=[branch])
    return [usual, crowded, forked]


SEEDS = _seeds()


def survives(read: Reader, write: Writer, text: str) -> None:
    """The property itself: a record that can be written again, or a fault that has a place."""
    try:
        record = read(text)
    except NotationError as error:
        fault = error
    else:
        with contextlib.suppress(NotationError):  # a header that the format cannot hold
            assert read(write(record)) == record
        return
    if fault.line is None or fault.column is None:
        assert "no game in this text" in fault.reason
        return
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert 1 <= fault.line <= len(lines)
    assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1


@pytest.mark.parametrize(("read", "write"), FORMATS)
@given(text=st.text() | st.text(alphabet=SIGNS))
@moderate
def test_any_text(read: Reader, write: Writer, text: str) -> None:
    survives(read, write, text)


@pytest.mark.parametrize(("read", "write"), FORMATS)
@given(data=st.data())
@moderate
def test_damaged_files(read: Reader, write: Writer, data: st.DataObject) -> None:
    text = write(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 4)))
        text = text[:start] + data.draw(st.text(alphabet=SIGNS, max_size=4)) + text[end:]
    survives(read, write, text)


@pytest.mark.parametrize(("read", "write"), FORMATS)
@given(data=st.data())
@moderate
def test_shuffled_and_doubled_lines(read: Reader, write: Writer, data: st.DataObject) -> None:
    lines = write(data.draw(st.sampled_from(SEEDS))).splitlines(keepends=True)
    first, second = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    kind = data.draw(st.sampled_from(["swap", "double", "drop"]))
    if kind == "swap":
        lines[first], lines[second] = lines[second], lines[first]
    elif kind == "double":
        lines.insert(second, lines[first])
    else:
        del lines[min(first, second) : max(first, second)]
    survives(read, write, "".join(lines))


@given(st.binary() | st.text(alphabet=SIGNS).map(lambda text: text.encode("cp932", "replace")))
@moderate
def test_any_bytes(data: bytes) -> None:
    with contextlib.suppress(NotationError):
        assert isinstance(decode(data), str)


@pytest.mark.parametrize(("read", "write"), FORMATS)
def test_very_long_lines_take_no_time(read: Reader, write: Writer) -> None:
    for piece in (" ", "　", "1", "先手", "*", "(", "P+", "同", "変化：", "まで", "T", "+", "|v"):
        survives(read, write, piece * 20_000)
        survives(read, write, f"1 ７六歩(77){piece * 20_000}x")
        survives(read, write, f"PI\n+\n+7776FU\n{piece * 20_000}x")
