"""Networks: their interface, loading and building them. Importing this package needs no torch.

`load_network` loads the network of a run, a checkpoint or an ONNX file; its `Predictor` maps
`keisei.shogi.packed.Positions` to a `Prediction`. Models are built by type: see
`keisei.network.model_factory`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from keisei.network.loading import LoadedNetwork, StoredNetwork, load_network, read_network
    from keisei.network.model_factory import build_model, make_network, register_model
    from keisei.network.predictor import Network, Prediction, Predictor, Weights

__all__ = [
    "LoadedNetwork",
    "Network",
    "Prediction",
    "Predictor",
    "StoredNetwork",
    "Weights",
    "build_model",
    "load_network",
    "make_network",
    "read_network",
    "register_model",
]

_MODULES: Final = {
    "LoadedNetwork": "loading",
    "StoredNetwork": "loading",
    "load_network": "loading",
    "read_network": "loading",
    "build_model": "model_factory",
    "make_network": "model_factory",
    "register_model": "model_factory",
    "Network": "predictor",
    "Prediction": "predictor",
    "Predictor": "predictor",
    "Weights": "predictor",
}
"""Module of each name, imported when the name is first used."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
