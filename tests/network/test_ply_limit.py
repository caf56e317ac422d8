"""Networks count plies as in their training, whatever the ply limit of the game they play."""

from pathlib import Path

import numpy as np
import pytest

from keisei.analysis.position_analysis import analyze_position
from keisei.network.loading import StoredNetwork
from keisei.network.model_factory import make_network
from keisei.network.network_file import export_network_file, read_network_file
from keisei.network.predictor import Network, Prediction
from keisei.search.game_search import GameSearch
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions, pack_game
from tests.tiny import tiny_config

TRAINED = 256


@pytest.fixture(scope="module", params=["resnet", "sparse"])
def network(request: pytest.FixtureRequest) -> Network:
    """A network whose prediction depends on the ply."""
    config = tiny_config(f"model.type={request.param}", f"env.ply_limit={TRAINED}")
    network = make_network(config, config.device)
    random = np.random.default_rng(3)
    network.load_weights(
        {
            name: (random.normal(size=array.shape) / 3).astype(array.dtype)
            if array.dtype == np.float32 and "var" not in name
            else array.copy()
            for name, array in network.weights().items()
        }
    )
    return network


def positions_at(ply: int, ply_limit: int) -> Positions:
    """The start of the game, as if it had been reached at another ply."""
    game = ShogiGame(ply_limit=ply_limit)
    packed = pack_game(game)
    packed.ply = ply
    legal = game.legal_actions
    return Positions(packed, legal[None], np.array([len(legal)], dtype=np.int32))


def test_the_limit_of_a_game_changes_nothing(network: Network) -> None:
    def predicted(ply: int, ply_limit: int) -> Prediction:
        return network.predict(positions_at(ply, ply_limit))

    values = [float(predicted(ply, TRAINED).values[0]) for ply in range(0, TRAINED, 16)]
    assert len({round(value, 6) for value in values}) > 3, "it reads the ply"
    for ply in (0, 40, 100, 3 * TRAINED // 4):
        expected = predicted(ply, TRAINED)
        for limit in (512, 20_000):
            found = predicted(ply, limit)
            assert np.array_equal(found.values, expected.values)
            assert np.array_equal(found.log_probs, expected.log_probs)
    late = predicted(3 * TRAINED // 4, TRAINED).values
    assert predicted(300, 512).values == late, "a game that does not end soon is not said to"
    assert predicted(511, 512).values == predicted(TRAINED - 1, TRAINED).values


def test_copies_count_alike(network: Network) -> None:
    positions = positions_at(100, 512)
    assert network.copy().predict(positions).values == network.predict(positions).values


def test_searches_count_alike(network: Network) -> None:
    """Also the kernel that evaluates leaves itself."""
    lines = []
    for ply_limit in (TRAINED, 512, 20_000):
        search = GameSearch(network, batch_size=1, megabytes=4)
        search.begin(ShogiGame(), ply_limit=ply_limit)
        while search.simulations < 50:
            search.step(1)
        lines.append(search.variations(30))
    assert lines[0] == lines[1] == lines[2]


def test_analyses_count_alike(network: Network) -> None:
    games = [ShogiGame(ply_limit=ply_limit) for ply_limit in (TRAINED, 512)]
    first, second = (analyze_position(game, network) for game in games)
    assert first.value == second.value


def test_files_know_the_limit(tmp_path: Path) -> None:
    config = tiny_config("model.type=sparse", f"env.ply_limit={TRAINED}")
    weights = make_network(config, config.device).weights()
    stored = StoredNetwork(tmp_path, weights, config, 64, "0" * 64, "run")
    path = tmp_path / "network.keisei"
    path.write_bytes(export_network_file(stored))
    assert read_network_file(path).config.env.ply_limit == TRAINED
