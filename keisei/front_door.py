"""Front doors: names of a package that are imported when they are first used.

So importing a package stays fast, and needs no packages that only some of its names need.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def imported_on_use(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its name.
        modules: for each name that it exports, the module below it that has the name.
    """

    def get_attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get_attribute, names
