"""What it costs and saves to compress weights on their way to workers.

    python benchmarks/weights.py [RUN]

One thread, CPU time. For the network of a RUN if one is given, and for a fresh one: size and
milliseconds of the ways that Keisei has (`model_sync`), and of zstd and lz4 if they
are installed. ``pays below`` is the bandwidth below which packing, sending and unpacking is faster
than sending the weights as they are.
"""

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from torch import Tensor

from keisei.benchmark.harness import new_table, print_header, this_machine
from keisei.config import load_config
from keisei.network.loading import read_network
from keisei.network.model_factory import build_model
from keisei.selfplay.workers.model_sync import pack_weights, unpack_weights
from keisei.shogi.features import feature_spec

TURNS = 5
MEGABYTE = 1e6

Bytes = Callable[[bytes], bytes]


class Way(NamedTuple):
    """How weights can be packed."""

    name: str
    compress: bool = False
    """By gzip."""

    half: bool = False
    codec: tuple[Bytes, Bytes] | None = None
    """Compress and decompress, of another library."""


class Figures(NamedTuple):
    """What was measured."""

    size: int
    pack_seconds: float
    unpack_seconds: float


def ways() -> list[Way]:
    """Those of Keisei, and others to compare."""
    found = [
        Way("as they are"),
        Way("gzip 1", compress=True),
        Way("bf16", half=True),
        Way("bf16 + gzip 1", compress=True, half=True),
    ]
    if find_spec("zstandard"):
        import zstandard

        for level in (1, 3):
            codec = (zstandard.ZstdCompressor(level).compress, zstandard.decompress)
            found += [Way(f"zstd {level}", codec=codec)]
        found += [Way("bf16 + zstd 1", half=True, codec=found[-2].codec)]
    if find_spec("lz4"):
        from lz4 import frame

        found += [Way("lz4", codec=(frame.compress, frame.decompress))]
    return found


def measured(weights: dict[str, Tensor], way: Way) -> Figures:
    """The best of some turns."""
    best_pack = best_unpack = float("inf")
    size = 0
    for _ in range(TURNS):
        start = time.process_time()
        messages = pack_weights(weights, compress=way.compress, half=way.half)
        if way.codec is not None:
            for message in messages.values():
                message["data"] = way.codec[0](message["data"])
        best_pack = min(best_pack, time.process_time() - start)
        size = sum(len(message["data"]) for message in messages.values())
        start = time.process_time()
        if way.codec is not None:
            for message in messages.values():
                message["data"] = way.codec[1](message["data"])
        unpack_weights(messages)
        best_unpack = min(best_unpack, time.process_time() - start)
    return Figures(size, best_pack, best_unpack)


def show(console: Console, title: str, weights: dict[str, Tensor]) -> None:
    """Measure, and print a table."""
    table = new_table(title)
    for heading in ("", "kB", "of all", "pack ms", "unpack ms", "pays below MB/s"):
        table.add_column(heading, justify="right" if heading else "left")
    plain: Figures | None = None
    for way in ways():
        figures = measured(weights, way)
        plain = plain or figures
        saved = plain.size - figures.size
        extra = (figures.pack_seconds + figures.unpack_seconds) - (
            plain.pack_seconds + plain.unpack_seconds
        )
        if figures is plain or saved <= 0:
            pays = "-"
        else:
            pays = f"{saved / extra / MEGABYTE:,.0f}" if extra > 0.0 else "always"
        table.add_row(
            way.name,
            f"{figures.size / 1e3:,.0f}",
            f"{figures.size / plain.size:.0%}",
            f"{1e3 * figures.pack_seconds:.1f}",
            f"{1e3 * figures.unpack_seconds:.1f}",
            pays,
        )
    console.print(table)


def fresh(depth: int, width: int) -> dict[str, Tensor]:
    """The weights of a new network."""
    config = load_config(None, [f"model.tower_depth={depth}", f"model.tower_width={width}"])
    torch.manual_seed(0)
    spec = feature_spec(config.env.input_features)
    return build_model(config.model, spec.num_planes).state_dict()


def main() -> None:
    """Measure, and print tables."""
    torch.set_num_threads(1)
    console = Console()
    print_header(console, this_machine(("numpy", "torch")))
    if len(sys.argv) > 1:
        run = Path(sys.argv[1])
        show(console, f"{run.name}, trained", read_network(run).model.state_dict())
    show(console, "10 blocks of 128 channels, fresh", fresh(10, 128))


if __name__ == "__main__":
    main()
