"""Keisei in the browser: a board to play on, and a dashboard of runs. Needs the extra ``web``.

The names of this package are imported when they are first used, so that ``import keisei.web`` works
without the extra.
"""

from typing import TYPE_CHECKING

from keisei.front_door import imported_on_use

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

__getattr__, __dir__ = imported_on_use(
    __name__,
    {
        "PlaySettings": "play.pages",
        "is_installed": "server",
        "require_installed": "server",
        "serve": "server",
        "serve_dashboard": "dashboard.site",
        "serve_play": "play.pages",
    },
)
