"""Planes that are constant over the board go around the first convolution."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from keisei.config_schema import ModelConfig
from keisei.errors import ModelError
from keisei.network import model_factory as factory
from keisei.network.model_factory import build_model, model_factory, register_model
from keisei.network.towers.model import ActorCritic, lay_out
from keisei.network.towers.plane_split import PlaneSplit
from keisei.network.towers.resnet import ActorCriticResTower
from keisei.shogi.features import feature_spec
from tests.network.towers.samples import MODEL_TYPES, SMALL, positions, small_model

every_type = pytest.mark.parametrize("model_type", MODEL_TYPES)
every_set = pytest.mark.parametrize(
    "features", ["core46", "core46+all", "core46+check+last2ply+attacks"]
)


def joined_weights(model: ActorCritic, constant: tuple[int, ...]) -> dict[str, Tensor]:
    """Weights of the same network with one layer for all planes.

    Of a 3x3 kernel only the centre reads the constant planes, so that the edge has no effect.
    """
    state = dict(model.state_dict())
    values, varying = state.pop("trunk.constants.weight"), state["trunk.stem.weight"]
    others = [plane for plane in range(model.in_planes) if plane not in constant]
    joined = varying.new_zeros(varying.shape[0], model.in_planes, *varying.shape[2:])
    joined[:, others] = varying
    centre = joined[:, :, 1, 1] if joined.dim() == 4 else joined
    centre[:, list(constant)] = values
    return state | {"trunk.stem.weight": joined}


@pytest.mark.parametrize("channels_last", [False, True])
@every_set
@every_type
def test_it_equals_one_layer_of_all_planes(
    model_type: str, features: str, channels_last: bool
) -> None:
    model, spec = small_model(features, type=model_type), feature_spec(features)
    settings = ModelConfig.model_validate(SMALL).tower_settings()
    twin = model_factory(model_type, spec.num_planes, **settings)
    assert "trunk.constants.weight" not in twin.state_dict()
    twin.load_state_dict(joined_weights(model, spec.constant_planes))
    planes, legal, _ = positions(4, features)
    expected = twin(planes, legal)
    if channels_last:
        lay_out(model, torch.channels_last)
        planes = planes.contiguous(memory_format=torch.channels_last)
    got = model(planes, legal)
    torch.testing.assert_close(got.logits, expected.logits, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(got.value, expected.value, rtol=1e-4, atol=1e-6)


def test_inside_the_board_it_equals_any_convolution() -> None:
    """Away from the edge a constant plane adds the sum of its kernel, whatever the kernel is."""
    spec = feature_spec("core46+hand_onehot")
    constant = list(spec.constant_planes)
    full: Any = nn.Conv2d(spec.num_planes, 16, 3, padding=1)
    trunk: Any = small_model(spec.name, tower_depth=1).trunk
    with torch.no_grad():
        others = [plane for plane in range(spec.num_planes) if plane not in constant]
        trunk.stem.weight.copy_(full.weight[:, others])
        trunk.stem.bias.copy_(full.bias)
        trunk.constants.weight.copy_(full.weight[:, constant].sum(dim=(2, 3)))
    trunk.blocks, trunk.activation = nn.Sequential(), nn.Identity()
    planes = positions(3, spec.name).planes
    expected, got = full(planes), trunk(planes).transpose(1, 2).unflatten(2, (9, 9))
    torch.testing.assert_close(got[:, :, 1:8, 1:8], expected[:, :, 1:8, 1:8])
    assert (got - expected).abs()[:, :, 0].max() > 0.01, "the convolution sees zeros beyond it"


@every_set
@every_type
def test_constant_planes_change_all_squares_alike(model_type: str, features: str) -> None:
    trunk: Any = small_model(features, type=model_type).trunk
    inputs: list[Tensor] = []
    trunk.blocks[0].register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    trunk.activation = nn.Identity()  # of the residual tower: before it, effects just add up
    planes = positions(2, features).planes
    other = planes.clone()
    other[:, list(feature_spec(features).constant_planes)] += torch.rand(1)
    trunk(planes)
    trunk(other)
    change = inputs[1] - inputs[0]
    by_square = change.flatten(2).transpose(1, 2) if change.dim() == 4 else change
    assert by_square.abs().max() > 0.01
    torch.testing.assert_close(by_square, by_square[:, :1].expand_as(by_square), rtol=0, atol=1e-5)


@every_type
def test_both_parts_start_as_one_layer_does(model_type: str) -> None:
    """The scale of the input layer's output does not depend on how planes are divided."""
    features = feature_spec("core46")
    torch.manual_seed(0)
    config = ModelConfig(type=model_type, tower_width=512, tower_depth=1)
    one_layer: Any = model_factory(model_type, 46, **config.tower_settings()).trunk
    trunk: Any = build_model(config, features).trunk
    whole = one_layer.stem.weight
    taps = 9 if whole.dim() == 4 else 1
    spread = whole.std().item()
    assert trunk.stem.weight.std().item() == pytest.approx(spread, rel=0.03)
    assert trunk.constants.weight.std().item() == pytest.approx(spread * taps**0.5, rel=0.03)


@pytest.mark.parametrize(
    ("constant", "message"),
    [
        ([4], "must be from 0 to 3"),
        ([-1], "must be from 0 to 3"),
        ([0, 1, 2, 3], "all planes are constant"),
    ],
)
def test_impossible_splits_are_refused(constant: list[int], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        PlaneSplit(4, constant)


def test_planes_are_divided_in_order() -> None:
    planes = torch.arange(6.0).view(1, 6, 1, 1).expand(2, 6, 9, 9)
    split = PlaneSplit(6, [4, 1, 0])
    assert (split.varying, split.constant) == ((2, 3, 5), (0, 1, 4))
    assert split.varying_planes(planes)[0, :, 3, 3].tolist() == [2, 3, 5]
    assert split.constant_values(planes).tolist() == [[0, 1, 4]] * 2
    assert PlaneSplit(6, []).constant_layer(8, 1.0) is None


def test_a_plug_in_need_not_know_about_constant_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "_registry", dict(factory._registry))

    @register_model("plain")
    def make(in_planes: int, **settings: object) -> ActorCritic:
        return ActorCriticResTower(in_planes, **settings)  # type: ignore[arg-type]

    config = ModelConfig.model_validate(SMALL | {"type": "plain"})
    model = build_model(config, feature_spec("core46"))
    assert model.trunk.constant_planes == ()
    assert "trunk.constants.weight" not in model.state_dict()
