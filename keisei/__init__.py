"""Keisei: a Shogi player that teaches itself, from nothing, by self-play."""

__version__: str
"""Version of the installed package."""


def __getattr__(name: str) -> str:
    """Look the version up when it is asked for: that takes most of the time of this import."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("keisei")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"
