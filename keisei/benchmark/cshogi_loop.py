"""The rival: random play and perft in Python over the boards of cshogi, a library in C++.

Import this module only where cshogi is installed; Keisei itself never needs it.

The same work as `VectorShogi` does, by the same rules, written twice: `CshogiLoop` is the loop that
one writes first, `TunedCshogiLoop` is as fast as we could make it in Python. The planes hold what
``core46`` holds, in cshogi's order of pieces and squares; the mask equals Keisei's bit by bit.
"""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from random import Random
from typing import Any

import cshogi
import numpy as np
import numpy.typing as npt

from keisei.constants import (
    BOARD_SIZE,
    HAND_LIMITS,
    NUM_BOARD_ACTIONS,
    NUM_HAND_KINDS,
    NUM_SQUARES,
    REPETITIONS_TO_END,
)

_HANDS = slice(28, 42)
_MOVER_IS_BLACK = 42
_PLY = 43
_HUFFMAN_BYTES = 32
_MOVE_BITS = 0x7FFF
"""Target, origin and promotion of a cshogi move; what it moves and captures stands above."""

_HAND_LIMITS = np.array(HAND_LIMITS * 2, dtype=np.float32)


class CshogiLoop:
    """N games, one cshogi board each, stepped in a plain Python loop."""

    def __init__(
        self,
        sfens: Sequence[str],
        planes: npt.NDArray[np.float32],
        mask: npt.NDArray[np.bool_],
        *,
        ply_limit: int = 512,
        seed: int = 0,
    ) -> None:
        """Begin at `sfens[N]`; `planes[N, 46, 9, 9]` and `mask[N, 13527]` are written into."""
        self.boards = [cshogi.Board(sfen) for sfen in sfens]
        self.legal = [list(board.legal_moves) for board in self.boards]
        self.packed = np.zeros((len(sfens), _HUFFMAN_BYTES), dtype=np.uint8)
        self.planes = planes
        self.mask = mask
        self.rewards = np.zeros(len(sfens), dtype=np.float32)
        self.ply_limit = ply_limit
        self.random = Random(seed)

    def step(self) -> None:
        """Play a random legal move in each game, and begin those that ended again."""
        self.rewards.fill(0)
        for index, board in enumerate(self.boards):
            board.push(self.random.choice(self.legal[index]))
            moves = list(board.legal_moves)
            reward = self._judge(board, moves)
            if reward is not None:
                self.rewards[index] = reward
                board.reset()
                moves = list(board.legal_moves)
            self.legal[index] = moves

    def write_packed(self) -> None:
        """Write each position as cshogi's Huffman code."""
        for index, board in enumerate(self.boards):
            board.to_hcp(self.packed[index])

    def write_planes(self) -> None:
        """Write the planes of each position, seen by its mover."""
        self.planes.fill(0)
        for index, board in enumerate(self.boards):
            planes = self.planes[index]
            black, white = board.pieces_in_hand
            if board.turn == cshogi.BLACK:
                board.piece_planes(planes)
                hands = black + white
            else:
                board.piece_planes_rotate(planes)
                hands = white + black
            planes[_HANDS] = (np.array(hands) / _HAND_LIMITS)[:, None, None]
            planes[_MOVER_IS_BLACK] = board.turn == cshogi.BLACK
            planes[_PLY] = (board.move_number - 1) / self.ply_limit

    def write_mask(self) -> None:
        """Mark the legal actions of each position."""
        self.mask.fill(False)
        for index, board in enumerate(self.boards):
            turn = board.turn
            self.mask[index, [action_of(move, turn) for move in self.legal[index]]] = True

    def _judge(self, board: Any, moves: list[int]) -> float | None:
        """What the move just played earned its player if it ended the game, else None."""
        if not moves:
            return 1.0
        # `is_draw` speaks up at the second occurrence of a position already.
        repetition = board.is_draw()
        if repetition in _REPETITION_REWARDS and occurrences(board) >= REPETITIONS_TO_END:
            return _REPETITION_REWARDS[repetition]
        if board.move_number > self.ply_limit:
            return 0.0
        return -1.0 if board.is_nyugyoku() else None


class TunedCshogiLoop(CshogiLoop):
    """The same, tuned: fewer calls per game, and NumPy over all games at once where it can."""

    def __init__(
        self,
        sfens: Sequence[str],
        planes: npt.NDArray[np.float32],
        mask: npt.NDArray[np.bool_],
        *,
        ply_limit: int = 512,
        seed: int = 0,
    ) -> None:
        super().__init__(sfens, planes, mask, ply_limit=ply_limit, seed=seed)
        self._seen = [{board.zobrist_hash(): 1} for board in self.boards]
        self._packed_rows = list(self.packed)
        self._plane_rows = list(planes)
        self._game_numbers = np.arange(len(sfens))

    def step(self) -> None:
        """Play a random legal move in each game, and begin those that ended again."""
        self.rewards.fill(0)
        random, ply_limit, legal = self.random.random, self.ply_limit, self.legal
        games = zip(self.boards, legal, self._seen, strict=True)
        for index, (board, moves, seen) in enumerate(games):
            board.push(moves[int(random() * len(moves))])
            legal[index] = new_moves = list(board.legal_moves)
            key = board.zobrist_hash()
            seen[key] = times = seen.get(key, 0) + 1  # cheaper than `is_draw`, and exact
            if (
                not new_moves
                or times >= REPETITIONS_TO_END
                or board.move_number > ply_limit
                or board.is_nyugyoku()
            ):
                self.rewards[index] = self._judge(board, new_moves) or 0.0
                board.reset()
                self._seen[index] = {board.zobrist_hash(): 1}
                legal[index] = list(board.legal_moves)

    def write_packed(self) -> None:
        """Write each position as cshogi's Huffman code."""
        for board, row in zip(self.boards, self._packed_rows, strict=True):
            board.to_hcp(row)

    def write_planes(self) -> None:
        """Write the planes of each position, seen by its mover."""
        self.planes.fill(0)
        hands = []
        turns = []
        for board, row in zip(self.boards, self._plane_rows, strict=True):
            black, white = board.pieces_in_hand
            turn = board.turn
            turns.append(turn)
            if turn:
                board.piece_planes_rotate(row)
                hands.append(white + black)
            else:
                board.piece_planes(row)
                hands.append(black + white)
        plies = np.array([board.move_number - 1 for board in self.boards])
        self.planes[:, _HANDS] = (np.array(hands) / _HAND_LIMITS)[:, :, None, None]
        self.planes[:, _MOVER_IS_BLACK] = (1 - np.array(turns))[:, None, None]
        self.planes[:, _PLY] = (plies / self.ply_limit)[:, None, None]

    def write_mask(self) -> None:
        """Mark the legal actions of each position."""
        self.mask.fill(False)
        counts = [len(moves) for moves in self.legal]
        moves = np.fromiter(chain.from_iterable(self.legal), dtype=np.int64, count=sum(counts))
        turns = np.repeat([board.turn for board in self.boards], counts)
        games = np.repeat(self._game_numbers, counts)
        self.mask[games, _action_table()[turns, moves & _MOVE_BITS]] = True


_REPETITION_REWARDS = {
    cshogi.REPETITION_DRAW: 0.0,
    cshogi.REPETITION_WIN: -1.0,  # the side to move wins: it was checked all the time
    cshogi.REPETITION_LOSE: 1.0,
}


def occurrences(board: Any) -> int:
    """How often the position on the board has occurred in its game, this time included."""
    key = board.zobrist_hash()
    earlier = board.copy()
    times = 1
    while earlier.history:
        earlier.pop()
        times += earlier.zobrist_hash() == key
    return times


def action_of(move: int, turn: int) -> int:
    """The policy index of a cshogi move, as ``docs/environment.md`` defines it."""
    squares = _SQUARES[turn]
    to: int = squares[cshogi.move_to(move)]
    if cshogi.move_is_drop(move):
        piece: int = cshogi.move_drop_hand_piece(move)
        return NUM_BOARD_ACTIONS + to * NUM_HAND_KINDS + piece
    origin: int = squares[cshogi.move_from(move)]
    promote: int = cshogi.move_is_promotion(move)
    return origin * 2 * (NUM_SQUARES - 1) + (to - (to > origin)) * 2 + promote


def _mover_squares() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Keisei's number, in the mover's view, of each cshogi square, for Black and White.

    cshogi counts down the files from the right: 1a = 0, 1b = 1, ... 9i = 80.
    """
    files_and_ranks = (divmod(square, BOARD_SIZE) for square in range(NUM_SQUARES))
    black = tuple(rank * BOARD_SIZE + BOARD_SIZE - 1 - file for file, rank in files_and_ranks)
    return black, tuple(NUM_SQUARES - 1 - square for square in black)


_SQUARES = _mover_squares()


@cache
def _action_table() -> npt.NDArray[np.int64]:
    """``[2, 32768]``: `action_of` for each side and each move."""
    table = np.zeros((2, _MOVE_BITS + 1), dtype=np.int64)
    for move in range(_MOVE_BITS + 1):
        origin, to = cshogi.move_from(move), cshogi.move_to(move)
        if to < NUM_SQUARES and origin < NUM_SQUARES + NUM_HAND_KINDS and to != origin:
            for turn in (cshogi.BLACK, cshogi.WHITE):
                table[turn, move] = action_of(move, turn)
    return table


def board_of(sfen: str) -> Any:
    """A board with the position of `sfen`."""
    return cshogi.Board(sfen)


def counted_leaves(board: Any, depth: int) -> int:
    """Perft with bulk counting: the moves of the last ply are counted, not played."""
    if depth == 1:
        return len(list(board.legal_moves))
    nodes = 0
    for move in board.legal_moves:
        board.push(move)
        nodes += counted_leaves(board, depth - 1)
        board.pop()
    return nodes


def played_leaves(board: Any, depth: int) -> int:
    """Perft that plays and takes back every leaf."""
    if depth == 0:
        return 1
    nodes = 0
    for move in board.legal_moves:
        board.push(move)
        nodes += played_leaves(board, depth - 1)
        board.pop()
    return nodes
