"""Positions to test on: from random play, and random endgames that random play never reaches."""

import random
from collections.abc import Iterator

from keisei.constants import HAND_LIMITS
from keisei.errors import IllegalPositionError
from keisei.shogi.diagram import Diagram
from keisei.shogi.game import ShogiGame
from keisei.shogi.pieces import Color, Piece, PieceKind


def random_games(seed: int, *, plies: int = 200) -> Iterator[ShogiGame]:
    """Positions of random games, one after the other: the same game object, one ply later."""
    chance = random.Random(seed)
    while True:
        game = ShogiGame()
        for _ in range(plies):
            if game.outcome() is not None:
                break
            yield game
            game.push_action(chance.choice(game.legal_actions.tolist()))


def random_endgames(seed: int) -> Iterator[ShogiGame]:
    """Kings and random pieces anywhere on the board and in the hands, checks and pins galore."""
    chance = random.Random(seed)
    while True:
        try:
            game = ShogiGame(_random_diagram(chance))
        except IllegalPositionError:  # two pawns on a file, a king that could be taken ...
            continue
        yield game


def _random_diagram(chance: random.Random) -> Diagram:
    board: list[Piece | None] = [None] * 81
    squares = chance.sample(range(81), 81)
    board[squares.pop()] = Piece(Color.BLACK, PieceKind.KING)
    board[squares.pop()] = Piece(Color.WHITE, PieceKind.KING)
    hands = [[0] * 7, [0] * 7]
    density = chance.choice((0.1, 0.3, 0.6, 0.9))
    for number, limit in enumerate(HAND_LIMITS):
        for _ in range(limit):
            color, kind = chance.choice(list(Color)), PieceKind(number)
            where = chance.random()
            if where < density * 0.75:
                if kind.can_promote and chance.random() < 0.5:
                    kind = kind.promoted
                board[squares.pop()] = Piece(color, kind)
            elif where < density:
                hands[color][number] += 1
    turn = chance.choice(list(Color))
    return Diagram(tuple(board), (tuple(hands[0]), tuple(hands[1])), turn)
