"""Constants that cannot be configured: the sizes of the game and of its encodings."""

from enum import StrEnum
from typing import Final

BOARD_SIZE: Final = 9
NUM_SQUARES: Final = BOARD_SIZE * BOARD_SIZE
PROMOTION_ZONE_ROWS: Final = 3
PROMOTION_ZONE_SQUARES: Final = PROMOTION_ZONE_ROWS * BOARD_SIZE
"""The promotion zone in the mover's view: rows 0 to 2, squares 0 to 26."""

NUM_PIECE_KINDS: Final = 14
"""P L N S G B R K, then +P +L +N +S +B +R."""

NUM_HAND_KINDS: Final = 7
"""P L N S G B R: the kinds that can be held in hand and dropped."""

HAND_LIMITS: Final = (18, 4, 4, 4, 4, 2, 2)
"""Pieces of each hand kind in a set, which is the maximum that a hand can hold."""

NUM_BOARD_ACTIONS: Final = NUM_SQUARES * (NUM_SQUARES - 1) * 2
NUM_ACTIONS: Final = NUM_BOARD_ACTIONS + NUM_SQUARES * NUM_HAND_KINDS
"""13,527: every (from, to, promote) and every (to, piece) drop."""

MAX_LEGAL_MOVES: Final = 593
"""The largest number of legal moves that any position with both kings has."""

MOVE_BUFFER: Final = 1024
"""Buffer size for the legal moves of any position that can be set up, with or without both kings.

There are at most 567 drops; the pieces of one side, all on the board, have fewer than 400 moves.
"""

MAX_PLY: Final = 65_535
"""The largest ply that a position can count to."""

MAX_PLY_LIMIT: Final = 20_000
"""The largest `ply_limit`: the ply at which a game is a draw."""

MAX_MOVE_NUMBER: Final = 30_000
"""The largest move number that a position may be set up with."""

REPETITIONS_TO_END: Final = 4
"""The occurrence of a position that ends the game."""

BUILTIN: Final = "builtin"
"""Name of the network in the package."""


class WeightType(StrEnum):
    """How the weights are stored in a network file."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"
