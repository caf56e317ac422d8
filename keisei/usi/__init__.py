"""The USI protocol: Keisei as an engine for Shogi GUIs, and other engines as players. No torch.

`keisei.usi.engine.Engine` is the engine behind ``keisei usi``, `keisei.usi.client.UsiEngine` runs
another program. Both are imported when they are used.
"""

from typing import TYPE_CHECKING

from keisei.front_door import imported_on_use

if TYPE_CHECKING:
    from keisei.usi.client import Limit, UsiEngine, UsiEngineError, UsiSettings
    from keisei.usi.engine import Engine
    from keisei.usi.options import Settings

__all__ = ["Engine", "Limit", "Settings", "UsiEngine", "UsiEngineError", "UsiSettings"]

__getattr__, __dir__ = imported_on_use(
    __name__,
    {
        "Engine": "engine",
        "Limit": "client",
        "Settings": "options",
        "UsiEngine": "client",
        "UsiEngineError": "client",
        "UsiSettings": "client",
    },
)
