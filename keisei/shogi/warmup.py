"""Compile every kernel once, so that later calls, and worker processes, find them in the cache."""

from collections.abc import Callable

import numpy as np

from keisei.shogi.features import feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import mirror_packed, pack_game, unpack_diagram
from keisei.shogi.perft import perft
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


def _vector() -> None:
    env = VectorShogi(1)
    env.step(env.sample_actions())
    env.legal_mask()


def _planes() -> None:
    for dtype in (np.float32, np.uint16, np.uint8):
        feature_spec("core46+all").encode(pack_game(ShogiGame()), dtype=dtype)
