"""Legal moves against other people's libraries and against a slow reference."""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keisei.constants import MAX_LEGAL_MOVES
from keisei.shogi.attacks import king_is_attacked
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Color, Piece, PieceKind
from tests.oracles.libraries import LEGAL_MOVES
from tests.oracles.slow_shogi import SlowShogi
from tests.positions import random_endgames, random_games
from tests.sampling import sample

UCHIFUZUME = json.loads((Path(__file__).parents[1] / "data/uchifuzume.json").read_text())
SOURCES = [random_games, random_endgames]


def usi_moves(game: ShogiGame) -> set[str]:
    moves = [move.usi for move in game.legal_moves]
    assert len(set(moves)) == len(moves), f"a move twice in {game.sfen()}"
    return set(moves)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("oracle", LEGAL_MOVES)
def test_legal_moves_equal_a_librarys(
    oracle: Callable[[str], set[str]], source: Callable[..., Iterator[ShogiGame]]
) -> None:
    for game in itertools.islice(source(seed=1), 2_000):
        assert usi_moves(game) == oracle(game.sfen()), game.sfen()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("oracle", LEGAL_MOVES)
def test_legal_moves_equal_a_librarys_on_many_positions(
    oracle: Callable[[str], set[str]], source: Callable[..., Iterator[ShogiGame]], seed: int
) -> None:
    for game in itertools.islice(source(seed=100 + seed), 13_000):  # 8 x 2 x 13,000 a library
        assert usi_moves(game) == oracle(game.sfen()), game.sfen()


@pytest.mark.kernels
@pytest.mark.parametrize("source", SOURCES)
def test_legal_moves_and_check_equal_the_slow_reference(
    source: Callable[..., Iterator[ShogiGame]],
) -> None:
    for game in itertools.islice(source(seed=2), sample(60, 30)):
        reference = SlowShogi.from_sfen(game.sfen())
        assert usi_moves(game) == reference.legal_moves(), game.sfen()
        assert game.in_check == reference.in_check(reference.black_to_move)
        assert bool(king_is_attacked(game.position, int(game.turn))) == game.in_check


@pytest.mark.kernels
@pytest.mark.parametrize(("sfen", "drop"), UCHIFUZUME[:: sample(1, 6)])
def test_a_pawn_drop_may_not_mate(sfen: str, drop: str) -> None:
    game = ShogiGame(sfen)
    assert drop not in usi_moves(game)
    reference = SlowShogi.from_sfen(sfen)
    assert usi_moves(game) == reference.legal_moves()
    assert drop in reference.legal_moves(forbid_pawn_drop_mates=False)


@pytest.mark.kernels
def test_the_position_with_the_most_moves() -> None:
    game = ShogiGame("R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1")
    assert len(usi_moves(game)) == MAX_LEGAL_MOVES


@pytest.mark.kernels
def test_positions_without_one_of_the_kings() -> None:
    """Mating problems; the largest has more moves than any position with both kings."""
    largest = ShogiGame("R8/2K1S1SS1/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1")
    assert len(usi_moves(largest)) == 599 > MAX_LEGAL_MOVES
    for game in itertools.islice(random_endgames(seed=4), sample(60, 6)):
        for missing in Color:
            king = Piece(missing, PieceKind.KING)
            board = tuple(None if piece == king else piece for piece in game.diagram.board)
            problem = ShogiGame(replace(game.diagram, board=board))
            reference = SlowShogi.from_sfen(problem.sfen())
            assert usi_moves(problem) == reference.legal_moves(), problem


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("sfen", "moves"),
    [
        ("4k4/9/9/9/9/9/9/9/4K4 b - 1", 5),
        ("4k4/9/4P4/9/9/9/9/9/4K4 b - 1", 7),  # promote or not
        ("9/4P4/9/9/9/9/9/9/k3K4 b - 1", 6),  # must promote
        ("9/9/4N4/9/9/9/9/9/k3K4 b - 1", 7),  # must promote, on two squares
        ("4k4/9/9/9/9/9/9/9/9 b G 1", 80),  # mating problem: the attacker has no king
        ("4k4/9/9/9/9/9/9/9/9 w G 1", 5),
    ],
)
def test_small_positions(sfen: str, moves: int) -> None:
    assert len(usi_moves(ShogiGame(sfen))) == moves
