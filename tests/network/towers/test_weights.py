"""Weights of one network in another."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from keisei.config_schema import ModelConfig
from keisei.errors import KeiseiError
from keisei.network.model_factory import build_model
from keisei.network.towers.model import ActorCritic
from keisei.network.towers.weights import load_weights
from keisei.shogi.features import Feature, FeatureSpec, feature_spec
from tests.network.towers.samples import MODEL_TYPES, SMALL, Positions, positions, small_model

every_type = pytest.mark.parametrize("model_type", MODEL_TYPES)


def weights_of(model: ActorCritic) -> dict[str, Tensor]:
    """A copy of a model's weights."""
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def names(features: str) -> tuple[str, ...]:
    return feature_spec(features).plane_names


def seen_by_both(before: str, after: str) -> tuple[Positions, Positions]:
    """The same positions in two feature sets; planes that only one has are blank."""
    ours, theirs = positions(4, before), positions(4, after)
    for batch, own, other in ((ours, before, after), (theirs, after, before)):
        for i, name in enumerate(names(own)):
            if name not in names(other):
                batch.planes[:, i] = 0
    return ours, theirs


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("core46", "core46+check"),
        ("core46+all", "core46"),
        ("core46+last2ply", "core46+check+last2ply"),  # by position, check would shift them
        ("core46+repetition+prom_zone", "core46+prom_zone+hand_onehot"),
        ("core46+hand_onehot+attacks", "core46+check+attacks"),
    ],
)
@every_type
def test_planes_are_matched_by_name(model_type: str, before: str, after: str) -> None:
    old, new = small_model(before, type=model_type), small_model(after, type=model_type)
    notes = load_weights(
        new,
        weights_of(old),
        features_from=feature_spec(before),
        features_to=feature_spec(after),
    )
    assert any("matched by name" in note for note in notes)
    ours, theirs = seen_by_both(before, after)
    expected, got = old(*ours[:2]), new(*theirs[:2])
    torch.testing.assert_close(got.logits, expected.logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(got.value, expected.value, rtol=1e-4, atol=1e-5)


@every_type
def test_new_planes_are_ignored_at_first(model_type: str) -> None:
    old, new = small_model("core46", type=model_type), small_model("core46+all", type=model_type)
    load_weights(new, weights_of(old))
    ours, theirs = positions(4, "core46"), positions(4, "core46+all")
    torch.testing.assert_close(new(*theirs[:2]).logits, old(*ours[:2]).logits, rtol=1e-4, atol=1e-5)


def test_without_names_planes_are_matched_by_position() -> None:
    wide, narrow = small_model("core46+all"), small_model("core46")
    state = weights_of(wide)
    notes = load_weights(narrow, state)
    assert notes[0] == "trunk.stem.weight: 70 planes adapted to 28, 28 matched by position"
    assert "weights left out: plane 28, plane 29" in notes[1]
    assert notes[1].endswith("and 34 more")
    assert notes[2] == "trunk.constants.weight: 98 planes adapted to 18, 18 matched by position"
    assert notes[3].endswith("and 72 more")
    again = small_model("core46+all")
    load_weights(again, weights_of(narrow))
    for name, kept in (("trunk.stem.weight", 28), ("trunk.constants.weight", 18)):
        assert torch.equal(narrow.state_dict()[name], state[name][:, :kept])
        new = again.state_dict()[name]
        assert torch.equal(new[:, :kept], state[name][:, :kept])
        assert not new[:, kept:].any()


def spec_of(features: str, *, order: Sequence[int]) -> FeatureSpec:
    """The planes of a feature set at some indices, in that order; they cannot be written."""
    spec = feature_spec(features)
    constant = frozenset(spec.plane_names[i] for i in spec.constant_planes)
    planes = tuple(spec.plane_names[i] for i in order)

    def write(*_: object) -> None:
        raise NotImplementedError

    return FeatureSpec((Feature("some", planes, write, True, constant & set(planes)),))


def test_the_same_planes_in_another_order_are_put_in_order() -> None:
    order = torch.randperm(46).tolist()
    shuffled = spec_of("core46", order=order)
    old, new = small_model(), build_model(ModelConfig.model_validate(SMALL), shuffled)
    notes = load_weights(
        new, weights_of(old), features_from=feature_spec("core46"), features_to=shuffled
    )
    assert notes == [
        "trunk.stem.weight: 28 planes adapted to 28, 28 matched by name",
        "trunk.constants.weight: 18 planes adapted to 18, 18 matched by name",
    ]
    batch = positions(2)
    torch.testing.assert_close(
        new(batch.planes[:, order], batch.legal).logits, old(batch.planes, batch.legal).logits
    )


def test_weights_that_fit_are_copied_without_a_note() -> None:
    old, new = small_model(), small_model()
    assert load_weights(new, old.state_dict(), features_from=feature_spec("core46")) == []
    assert all(
        torch.equal(a, b)
        for a, b in zip(old.state_dict().values(), new.state_dict().values(), strict=True)
    )


def test_what_does_not_fit_is_named_with_both_shapes() -> None:
    model = small_model()
    before = weights_of(model)
    for other, message in (
        (small_model(value_width=4), r"value.hidden.weight: .* \(4, 194\), .* needs \(8, 194\)"),
        (small_model(tower_width=8), r"trunk.stem.weight: .* \(8, 28, 3, 3\).*\(16, 28, 3, 3\)"),
        (small_model("core46+prom_zone", tower_width=8), r"\(8, 30, 3, 3\).*\(16, 28, 3, 3\)"),
        (small_model(tower_depth=4), "the model has no trunk.blocks.2.conv1.weight .* and 8 more"),
        (small_model(tower_depth=1), r"they lack trunk.blocks.1.conv1.weight \(16, 16, 3, 3\)"),
        (small_model(type="transformer"), "they lack .* the model has no"),
    ):
        with pytest.raises(KeiseiError, match=message):
            load_weights(model, weights_of(other))
    flattened = before | {"trunk.stem.weight": before["trunk.stem.weight"].flatten(1)}
    with pytest.raises(KeiseiError, match=r"trunk.stem.weight: .* \(16, 252\)"):
        load_weights(model, flattened)
    assert all(torch.equal(before[name], new) for name, new in model.state_dict().items())


def test_features_have_to_fit_the_weights() -> None:
    state, core46 = weights_of(small_model()), feature_spec("core46")
    with pytest.raises(KeiseiError, match=r"constants.weight reads 18 planes, .*_from has 19 for"):
        load_weights(
            small_model(), state, features_from=feature_spec("core46+check"), features_to=core46
        )
    twice = spec_of("core46", order=[0, *range(45)])
    with pytest.raises(KeiseiError, match=r"stem.weight reads 28 planes, .*_to has 29 .* 28 diff"):
        load_weights(small_model(), state, features_from=core46, features_to=twice)


@every_type
def test_one_of_the_networks_may_have_no_constant_planes(model_type: str) -> None:
    """Then it has no layer for them: the other's layer starts at zero, or is left out."""
    config = ModelConfig.model_validate(SMALL | {"type": model_type})
    pieces, core46 = spec_of("core46", order=range(28)), feature_spec("core46")
    old, new = build_model(config, pieces), build_model(config, core46)
    batch = positions(2)
    batch.planes[:, 28:] = 0
    notes = load_weights(new, weights_of(old), features_from=pieces, features_to=core46)
    assert notes[1].startswith("trunk.constants.weight: new planes start at zero: own hand P")
    expected = old(batch.planes[:, :28], batch.legal).logits
    torch.testing.assert_close(new(batch.planes, batch.legal).logits, expected)
    torch.testing.assert_close(new(positions(2).planes, batch.legal).logits, expected)

    other = small_model(type=model_type)
    load_weights(old, weights_of(other), features_from=core46, features_to=pieces)
    expected = other(batch.planes, batch.legal).logits
    torch.testing.assert_close(old(batch.planes[:, :28], batch.legal).logits, expected)
    with pytest.raises(KeiseiError, match=r"the model has no trunk.constants.weight \(16, 18\)"):
        load_weights(old, weights_of(other))
