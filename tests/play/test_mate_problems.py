"""Mate problems: their mates are forced, shortest and unique; another solver agrees."""

from pathlib import Path

import pytest

from keisei.errors import KeiseiError
from keisei.play.mate_problems import (
    BUILTIN_PROBLEMS,
    MateProblem,
    ProblemSession,
    find_problem,
    mates_within,
    problems_in,
    read_problems,
    shortest_moves,
    write_problems,
)
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.types import Color, Move

PROBLEMS = read_problems()
SHORT = [problem for problem in PROBLEMS if problem.plies == 3]


def is_mate_by_rules(game: ShogiGame, plies: int) -> bool:
    """Whether the side to move mates within `plies`, by checks: the slow, obvious way."""
    for move in game.legal_moves:
        game.push(move)
        mates = game.in_check and (
            not game.legal_moves or (plies > 1 and all_are_mated(game, plies - 2))
        )
        game.pop()
        if mates:
            return True
    return False


def all_are_mated(game: ShogiGame, plies: int) -> bool:
    for defence in game.legal_moves:
        game.push(defence)
        mated = is_mate_by_rules(game, plies)
        game.pop()
        if not mated:
            return False
    return True


def test_the_package_has_problems_of_all_lengths() -> None:
    assert [problem.plies for problem in PROBLEMS] == sorted(p.plies for p in PROBLEMS)
    assert {problem.plies for problem in PROBLEMS} == {3, 5, 7, 9}
    assert {problem.grade for problem in PROBLEMS} == {1, 2, 3, 4}
    assert len({problem.sfen for problem in PROBLEMS}) == len(PROBLEMS) >= 40


@pytest.mark.parametrize("problem", SHORT[:6], ids=lambda problem: problem.sfen)
def test_short_mates_are_shortest_and_unique_by_the_rules_alone(problem: MateProblem) -> None:
    game = ShogiGame(problem.sfen)
    assert not is_mate_by_rules(game, 1)
    mating = []
    for move in game.legal_moves:
        game.push(move)
        if game.in_check and all_are_mated(game, 1):
            mating.append(move)
        game.pop()
    assert mating == [problem.solution[0]]
    assert shortest_moves(game, 3) == mating


@pytest.mark.parametrize("plies", [5, 7, 9])
def test_longer_problems_are_found_again(plies: int) -> None:
    problem = next(problem for problem in PROBLEMS if problem.plies == plies)
    game = ShogiGame(problem.sfen)
    before = game.sfen()
    found = find_problem(game)
    assert found is not None
    assert (found.plies, found.solution[0]) == (plies, problem.solution[0])
    assert game.sfen() == before, "all moves were taken back"


@pytest.mark.soak
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.sfen)
def test_every_problem_of_the_package_is_found_again(problem: MateProblem) -> None:
    found = find_problem(ShogiGame(problem.sfen))
    assert found is not None, "a shortest mate, and only one"
    assert (found.plies, found.solution[0]) == (problem.plies, problem.solution[0])


def test_another_solver_finds_the_same_mates() -> None:
    cshogi = pytest.importorskip("cshogi")
    solver = cshogi.DfPn()
    for problem in PROBLEMS:
        board = cshogi.Board(problem.sfen)
        assert solver.search(board), problem.sfen


def test_positions_without_a_unique_mate_are_no_problems() -> None:
    assert find_problem(ShogiGame()) is None
    mate_in_one = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    assert find_problem(ShogiGame(mate_in_one)) is None
    two_ways = "k8/9/1+R7/9/9/9/9/9/4K4 b 2G 1"
    assert len(shortest_moves(ShogiGame(two_ways), 3)) > 1
    assert find_problem(ShogiGame(two_ways)) is None


def test_problems_are_found_at_the_ends_of_games() -> None:
    problem = SHORT[0]
    start = ShogiGame(problem.sfen)
    record = GameRecord.from_moves(problem.solution, start=start.start)
    found = list(problems_in([record]))
    assert [(one.sfen, one.solution[0]) for one in found] == [(problem.sfen, problem.solution[0])]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "problems.txt"
    write_problems(path, PROBLEMS[::-1])
    again = read_problems(path)
    assert {str(problem) for problem in again} == {str(problem) for problem in PROBLEMS}
    assert [problem.plies for problem in again] == [problem.plies for problem in PROBLEMS]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no problems"),
        ("nonsense", "line 1"),
        (f"{SHORT[0].sfen} moves", "0 moves"),
        (f"{SHORT[0].sfen} moves 1a1b", "1 moves"),
        ("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1 moves 7g7f 3c3d 2g2f",
         "do not end in mate"),
    ],
)  # fmt: skip
def test_bad_files_are_explained(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "problems.txt"
    path.write_text(text)
    with pytest.raises(KeiseiError, match=problem):
        read_problems(path)


def test_a_problem_is_solved_move_by_move() -> None:
    problem = next(problem for problem in PROBLEMS if problem.plies == 5)
    session = ProblemSession(problem)
    assert session.game.turn is problem.attacker
    answers = []
    while not session.is_solved:
        hint = session.hint
        assert hint is not None
        answers.append(session.answer(hint))
    assert answers == ["right", "right", "solved"]
    assert session.hint is None
    assert session.mistakes == 0
    session.restart()
    assert session.plies_left == 5


def test_wrong_moves_are_refused_with_the_reason() -> None:
    problem = SHORT[0]
    session = ProblemSession(problem)
    before = session.game.sfen()
    for move in session.game.legal_moves:
        if move == problem.solution[0]:
            continue
        session.game.push(move)
        is_check = session.game.in_check
        session.game.pop()
        answer = session.answer(move)
        assert answer in (("escape", "slower") if is_check else ("no check",))
        assert session.game.sfen() == before
    assert session.mistakes > 0
    with pytest.raises(KeiseiError):
        session.answer(Move.from_usi("5e5e+"))


def test_a_move_that_gives_no_check_mates_nothing() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1")
    assert mates_within(game, Move.from_usi("G*5b"), 1)
    assert not mates_within(game, Move.from_usi("G*9i"), 9)


def test_the_attacker_may_be_white() -> None:
    assert MateProblem("4k4/9/9/9/9/9/9/9/4K4 w - 1", ()).attacker is Color.WHITE
    assert BUILTIN_PROBLEMS.is_file()
