"""Keisei: a Shogi player that teaches itself, from nothing, by self-play."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("keisei")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
