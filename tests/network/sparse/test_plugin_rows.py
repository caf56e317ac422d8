"""Networks with rows of plug-ins: their files play as they do, by a search that calls Python."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.network.loading import StoredNetwork, device_config, load_network
from keisei.network.network_file import export_network_file
from keisei.network.onnx.sparse_onnx import export_sparse_onnx
from keisei.search.game_search import GameSearch
from keisei.search.mcts import TreeSearch
from keisei.search.sparse_simulation import SparseThreads
from keisei.shogi import row_groups
from keisei.shogi.game import ShogiGame
from keisei.shogi.row_groups import registered_rows
from keisei.shogi.row_numbering import Table
from keisei.shogi.vector import VectorShogi
from tests.network.sparse.samples import some_positions
from tests.network.sparse_stored import stored_sparse

pytestmark = pytest.mark.usefixtures("plugins")

SIMULATIONS = 40
NUM_PAWNS, NUM_DROPS = 19, 2
"""Rows of the fixture's plug-ins."""

formats = pytest.mark.parametrize(
    ("suffix", "export"), [(".keisei", export_network_file), (".onnx", export_sparse_onnx)]
)
Export = Callable[[StoredNetwork], bytes]


@pytest.fixture
def stored() -> StoredNetwork:
    return stored_sparse(position_rows="all+mover_pawns", move_rows="all+drops")


def exported(stored: StoredNetwork, export: Export, file: Path) -> Path:
    file.write_bytes(export(stored))
    return file


@formats
def test_a_file_predicts_as_the_network(
    suffix: str, export: Export, stored: StoredNetwork, tmp_path: Path
) -> None:
    file = exported(stored, export, tmp_path / f"mine{suffix}")
    positions = some_positions(20)
    log_probs, values = stored.network(device_config("cpu", 1)).predict(positions)
    found = load_network(file, threads=1).predictor.predict(positions)
    np.testing.assert_allclose(np.exp(found.log_probs), np.exp(log_probs), atol=1e-5)
    np.testing.assert_allclose(found.values, values, atol=1e-5)


def test_the_rows_matter(stored: StoredNetwork) -> None:
    """Rows of plug-ins are the last of the tables; without their weights predictions differ."""
    positions, network = some_positions(20), stored.network(device_config("cpu", 1))
    log_probs, values = network.predict(positions)
    without = {name: array.copy() for name, array in stored.weights.items()}
    without["position_table"][-NUM_PAWNS:] = 0.0
    without["move_table"][-NUM_DROPS:] = 0.0
    network.load_weights(without)
    others = network.predict(positions)
    assert not np.allclose(others.values, values, atol=1e-2)
    assert not np.allclose(np.exp(others.log_probs), np.exp(log_probs), atol=1e-2)


@formats
def test_a_file_is_searched(
    suffix: str, export: Export, stored: StoredNetwork, tmp_path: Path
) -> None:
    """The kernel of the search can't call plug-ins: the network is asked in batches."""
    network = stored.network(device_config("cpu", 1))
    player = load_network(exported(stored, export, tmp_path / f"mine{suffix}"), threads=1).predictor
    assert SparseThreads.of(network) is SparseThreads.of(player) is None
    env = VectorShogi(4, seed=3, opening_plies=50)
    games = np.arange(env.num_games)
    expected, found = (
        TreeSearch(one, SIMULATIONS, mate_plies=0).search(env, games) for one in (network, player)
    )
    assert (found.visits.sum(axis=1) == SIMULATIONS).all()
    np.testing.assert_array_equal(found.legal_indices, expected.legal_indices)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-3)
    search = GameSearch(player, megabytes=4)
    search.begin(ShogiGame(), ply_limit=512)
    while search.simulations < SIMULATIONS:
        assert search.step(SIMULATIONS - search.simulations)
    assert sum(line.visits for line in search.variations(30)) == SIMULATIONS


@formats
@pytest.mark.parametrize(("table", "name"), [("move", "drops"), ("position", "mover_pawns")])
def test_a_file_names_the_plug_in_that_is_missing(
    table: Table,
    name: str,
    suffix: str,
    export: Export,
    stored: StoredNetwork,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = exported(stored, export, tmp_path / f"mine{suffix}")
    left = [group for group in registered_rows(table) if group.name != name]
    monkeypatch.setitem(row_groups._registry, table, left)
    with pytest.raises(KeiseiError, match=f"its {table} rows '{name}' are unknown here"):
        load_network(file)
