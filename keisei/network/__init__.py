"""Networks: their interface, loading and building them. Importing this package needs no torch.

`load_network` loads the network of a run, a checkpoint or an ONNX file; its `Predictor` maps
`keisei.shogi.packed.Positions` to a `Prediction`. Models are built by type: see
`keisei.network.model_factory`.
"""

from typing import TYPE_CHECKING

from keisei.front_door import imported_on_use

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

__getattr__, __dir__ = imported_on_use(
    __name__,
    {
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
    },
)
