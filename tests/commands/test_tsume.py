"""``keisei tsume``: solving, generating, and what it refuses."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from keisei.commands.tsume import tsume
from keisei.errors import KeiseiError
from keisei.play.mate_problems import find_problem, read_problems
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.files import save_game
from keisei.shogi.notation.record import GameRecord

PROBLEM = next(problem for problem in read_problems() if problem.plies == 3)


def keisei_tsume(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(tsume)
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_a_position_is_solved() -> None:
    result = keisei_tsume(*PROBLEM.sfen.split(), "--nodes", "100000")
    assert result.exit_code == 0
    assert f"Mate in 3: {PROBLEM.solution[0].usi} " in result.stdout
    assert "Black in hand" in result.stdout
    found = json.loads(keisei_tsume(PROBLEM.sfen, "--json").stdout)
    assert (found["status"], found["plies"]) == ("mate", 3)
    assert found["moves"][0] == PROBLEM.solution[0].usi


def test_what_is_no_mate_is_said() -> None:
    assert "no mate by continuous checks" in keisei_tsume("startpos").stdout
    assert "Unknown after 1 positions" in keisei_tsume(PROBLEM.sfen, "--nodes", "1").stdout
    with pytest.raises(KeiseiError):
        keisei_tsume("nonsense")


def test_problems_are_generated_from_records(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "games"
    folder.mkdir(parents=True)
    start = ShogiGame(PROBLEM.sfen).start
    save_game(GameRecord.from_moves(PROBLEM.solution, start=start), folder / "one.csa")
    output = tmp_path / "problems.txt"
    result = keisei_tsume("--generate", "2", "--games", str(tmp_path / "run"), "-o", str(output))
    assert "1 problems in" in result.stdout.replace("\n", "")
    assert "1 of 3 plies" in result.stdout
    assert [problem.solution for problem in read_problems(output)] == [PROBLEM.solution]


@pytest.mark.soak
def test_problems_are_generated_from_games_that_are_played(tmp_path: Path) -> None:
    found = []
    for name, seed in (("one.txt", 1), ("same.txt", 1), ("other.txt", 2)):
        output = tmp_path / name
        arguments = ("--generate", "1", "--player", "greedy", "--seed", str(seed))
        result = keisei_tsume(*arguments, "-o", str(output))
        assert "1 problems in" in result.stdout.replace("\n", "")
        (problem,) = read_problems(output)
        again = find_problem(ShogiGame(problem.sfen))
        assert again is not None
        assert again.solution[0] == problem.solution[0]
        found.append(str(problem))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give a position to solve"),
        (["startpos", "--generate", "3"], "give a position to solve"),
        (["--generate", "3", "--max-plies", "4"], "3, 5, 7 or 9 plies"),
        (["--generate", "3", "--json"], "--json prints the solution of a position"),
        (["--browser", "--json"], "--json prints the solution of a position"),
        (["--generate", "3", "--games", "nowhere"], "no such file, folder or run"),
        (["--browser", "--problems", "nowhere.txt"], "cannot read nowhere.txt"),
    ],
)
def test_mistakes_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeiseiError, match=problem):
        keisei_tsume(*arguments)
