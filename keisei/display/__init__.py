"""The terminal display of a run, and its log.

`make_display` returns the display that the settings ask for, as a callback; `configure_logging`
sends log messages to ``run.log`` and to the terminal.
"""

from keisei.display.live import LiveDisplay, PlainDisplay, make_display
from keisei.display.logs import configure_logging

__all__ = ["LiveDisplay", "PlainDisplay", "configure_logging", "make_display"]
