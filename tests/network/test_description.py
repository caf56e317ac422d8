"""The description of the sparse network, and ``keisei describe`` with it."""

import json

import pytest

from keisei.commands.describe import describe
from keisei.config import load_config
from keisei.network.model_factory import describe_network, make_network, network_type
from keisei.network.sparse.sparse_network import weight_shapes
from keisei.shogi.row_groups import MOVE_ROWS, POSITION_ROWS
from tests.commands.invoke import invoke


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("model.accumulators=64", "model.hidden=16", "model.context=48"),
        ("model.move_rows=target",),
    ],
)
def test_no_parameter_is_left_out(settings: tuple[str, ...]) -> None:
    config = load_config(None, ("device.device=cpu", *settings))
    weights = make_network(config, config.device).weights()
    description = describe_network(config)
    assert description.parameters == sum(array.size for array in weights.values())
    assert {name: array.shape for name, array in weights.items()} == weight_shapes(config.model)


def test_rows_are_numbered_without_gaps() -> None:
    positions, moves = describe_network(load_config(None)).inputs
    for table, spec in ((positions, POSITION_ROWS), (moves, MOVE_ROWS)):
        assert table.size == spec.num_rows
        for group in table.groups:
            assert group.first == spec.first_row(group.name)


def test_multiplications_are_those_of_the_layers() -> None:
    config = load_config(None, ("model.accumulators=64", "model.hidden=16", "model.context=8"))
    macs = {part.name: part.macs for part in describe_network(config).parts}
    assert macs["position table"] == 100 * 64
    assert macs["hidden"] == 64 * 16
    assert macs["value"] == 16
    assert macs["policy context"] == 16 * 8
    assert macs["move table"] == 80 * (8 * 8 + 4)
    assert macs["move weight"] == 80 * 4


def test_the_command_shows_tables_of_rows() -> None:
    result = invoke(describe, "--set", "model.position_rows=pieces+hands")
    for text in (
        "position rows", "piece 28 x square 81", "9,072", "9072 - 9323", "move rows", "recapture",
        "SparseNetwork", "policy context",
    ):  # fmt: skip
        assert text in result.stdout
    assert "king_zone" not in result.stdout


def test_the_command_speaks_json() -> None:
    answer = json.loads(invoke(describe, "--json").stdout)
    sizes = {"position rows": POSITION_ROWS.num_rows, "move rows": MOVE_ROWS.num_rows}
    assert answer["input_sizes"] == sizes
    assert answer["inputs"][0]["groups"][0]["axes"].startswith("piece 28 x square 81")
    assert answer["parameters"] == sum(part["parameters"] for part in answer["parts"])


def test_every_type_has_a_description_and_a_file_format() -> None:
    for name in ("sparse", "resnet", "transformer"):
        assert network_type(name).describe
        assert "onnx" in network_type(name).exports
