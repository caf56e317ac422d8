"""Weights of one network in another."""

import pytest
import torch
from torch import Tensor

from keisei.errors import KeiseiError
from keisei.network.towers.model import ActorCritic
from keisei.network.towers.weights import load_weights
from keisei.shogi.features import feature_spec
from tests.network.towers.samples import MODEL_TYPES, Positions, positions, small_model

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
    ],
)
@every_type
def test_planes_are_matched_by_name(model_type: str, before: str, after: str) -> None:
    old, new = small_model(before, type=model_type), small_model(after, type=model_type)
    notes = load_weights(new, weights_of(old), planes_from=names(before), planes_to=names(after))
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
    assert notes[0] == "trunk.stem.weight: 132 planes adapted to 46, 46 matched by position"
    assert "weights left out: plane 46, plane 47" in notes[1]
    assert notes[1].endswith("and 78 more")
    assert torch.equal(narrow.state_dict()["trunk.stem.weight"], state["trunk.stem.weight"][:, :46])
    again = small_model("core46+all")
    load_weights(again, weights_of(narrow))
    stem = again.state_dict()["trunk.stem.weight"]
    assert torch.equal(stem[:, :46], state["trunk.stem.weight"][:, :46])
    assert not stem[:, 46:].any()


def test_the_same_planes_in_another_order_are_put_in_order() -> None:
    old, new = small_model(), small_model()
    order = torch.randperm(46)
    shuffled = [names("core46")[i] for i in order]
    notes = load_weights(new, weights_of(old), planes_from=names("core46"), planes_to=shuffled)
    assert notes == ["trunk.stem.weight: 46 planes adapted to 46, 46 matched by name"]
    batch = positions(2)
    torch.testing.assert_close(
        new(batch.planes[:, order], batch.legal).logits, old(batch.planes, batch.legal).logits
    )


def test_weights_that_fit_are_copied_without_a_note() -> None:
    old, new = small_model(), small_model()
    assert load_weights(new, old.state_dict(), planes_from=names("core46"), planes_to=None) == []
    assert all(
        torch.equal(a, b)
        for a, b in zip(old.state_dict().values(), new.state_dict().values(), strict=True)
    )


def test_what_does_not_fit_is_named_with_both_shapes() -> None:
    model = small_model()
    before = weights_of(model)
    for other, message in (
        (small_model(value_width=4), r"value.hidden.weight: .* \(4, 194\), .* needs \(8, 194\)"),
        (small_model(tower_width=8), r"trunk.stem.weight: .* \(8, 46, 3, 3\).*\(16, 46, 3, 3\)"),
        (small_model("core46+check", tower_width=8), r"\(8, 47, 3, 3\).*\(16, 46, 3, 3\)"),
        (small_model(tower_depth=4), "the model has no trunk.blocks.2.conv1.weight .* and 8 more"),
        (small_model(tower_depth=1), r"they lack trunk.blocks.1.conv1.weight \(16, 16, 3, 3\)"),
        (small_model(type="transformer"), "they lack .* the model has no"),
    ):
        with pytest.raises(KeiseiError, match=message):
            load_weights(model, weights_of(other))
    flattened = before | {"trunk.stem.weight": before["trunk.stem.weight"].flatten(1)}
    with pytest.raises(KeiseiError, match=r"trunk.stem.weight: .* \(16, 414\)"):
        load_weights(model, flattened)
    assert all(torch.equal(before[name], new) for name, new in model.state_dict().items())


def test_plane_names_have_to_fit_the_weights() -> None:
    state = weights_of(small_model())
    with pytest.raises(KeiseiError, match="46 planes, but planes_from has 47 different names"):
        load_weights(
            small_model(), state, planes_from=names("core46+check"), planes_to=names("core46")
        )
    twice = ["own P", *names("core46")[:45]]
    with pytest.raises(KeiseiError, match="planes_to has 45 different names"):
        load_weights(small_model(), state, planes_from=names("core46"), planes_to=twice)
