"""Positions to test rows on, and rows as facts."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from keisei.constants import HAND_LIMITS
from keisei.errors import IllegalPositionError
from keisei.shogi.game import ShogiGame
from keisei.shogi.row_numbering import RowSpec
from keisei.shogi.types import Color, Diagram, Piece, PieceKind
from tests.oracles.slow_rows import Fact
from tests.positions import cycling_games, random_endgames, random_games

Games = Callable[[int], Iterator[ShogiGame]]


def games_of_random_play(number: int) -> Iterator[ShogiGame]:
    """Positions of random games, seven plies apart, with a ply limit that they come near to."""
    for game in itertools.islice(random_games(11), 0, 7 * number, 7):
        game.ply_limit = 150
        yield game


def endgames(number: int) -> Iterator[ShogiGame]:
    """Random endgames, some of them with a last move."""
    rng = random.Random(12)
    for game in itertools.islice(random_endgames(12), number):
        moves = game.legal_actions.tolist()
        if moves and rng.random() < 0.5:
            game.push_action(rng.choice(moves))
        yield game


def repeated_positions(number: int) -> Iterator[ShogiGame]:
    """Positions that have occurred before in their game; few, because finding them takes long."""
    games = (game for game in cycling_games(13) if game.repetitions)
    return itertools.islice(games, -(-number // 8))


def mating_problems(number: int) -> Iterator[ShogiGame]:
    """Positions in which one side has no king."""
    rng = random.Random(14)
    found = 0
    for game in random_endgames(14):
        if found == number:
            break
        diagram = game.diagram
        color = rng.choice(list(Color))
        board = tuple(
            None if piece == (color, PieceKind.KING) else piece for piece in diagram.board
        )
        try:
            problem = ShogiGame(Diagram(board, diagram.hands, rng.choice(list(Color))))
        except IllegalPositionError:  # the other side is in check
            continue
        found += 1
        yield problem


def facts(spec: RowSpec, rows: list[int]) -> "Counter[Fact]":
    """Rows of a table as names of groups and values on their axes."""
    found: Counter[Fact] = Counter()
    for row in rows:
        group, inner = spec.locate(row)
        found[group.name, group.values(inner)] += 1
    return found


def crowded_boards(number: int) -> Iterator[ShogiGame]:
    """All 40 pieces of a set close together, most of them promoted."""
    rng = random.Random(15)
    kinds = [PieceKind(kind) for kind, limit in enumerate(HAND_LIMITS) for _ in range(limit)]
    found = 0
    while found < number:
        height = rng.choice((6, 7, 8))
        squares = rng.sample([row * 9 + column for row in range(height) for column in range(9)], 40)
        board: list[Piece | None] = [None] * 81
        for color in Color:
            board[squares.pop()] = Piece(color, PieceKind.KING)
        for kind, sq in zip(kinds, squares, strict=True):
            promotes = kind.can_promote and (kind is PieceKind.PAWN or rng.random() < 0.8)
            board[sq] = Piece(rng.choice(list(Color)), kind.promoted if promotes else kind)
        try:
            game = ShogiGame(Diagram(tuple(board), turn=rng.choice(list(Color))))
        except IllegalPositionError:  # a king could be taken
            continue
        found += 1
        yield game


CASES = [games_of_random_play, endgames, repeated_positions, mating_problems, crowded_boards]
cases = pytest.mark.parametrize("games", CASES, ids=lambda games: games.__name__)
