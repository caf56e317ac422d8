"""``keisei annotate``: from a file to a file, a picture and a table."""

import json
from pathlib import Path

import pytest

from keisei.commands.annotate import annotate
from keisei.errors import KeiseiError
from keisei.network.loading import read_network
from keisei.network.onnx.onnx_export import export_onnx
from keisei.shogi.notation.files import load_game, save_game
from keisei.shogi.notation.record import GameRecord
from tests.analysis.games import short_game
from tests.commands.invoke import invoke
from tests.tiny_runs import tiny_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run(tmp_path_factory.mktemp("runs") / "mine", checkpoints=1)


@pytest.fixture
def game(tmp_path: Path) -> Path:
    path = tmp_path / "game.kif"
    save_game(short_game(), path)
    return path


@pytest.mark.parametrize("suffix", [".kif", ".kifu", ".csa", ".ki2"])
def test_files_and_pictures(run: Path, game: Path, suffix: str) -> None:
    target, picture = game.with_name(f"out{suffix}"), game.with_name("out.svg")
    result = invoke(
        annotate, str(game), "--model", str(run), "--simulations", "4", "--device", "cpu",
        "--threads", "1", "--output", str(target), "--plot", str(picture),
    )  # fmt: skip
    assert result.exit_code == 0
    record = load_game(target)
    assert record.main_line == short_game().main_line
    assert record.comment.startswith("keisei: analysed by mine@64, 4 simulations")
    assert all("keisei: best moves were: " in move.comment for move in record.moves)
    assert picture.read_bytes().startswith(b"<?xml")
    assert "Black (Akane): 3 moves, " in result.stdout
    assert "White (Botan): 3 moves, " in result.stdout


def test_an_exported_network_says_the_same(run: Path, game: Path) -> None:
    exported = game.with_name("mine.onnx")
    exported.write_bytes(export_onnx(read_network(run)))
    answers = []
    for model in (run, exported):
        arguments = ("--device", "cpu", "--threads", "1", "--blunder", "1", "--json")
        result = invoke(annotate, str(game), "--model", str(model), *arguments)
        answers.append(json.loads(result.stdout))
    one, other = answers
    assert (one.pop("network"), other.pop("network")) == ("mine@64", "mine@64.onnx")
    for ours, theirs in zip(one["moves"], other["moves"], strict=True):
        for name in ("loss", "black_chances"):
            assert ours.pop(name) == pytest.approx(theirs.pop(name), abs=1e-4)
        assert ours == theirs
    assert [move["move"] for move in one["moves"]][2] == "8h3c+"


def test_turning_points(run: Path, tmp_path: Path) -> None:
    game = tmp_path / "game.usi"
    # Black could mate in one and does not; White is mated a little later.
    game.write_text("4k4/9/4P4/9/9/9/9/9/4K4 b G 1 moves 5i5h 5a6a G*6b\n")
    result = invoke(annotate, str(game), "--model", str(run), "--device", "cpu", "--threads", "1")
    assert "turning points" in result.stdout
    [row] = [line for line in result.stdout.splitlines() if line.endswith("blunder ")]
    number, side, played, before, _, arrow, *_ = row.split()
    assert (number, side, played, before, arrow) == ("1", "Black", "5i5h", "100", "->")
    assert "G*5b" in row


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "out.pdf"], r"out\.pdf: a game file ends in one of \.csa"),
        (["--output", "out.usi"], r"ends in one of \.csa .*, not in '\.usi'"),
        (["--plot", "out.pdf"], r"out\.pdf: a plot ends in \.png or \.svg"),
        (["--plot", "out"], "a plot ends in"),
        (["--model", "nobody"], "there is no run or checkpoint nobody"),
        (["--model", "nobody.onnx"], r"cannot read nobody\.onnx"),
    ],
)
def test_what_is_refused(game: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(KeiseiError, match=message):
        invoke(annotate, str(game), "--model", "nobody", *arguments)


def test_only_one_game(run: Path, tmp_path: Path) -> None:
    game = tmp_path / "games.usi"
    game.write_text("startpos moves 7g7f\nstartpos moves 2g2f\n")
    with pytest.raises(KeiseiError, match="holds 2 games; only one can be annotated"):
        invoke(annotate, str(game), "--model", str(run))
    empty = tmp_path / "empty.kif"
    save_game(GameRecord(), empty)
    with pytest.raises(KeiseiError, match="there is no move in this game"):
        invoke(annotate, str(empty), "--model", str(run))
