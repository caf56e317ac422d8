"""What holds for networks of every type."""

import copy
import itertools
import math
import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from keisei.checkpoints.store import load_model_weights, save_checkpoint
from keisei.constants import NUM_ACTIONS
from keisei.errors import ModelError
from keisei.network.towers.model import ACTIVATIONS, ActorCritic, ModelOutput, lay_out
from keisei.network.towers.torch_predictor import model_weights
from keisei.network.towers.weights import load_weights, weight_tensors
from tests.network.towers.samples import (
    MODEL_TYPES,
    POLICY_HEADS,
    VALUE_HEADS,
    Positions,
    positions,
    small_model,
)

COMBINATIONS = list(itertools.product(MODEL_TYPES, POLICY_HEADS, VALUE_HEADS))

every_type = pytest.mark.parametrize("model_type", MODEL_TYPES)
every_combination = pytest.mark.parametrize(
    ("model_type", "policy_head", "value_head"), COMBINATIONS
)


@pytest.mark.parametrize("features", ["core46", "core46+check", "core46+last2ply", "core46+all"])
@every_combination
def test_shapes_follow_from_the_features(
    features: str, model_type: str, policy_head: str, value_head: str
) -> None:
    model = small_model(features, type=model_type, policy_head=policy_head, value_head=value_head)
    batch = positions(3, features)
    output = model(batch.planes, batch.legal)
    assert model.in_planes == batch.planes.shape[1]
    assert output.logits.shape == batch.legal.shape
    assert output.value.shape == ((3,) if value_head == "tanh" else (3, 3))
    assert output.logits.dtype == output.value.dtype == torch.float32
    values = model.values(output.value)
    assert values.shape == (3,)
    assert values.abs().max() <= 1
    assert model.value_loss(output.value, torch.zeros(3)).shape == (3,)


@every_combination
def test_legal_logits_are_those_of_all(model_type: str, policy_head: str, value_head: str) -> None:
    model = small_model(type=model_type, policy_head=policy_head, value_head=value_head)
    stir(model)
    batch = positions(5)
    everything = model.all_logits(batch.planes)
    assert everything.shape == (5, NUM_ACTIONS)
    expected = everything.gather(1, batch.legal)
    torch.testing.assert_close(model(batch.planes, batch.legal).logits, expected)


@every_combination
def test_samples_do_not_see_each_other(model_type: str, policy_head: str, value_head: str) -> None:
    model = small_model(type=model_type, policy_head=policy_head, value_head=value_head)
    stir(model)
    batch = positions(6)
    together = model(batch.planes, batch.legal)
    other_planes = batch.planes.clone()
    other_planes[1:] = 100 * torch.rand_like(other_planes[1:])
    among_others = model(other_planes, batch.legal)
    assert torch.equal(among_others.logits[0], together.logits[0])
    assert torch.equal(among_others.value[0], together.value[0])
    # Alone it may be summed up in another order, but not to something else.
    alone = model(batch.planes[:1], batch.legal[:1])
    torch.testing.assert_close(alone.logits, together.logits[:1])
    torch.testing.assert_close(alone.value, together.value[:1])


@every_type
def test_acting_and_learning_say_the_same(model_type: str) -> None:
    model = small_model(type=model_type)
    stir(model)
    batch = positions(4)
    with torch.inference_mode():
        acting = model.eval()(batch.planes, batch.legal)
    for _ in range(2):  # no hidden state that a pass in training mode would change
        learning = model.train()(batch.planes, batch.legal)
        assert torch.equal(learning.logits, acting.logits)
        assert torch.equal(learning.value, acting.value)
    assert not [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._NormBase)]
    assert not [m for m in model.modules() if isinstance(m, nn.modules.dropout._DropoutNd)]


@every_combination
def test_it_starts_undecided(model_type: str, policy_head: str, value_head: str) -> None:
    model = small_model(
        type=model_type,
        policy_head=policy_head,
        value_head=value_head,
        tower_depth=6,
        tower_width=32,
    )
    batch = positions(16)
    output = model(batch.planes, batch.legal)
    log_p = log_probabilities(output, batch)
    entropy = -(log_p.exp() * log_p.masked_fill(batch.is_filling, 0)).sum(1)
    assert (entropy / batch.counts.log()).min() > 0.97
    assert model.values(output.value).abs().max() < 0.15


@pytest.mark.parametrize("depth", [1, 20])
@every_type
def test_depth_does_not_blow_up_the_signal(model_type: str, depth: int) -> None:
    model = small_model(type=model_type, tower_depth=depth, tower_width=32)
    squares = model.trunk(positions(8).planes)
    assert 0.01 < squares.std() < 10


@every_combination
def test_gradients_reach_every_parameter(
    model_type: str, policy_head: str, value_head: str
) -> None:
    model = small_model(
        type=model_type, policy_head=policy_head, value_head=value_head, tower_width=32
    )
    batch = positions(16)
    torch.autograd.backward(
        loss_of(model, batch, torch.zeros(16, dtype=torch.int64), torch.ones(16))
    )
    without = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.abs().sum() > 0
    ]
    assert without == []


@pytest.mark.parametrize(
    ("model_type", "policy_head", "value_head"),
    [
        ("resnet", "from_to", "tanh"),
        ("transformer", "flat", "wdl"),
    ],
)
def test_it_memorises_positions(model_type: str, policy_head: str, value_head: str) -> None:
    model = small_model(
        type=model_type, policy_head=policy_head, value_head=value_head, value_width=32
    )
    batch = positions(8)
    chosen = torch.arange(8) % batch.counts
    returns = torch.tensor([1.0, -1.0, 0.0, 1.0, -1.0, 0.0, 1.0, -1.0])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(250):
        optimizer.zero_grad()
        torch.autograd.backward(loss_of(model, batch, chosen, returns))
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    output = model(batch.planes, batch.legal)
    probabilities = log_probabilities(output, batch).exp()
    assert probabilities.gather(1, chosen[:, None]).min() > 0.9
    assert (model.values(output.value) - returns).abs().max() < 0.2


@pytest.mark.parametrize("activation", ACTIVATIONS)
@every_type
def test_the_activation_is_the_chosen_one(model_type: str, activation: str) -> None:
    model = small_model(type=model_type, activation=activation)
    kinds = {type(module) for module in model.modules()}
    assert ACTIVATIONS[activation] in kinds
    assert not kinds & (set(ACTIVATIONS.values()) - {ACTIVATIONS[activation]})


@every_type
def test_squeeze_and_excitation_is_a_choice(model_type: str) -> None:
    def count(se_ratio: float) -> int:
        model = small_model(type=model_type, se_ratio=se_ratio)
        return sum(parameter.numel() for parameter in model.parameters())

    hidden = 4  # a quarter of the width of 16
    per_block = 16 * hidden + hidden + hidden * 16 + 16
    assert count(0.25) - count(0.0) == 2 * per_block


def test_the_tower_has_the_parameters_it_should() -> None:
    model = small_model(se_ratio=0.0)  # 2 blocks of 16 channels; heads of width 8
    stem = 28 * 9 * 16 + 16 + 18 * 16  # pieces, then hands, colour, ply and reserved planes
    blocks = 2 * 2 * (16 * 9 * 16 + 16)
    policy = (16 + 1) * (8 + 2 * 8 + 7)
    assert sum(p.numel() for p in model.trunk.parameters()) == stem + blocks
    assert sum(p.numel() for p in model.policy.parameters()) == policy


def test_heads_stay_slim() -> None:
    """A dense layer from 64 x 81 features to 13,527 actions would have 70 million parameters."""
    for head in POLICY_HEADS:
        model = small_model(policy_head=head, policy_width=32, tower_width=64, value_width=64)
        assert sum(p.numel() for p in model.policy.parameters()) < 500_000
        assert sum(p.numel() for p in model.value.parameters()) < 100_000


@every_combination
def test_weights_go_through_a_checkpoint(
    model_type: str, policy_head: str, value_head: str, tmp_path: Path
) -> None:
    settings = {"type": model_type, "policy_head": policy_head, "value_head": value_head}
    model = small_model(**settings)
    lay_out(model, torch.channels_last)
    path = save_checkpoint(
        tmp_path,
        timestep=0,
        update=0,
        state={"model": model_weights(model)},
        config_json="",
        keep=1,
    )
    torch.manual_seed(1)
    twin = small_model(**settings)
    assert load_weights(twin, weight_tensors(load_model_weights(path)[0])) == []
    for (name, ours), theirs in zip(
        model.state_dict().items(), twin.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs), name


def test_the_table_of_actions_is_not_saved() -> None:
    assert not [name for name in small_model().state_dict() if "index" in name]


@every_type
def test_copies_and_pickles_say_the_same(model_type: str) -> None:
    model = small_model(type=model_type)
    batch = positions(2)
    expected = model(batch.planes, batch.legal)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(batch.planes, batch.legal).logits, expected.logits)


def test_unknown_choices_are_refused() -> None:
    from keisei.network.towers.resnet import ActorCriticResTower

    good = {
        "tower_depth": 1,
        "tower_width": 8,
        "se_ratio": 0.0,
        "activation": "relu",
        "policy_head": "flat",
        "policy_width": 4,
        "value_head": "wdl",
        "value_width": 4,
    }
    for wrong, message in (
        ({"activation": "sine"}, "activation 'sine' does not exist; there are relu, silu"),
        ({"policy_head": "conv"}, "policy head 'conv' does not exist; there are from_to, flat"),
        ({"value_head": "mean"}, "value head 'mean' does not exist; there are tanh, wdl"),
        ({"policy_width": 0}, "policy_width is 0"),
        ({"tower_depth": 0}, "tower_depth is 0, it must be at least 1"),
        ({"se_ratio": 1.5}, "se_ratio is 1.5, it must be from 0 to 1"),
    ):
        with pytest.raises(ModelError, match=message):
            ActorCriticResTower(46, **(good | wrong))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="in_planes is 0"):
        ActorCriticResTower(0, **good)  # type: ignore[arg-type]


def stir(model: ActorCritic) -> None:
    """Give every parameter something to say; fresh networks say little."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))


def log_probabilities(output: ModelOutput, batch: Positions) -> Tensor:
    return output.logits.masked_fill(batch.is_filling, -math.inf).log_softmax(1)


def loss_of(model: ActorCritic, batch: Positions, chosen: Tensor, returns: Tensor) -> Tensor:
    output = model(batch.planes, batch.legal)
    policy_loss = -log_probabilities(output, batch).gather(1, chosen[:, None]).mean()
    return policy_loss + model.value_loss(output.value, returns).mean()
