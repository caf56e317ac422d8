"""Games as lines of USI."""

from pathlib import Path

import pytest

from keisei.errors import NotationError
from keisei.shogi.notation.files import USI_SUFFIXES, load_games, save_game
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.notation.usi import read_usi

ENDGAME = "4k4/9/4P4/9/9/9/9/9/4K4 b G 41"
LINES = f"""\
# two games
position startpos moves 7g7f 3c3d 8h2b+

sfen {ENDGAME} moves G*5b   # mate
"""


def test_a_line_is_a_game() -> None:
    first, second = read_usi(LINES)
    assert [move.usi for move in first.main_line] == ["7g7f", "3c3d", "8h2b+"]
    assert format_sfen(second.start) == ENDGAME
    assert [move.usi for move in second.main_line] == ["G*5b"]


@pytest.mark.parametrize("suffix", USI_SUFFIXES)
def test_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"games{suffix.upper()}"
    path.write_text(LINES, encoding="utf-8-sig")
    assert load_games(path) == read_usi(LINES)
    with pytest.raises(NotationError, match=r"ends in one of \.csa .*; \.sfen and \.usi can be"):
        save_game(GameRecord(), path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: there is no game"),
        ("# nothing", "line 1: there is no game"),
        ("\nstartpos moves 7g7f hello", "line 2, column 21: move 2 of the list: 'hello'"),
        ("startpos moves 7g7e", "line 1, column 1: move 1, 7g7e: .*cannot go"),
        ("startpos\n4k4/9 b - 1", "line 2, column 1: the board has 2 ranks"),
    ],
)
def test_faults_have_a_place(text: str, message: str) -> None:
    with pytest.raises(NotationError, match=message):
        read_usi(text)
