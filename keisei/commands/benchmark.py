"""``keisei benchmark``: show what `keisei.benchmark` measures."""

import json
from pathlib import Path
from typing import Annotated

import typer

from keisei.commands.options import Config, Settings

benchmark_app = typer.Typer(help="Measure Keisei: its speed, side by side, and its strength.")

Quick = Annotated[bool, typer.Option("--quick", help="Seconds, not minutes; noisier.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@benchmark_app.callback(invoke_without_command=True)
def benchmark(context: typer.Context) -> None:
    """Measure Keisei; without a command: `strength`, which trains the quick-start recipe."""
    if context.invoked_subcommand is None:
        strength()


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
    from keisei.commands.tables import progress_bar

    with progress_bar() as progress:
        task = progress.add_task("compiling", total=None)

        from keisei.benchmark.env import FULL, QUICK, measure
        from keisei.system import usable_cpus

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
        from keisei.benchmark.env import print_env_report

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
    from keisei.commands.tables import progress_bar

    with progress_bar() as progress:
        task = progress.add_task("compiling", total=None)

        from keisei.benchmark.train import (
            DEFAULT_SETTINGS,
            FULL,
            QUICK,
            measure,
        )
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
        from keisei.benchmark.train import print_train_report

        print_train_report(report)


@benchmark_app.command()
def strength(
    run: Annotated[
        Path | None,
        typer.Argument(help="A run that was trained; without one the recipe is trained first."),
    ] = None,
    config: Config = None,
    settings: Settings = None,
    games: Annotated[int, typer.Option(min=2, help="Games against each bot.")] = 200,
    compare: Annotated[
        Path | None, typer.Option(help="An earlier report, as --json printed it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A recipe as a whole: games and plies per second, memory, Elo against alphabeta:2."""
    from keisei.benchmark.strength import measure_run, read_figures
    from keisei.commands.tables import progress_bar
    from keisei.runs.run_files import find_run

    old = None if compare is None else read_figures(compare)
    if run is None:
        from keisei.config import load_config
        from keisei.training.run import start_run

        summary = start_run(load_config(config or "quickstart", settings or ()))
        run_directory = summary.run_directory
    else:
        run_directory = find_run(run)
    with progress_bar() as progress:
        task = progress.add_task("loading", total=None)
        report = measure_run(
            run_directory,
            games=games,
            on_progress=lambda step, done, total: progress.update(
                task, description=step, completed=done, total=total
            ),
        )
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2))
    else:
        from keisei.benchmark.strength import print_strength_report

        print_strength_report(report, old)
