"""Random games for the tests of notations: usual ones, handicaps, and crowded positions."""

import contextlib
import random
from collections.abc import Sequence
from dataclasses import replace

from keisei.errors import IllegalPositionError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.japanese import HANDICAPS
from keisei.shogi.notation.record import (
    STARTPOS,
    Ending,
    GameRecord,
    RecordedMove,
    Result,
)
from keisei.shogi.types import Color, Diagram, Move, Piece, PieceKind

_CROWD = (
    [PieceKind.GOLD] * 4
    + [PieceKind.SILVER] * 3
    + [PieceKind.PROMOTED_PAWN] * 8
    + [PieceKind.PROMOTED_KNIGHT] * 2
    + [PieceKind.KNIGHT] * 2
    + [PieceKind.PROMOTED_LANCE] * 2
    + [PieceKind.PROMOTED_SILVER]
    + [PieceKind.HORSE, PieceKind.HORSE, PieceKind.DRAGON, PieceKind.DRAGON]
)


def random_moves(
    rng: random.Random, start: Diagram = STARTPOS, plies: int = 120, stem: Sequence[Move] = ()
) -> list[Move]:
    """Random legal moves, the first of them given, up to the end of the game or a limit."""
    game = ShogiGame(start)
    for move in stem:
        game.push(move)
    while len(game.moves) < plies and len(game.legal_actions):
        game.push_action(int(rng.choice(game.legal_actions.tolist())))
    return game.moves


def crowded_start(rng: random.Random) -> Diagram:
    """A position in which many pieces of one kind can go to one square."""
    while True:
        squares = rng.sample(range(81), len(_CROWD) + 2)
        board: list[Piece | None] = [None] * 81
        board[squares.pop()] = Piece(Color.BLACK, PieceKind.KING)
        board[squares.pop()] = Piece(Color.WHITE, PieceKind.KING)
        # Mostly one colour: its pieces get into each other's way, as the notation needs it.
        rich = rng.choice(list(Color))
        for sq, kind in zip(squares, _CROWD, strict=True):
            board[sq] = Piece(rich if rng.random() < 0.85 else rich.opponent, kind)
        hands = ((2, 1, 0, 0, 0, 0, 0), (3, 0, 0, 0, 0, 0, 0))
        diagram = Diagram(tuple(board), hands, rich)
        with contextlib.suppress(IllegalPositionError):
            if len(ShogiGame(diagram).legal_actions):
                return diagram


def handicap_start(rng: random.Random) -> Diagram:
    """One of the named handicaps; White moves first."""
    return HANDICAPS[rng.choice([name for name in HANDICAPS if name != "平手"])]


def random_record(rng: random.Random, start: Diagram = STARTPOS, plies: int = 120) -> GameRecord:
    """A game with everything that KIF can hold: whole seconds, comments, headers, a result."""
    moves = [
        RecordedMove(
            move,
            seconds=float(rng.randrange(200)),
            comment=rng.choice(["", "", "", "好手", "two\nlines", " spaces  ", "\n\n", "*&#'/"]),
            bookmark=rng.choice(["", "", "", "しおり"]),
        )
        for move in random_moves(rng, start, plies)
    ]
    headers = {
        "black": "先手 太郎",
        "white": "White, Inc.",
        "event": "テスト棋戦：第1局",
        "site": "Tokyo",
        "start_time": "2026/02/28 09:30:00",
        "end_time": "2026/02/28",
        "opening": "矢倉",
        "time": "5400+30+0",
        "time+": "0+60+0",
        "time-": "300+0+10",
        "max_moves": "512",
        "jishogi": "27",
        "note": "one\n\nback\\slash",
        "表題": "random",
    }
    kept = {key: value for key, value in headers.items() if rng.random() < 0.8}
    result = Result(rng.choice(_KIF_ENDINGS), float(rng.randrange(99)), rng.choice(["", "end\n."]))
    return GameRecord(start, moves, kept, rng.choice(["", "before\nthe start"]), result)


_KIF_ENDINGS = [
    ending
    for ending in Ending
    if ending
    not in (  # these are written differently by different formats
        Ending.BLACK_FOUL,
        Ending.WHITE_FOUL,
        Ending.DEFAULT_WIN,
        Ending.DEFAULT_LOSS,
    )
]


def without_times(record: GameRecord) -> GameRecord:
    """The part of a record that KI2 can store."""
    moves = [replace(recorded, seconds=None) for recorded in record.moves]
    result = None if record.result is None else replace(record.result, seconds=None)
    return replace(record, moves=moves, result=result)


def without_bookmarks(record: GameRecord) -> GameRecord:
    """The part of a record without variations that CSA can store."""
    return replace(record, moves=[replace(recorded, bookmark="") for recorded in record.moves])
