"""Western records and moves as people type them."""

import random
from pathlib import Path

import pytest

from keisei.errors import IllegalMoveError, KeiseiError, NotationError
from keisei.play.transfer import read_session
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.files import load_game, recognized_suffix
from keisei.shogi.notation.japanese import HANDICAPS
from keisei.shogi.notation.ki2 import format_move
from keisei.shogi.notation.move_input import parse_move
from keisei.shogi.notation.record import Ending, GameRecord, Replay, Result
from keisei.shogi.notation.sfen import STARTPOS_SFEN, parse_sfen
from keisei.shogi.notation.western import format_western, read_western
from tests.shogi.notation.random_records import random_moves

SAMPLE = """\
Sente: Akane
Gote: Botan
[Event "Spring: first game"]
[Date "2026/04/05"]
{An exchange of bishops,
as often.}
1. P-7f P-3d 2. Bx2b+ Sx2b {forced}
3. B*5e! ; aims at two
   P-8d 4. Bx2b+ G4a-3b
5. Sente resigns
"""


def usi(record: GameRecord) -> list[str]:
    return [move.usi for move in record.main_line]


def test_a_whole_record() -> None:
    record = read_western(SAMPLE)
    assert usi(record) == ["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e", "8c8d", "5e2b+", "4a3b"]
    assert (record.black, record.white, record.event) == ("Akane", "Botan", "Spring: first game")
    assert record.headers["start_time"] == "2026/04/05"
    assert record.comment == "An exchange of bishops,\nas often."
    assert [move.comment for move in record.moves][3:5] == ["forced", "!\naims at two"]
    assert record.result == Result(Ending.RESIGNATION)


@pytest.mark.parametrize(
    "text",
    [
        "1. P-7f P-3d 2. P-2f",
        "1. P-7f 2. P-3d 3. P-2f",
        "1.P-7f P-3d 2.P-2f",
        "1 P-7f P-3d\n2 P-2f",
        "1. P-76 P-34 2. P-26",
        "1. P7g-7f, P3c-3d, 2. P2g-2f",
        "1. P–7f P—3d 2. P−2f",
        "1. P-7f\n1... P-3d\n2. P-2f *",
        "P-7f P-3d P-2f",
    ],
)
def test_ways_of_numbering_and_writing(text: str) -> None:
    text = text.removesuffix(" *")
    assert usi(read_western(text)) == ["7g7f", "3c3d", "2g2f"]
    assert recognized_suffix(text) == ".psn"
    assert read_session(text.encode()).length == 3


@pytest.mark.parametrize("suffix", [".psn", ".txt", ".PSN"])
def test_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"game{suffix}"
    path.write_text(SAMPLE, encoding="utf-8")
    assert load_game(path) == read_western(SAMPLE)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_formatted_is_read_again(seed: int) -> None:
    """Random games have drops, promotions, and moves that need their origin."""
    moves = random_moves(random.Random(seed), plies=200)
    replay = Replay(parse_sfen(STARTPOS_SFEN))
    words = []
    for number, move in enumerate(moves):
        if number % 2 == 0:
            words.append(f"{number // 2 + 1}.")
        words.append(format_western(replay, move))
        replay.play(move)
    assert read_western(" ".join(words)).main_line == moves
    assert any("*" in word for word in words)
    assert any(word.endswith("=") for word in words)


@pytest.mark.parametrize(
    ("end", "ending"),
    [
        ("resigns", Ending.RESIGNATION),
        ("White resigns.", Ending.RESIGNATION),
        ("1-0", Ending.RESIGNATION),
        ("Checkmate", Ending.MATE),
        ("sennichite", Ending.REPETITION),
        ("jishogi", Ending.IMPASSE),
        ("1/2-1/2", Ending.DECLARED_DRAW),
        ("time up", Ending.TIME_UP),
    ],
)
def test_endings(end: str, ending: Ending) -> None:
    assert read_western(f"1. P-7f {end}").result == Result(ending)


def test_an_ending_of_the_wrong_side_is_kept_as_text() -> None:
    for end in ("0-1", "Black resigns"):
        result = Result(Ending.INTERRUPTED, comment=end)
        assert read_western(f"1. P-7f {end}").result == result


def test_starts() -> None:
    record = read_western("Handicap: 2 pieces\n1. S-6b P-7f")
    assert (record.start, usi(record)) == (HANDICAPS["二枚落ち"], ["7a6b", "7g7f"])
    sfen = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    assert read_western(f'[SFEN "{sfen}"]\nG*5b mate').start == parse_sfen(sfen)


@pytest.mark.parametrize(
    ("line", "column", "message", "text"),
    [
        (1, 4, "a move such as P-7f, Bx2b[+] or P[*]5e expected, not 'Q-7f'", "1. Q-7f"),
        (1, 9, "a move such as .* expected, not 'P-3'", "1. P-7f P-3"),
        (1, 4, "P-7e: no P of Black can legally go there", "1. P-7e"),
        (1, 4, "G-5h could be 4i5h or 6i5h; name the origin", "1. G-5h"),
        (1, 4, "Px7f: there is nothing to capture on 7f", "1. Px7f"),
        (1, 4, "[+]P[*]5e: a piece is dropped unpromoted", "1. +P*5e"),
        (1, 4, "P[*]5e is illegal: .* has no pawn in hand", "1. P*5e"),
        (2, 1, "Bx3c may promote or not: [+] or = is needed", "1. P-7f P-1d\nBx3c"),
        (1, 14, "the game ended before this", "P-7f resigns P-3d"),
        (1, 1, "'half' is not a handicap", "Handicap: half"),
        (1, 1, "SFEN: .*an SFEN has a board", '[SFEN "x"]'),
    ],
)
def test_faults(line: int, column: int, message: str, text: str) -> None:
    with pytest.raises(NotationError, match=message) as caught:
        read_western(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_foul_can_end_a_game() -> None:
    record = read_western("1. P-7f P-3d 2. P*5e illegal move")
    assert record.result is not None
    assert record.result.ending is Ending.ILLEGAL_MOVE
    assert usi(record) == ["7g7f", "3c3d"]


class TestTypedMoves:
    @pytest.mark.parametrize(
        "text",
        ["7g7f", " 7g7f ", "７g７f", "P-7f", "P-76", "P7g-7f", "７六歩", "76歩", "☗７六歩",
         "76歩(77)", "７六歩(77)"],
    )  # fmt: skip
    def test_one_move_in_many_ways(self, text: str) -> None:
        assert parse_move(ShogiGame(), text).usi == "7g7f"

    @pytest.mark.parametrize("seed", range(3))
    def test_all_notations_mean_the_same(self, seed: int) -> None:
        game = ShogiGame()
        replay = Replay(game.start)
        for move in random_moves(random.Random(seed), plies=120):
            assert parse_move(game, move.usi) == move
            assert parse_move(game, format_western(replay, move)) == move
            assert parse_move(game, format_move(replay, move)) == move
            replay.play(move)
            game.push(move)

    def test_same_square(self) -> None:
        game = ShogiGame("startpos moves 7g7f 3c3d 8h2b+")
        assert parse_move(game, "同銀").usi == "3a2b"
        with pytest.raises(NotationError, match="needs a move before it"):
            parse_move(ShogiGame(), "同銀")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "'' is not a move; expected something like 7g7f, P-7f or ７六歩"),
            ("hello", "'hello' is not a move"),
            ("x" * 100_000, "is not a move"),
            ("P-5e", "no P of Black can legally go there"),
            ("５五歩", "no 歩 can legally go there"),
            ("76歩 84歩", "after the move"),
            ("G-5h", "could be 4i5h or 6i5h"),
        ],
    )
    def test_what_is_no_move(self, text: str, message: str) -> None:
        with pytest.raises(NotationError, match=message) as caught:
            parse_move(ShogiGame(), text)
        assert len(str(caught.value)) < 200

    def test_an_illegal_move_names_the_rule(self) -> None:
        game = ShogiGame()
        with pytest.raises(IllegalMoveError, match="no pawn in hand"):
            game.push(parse_move(game, "P*5e"))
        with pytest.raises(KeiseiError):
            game.push(parse_move(game, "7g7e"))
