"""The commands of the game, run as a user runs them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.progress import Progress
from typer.testing import CliRunner, Result

from keisei.cli import app
from keisei.commands import perft as perft_command
from keisei.errors import KeiseiError
from keisei.shogi.notation.files import save_game
from keisei.shogi.notation.record import Ending, GameRecord, RecordedMove
from keisei.shogi.notation.record import Result as Ended
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.types import Move

MATE = "4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"
FEW_MOVES = "4k4/9/9/9/9/9/9/9/4K4 b - 1"
MANY_MOVES = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1"


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
    divided = keisei("perft", "--depth", "1", "--divide", "--sfen", FEW_MOVES)
    assert divided.stdout.splitlines()[-1] == "5"
    assert "5i5h: 1" in divided.stdout
    assert keisei("perft", "--depth", "0").stdout == "1\n"


@pytest.mark.parametrize("leaves_per_call", [1, 1_000_000_000])
def test_perft_counts_the_same_in_steps_of_any_size(
    leaves_per_call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    advanced: list[float] = []
    monkeypatch.setattr(perft_command, "LEAVES_PER_CALL", leaves_per_call)
    monkeypatch.setattr(Progress, "advance", lambda self, task, share: advanced.append(share))
    assert keisei("perft", "--depth", "5", "--sfen", FEW_MOVES).stdout == "7922\n"
    assert len(advanced) == (25 if leaves_per_call == 1 else 5)
    assert sum(advanced) == pytest.approx(5)  # of the five moves at the root


SLOW_PERFT = """
import sys
import keisei.shogi.perft as module
from keisei.cli import main

count_leaves = module.perft

def reported(position, depth):
    print(depth, flush=True)
    return count_leaves(position, depth)

module.perft = reported
sys.argv[1:] = ["perft", "--depth", "9", "--sfen", sys.argv[1]]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT can't be sent there")
@pytest.mark.parametrize("sfen", ["startpos", MANY_MOVES], ids=["few moves", "many moves"])
def test_perft_hears_an_interrupt(sfen: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_PERFT, sfen],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) > 2:  # neither the warm-up nor a look at two plies: it counts
                break
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=10)  # a fraction of that on an idle machine
        finally:
            process.kill()
        assert (process.returncode, errors) == (130, "")


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


FORKED = """\
1 ７六歩(77) ( 0:01/00:00:01)
&here
2 ３四歩(33)
3 投了 ( 0:09/00:00:10)
変化：2手
2 ８四歩(83) ( 0:02/00:00:02)
"""


@pytest.mark.parametrize(
    ("name", "losses", "sentence"),
    [
        ("b.csa", ["1 variation", "1 bookmark"], "1 variation and 1 bookmark have no place in CSA"),
        ("b.ki2", ["3 times"], "3 times have no place in KI2"),
        ("b.kifu", [], ""),
    ],
)
def test_convert_says_what_has_no_place_in_the_target(
    tmp_path: Path, name: str, losses: list[str], sentence: str
) -> None:
    source, target = tmp_path / "a.kifu", tmp_path / name
    source.write_text(FORKED, encoding="utf-8")
    result = keisei("convert", str(source), str(target))
    assert "\n".join(result.stdout.splitlines()[1:]) == sentence
    answer = json.loads(keisei("convert", str(source), str(target), "--json").stdout)
    assert answer["left_out"] == losses


def test_convert_lists_every_loss(tmp_path: Path) -> None:
    fractions, named = tmp_path / "a.csa", tmp_path / "c.kifu"
    fractions.write_text("PI\n+\n+7776FU,T1.5\n-3334FU,T2\n")
    output = keisei("convert", str(fractions), str(tmp_path / "b.kif")).stdout
    assert output.endswith("\n1 fraction of a second has no place in KIF\n")
    record = GameRecord(
        parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b - 12345"),
        [RecordedMove(Move.from_usi(usi), bookmark=usi) for usi in ("5i5h", "5a5b")],
        result=Ended(Ending.DEFAULT_WIN),
    )
    save_game(record, named)
    output = keisei("convert", str(named), str(tmp_path / "d.csa")).stdout
    assert output.endswith(
        "\n2 bookmarks, 1 move number of the start and 1 result by default have no place in CSA\n"
    )


def test_convert_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    target = tmp_path / "out.csa"
    with pytest.raises(KeiseiError, match="cannot read"):
        keisei("convert", str(tmp_path / "missing.kif"), str(target))
    with pytest.raises(KeiseiError, match="ends in one of"):
        keisei("convert", str(tmp_path / "game.pgn"), str(target))
    assert not target.exists()


@pytest.mark.parametrize(
    ("suffix", "begin"),
    [("png", b"\x89PNG"), ("svg", b"<svg"), ("gif", b"GIF89a"), ("apng", b"\x89PNG")],
)
def test_convert_draws_games(tmp_path: Path, suffix: str, begin: bytes) -> None:
    source = tmp_path / "game.usi"
    source.write_text("startpos moves 7g7f 3c3d 8h2b+")
    target = tmp_path / f"game.{suffix}"
    result = keisei("convert", str(source), str(target), "--size", "120", "--labels", "letters")
    assert "1 game, 3 moves" in result.stdout
    assert target.read_bytes().startswith(begin)


def test_convert_refuses_pictures_that_cannot_be(tmp_path: Path) -> None:
    source, target = tmp_path / "games.usi", tmp_path / "games.gif"
    source.write_text("startpos moves 7g7f\nstartpos moves 2g2f\n")
    with pytest.raises(KeiseiError, match="holds 2 games; a picture shows one"):
        keisei("convert", str(source), str(target))
    source.write_text("startpos moves 7g7f")
    with pytest.raises(KeiseiError, match="--ply is for pictures of one position"):
        keisei("convert", str(source), str(target), "--ply", "1")
    with pytest.raises(KeiseiError, match="after 9 moves: the game has 1"):
        keisei("convert", str(source), str(tmp_path / "a.png"), "--ply", "9")
    assert not target.exists()
