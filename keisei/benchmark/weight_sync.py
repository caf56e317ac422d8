"""``keisei benchmark weights``: cost and savings of compressing weights on their way to workers.

One thread, CPU time. For each packing that Keisei has (`model_sync`), and for zstd and lz4 if they
are installed: size and milliseconds. ``pays below`` is the bandwidth below which packing, sending
and unpacking is faster than sending the weights uncompressed.
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console

from keisei.benchmark.harness import print_header, this_machine
from keisei.config import load_config
from keisei.formats import new_table
from keisei.network.loading import read_network
from keisei.network.model_factory import make_network
from keisei.network.predictor import Weights
from keisei.selfplay.workers.model_sync import pack_weights, unpack_weights

TURNS: Final = 5
MEGABYTE: Final = 1e6

Transform = Callable[[bytes], bytes]


def report_weight_sync(run: Path | None) -> None:
    """Measure packing the weights of an untrained network, and of a run, and print tables."""
    console = Console()
    print_header(console, this_machine(("numpy", "torch")))
    if run is not None:
        weights = read_network(run).weights
        _print_table(console, f"{run.name}, trained", weights)
    _print_table(console, "sparse network, untrained", _untrained_weights("model.type=sparse"))
    if find_spec("torch"):
        tower = ("model.type=resnet", "model.tower_depth=10", "model.tower_width=128")
        _print_table(console, "10 blocks of 128 channels, untrained", _untrained_weights(*tower))


class Packing(NamedTuple):
    """A way to pack weights for sending."""

    name: str
    compress: bool = False
    """Whether gzip compresses the weights."""

    half: bool = False
    """Whether weights are rounded to bfloat16."""

    codec: tuple[Transform, Transform] | None = None
    """Compress and decompress functions of another library."""


class PackingCost(NamedTuple):
    """Size and CPU time of a packing."""

    size: int
    pack_seconds: float
    unpack_seconds: float


def _packings() -> list[Packing]:
    """Return the packings of Keisei, and others to compare with."""
    found = [
        Packing("uncompressed"),
        Packing("gzip 1", compress=True),
        Packing("bf16", half=True),
        Packing("bf16 + gzip 1", compress=True, half=True),
    ]
    if find_spec("zstandard"):
        import zstandard

        for level in (1, 3):
            codec = (zstandard.ZstdCompressor(level).compress, zstandard.decompress)
            found += [Packing(f"zstd {level}", codec=codec)]
        found += [Packing("bf16 + zstd 1", half=True, codec=found[-2].codec)]
    if find_spec("lz4"):
        from lz4 import frame

        found += [Packing("lz4", codec=(frame.compress, frame.decompress))]
    return found


def _measure(weights: Weights, packing: Packing) -> PackingCost:
    """Return the size and the best times of several turns."""
    best_pack = best_unpack = float("inf")
    size = 0
    for _ in range(TURNS):
        start = time.process_time()
        messages = pack_weights(weights, compress=packing.compress, half=packing.half)
        if packing.codec is not None:
            for message in messages.values():
                message["data"] = packing.codec[0](message["data"])
        best_pack = min(best_pack, time.process_time() - start)
        size = sum(len(message["data"]) for message in messages.values())
        start = time.process_time()
        if packing.codec is not None:
            for message in messages.values():
                message["data"] = packing.codec[1](message["data"])
        unpack_weights(messages)
        best_unpack = min(best_unpack, time.process_time() - start)
    return PackingCost(size, best_pack, best_unpack)


def _print_table(console: Console, title: str, weights: Weights) -> None:
    """Measure all packings of some weights and print a table."""
    table = new_table(title)
    for heading in ("", "kB", "of plain", "pack ms", "unpack ms", "pays below MB/s"):
        table.add_column(heading, justify="right" if heading else "left")
    plain: PackingCost | None = None
    for packing in _packings():
        cost = _measure(weights, packing)
        plain = plain or cost
        saved = plain.size - cost.size
        extra = (cost.pack_seconds + cost.unpack_seconds) - (
            plain.pack_seconds + plain.unpack_seconds
        )
        if cost is plain or saved <= 0:
            pays = "-"
        else:
            pays = f"{saved / extra / MEGABYTE:,.0f}" if extra > 0.0 else "always"
        table.add_row(
            packing.name,
            f"{cost.size / 1e3:,.0f}",
            f"{cost.size / plain.size:.0%}",
            f"{1e3 * cost.pack_seconds:.1f}",
            f"{1e3 * cost.unpack_seconds:.1f}",
            pays,
        )
    console.print(table)


def _untrained_weights(*settings: str) -> Weights:
    """Return the weights of an untrained network."""
    config = load_config(None, (*settings, "device.device=cpu", "device.threads=1"))
    return make_network(config, config.device).weights()
