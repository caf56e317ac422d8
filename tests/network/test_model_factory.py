"""Model types by name."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from keisei.config_schema import AppConfig, DeviceConfig, ModelConfig
from keisei.errors import DeviceError, KeiseiError, ModelError
from keisei.network import model_factory as factory
from keisei.network.model_factory import (
    build_model,
    check_model,
    make_network,
    model_factory,
    register_model,
    registered_models,
)
from keisei.network.sparse.sparse_network import SparseNetwork
from keisei.network.towers.resnet import ActorCriticResTower
from keisei.network.towers.transformer import SquareTransformer
from keisei.shogi.features import feature_spec

SETTINGS: dict[str, Any] = {
    "tower_depth": 1,
    "tower_width": 8,
    "se_ratio": 0.5,
    "activation": "relu",
    "policy_head": "from_to",
    "policy_width": 4,
    "value_head": "tanh",
    "value_width": 4,
}


@pytest.fixture
def free_name(monkeypatch: pytest.MonkeyPatch) -> str:
    """A name that can be registered, and is forgotten after the test."""
    monkeypatch.setattr(factory, "_registry", dict(factory._registry))
    return "tiny"


@pytest.mark.parametrize(
    ("model_type", "expected"),
    [("resnet", ActorCriticResTower), ("transformer", SquareTransformer)],
)
def test_types_have_names(model_type: str, expected: type) -> None:
    model = model_factory(model_type, 47, **SETTINGS)
    assert type(model) is expected
    assert model.in_planes == 47


def test_the_defaults_of_the_configuration_build() -> None:
    config = AppConfig()
    assert isinstance(make_network(config, config.device), SparseNetwork)
    model = build_model(ModelConfig(type="resnet"), feature_spec("core46"))
    assert isinstance(model, ActorCriticResTower)
    assert model.trunk.width == ModelConfig().tower_width


def test_a_sparse_network_has_no_torch_model() -> None:
    check_model(ModelConfig(), feature_spec("core46"))
    with pytest.raises(ModelError, match="'sparse' has no torch model; use make_network"):
        build_model(ModelConfig(), feature_spec("core46"))
    with pytest.raises(DeviceError, match=r"computes on the CPU, not on cuda.*model\.type=resnet"):
        make_network(AppConfig(), DeviceConfig(device="cuda"))


def test_an_unknown_type_is_refused_with_a_list() -> None:
    with pytest.raises(KeiseiError, match="'mlp' does not exist; there are sparse, resnet, tr"):
        model_factory("mlp", 46, **SETTINGS)


@pytest.mark.parametrize(
    ("model_type", "wrong", "message"),
    [
        ("resnet", {"tower_depth": 0}, "tower_depth is 0"),
        ("resnet", {"tower_width": -4}, "tower_width is -4"),
        ("transformer", {"tower_depth": 0}, "tower_depth is 0"),
        ("transformer", {"tower_width": 10}, "must be a multiple of its 4 attention heads"),
        ("transformer", {"se_ratio": -0.1}, "se_ratio is -0.1"),
        ("resnet", {"blocks": 3}, "model type 'resnet': got an unexpected keyword argument 'blo"),
    ],
)
def test_impossible_settings_are_refused(
    model_type: str, wrong: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        model_factory(model_type, 46, **(SETTINGS | wrong))


def test_missing_settings_are_named() -> None:
    incomplete = {name: value for name, value in SETTINGS.items() if name != "activation"}
    with pytest.raises(ModelError, match=r"missing a required .*'activation'"):
        model_factory("resnet", 46, **incomplete)


def test_a_type_is_one_registration(free_name: str) -> None:
    @register_model(free_name)
    class Tiny(ActorCriticResTower):
        pass

    # Plug-ins that are installed here come last.
    assert registered_models()[:4] == ("sparse", "resnet", "transformer", free_name)
    assert type(model_factory(free_name, 46, **SETTINGS)) is Tiny
    with pytest.raises(ValueError, match="already a model type 'tiny'"):
        register_model(free_name)(Tiny)


def test_plug_ins_are_found_by_their_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = EntryPoint(
        "theirs", "keisei.network.towers.transformer:SquareTransformer", factory.PLUGIN_GROUP
    )

    def entry_points(*, group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == factory.PLUGIN_GROUP
        return [plugin] if name in (None, plugin.name) else []

    monkeypatch.setattr(factory, "entry_points", entry_points)
    assert type(model_factory("theirs", 46, **SETTINGS)) is SquareTransformer
    with pytest.raises(ModelError, match="there are sparse, resnet, transformer, theirs"):
        model_factory("others", 46, **SETTINGS)
