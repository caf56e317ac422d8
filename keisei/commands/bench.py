"""``keisei bench``: nodes per second of a network's search, and a signature of its play."""

from pathlib import Path
from typing import Annotated

import typer

from keisei.commands.options import AsJson


def bench(
    model: Annotated[
        Path,
        typer.Argument(
            help="A run, by path or name, a checkpoint, an exported file, or builtin: the player "
            "in the package."
        ),
    ] = Path("builtin"),
    nodes: Annotated[int, typer.Option(min=1, max=200_000, help="Nodes of each search.")] = 10_000,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=512, show_default="one per core", help="Threads in one tree."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Another network, to compare the speeds in one run."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a network's search: nodes per second, and a signature of what it plays."""
    from keisei.benchmark.node_speed import compare_bench, print_bench_report
    from keisei.commands.benchmark import show_report, with_progress
    from keisei.system import usable_cpus

    report = with_progress(
        lambda on_progress: compare_bench(
            model,
            against,
            nodes=nodes,
            threads=usable_cpus() if threads is None else threads,
            on_progress=on_progress,
        )
    )
    show_report(report, print_bench_report, as_json=as_json)
