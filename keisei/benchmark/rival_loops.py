"""Python loops over the boards of two other libraries: cshogi (C++) and rsshogi (Rust).

They do the same work as `VectorShogi` and perft, by the same rules. `CshogiLoop` is the
straightforward loop; `TunedCshogiLoop` is as fast as we could make it in Python. The planes hold
what ``core46`` holds, in cshogi's order of pieces and squares; the mask equals Keisei's bit by bit.
Keisei itself needs neither library: call only what is installed.
"""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.benchmark.harness import Work
from keisei.constants import (
    BOARD_SIZE,
    HAND_LIMITS,
    NUM_BOARD_ACTIONS,
    NUM_HAND_KINDS,
    NUM_SQUARES,
    REPETITIONS_TO_END,
)

try:
    import cshogi
except ImportError:  # rsshogi may be installed alone
    cshogi = None

_HANDS = slice(28, 42)
_MOVER_IS_BLACK = 42
_PLY = 43
_HUFFMAN_BYTES = 32
_MOVE_BITS = 0x7FFF
"""Target, origin and promotion of a cshogi move; the higher bits hold the pieces."""

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
        """Start at `sfens[N]`, with output buffers `planes[N, 46, 9, 9]` and `mask[N, 13527]`."""
        self.boards = [cshogi.Board(sfen) for sfen in sfens]
        self.legal = [list(board.legal_moves) for board in self.boards]
        self.packed = np.zeros((len(sfens), _HUFFMAN_BYTES), dtype=np.uint8)
        self.planes = planes
        self.mask = mask
        self.rewards = np.zeros(len(sfens), dtype=np.float32)
        self.ply_limit = ply_limit
        self.random = Random(seed)

    def step(self) -> None:
        """Play a random legal move in each game, and restart finished games."""
        self.rewards.fill(0)
        for index, board in enumerate(self.boards):
            board.push(self.random.choice(self.legal[index]))
            moves = list(board.legal_moves)
            reward = self._reward(board, moves)
            if reward is not None:
                self.rewards[index] = reward
                board.reset()
                moves = list(board.legal_moves)
            self.legal[index] = moves

    def write_packed(self) -> None:
        """Write the positions in cshogi's Huffman coding."""
        for index, board in enumerate(self.boards):
            board.to_hcp(self.packed[index])

    def write_planes(self) -> None:
        """Write the planes of the positions, from the mover's point of view."""
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
        """Write the mask of legal actions."""
        self.mask.fill(False)
        for index, board in enumerate(self.boards):
            turn = board.turn
            self.mask[index, [action_of(move, turn) for move in self.legal[index]]] = True

    def _reward(self, board: Any, moves: list[int]) -> float | None:
        """Return the reward of the player who just moved if the game is over, else None."""
        if not moves:
            return 1.0
        # `is_draw` reports the second occurrence of a position already.
        repetition = board.is_draw()
        rewards = _repetition_rewards()
        if repetition in rewards and occurrences(board) >= REPETITIONS_TO_END:
            return rewards[repetition]
        if board.move_number > self.ply_limit:
            return 0.0
        return -1.0 if board.is_nyugyoku() else None


class TunedCshogiLoop(CshogiLoop):
    """`CshogiLoop`, tuned: fewer calls per game, and NumPy over all games where possible."""

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
        """Play a random legal move in each game, and restart finished games."""
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
                self.rewards[index] = self._reward(board, new_moves) or 0.0
                board.reset()
                self._seen[index] = {board.zobrist_hash(): 1}
                legal[index] = list(board.legal_moves)

    def write_packed(self) -> None:
        """Write the positions in cshogi's Huffman coding."""
        for board, row in zip(self.boards, self._packed_rows, strict=True):
            board.to_hcp(row)

    def write_planes(self) -> None:
        """Write the planes of the positions, from the mover's point of view."""
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
        """Write the mask of legal actions."""
        self.mask.fill(False)
        counts = [len(moves) for moves in self.legal]
        moves = np.fromiter(chain.from_iterable(self.legal), dtype=np.int64, count=sum(counts))
        turns = np.repeat([board.turn for board in self.boards], counts)
        games = np.repeat(self._game_numbers, counts)
        self.mask[games, _action_table()[turns, moves & _MOVE_BITS]] = True


@cache
def _repetition_rewards() -> dict[int, float]:
    return {
        cshogi.REPETITION_DRAW: 0.0,
        cshogi.REPETITION_WIN: -1.0,  # the side to move wins: it was in perpetual check
        cshogi.REPETITION_LOSE: 1.0,
    }


def occurrences(board: Any) -> int:
    """Return how often the current position has occurred in its game, this time included."""
    key = board.zobrist_hash()
    earlier = board.copy()
    times = 1
    while earlier.history:
        earlier.pop()
        times += earlier.zobrist_hash() == key
    return times


def action_of(move: int, turn: int) -> int:
    """Return the policy index of a cshogi move, as ``docs/environment.md`` defines it."""
    squares = _SQUARES[turn]
    to: int = squares[cshogi.move_to(move)]
    if cshogi.move_is_drop(move):
        piece: int = cshogi.move_drop_hand_piece(move)
        return NUM_BOARD_ACTIONS + to * NUM_HAND_KINDS + piece
    origin: int = squares[cshogi.move_from(move)]
    promote: int = cshogi.move_is_promotion(move)
    return origin * 2 * (NUM_SQUARES - 1) + (to - (to > origin)) * 2 + promote


def _mover_squares() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the index of each cshogi square from the mover's point of view, for both colours.

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


def cshogi_perft(sfen: str, depth: int, *, plays_leaves: bool) -> Work:
    """Return perft over cshogi: the moves of the last ply are played, or only counted."""
    board, leaves = cshogi.Board(sfen), _cshogi_played if plays_leaves else _cshogi_counted
    return lambda: leaves(board, depth)


def _cshogi_counted(board: Any, depth: int) -> int:
    if depth == 1:
        return len(list(board.legal_moves))
    nodes = 0
    for move in board.legal_moves:
        board.push(move)
        nodes += _cshogi_counted(board, depth - 1)
        board.pop()
    return nodes


def _cshogi_played(board: Any, depth: int) -> int:
    if depth == 0:
        return 1
    nodes = 0
    for move in board.legal_moves:
        board.push(move)
        nodes += _cshogi_played(board, depth - 1)
        board.pop()
    return nodes


def rsshogi_perft(sfen: str, depth: int, *, plays_leaves: bool) -> Work:
    """Return perft over rsshogi, which has no perft of its own; see `cshogi_perft`."""
    from rsshogi.core import Board

    board, leaves = Board(), _rsshogi_played if plays_leaves else _rsshogi_counted
    board.set_sfen(sfen)
    return lambda: leaves(board, depth)


def _rsshogi_counted(board: Any, depth: int) -> int:
    if depth == 1:
        return len(board.legal_moves())
    nodes = 0
    for move in board.legal_moves():
        board.apply_move(move)
        nodes += _rsshogi_counted(board, depth - 1)
        board.undo_move(move)
    return nodes


def _rsshogi_played(board: Any, depth: int) -> int:
    if depth == 0:
        return 1
    nodes = 0
    for move in board.legal_moves():
        board.apply_move(move)
        nodes += _rsshogi_played(board, depth - 1)
        board.undo_move(move)
    return nodes
