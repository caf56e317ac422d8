"""Openings out of a text file."""

from pathlib import Path

import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.match import read_openings
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.system import FileAccessError

TWO_KINGS = "4k4/9/9/9/9/9/4P4/9/4K4 w - 1"


def test_positions_are_read_and_comments_are_not(tmp_path: Path) -> None:
    path = tmp_path / "openings.txt"
    path.write_text(
        f"\ufeff# two positions and a game\n\n{TWO_KINGS}  # an endgame\nstartpos\n"
        "startpos moves 7g7f 3c3d\n",
        encoding="utf-8",
    )
    endgame, start, opening = read_openings(path)
    assert (endgame, start) == (TWO_KINGS, STARTPOS_SFEN)
    assert opening.split()[1:] == ["b", "-", "3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("startpos\n\nnonsense\n", "line 3: .*an SFEN has a board"),
        ("startpos moves 7g7f 7g7f\n", "line 1: move 2"),
        ("4k4/4G4/4G4/9/9/9/9/9/4K4 w - 1", "line 1: the game is already over: checkmate"),
        ("# nothing\n", "holds no positions"),
        ("", "holds no positions"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "openings.txt"
    path.write_text(text)
    with pytest.raises(KeiseiError, match=message) as caught:
        read_openings(path)
    assert str(caught.value).startswith(str(path))


def test_files_that_are_no_text_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "openings.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KeiseiError, match="is not UTF-8 text"):
        read_openings(path)
    with pytest.raises(FileAccessError, match="cannot read"):
        read_openings(tmp_path / "missing.txt")
