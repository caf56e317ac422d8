"""Memory of pages: a page takes about 1 MB on the server, also one that no browser opens.

NiceGUI keeps a page for a minute until a browser connects to it, and its thousands of elements
refer to each other: Python's garbage collector may leave them for minutes once they are old. A
thousand requests of a crawler would take a gigabyte.
"""

import gc
from typing import Final

from nicegui import Client

UNOPENED_SECONDS: Final = 20.0
"""Time that a browser has to connect to a page that it has requested."""

SWEEP_INTERVAL: Final = 5.0
"""Seconds between two calls of `PageSweep`."""


class PageSweep:
    """Drops pages that no browser has connected to, and frees the memory of all that have gone."""

    def __init__(self, unopened_seconds: float = UNOPENED_SECONDS) -> None:
        """Start; what exists now is not looked at by the garbage collector any more."""
        self._unopened_seconds = unopened_seconds
        self._known: set[str] = set()
        gc.collect()
        gc.freeze()  # modules and kernels: a collection then takes milliseconds

    def __call__(self) -> None:
        """Drop the pages; to be called every `SWEEP_INTERVAL` seconds."""
        self._known.update(Client.instances)
        Client.prune_instances(client_age_threshold=self._unopened_seconds)
        if not self._known <= Client.instances.keys():
            gc.collect()
        self._known = set(Client.instances)
