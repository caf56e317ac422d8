"""Mates of any length: against exhaustive search, and by playing them out."""

import pytest

from keisei.search.mates import MateSearch
from keisei.search.tsume import MateSolver, MateStatus
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Move
from tests.positions import random_endgames, random_games
from tests.sampling import IS_COMPILED, sample

pytestmark = pytest.mark.kernels


def solved(game: ShogiGame, nodes: int = 50_000) -> tuple[MateStatus, list[Move]]:
    return MateSolver(1 << 17).solve(game, nodes)


def is_forced(game: ShogiGame, solver: MateSolver, line: list[Move]) -> bool:
    """Whether a line of checks ends in mate; the last position is looked at by the rules alone."""
    for number, move in enumerate(line):
        game.push(move)
        if number % 2 == 0:
            assert game.in_check
    outcome = game.outcome()
    for _ in line:
        game.pop()
    return outcome is not None and outcome.winner is game.turn and len(line) % 2 == 1


def test_what_exhaustive_search_finds_is_a_mate_and_every_defence_loses() -> None:
    found = 0
    for game, _ in zip(random_endgames(7), range(sample(80, 2)), strict=False):
        if game.outcome() is not None:
            continue
        short = MateSearch(3).line(game)
        status, line = solved(game, sample(10_000, 200))
        if short:
            found += 1
            assert status is MateStatus.MATE or not IS_COMPILED
        if status is MateStatus.NO_MATE:
            assert MateSearch(5, nodes=sample(20_000, 100)).line(game) == []
        if status is MateStatus.MATE:
            solver = MateSolver(1 << 17)
            assert is_forced(game, solver, line)
            for reply in _replies(game, line[0]):
                game.push(line[0])
                game.push(reply)
                assert solver.solve(game, sample(50_000, 2_000))[0] is MateStatus.MATE
                game.pop()
                game.pop()
                solver.clear()
    assert found >= sample(1, 0)


def _replies(game: ShogiGame, move: Move) -> list[Move]:
    game.push(move)
    replies = game.legal_moves
    game.pop()
    return replies[: sample(6, 1)]


def test_it_is_taken_up_where_it_was_left() -> None:
    """In slices of any size the status is the same."""
    games = []
    for game in random_games(seed=3, plies=300):
        if not game.in_check and MateSearch(3).line(game) and not MateSearch(1).line(game):
            games.append(game.copy())
        if len(games) == sample(5, 1):
            break
    for game in games:
        solver, status = MateSolver(1 << 17), MateStatus.UNKNOWN
        slices = 0
        while status is MateStatus.UNKNOWN:
            status, line = solver.solve(game, 100)
            slices += 1
            assert slices < 10_000
        assert status is MateStatus.MATE
        assert is_forced(game, solver, line)


@pytest.mark.skipif(not IS_COMPILED, reason="too long to be interpreted")
def test_mates_agree_with_another_solver() -> None:
    cshogi = pytest.importorskip("cshogi")
    other = cshogi.DfPn(depth=31, nodes=50_000)
    agreed = {True: 0, False: 0}
    for game, _ in zip(random_endgames(11), range(100), strict=False):
        if game.outcome() is not None:
            continue
        status, _ = solved(game, 20_000)
        if status in (MateStatus.UNKNOWN, MateStatus.REPETITION):
            continue
        theirs = bool(other.search(cshogi.Board(game.sfen())))
        if theirs is not (status is MateStatus.MATE):
            # It looks no further than its depth and nodes; a line that can be played is a mate.
            assert status is MateStatus.MATE, game.sfen()
            continue
        agreed[theirs] += 1
    assert min(agreed.values()) >= 2


@pytest.mark.skipif(not IS_COMPILED, reason="too long to be interpreted")
def test_a_longer_mate_and_a_full_memory() -> None:
    """Mate in five: found with room to think, unknown without."""
    for game in random_games(seed=21, plies=300):
        if not game.in_check and not MateSearch(3).line(game) and MateSearch(5).line(game):
            break
    status, line = solved(game, 200_000)
    assert status is MateStatus.MATE
    assert len(line) >= 5
    small = MateSolver(16)
    assert small.solve(game, 1_000_000)[0] is MateStatus.UNKNOWN
    assert small.is_full
    small.clear()
    assert not small.is_full


def test_where_the_only_escape_is_a_repetition_nothing_more_is_found() -> None:
    """The rook checks along rank and file for ever. Some other order of checks might be a mate."""
    game = ShogiGame("8k/9/8p/9/9/9/9/9/R8 b - 1")
    solver, status = MateSolver(1 << 17), MateStatus.UNKNOWN
    for _ in range(sample(100, 20)):
        status, line = solver.solve(game, 1_000)
        if status is not MateStatus.UNKNOWN:
            break
    assert (status, line) == (MateStatus.REPETITION, [])
    assert solver.solve(game, 1_000)[0] is MateStatus.REPETITION


def test_an_attacker_without_a_king_and_a_mate_by_a_dropped_pawn_that_is_none() -> None:
    status, line = solved(ShogiGame("4k4/9/4P4/9/9/9/9/9/9 b G2r2b3g4s4n4l17p 1"))
    assert (status, [move.usi for move in line]) == (MateStatus.MATE, ["G*5b"])
    pawn_drop = ShogiGame("3sks3/3p1p3/9/5N3/9/9/9/9/9 b P2r2b4g2s3n4l15p 1")
    assert solved(pawn_drop)[0] is not MateStatus.MATE
