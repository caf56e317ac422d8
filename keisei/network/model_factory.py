"""`model_factory`: networks by the name of their type.

>>> model = build_model(ModelConfig(tower_depth=1, tower_width=8), in_planes=46)
>>> type(model).__name__, model.in_planes
('ActorCriticResTower', 46)
"""

import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Final, TypeVar

from keisei.config_schema import ModelConfig
from keisei.errors import ModelError
from keisei.network.towers.model import ActorCritic
from keisei.network.towers.resnet import ActorCriticResTower
from keisei.network.towers.transformer import SquareTransformer

PLUGIN_GROUP: Final = "keisei.network"
"""The entry-point group in which packages register model types: a name and a class."""

ModelMaker = Callable[..., ActorCritic]
"""``make(in_planes, **settings)``, with the settings of `ModelConfig` but its type."""

Maker = TypeVar("Maker", bound=ModelMaker)

_registry: dict[str, ModelMaker] = {}


def register_model(name: str) -> Callable[[Maker], Maker]:
    """Register the class or function below as the model type called `name`."""

    def register(maker: Maker) -> Maker:
        if name in _registry:
            raise ValueError(f"there is already a model type {name!r}")
        _registry[name] = maker
        return maker

    return register


register_model("resnet")(ActorCriticResTower)
register_model("transformer")(SquareTransformer)


def registered_models() -> tuple[str, ...]:
    """The model types there are, those of plug-ins included."""
    plugins = (entry.name for entry in entry_points(group=PLUGIN_GROUP))
    return tuple(dict.fromkeys((*_registry, *plugins)))


def model_factory(model_type: str, in_planes: int, **settings: object) -> ActorCritic:
    """A new network of a type, for so many input planes, with the settings that the type takes."""
    maker = _maker(model_type)
    try:
        inspect.signature(maker).bind(in_planes, **settings)
    except TypeError as error:
        raise ModelError(f"model type {model_type!r}: {error}") from error
    return maker(in_planes, **settings)


def build_model(config: ModelConfig, in_planes: int) -> ActorCritic:
    """The network that a configuration asks for."""
    return model_factory(config.type, in_planes, **config.model_dump(exclude={"type"}))


def _maker(model_type: str) -> ModelMaker:
    if model_type in _registry:
        return _registry[model_type]
    for entry in entry_points(group=PLUGIN_GROUP, name=model_type):
        maker: ModelMaker = entry.load()
        return maker
    raise ModelError(
        f"model type {model_type!r} does not exist; there are {', '.join(registered_models())}"
    )
