"""The commands of the game, run as a user runs them."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from keisei.cli import app
from keisei.errors import KeiseiError

MATE = "4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"


def keisei(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_perft_prints_the_number_of_leaves() -> None:
    result = keisei("perft", "--depth", "3")
    assert result.exit_code == 0
    assert result.stdout == "25470\n"


def test_perft_divides_and_speaks_json() -> None:
    answer = json.loads(keisei("perft", "--depth", "2", "--divide", "--json").stdout)
    assert answer["nodes"] == sum(answer["moves"].values()) == 900
    assert answer["seconds"] > 0
    divided = keisei("perft", "--depth", "1", "--divide", "--sfen", "4k4/9/9/9/9/9/9/9/4K4 b - 1")
    assert divided.stdout.splitlines()[-1] == "5"
    assert "5i5h: 1" in divided.stdout
    assert keisei("perft", "--depth", "0").stdout == "1\n"


def test_show_draws_the_board() -> None:
    result = keisei("show", "startpos", "moves", "7g7f", "3c3d", "8h3c+")
    assert "馬" in result.stdout
    assert "7 legal moves, check" in result.stdout
    assert "RNBQ" not in result.stdout
    letters = keisei("show", "--style", "letters").stdout
    assert "30 legal moves" in letters
    assert letters.isascii()
    assert "checkmate: black wins" in keisei("show", MATE).stdout


def test_show_speaks_json_and_draws_svg(tmp_path: Path) -> None:
    picture = tmp_path / "board.svg"
    answer = json.loads(keisei("show", MATE, "--json", "--svg", str(picture)).stdout)
    assert answer["termination"] == "checkmate"
    assert answer["winner"] == "black"
    assert answer["legal_moves"] == []
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


@pytest.mark.parametrize("sfen", ["nonsense", "startpos moves 7g7e", "9/9/9 b - 1"])
def test_bad_positions_are_explained(sfen: str) -> None:
    with pytest.raises(KeiseiError):
        keisei("show", sfen)


def test_convert_goes_there_and_back(tmp_path: Path) -> None:
    csa, kif, back = (tmp_path / name for name in ("a.csa", "b.kif", "c.csa"))
    csa.write_text("V2.2\nN+Sente\nN-Gote\nPI\n+\n+7776FU\n-3334FU\n+8822UM\n%TORYO\n")
    result = keisei("convert", str(csa), str(kif))
    assert result.stdout == f"1 game, 3 moves: {csa} -> {kif}\n"
    assert "２二角成" in kif.read_bytes().decode("cp932")
    answer = json.loads(keisei("convert", str(kif), str(back), "--json").stdout)
    assert (answer["games"], answer["moves"]) == (1, 3)
    assert "+8822UM" in back.read_text()


def test_convert_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    target = tmp_path / "out.csa"
    with pytest.raises(KeiseiError, match="cannot read"):
        keisei("convert", str(tmp_path / "missing.kif"), str(target))
    with pytest.raises(KeiseiError, match="ends in one of"):
        keisei("convert", str(tmp_path / "game.pgn"), str(target))
    assert not target.exists()
