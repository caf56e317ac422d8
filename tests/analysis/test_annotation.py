"""Comments: what they say, that those of people stay, and that other programs read them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from keisei.analysis import GameAnalysis, analyze_game, annotated
from keisei.shogi.notation.csa import read_csa, write_csa
from keisei.shogi.notation.ki2 import read_ki2, write_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.record import Ending, GameRecord, Result
from keisei.shogi.types import Color
from tests.analysis.games import short_game
from tests.predictors import KnownPredictor, by_place


@pytest.fixture(scope="module")
def game() -> GameAnalysis:
    return analyze_game(short_game(), KnownPredictor(by_place), name="material", simulations=64)


def test_what_is_written(game: GameAnalysis) -> None:
    record = annotated(game, blunder=0.2)
    assert record.comment.splitlines() == [
        "keisei: analysed by material, 64 simulations a position; a blunder costs 20 % or more",
        f"keisei: at the start: Black {_black(game, 0)} %, White {100 - _black(game, 0)} %",
    ]
    chances, best, blunder = record.moves[2].comment.splitlines()
    black = _black(game, 3)
    assert chances == f"keisei: after 8h3c+: Black {black} %, White {100 - black} %"
    first = game.moves[2].best
    assert first.visits > 0
    assert best.startswith(
        f"keisei: best moves were: {first.move.usi} {round(100 * first.probability)} % "
        f"({first.visits} of 64), "
    )
    assert best.count(" of 64)") == 3
    assert blunder == (
        f"keisei: blunder: Black falls from {_black(game, 2)} % to {black} %; "
        f"better was {first.move.usi}"
    )
    assert [len(move.comment.splitlines()) for move in record.moves] == [2, 2, 3, 2, 2, 2]


def _black(game: GameAnalysis, index: int) -> int:
    return round(100 * game.positions[index].chances(Color.BLACK))


def test_what_people_wrote_stays(game: GameAnalysis) -> None:
    record = short_game()
    record.moves[1] = replace(record.moves[1], comment="keisei is a program\nhm", seconds=3.0)
    record.comment = "A sunny day."
    record.result = Result(Ending.RESIGNATION, comment="Well played.")
    first = annotated(replace(game, record=record), blunder=0.5)
    assert first.comment.startswith("A sunny day.\nkeisei: analysed by material")
    assert first.moves[1].comment.startswith("keisei is a program\nhm\nkeisei: after 3c3d")
    assert first.moves[1].seconds == 3.0
    assert (first.result, first.headers) == (record.result, record.headers)
    # And what was written here before is replaced.
    again = annotated(replace(game, record=first), blunder=0.2)
    assert again == annotated(replace(game, record=record), blunder=0.2)
    assert "blunder: " not in "".join(move.comment for move in first.moves)


FORMATS: list[tuple[Callable[[GameRecord], str], Callable[[str], GameRecord]]] = [
    (write_kif, read_kif),
    (write_ki2, read_ki2),
    (write_csa, lambda text: read_csa(text)[0]),
]


@pytest.mark.parametrize(("write", "read"), FORMATS, ids=["KIF", "KI2", "CSA"])
def test_our_reader_reads_it(
    game: GameAnalysis, write: Callable[[GameRecord], str], read: Callable[[str], GameRecord]
) -> None:
    record = annotated(game, blunder=0.2)
    assert read(write(record)) == record
    assert write(record).encode("cp932")


def test_cshogi_reads_it(game: GameAnalysis) -> None:
    cshogi = pytest.importorskip("cshogi")
    kif, csa = pytest.importorskip("cshogi.KIF"), pytest.importorskip("cshogi.CSA")
    record = annotated(game, blunder=0.2)
    usi = [move.usi for move in record.main_line]
    theirs = kif.Parser.parse_str(write_kif(record))
    assert [cshogi.move_to_usi(move) for move in theirs.moves] == usi
    assert theirs.comment == record.comment
    assert theirs.comments == [move.comment for move in record.moves]
    [theirs] = csa.Parser.parse_str(write_csa(record, "2.2"))
    assert [cshogi.move_to_usi(move) for move in theirs.moves] == usi
    # It keeps the comments of CSA files in one text, with the marks in front of the lines.
    lines = [record.comment, *(move.comment for move in record.moves)]
    assert theirs.comment.splitlines() == [
        f"'*{line}" for comment in lines for line in comment.splitlines()
    ]
