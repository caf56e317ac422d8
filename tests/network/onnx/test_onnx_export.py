"""ONNX files say what torch says, on a thousand positions, for every model type and head."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor

from keisei import __version__
from keisei.constants import MOVE_BUFFER
from keisei.network import model_factory as factory
from keisei.network.loading import device_config
from keisei.network.onnx.onnx_export import export_onnx
from keisei.network.onnx.onnx_model import BATCH, OnnxError, OnnxModel, load_onnx, onnx_model
from keisei.network.towers.model import ActorCritic, ModelOutput
from keisei.network.towers.resnet import ActorCriticResTower
from keisei.shogi.features import feature_spec
from keisei.shogi.packed import Positions, new_packed, pack_game
from tests.network.onnx.stored import stored_network
from tests.network.towers.samples import MODEL_TYPES, POLICY_HEADS, VALUE_HEADS
from tests.positions import random_endgames, random_games

POSITIONS = 1000
VARIANTS = [
    *(
        {"type": model_type, "policy_head": policy, "value_head": value}
        for model_type, policy, value in itertools.product(MODEL_TYPES, POLICY_HEADS, VALUE_HEADS)
    ),
    {"activation": "silu", "se_ratio": 0.0},
    {"activation": "gelu", "type": "transformer", "se_ratio": 0.0},
    {"activation": "mish", "features": "core46+all"},
]


@pytest.fixture(scope="module")
def batch() -> Positions:
    """Positions of random games, and endgames with hands full of pieces and hundreds of moves."""
    packed = new_packed(POSITIONS)
    legal = np.zeros((POSITIONS, MOVE_BUFFER), dtype=np.uint16)
    counts = np.zeros(POSITIONS, dtype=np.int32)
    endgames = (game for game in random_endgames(2) if game.legal_moves)
    games = itertools.chain(itertools.islice(random_games(1), 600), endgames)
    for row, game in enumerate(itertools.islice(games, POSITIONS)):
        packed[row] = pack_game(game)[0]
        actions = game.legal_actions
        legal[row, : len(actions)], counts[row] = actions, len(actions)
    return Positions(packed, legal, counts)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "settings", VARIANTS, ids=lambda settings: "-".join(map(str, settings.values()))
)
def test_the_file_says_what_torch_says(settings: dict[str, object], batch: Positions) -> None:
    network = stored_network(**settings)  # type: ignore[arg-type]
    expected = network.network(device_config("cpu", 1)).predict(batch)
    answer = onnx_model(export_onnx(network), Path("mine.onnx"), threads=1).predict(batch)
    probabilities = np.exp(answer.log_probs)
    assert probabilities.shape[0] == POSITIONS
    assert np.abs(probabilities - np.exp(expected.log_probs)).max() < 1e-4
    assert np.abs(answer.values - expected.values).max() < 1e-4
    assert (np.isinf(answer.log_probs) == np.isinf(expected.log_probs)).all()
    assert (answer.log_probs.argmax(axis=1) == expected.log_probs.argmax(axis=1)).mean() > 0.99
    # The network has opinions: answers of another one would be far away.
    assert probabilities.max(axis=1).std() > 0.01
    assert answer.values.std() > 0.01
    assert (np.abs(answer.values) <= 1.0).all()


def test_a_position_is_judged_alike_alone_and_among_others(batch: Positions) -> None:
    model = onnx_model(export_onnx(stored_network()), Path("mine.onnx"), threads=1)
    together = model.predict(batch)
    for row in (0, BATCH - 1, BATCH, POSITIONS - 1):
        rows = slice(row, row + 1)
        alone = model.predict(batch.take(rows))
        number = int(batch.legal_counts[row])
        np.testing.assert_allclose(
            alone.log_probs[0, :number], together.log_probs[row, :number], atol=1e-5
        )
        assert alone.values[0] == pytest.approx(together.values[row], abs=1e-5)


def test_what_the_file_says_about_itself(tmp_path: Path) -> None:
    path = tmp_path / "renamed.onnx"
    path.write_bytes(export_onnx(stored_network("core46+check")))
    model = load_onnx(path, threads=1)
    assert model.name == "mine@192.onnx"
    assert model.identity.startswith("mine@192.onnx#")
    assert (model.facts.temperature, model.facts.mate_plies, model.facts.ply_limit) == (0.5, 3, 300)
    assert isinstance(model, OnnxModel)
    assert model.spec is feature_spec("core46+check")
    assert model.facts.weights_sha256 == "ab" * 32
    assert model.facts.keisei_version == __version__
    metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert metadata["keisei.format_version"] == "1"
    assert metadata["keisei.run"] == "mine"
    assert metadata["keisei.timestep"] == "192"
    assert metadata["keisei.features"] == "core46+check"
    assert metadata["keisei.plane_names"].endswith('"in check"]')


def test_a_network_trained_with_another_ply_limit_is_exported() -> None:
    """Before, the comparison read the plies with the limit of other games, and refused it."""
    network = stored_network()
    env = network.config.env.model_copy(update={"ply_limit": 20})
    config = network.config.model_copy(update={"env": env})
    assert export_onnx(replace(network, config=config))


def test_files_are_sound_onnx_and_the_same_each_time() -> None:
    data = export_onnx(stored_network())
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    assert data == export_onnx(stored_network())


def test_other_weights_have_another_identity() -> None:
    one = onnx_model(export_onnx(stored_network()), Path("a.onnx"))
    other = onnx_model(export_onnx(stored_network(tower_depth=1)), Path("b.onnx"))
    assert one.name == other.name
    assert one.identity != other.identity


class Undecided(ActorCriticResTower):
    """Looks at the board before it chooses what to compute: tracing sees one of the ways."""

    def forward_eager(self, planes: Tensor, legal: Tensor) -> ModelOutput:
        output = super().forward_eager(planes, legal)
        return output if planes.sum() == 0 else ModelOutput(-output.logits, output.value)


class Untraceable(ActorCriticResTower):
    """Computes what ONNX has no operator for."""

    def forward_eager(self, planes: Tensor, legal: Tensor) -> ModelOutput:
        output = super().forward_eager(planes, legal)
        return ModelOutput(torch.special.bessel_j0(output.logits), output.value)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Undecided, "mine@192: as ONNX its predictions would differ by up to 0"),
        (Untraceable, "Untraceable cannot be written as ONNX: .*bessel_j0"),
    ],
)
def test_networks_that_do_not_survive_the_way_are_refused(
    plugin: type[ActorCritic], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factory, "_registry", dict(factory._registry))
    factory.register_model("plugin")(plugin)
    with pytest.raises(OnnxError, match=message):
        export_onnx(stored_network(type="plugin"))
