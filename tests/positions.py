"""Positions to test on: from random play, and random endgames that random play never reaches."""

import random
from collections.abc import Iterator

from keisei.constants import HAND_LIMITS, NUM_BOARD_ACTIONS
from keisei.errors import IllegalPositionError
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Color, Diagram, Piece, PieceKind


def random_games(seed: int, *, plies: int = 200) -> Iterator[ShogiGame]:
    """Positions of random games, one after the other: the same game object, one ply later."""
    rng = random.Random(seed)
    while True:
        game = ShogiGame()
        for _ in range(plies):
            if game.outcome() is not None:
                break
            yield game
            game.push_action(rng.choice(game.legal_actions.tolist()))


def random_endgames(seed: int) -> Iterator[ShogiGame]:
    """Kings and random pieces anywhere on the board and in the hands, with many checks and pins."""
    rng = random.Random(seed)
    while True:
        try:
            game = ShogiGame(_random_diagram(rng))
        except IllegalPositionError:  # two pawns on a file, a king that could be taken ...
            continue
        yield game


def _random_diagram(rng: random.Random) -> Diagram:
    board: list[Piece | None] = [None] * 81
    squares = rng.sample(range(81), 81)
    board[squares.pop()] = Piece(Color.BLACK, PieceKind.KING)
    board[squares.pop()] = Piece(Color.WHITE, PieceKind.KING)
    hands = [[0] * 7, [0] * 7]
    density = rng.choice((0.1, 0.3, 0.6, 0.9))
    for number, limit in enumerate(HAND_LIMITS):
        for _ in range(limit):
            color, kind = rng.choice(list(Color)), PieceKind(number)
            where = rng.random()
            if where < density * 0.75:
                if kind.can_promote and rng.random() < 0.5:
                    kind = kind.promoted
                board[squares.pop()] = Piece(color, kind)
            elif where < density:
                hands[color][number] += 1
    turn = rng.choice(list(Color))
    return Diagram(tuple(board), (tuple(hands[0]), tuple(hands[1])), turn)


def cycling_games(seed: int, *, plies: int = 80) -> Iterator[ShogiGame]:
    """Whole games with many repetitions: players prefer checks and returns.

    Random play never repeats a position. Here few pieces are on the board, and each side prefers
    moves that give check, that lead to a position seen before, or that capture.
    """
    rng = random.Random(seed)
    while True:
        try:
            game = ShogiGame(_sparse_diagram(rng))
        except IllegalPositionError:
            continue
        checks = rng.choice(((0, 0), (0, 50), (50, 0), (50, 50)))
        weights_by_color = [
            (checks[color], rng.choice((2, 20)), rng.random() / 4) for color in Color
        ]
        seen = {game.key}
        for _ in range(plies):
            outcome = game.outcome()
            if outcome is not None:
                break
            game.push_action(_weighted_move(game, seen, weights_by_color[game.turn], rng))
            seen.add(game.key)
        yield game


def _weighted_move(
    game: ShogiGame, seen: set[int], weights_of_mover: tuple[int, int, float], rng: random.Random
) -> int:
    check, return_, capture = weights_of_mover
    moves = game.legal_actions.tolist()
    if len(moves) > 25:  # drops are many and never lead back
        moves = [move for move in moves if move < NUM_BOARD_ACTIONS or rng.random() < 0.05]
    weights = []
    for move in moves:
        held = int(game.position.hands.sum())
        game.push_action(move)
        captured = int(game.position.hands.sum()) > held
        back = game.key in seen
        weights.append(
            0.01 + check * game.in_check * (1 + 20 * back) + return_ * back + capture * captured
        )
        game.pop()
    return int(rng.choices(moves, weights)[0])


def _sparse_diagram(rng: random.Random) -> Diagram:
    board: list[Piece | None] = [None] * 81
    squares = rng.sample(range(81), 81)
    for color in Color:
        board[squares.pop()] = Piece(color, PieceKind.KING)
    for _ in range(rng.randint(1, 4)):
        kind = PieceKind(rng.choice((0, 3, 4, 4, 5, 6, 6, 12, 13, 13)))
        board[squares.pop()] = Piece(rng.choice(list(Color)), kind)
    hands = [[0] * 7, [0] * 7]
    hands[rng.choice(list(Color))][rng.choice((0, 4, 3))] = rng.choice((0, 1))
    turn = rng.choice(list(Color))
    return Diagram(tuple(board), (tuple(hands[0]), tuple(hands[1])), turn)
