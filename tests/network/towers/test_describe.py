"""``keisei describe`` and what is behind it."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from keisei.commands.describe import describe
from keisei.errors import KeiseiError
from keisei.network.towers.describe import describe_model
from keisei.shogi.features import feature_spec
from tests.network.towers.samples import MODEL_TYPES, POLICY_HEADS, small_model


def keisei_describe(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(describe)
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


@pytest.mark.parametrize("policy_head", POLICY_HEADS)
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_no_parameter_is_left_out(model_type: str, policy_head: str) -> None:
    model = small_model("core46+all", type=model_type, policy_head=policy_head)
    description = describe_model(model, feature_spec("core46+all"))
    assert description.parameters == sum(p.numel() for p in model.parameters())
    (planes,) = description.inputs
    assert planes.size == model.in_planes == 168
    names = [part.name for part in description.parts]
    assert names[-2:] == ["policy", "value"]
    assert {"trunk.stem", "trunk.constants", "trunk.blocks.0", "trunk.blocks.1"} < set(names)


def test_multiplications_are_those_of_the_layers() -> None:
    model = small_model(se_ratio=0.0)
    macs = {part.name: part.macs for part in describe_model(model, feature_spec("core46")).parts}
    assert macs["trunk.stem"] == 81 * 9 * 28 * 16
    assert macs["trunk.constants"] == 18 * 16
    assert macs["trunk.blocks.0"] == macs["trunk.blocks.1"] == 2 * 81 * 9 * 16 * 16
    assert macs["policy"] == 81 * 16 * (3 * 8 + 7) + 81 * 162 * 8


def test_attention_is_counted() -> None:
    model = small_model(type="transformer", se_ratio=0.0)
    description = describe_model(model, feature_spec("core46"))
    linear = 81 * 16 * (3 * 16 + 16 + 2 * 2 * 16)
    attention = 2 * 81 * 81 * 16
    block = next(part for part in description.parts if part.name == "trunk.blocks.0")
    assert block.macs == linear + attention


def test_the_command_shows_tables() -> None:
    result = keisei_describe(
        *("--model", "resnet", "--tower_depth", "3", "--input_features", "core46+check")
    )
    assert result.exit_code == 0
    for text in ("ActorCriticResTower", "trunk.blocks.2", "policy", "core46", "check", "46 - 46"):
        assert text in result.stdout
    assert "trunk.blocks.3" not in result.stdout


def test_the_command_speaks_json(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("model: {type: transformer, tower_width: 32}\n", encoding="utf-8")
    result = keisei_describe("--config", str(file), "--set", "model.value_head=wdl", "--json")
    answer = json.loads(result.stdout)
    assert answer["model"] == "SquareTransformer"
    assert answer["config"]["tower_width"] == 32
    assert answer["config"]["value_head"] == "wdl"
    assert answer["features"] == "core46"
    assert answer["input_sizes"] == {"input": 46}
    assert answer["parameters"] == sum(part["parameters"] for part in answer["parts"])
    assert answer["macs_per_position"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model", "mlp"],
        ["--tower_depth", "0"],
        ["--model", "transformer", "--tower_width", "30"],
        ["--input_features", "core45"],
    ],
)
def test_the_impossible_is_explained(arguments: list[str]) -> None:
    with pytest.raises(KeiseiError):
        keisei_describe(*arguments)
