"""The USI protocol: Keisei as an engine for Shogi GUIs, and other engines as players. No torch.

`keisei.usi.engine.Engine` is the engine behind ``keisei usi``, `keisei.usi.client.UsiEngine` runs
another program. Both are imported when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from keisei.usi.client import Limit, UsiEngine, UsiEngineError, UsiSettings
    from keisei.usi.engine import Engine
    from keisei.usi.options import Settings

__all__ = ["Engine", "Limit", "Settings", "UsiEngine", "UsiEngineError", "UsiSettings"]

_MODULES: Final = {
    "Engine": "engine",
    "Limit": "client",
    "Settings": "options",
    "UsiEngine": "client",
    "UsiEngineError": "client",
    "UsiSettings": "client",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
