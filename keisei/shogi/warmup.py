"""Compile every kernel once, so that later calls, and worker processes, find them in the cache."""

from collections.abc import Callable

import numpy as np

from keisei.constants import MAX_LEGAL_MOVES
from keisei.shogi.features import feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import legal_from_packed, mirror_packed, pack_game, unpack_diagram
from keisei.shogi.perft import perft
from keisei.shogi.position import new_positions
from keisei.shogi.vector import VectorShogi


def kernels() -> list[tuple[str, Callable[[], None]]]:
    """Groups of kernels: what each is for, and a function that compiles it (or loads it)."""
    return [
        ("moves and rules", _one_game),
        ("perft", _perft),
        ("packed positions", _packed),
        ("many games at once", _vector),
        ("observation planes", _planes),
    ]


def _one_game() -> None:
    game = ShogiGame()
    game.push("7g7f")
    game.outcome(claim_declaration=True)
    _ = game.can_declare
    game.pop()


def _perft() -> None:
    perft(ShogiGame().position, 2)


def _packed() -> None:
    packed = pack_game(ShogiGame())
    mirror_packed(packed, packed)
    unpack_diagram(packed[0])
    legal, counts = np.zeros((1, MAX_LEGAL_MOVES), np.uint16), np.zeros(1, np.int32)
    legal_from_packed(packed, legal, counts, new_positions(2), 0, 1)


def _vector() -> None:
    env = VectorShogi(1)
    env.step(env.sample_actions())
    env.mates_in_one()
    env.legal_mask()


def _planes() -> None:
    for dtype in (np.float32, np.uint16, np.uint8):
        feature_spec("core46+all").encode(pack_game(ShogiGame()), dtype=dtype)
