"""``keisei benchmark``: show what `keisei.benchmark` measures."""

import json
from typing import Annotated

import typer

from keisei.commands.train_options import Config, Settings

benchmark_app = typer.Typer(
    help="Measure the speed of Keisei, side by side with others.", no_args_is_help=True
)

Quick = Annotated[bool, typer.Option("--quick", help="Seconds, not minutes; noisier.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@benchmark_app.callback()
def benchmark() -> None:
    """Measure the speed of Keisei, side by side with others."""


@benchmark_app.command()
def env(
    quick: Quick = False,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads of the second column; by default 2, if there are CPUs."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The game core: perft and random play, next to Python loops over cshogi and rsshogi."""
    from keisei.commands.progress import progress_bar

    with progress_bar() as progress:
        task = progress.add_task("compiling", total=None)

        from keisei.benchmark.env import FULL, QUICK, measure
        from keisei.doctor import usable_cpus

        report = measure(
            QUICK if quick else FULL,
            threads=min(2, usable_cpus()) if threads is None else threads,
            on_progress=lambda step, done, total: progress.update(
                task, description=step, completed=done, total=total
            ),
        )
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2))
    else:
        from keisei.commands.benchmark_env import print_env_report

        print_env_report(report)


@benchmark_app.command()
def train(
    config: Config = None,
    settings: Settings = None,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Training: plies per second, where the time goes, and updates next to a bare PyTorch loop.

    Without --config it is the default training of a 4x64 tower.
    """
    from keisei.commands.progress import progress_bar

    with progress_bar() as progress:
        task = progress.add_task("compiling", total=None)

        from keisei.benchmark.train import DEFAULT_SETTINGS, FULL, QUICK, measure
        from keisei.config import load_config

        defaults = DEFAULT_SETTINGS if config is None else ()
        report = measure(
            load_config(config, (*defaults, *(settings or ()))),
            QUICK if quick else FULL,
            on_progress=lambda step, done, total: progress.update(
                task, description=step, completed=done, total=total
            ),
        )
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2))
    else:
        from keisei.commands.benchmark_train import print_train_report

        print_train_report(report)
