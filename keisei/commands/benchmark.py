"""``keisei benchmark``: run the benchmarks of `keisei.benchmark`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from keisei.commands.options import AsJson, Config, MaxGames, Settings
from keisei.evaluation import DEFAULT_MAX_GAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

benchmark_app = typer.Typer(help="Measure the speed and the strength of Keisei.")

Quick = Annotated[bool, typer.Option("--quick", help="Take seconds, not minutes; noisier.")]
RunOption = Annotated[
    Path | None, typer.Argument(metavar="[RUN]", help="A trained run, by path or name.")
]


class _Report(Protocol):
    def as_dict(self) -> dict[str, Any]: ...


Report = TypeVar("Report", bound=_Report)


def with_progress(measure: Callable[[Callable[[str, int, int], None]], Report]) -> Report:
    """Call `measure` with a callback that shows its progress."""
    from keisei.commands.tables import progress_bar

    with progress_bar() as bar:
        task = bar.add_task("compiling", total=None)
        return measure(
            lambda step, done, total: bar.update(
                task, description=step, completed=done, total=total
            )
        )


def show_report(report: Report, print_report: Callable[[Report], None], *, as_json: bool) -> None:
    """Print a report for people, or as JSON."""
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2))
    else:
        print_report(report)


def _write_plot(path: Path, figure: "Figure") -> None:
    """Write a figure as SVG or PNG, by the suffix of the path."""
    from keisei.plotting import png, svg
    from keisei.system import write_atomically

    draw = svg if path.suffix.lower() == ".svg" else png
    write_atomically(path, draw(figure))


@benchmark_app.callback(invoke_without_command=True)
def benchmark(context: typer.Context) -> None:
    """Measure Keisei. Without a subcommand: `strength`, which trains the quick-start recipe."""
    if context.invoked_subcommand is None:
        strength()


@benchmark_app.command()
def env(
    quick: Quick = False,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, show_default="2, if there are two CPUs", help="Threads of the second column."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Game core: perft and random play, next to Python loops over cshogi and rsshogi."""
    from keisei.benchmark.env import FULL, QUICK, measure_env, print_env_report
    from keisei.system import usable_cpus

    report = with_progress(
        lambda on_progress: measure_env(
            QUICK if quick else FULL,
            threads=min(2, usable_cpus()) if threads is None else threads,
            on_progress=on_progress,
        )
    )
    show_report(report, print_env_report, as_json=as_json)


@benchmark_app.command()
def train(settings: Settings = None, quick: Quick = False, as_json: AsJson = False) -> None:
    """Training: plies and predictions per second of sparse networks, next to a tower."""
    from keisei.benchmark.train import FULL, QUICK, measure_families, print_family_report

    report = with_progress(
        lambda on_progress: measure_families(
            QUICK if quick else FULL, tuple(settings or ()), on_progress
        )
    )
    show_report(report, print_family_report, as_json=as_json)


@benchmark_app.command()
def tower(
    config: Config = None,
    settings: Settings = None,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Towers: plies per second, time per section, and updates next to a bare PyTorch loop.

    Without --config: the default configuration with a 4x64 tower.
    """
    from keisei.config import load_config
    from keisei.errors import torch_needed_by

    with torch_needed_by("keisei benchmark tower"):
        from keisei.benchmark.tower_train import (
            DEFAULT_SETTINGS,
            FULL,
            QUICK,
            measure_training,
            print_train_report,
        )

    defaults = DEFAULT_SETTINGS if config is None else ()
    loaded = load_config(config, (*defaults, *(settings or ())))
    report = with_progress(
        lambda on_progress: measure_training(loaded, QUICK if quick else FULL, on_progress)
    )
    show_report(report, print_train_report, as_json=as_json)


@benchmark_app.command()
def strength(
    run: Annotated[
        Path | None,
        typer.Argument(help="A trained run; without one, the recipe is trained first."),
    ] = None,
    config: Config = None,
    settings: Settings = None,
    games: Annotated[int, typer.Option(min=2, help="Games against each bot.")] = 200,
    max_games: MaxGames = DEFAULT_MAX_GAMES,
    compare: Annotated[
        Path | None, typer.Option(help="An earlier report, as --json printed it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Whole recipe: games and plies per second, memory, Elo."""
    from keisei.benchmark.strength import measure_strength, print_strength_report, read_figures
    from keisei.run_files import find_run

    old = None if compare is None else read_figures(compare)
    if run is None:
        from keisei.config import load_config, texts_of
        from keisei.training.run import start_run

        overrides = settings or ()
        loaded = load_config(config or "quickstart", overrides)
        run_directory = start_run(loaded, named=texts_of(overrides)).run_directory
    else:
        run_directory = find_run(run)
    report = with_progress(
        lambda on_progress: measure_strength(
            run_directory, games=games, max_games=max_games, on_progress=on_progress
        )
    )
    show_report(report, lambda report: print_strength_report(report, old), as_json=as_json)


@benchmark_app.command()
def curve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Runs with milestones; a number at the end of a name is its seed."),
    ] = None,
    games: Annotated[int, typer.Option(min=2, help="Games against each opponent.")] = 400,
    against: Annotated[
        list[str] | None, typer.Option(help="Opponents, as player specs; may be repeated.")
    ] = None,
    add: Annotated[
        list[Path] | None, typer.Option(help="Earlier reports, as --json printed them.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            show_default="the clock's minutes",
            help="Plies per second of a quiet machine: minutes are plies over this rate, for runs "
            "that shared theirs.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the curves as PNG or SVG.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Strength over minutes of training: the milestones of runs against bots."""
    from keisei.benchmark.strength_curve import (
        OPPONENTS,
        CurveReport,
        draw_curve,
        measure_curve,
        print_curve_report,
        read_curve,
    )
    from keisei.errors import KeiseiError

    if not runs and not add:
        raise KeiseiError("name at least one run with milestones, or an earlier report with --add")
    earlier = [point for path in add or () for point in read_curve(path).points]
    new = with_progress(
        lambda on_progress: measure_curve(
            runs or (),
            opponents=against or OPPONENTS,
            games=games,
            rate=rate,
            on_progress=on_progress,
        )
    )
    report = CurveReport((*earlier, *new.points))
    if plot is not None:
        _write_plot(plot, draw_curve(report))
    show_report(report, print_curve_report, as_json=as_json)


@benchmark_app.command()
def thought(
    network: Annotated[
        str,
        typer.Argument(help="A run, by path or name, a checkpoint, an exported file, or builtin."),
    ] = "builtin",
    simulations: Annotated[
        list[int] | None,
        typer.Option(
            min=1, show_default="4, 16, 64 ... 16384", help="Simulations per move; may be repeated."
        ),
    ] = None,
    games: Annotated[
        int, typer.Option(min=2, help="Games of each match; long searches play fewer.")
    ] = 400,
    kept: Annotated[
        Path | None,
        typer.Option("--report", help="Show this report, as --json printed it; play nothing."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the curve as PNG or SVG.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Strength over thought: a network's searches, each against the next shorter one."""
    from keisei.benchmark.thought import (
        SIMULATIONS,
        draw_thought,
        measure_thought,
        print_thought_report,
        read_thought,
    )

    if kept is not None:
        report = read_thought(kept)
    else:
        report = with_progress(
            lambda on_progress: measure_thought(
                network,
                simulations=simulations or SIMULATIONS,
                games=games,
                on_progress=on_progress,
            )
        )
    if plot is not None:
        _write_plot(plot, draw_thought(report))
    show_report(report, print_thought_report, as_json=as_json)


@benchmark_app.command()
def network(
    run: Annotated[Path, typer.Argument(help="A trained run, by path or name.")],
) -> None:
    """Network: its outputs and its speed next to those of its ONNX export."""
    from keisei.benchmark.network_speed import report_network

    report_network(run)


@benchmark_app.command()
def search() -> None:
    """Searches: alpha-beta and short mates."""
    from keisei.benchmark.search_speed import report_search

    report_search()


@benchmark_app.command()
def workers(
    number: Annotated[int, typer.Option("--workers", min=1, help="Worker processes.")] = 2,
    turns: Annotated[int, typer.Option(min=1, help="Turns; the best one counts.")] = 5,
) -> None:
    """Self-play by worker processes: speed next to one process, overhead, shared-memory ring."""
    from keisei.benchmark.worker_speed import report_workers

    report_workers(number, turns)


@benchmark_app.command()
def weights(run: RunOption = None) -> None:
    """Weight sync: cost and savings of compressing weights on their way to workers."""
    from keisei.benchmark.weight_sync import report_weight_sync

    report_weight_sync(run)


@benchmark_app.command()
def capacity(
    config: Config = "quickstart",
    settings: Settings = None,
    shares: Annotated[int, typer.Option(min=1, help="Work items of an update.")] = 8,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes that receive the weights.")] = 4,
    check: Annotated[
        int,
        typer.Option(min=0, help="Train with this many Ray workers to check the plan; 0: don't."),
    ] = 0,
) -> None:
    """Cluster: the number of workers that one learner can use, planned from measured rates."""
    from keisei.benchmark.capacity import report_capacity

    report_capacity(config or "quickstart", settings or (), shares=shares, nodes=nodes, check=check)


@benchmark_app.command()
def dashboard(
    directory: Annotated[
        Path | None, typer.Argument(help="Where to keep the runs; temporary if left out.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs.")] = 50,
    rows: Annotated[int, typer.Option(min=1, help="Training steps of all runs.")] = 1_000_000,
) -> None:
    """Dashboard: time to show many long runs in a browser, and the delay of live updates."""
    from keisei.benchmark.dashboard_load import report_dashboard

    report_dashboard(directory, runs, rows)
