"""Keisei in the browser: a board to play on, and a dashboard of runs. Needs the extra ``web``.

The names of this package are imported when they are first used, so that ``import keisei.web`` works
without the extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keisei.web.dashboard.site import serve_dashboard
    from keisei.web.play.pages import PlaySettings, serve_play
    from keisei.web.server import is_installed, require_installed, serve

__all__ = [
    "PlaySettings",
    "is_installed",
    "require_installed",
    "serve",
    "serve_dashboard",
    "serve_play",
]

_MODULES = {
    "PlaySettings": "keisei.web.play.pages",
    "is_installed": "keisei.web.server",
    "require_installed": "keisei.web.server",
    "serve": "keisei.web.server",
    "serve_dashboard": "keisei.web.dashboard.site",
    "serve_play": "keisei.web.play.pages",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
