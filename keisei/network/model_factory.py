"""`model_factory`, and the registry of network types.

A type is registered once, with its `Network`, its `Learner`, its description and its file formats.
The code of a type is imported when it is needed: importing this module needs no torch.

>>> from keisei.config_schema import ModelConfig
>>> from keisei.shogi.features import feature_spec
>>> model = build_model(ModelConfig(type="resnet", tower_width=8), feature_spec("core46"))
>>> type(model).__name__, model.in_planes
('ActorCriticResTower', 46)
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, TypeVar

from keisei.config_schema import AppConfig, DeviceConfig, ModelConfig
from keisei.errors import ModelError, WeightsError, missing_torch
from keisei.network.description import Description
from keisei.network.predictor import Network
from keisei.shogi.features import FeatureSpec

if TYPE_CHECKING:
    from keisei.network.towers.model import ActorCritic

PLUGIN_GROUP: Final = "keisei.models"
"""Entry-point group in which plug-ins register model types, each a name and a class."""

ONNX_HINT: Final = (
    "; an ONNX file needs no torch: keisei export writes it, on a machine that has torch"
)

ModelMaker = Callable[..., "ActorCritic"]
"""``make(in_planes, **settings)``, with the settings of `ModelConfig` that are for towers.

If it has a parameter `constant_planes`, it also gets the indices of the planes that are constant
over the board."""

CONSTANT_PLANES: Final = "constant_planes"

Maker = TypeVar("Maker", bound=ModelMaker)


@dataclass(frozen=True)
class NetworkType:
    """The makers of a network type, each as ``module:name`` or as the object itself."""

    network: str
    """``make_network(config, device) -> Network``: a model on its device, ready to predict."""

    learner: str
    """``make_learner(config, *, seed, random, ranks) -> Learner``: a model and its training."""

    device: str
    """``device(settings) -> str``: the device it computes on with these `DeviceConfig`; an error if
    this machine does not have it."""

    shapes: str
    """``shapes(config) -> dict[str, tuple[int, ...]]``: of its weights, without allocating them."""

    describe: str
    """``describe(config) -> Description``: its inputs and parts in numbers."""

    exports: Mapping[str, str]
    """``export(stored) -> bytes`` by name of the file format, the usual one first."""

    model: str | ModelMaker | None = None
    """Builds the torch model of a tower; None for networks that torch does not compute."""


def tower(model: str | ModelMaker) -> NetworkType:
    """Network type of a tower, which torch computes and trains."""
    return NetworkType(
        network="keisei.network.towers.torch_predictor:make_network",
        learner="keisei.ppo.agent:make_agent",
        device="keisei.network.towers.device:tower_device",
        shapes="keisei.network.towers.torch_predictor:tower_shapes",
        describe="keisei.network.towers.describe:describe_tower",
        exports={"onnx": "keisei.network.onnx.onnx_export:export_onnx"},
        model=model,
    )


_registry: dict[str, NetworkType] = {
    "sparse": NetworkType(
        network="keisei.network.sparse.sparse_network:make_network",
        learner="keisei.ppo.sparse_learner:make_learner",
        device="keisei.network.sparse.sparse_network:require_cpu",
        shapes="keisei.network.sparse.sparse_network:sparse_shapes",
        describe="keisei.network.sparse.sparse_network:describe_sparse",
        exports={
            "keisei": "keisei.network.network_file:export_network_file",
            "onnx": "keisei.network.onnx.sparse_onnx:export_sparse_onnx",
        },
    ),
    "resnet": tower("keisei.network.towers.resnet:ActorCriticResTower"),
    "transformer": tower("keisei.network.towers.transformer:SquareTransformer"),
}


def register_model(name: str) -> Callable[[Maker], Maker]:
    """Decorate a class or function to register it as the tower type called `name`."""

    def register(maker: Maker) -> Maker:
        if name in _registry:
            raise ValueError(f"there is already a model type {name!r}")
        _registry[name] = tower(maker)
        return maker

    return register


def registered_models() -> tuple[str, ...]:
    """Names of all model types, including those of plug-ins."""
    plugins = (entry.name for entry in entry_points(group=PLUGIN_GROUP))
    return tuple(dict.fromkeys((*_registry, *plugins)))


def network_type(name: str) -> NetworkType:
    """Return the network type called `name`.

    Raises:
        ModelError: There is none; the message lists all types.
    """
    if name in _registry:
        return _registry[name]
    for entry in entry_points(group=PLUGIN_GROUP, name=name):
        return tower(entry.load())
    raise ModelError(
        f"model type {name!r} does not exist; there are {', '.join(registered_models())}"
    )


def resolve(
    part: str | Callable[..., Any], needed_by: str, *, instead: str = ""
) -> Callable[..., Any]:
    """Import the object that ``module:name`` refers to.

    Args:
        part: such a string, or the object itself.
        needed_by: first words of the error if torch is missing.
        instead: last words of that error, with an alternative that needs no torch.

    Raises:
        TorchMissingError: Torch is needed and not installed.
    """
    if not isinstance(part, str):
        return part
    try:
        found: Callable[..., Any] = resolve_name(part)
    except ModuleNotFoundError as error:
        raise missing_torch(error, needed_by, instead=instead) from error
    return found


def model_factory(model_type: str, in_planes: int, **settings: object) -> "ActorCritic":
    """Build a model of a type for `in_planes` input planes, with random weights.

    Raises:
        ModelError: There is no such type, or it does not accept these settings.
    """
    maker = _model_maker(model_type)
    try:
        inspect.signature(maker).bind(in_planes, **settings)
    except TypeError as error:
        raise ModelError(f"model type {model_type!r}: {error}") from error
    model: ActorCritic = maker(in_planes, **settings)
    return model


def build_model(config: ModelConfig, features: FeatureSpec) -> "ActorCritic":
    """Build the model of a configuration for these input planes, with random weights."""
    settings = config.tower_settings()
    if CONSTANT_PLANES in inspect.signature(_model_maker(config.type)).parameters:
        settings[CONSTANT_PLANES] = features.constant_planes
    return model_factory(config.type, features.num_planes, **settings)


def _model_maker(model_type: str) -> ModelMaker:
    maker = network_type(model_type).model
    if maker is None:
        raise ModelError(f"a network of type {model_type!r} has no torch model; use make_network")
    return resolve(maker, f"a model of type {model_type!r}")


def check_model(config: ModelConfig, features: FeatureSpec) -> None:
    """Build the model of a configuration without allocating its weights.

    Raises:
        ModelError: It cannot be built.
    """
    maker = network_type(config.type).model
    if maker is None:
        return  # its sizes were checked with the settings
    resolve(maker, f"a model of type {config.type!r}")
    import torch

    with torch.device("meta"):  # shapes without memory
        build_model(config, features)


def network_device(config: AppConfig) -> str:
    """Return the device that the network of a configuration computes on: ``cpu``, ``cuda:0`` ...

    Raises:
        KeiseiError: This machine does not have it.
    """
    name = config.model.type
    device: str = resolve(network_type(name).device, f"a network of type {name!r}")(config.device)
    return device


def describe_network(config: AppConfig) -> Description:
    """Describe the network of a configuration: its inputs and parts."""
    name = config.model.type
    describe = resolve(network_type(name).describe, f"a network of type {name!r}")
    description: Description = describe(config)
    return description


def require_fitting(config: AppConfig, found: Mapping[str, tuple[int, ...]]) -> None:
    """Compare the shapes of weights with those that a configuration needs, before building it.

    Raises:
        WeightsError: They differ; the message names the first one.
    """
    name = config.model.type
    shapes: Mapping[str, tuple[int, ...]] = resolve(
        network_type(name).shapes, f"a network of type {name!r}", instead=ONNX_HINT
    )(config)
    for weight, shape in shapes.items():
        if weight not in found:
            raise WeightsError(f"the weights belong to another network: they lack {weight} {shape}")
        if tuple(found[weight]) != tuple(shape):
            raise WeightsError(
                f"{weight}: the weights have shape {tuple(found[weight])}, the settings need "
                f"{tuple(shape)}"
            )
    if surplus := sorted(found.keys() - shapes.keys()):
        raise WeightsError(
            f"the weights belong to another network: one of type {name!r} has no {surplus[0]}"
        )


def make_network(config: AppConfig, device: DeviceConfig) -> Network:
    """Build the network of a configuration, with random weights, ready to predict on `device`."""
    name = config.model.type
    make = resolve(network_type(name).network, f"a network of type {name!r}", instead=ONNX_HINT)
    network: Network = make(config, device)
    return network
