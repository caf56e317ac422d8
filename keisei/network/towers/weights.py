"""Weights of towers: as named arrays and back, and into a model that reads other planes."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from keisei.errors import WeightsError
from keisei.network.predictor import Weights
from keisei.network.towers.model import ActorCritic
from keisei.shogi.features import FeatureSpec

MAX_LISTED_NAMES = 8
"""Names that an error lists before it says how many more there are."""


def weight_tensors(weights: Weights) -> dict[str, Tensor]:
    """Return named arrays as tensors on the CPU, which share their memory if it is writable."""
    return {
        name: torch.from_numpy(np.require(array, requirements="W"))
        for name, array in weights.items()
    }


def load_weights(
    model: ActorCritic,
    state: Mapping[str, Tensor],
    *,
    features_from: FeatureSpec | None = None,
    features_to: FeatureSpec | None = None,
) -> list[str]:
    """Copy the weights of `state` into `model`; return notes about what had to be adapted.

    Weights of planes that `model` does not read are left out; those of planes that are new in
    `model` are zero, so it predicts what the old one did until it learns to use them.

    Args:
        model: gets the weights; unchanged if they do not fit.
        state: as from ``state_dict``.
        features_from: the planes that `state` reads.
        features_to: the planes that `model` reads. Planes are matched by name if both are given,
            by position otherwise.

    Raises:
        WeightsError: The weights do not fit; the message names the tensor and both shapes.
    """
    wanted, given = model.state_dict(), dict(state)
    own_names, constants = list(wanted), model.constant_weight
    if features_from is not None and features_to is not None:
        for here, there in ((wanted, given), (given, wanted)):
            if constants in there and constants not in here:
                here[constants] = there[constants][:, :0]  # it reads no such planes
    _require_same_names(wanted, given)
    splits = constants in wanted
    adapted, notes = dict(given), list[str]()
    for name in (model.input_weight, constants) if splits else (model.input_weight,):
        planes_from, planes_to = (
            _planes_read(features, splits=splits, constant=name == constants)
            for features in (features_from, features_to)
        )
        adapted[name], changes = _with_planes(
            name, given[name], wanted[name], planes_from, planes_to
        )
        notes += changes
    for name, tensor in adapted.items():
        if tensor.shape != wanted[name].shape:
            raise WeightsError(
                f"{name}: the weights have shape {_shape(given[name])}, the model needs "
                f"{_shape(wanted[name])}"
            )
    model.load_state_dict({name: adapted[name] for name in own_names})
    return notes


def _planes_read(features: FeatureSpec | None, *, splits: bool, constant: bool) -> list[str] | None:
    """Names of the planes that the layer of constant planes reads, or that of the others."""
    if features is None:
        return None
    chosen = set(features.constant_planes) if splits else set()
    return [name for i, name in enumerate(features.plane_names) if (i in chosen) is constant]


def _require_same_names(own: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    missing = [f"{name} {_shape(own[name])}" for name in own if name not in state]
    surplus = [f"{name} {_shape(state[name])}" for name in state if name not in own]
    problems = [
        f"{problem} {_listed(names)}"
        for problem, names in (("they lack", missing), ("the model has no", surplus))
        if names
    ]
    if problems:
        raise WeightsError(f"the weights belong to another model: {'; '.join(problems)}")


def _with_planes(
    name: str,
    weight: Tensor,
    wanted: Tensor,
    planes_from: Sequence[str] | None,
    planes_to: Sequence[str] | None,
) -> tuple[Tensor, list[str]]:
    """Return the input layer's weight with its planes (dimension 1) in the model's order."""
    if weight.dim() != wanted.dim():
        return weight, []
    before, after = weight.shape[1], wanted.shape[1]
    by_name = planes_from is not None and planes_to is not None
    if planes_from is None or planes_to is None:
        planes_from = [f"plane {i}" for i in range(before)]
        planes_to = [f"plane {i}" for i in range(after)]
    _require_length(name, "features_from", planes_from, before)
    _require_length(name, "features_to", planes_to, after)
    if list(planes_from) == list(planes_to):
        return weight, []
    place = {plane: i for i, plane in enumerate(planes_from)}
    kept = [plane for plane in planes_to if plane in place]
    adapted = weight.new_zeros((weight.shape[0], after, *weight.shape[2:]))
    adapted[:, [i for i, plane in enumerate(planes_to) if plane in place]] = weight[
        :, [place[plane] for plane in kept]
    ]
    how = "name" if by_name else "position"
    notes = [f"{name}: {before} planes adapted to {after}, {len(kept)} matched by {how}"]
    if new := [plane for plane in planes_to if plane not in place]:
        notes.append(f"{name}: new planes start at zero: {_listed(new)}")
    if gone := [plane for plane in planes_from if plane not in set(kept)]:
        notes.append(f"{name}: weights left out: {_listed(gone)}")
    return adapted, notes


def _require_length(name: str, argument: str, planes: Sequence[str], number: int) -> None:
    if len(planes) != number or len(set(planes)) != number:
        raise WeightsError(
            f"{name} reads {number} planes, but {argument} has {len(planes)} for it, "
            f"{len(set(planes))} different ones"
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_LISTED_NAMES])
    more = len(names) - MAX_LISTED_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
