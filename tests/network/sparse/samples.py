"""Small sparse networks and positions to try them on."""

import itertools
from collections.abc import Iterator

import numpy as np

from keisei.config_schema import ModelConfig
from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.sparse.active_rows import ActiveRows, RowReader
from keisei.network.sparse.sparse_network import SparseNetwork
from keisei.shogi.features import feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions, new_packed, pack_game
from tests.positions import random_endgames, random_games

SMALL = {"accumulators": 16, "hidden": 8, "context": 8}


def small_network(
    *, threads: int = 1, seed: int = 0, position_rows: str = "all", move_rows: str = "all"
) -> SparseNetwork:
    """A network whose random weights make its policy uneven and clip many of its units."""
    model = ModelConfig(**SMALL, position_rows=position_rows, move_rows=move_rows)
    network = SparseNetwork.new(model, feature_spec("core46"), threads=threads, seed=seed)
    random = np.random.default_rng(seed)
    for name, array in network.weights().items():
        scale = 0.2 if name.endswith("table") else 0.4
        array[...] = random.normal(0.0, scale, array.shape)
    return network


def some_games(number: int, *, seed: int = 1) -> Iterator[ShogiGame]:
    """Positions of random games, and random endgames with at least one legal move."""
    played = itertools.islice(random_games(seed), 0, None, 9)
    endings = (game for game in random_endgames(seed) if game.legal_moves)
    return itertools.islice(
        (game for pair in zip(played, endings, strict=False) for game in pair), number
    )


def some_positions(number: int, *, seed: int = 1) -> Positions:
    packed = new_packed(number)
    legal = np.zeros((number, MAX_LEGAL_MOVES), dtype=np.uint16)
    counts = np.zeros(number, dtype=np.int32)
    for index, game in enumerate(some_games(number, seed=seed)):
        packed[index] = pack_game(game)[0]
        counts[index] = len(game.legal_actions)
        legal[index, : counts[index]] = game.legal_actions
    return Positions(packed, legal, counts)


def rows_of(network: SparseNetwork, positions: Positions) -> list[ActiveRows]:
    return RowReader(network.position_spec, network.move_spec).read(positions)
