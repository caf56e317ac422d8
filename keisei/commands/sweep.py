"""``keisei sweep``: hyperparameter search over many short runs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keisei.commands.options import AsJson
from keisei.interrupts import INTERRUPTED
from keisei.sweep.study import SWEEPS

if TYPE_CHECKING:
    from keisei.sweep.space import Sweep
    from keisei.sweep.summary import SweepSummary


def sweep(
    space: Annotated[
        Path,
        typer.Argument(
            metavar="SPACE.yaml", help="Search space; docs/sweep.md describes the file."
        ),
    ],
    name: Annotated[
        str, typer.Option(help="Name of the sweep's directory; empty: the file's name.")
    ] = "",
    root: Annotated[Path, typer.Option(help="Directory that holds the sweeps.")] = Path(SWEEPS),
    trials: Annotated[
        int | None, typer.Option(min=1, help="Number of trials, instead of the file's.")
    ] = None,
    side_by_side: Annotated[
        int | None, typer.Option(min=1, help="Trials in parallel, instead of the file's.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check that the search space is valid.")
    ] = False,
    wandb_config: Annotated[
        bool, typer.Option("--wandb-config", help="Print the space in the format of `wandb sweep`.")
    ] = False,
    wandb_agent: Annotated[
        str | None,
        typer.Option(
            metavar="ENTITY/PROJECT/ID", help="Run as an agent of this Weights & Biases sweep."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search for good settings by many short runs; the best one is written as a recipe.

    The same command resumes a sweep that was interrupted or killed.
    """
    from keisei.sweep.check import checked, require_set_up
    from keisei.sweep.space import load_space

    given = {"trials": trials, "side_by_side": side_by_side}
    changes = {field: value for field, value in given.items() if value is not None}
    plan = checked(load_space(space).model_copy(update=changes))
    directory = root / (name or space.stem)
    if wandb_config:
        typer.echo(_definition(plan, directory.name), nl=False)
        return
    require_set_up(plan)
    if check:
        _show_space(plan, as_json=as_json)
    elif wandb_agent is not None:
        from keisei.sweep.wandb_agent import run_agent
        from keisei.training.wandb_tracker import import_wandb

        run_agent(plan, directory, import_wandb(), sweep_id=wandb_agent, count=trials)
    else:
        _run(plan, directory, as_json=as_json)


def _run(plan: "Sweep", directory: Path, *, as_json: bool) -> None:
    from keisei.display.logs import lasting_console
    from keisei.sweep.runner import run_sweep
    from keisei.sweep.summary import SweepDisplay
    from keisei.system import InterruptFlag

    with SweepDisplay(lasting_console()) as display, InterruptFlag() as interrupt:
        summary = run_sweep(plan, directory, interrupt=interrupt, on_change=display)
    if as_json:
        typer.echo(json.dumps(summary.as_dict(), indent=2))
    else:
        _print_summary(summary)
    if summary.is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _print_summary(summary: "SweepSummary") -> None:
    from rich.console import Console

    from keisei.formats import percent
    from keisei.sweep.study import BEST, PLOT, TRIALS
    from keisei.sweep.summary import trial_table

    console = Console()
    console.print(trial_table(summary.trials, {}))
    for trial in summary.trials:
        if trial.reason:
            typer.echo(f"trial {trial.number} failed: {trial.reason}")
    if summary.best is None:
        typer.echo("no trial is complete yet")
    else:
        typer.echo(f"best: trial {summary.best.number}, {percent(summary.best.score or 0.0, 1)}")
        typer.echo(f"train with it: keisei train --config {summary.directory / BEST}")
    if summary.importances:
        shares = (f"{path} {percent(share)}" for path, share in summary.importances.items())
        typer.echo(f"importance: {', '.join(shares)}")
    if (summary.directory / PLOT).exists():
        typer.echo(f"plot: {summary.directory / PLOT}")
    typer.echo(f"the runs: keisei runs {summary.directory / TRIALS}")
    if summary.is_interrupted:
        typer.echo("interrupted: the same command resumes the sweep")


def _show_space(plan: "Sweep", *, as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    base = plan.config().model_dump(mode="json")
    rows = []
    for path, parameter in plan.space.items():
        section, field = path.split(".")
        rows.append({"field": path, "values": str(parameter), "base": base[section][field]})
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(title="search space", title_justify="left")
    for heading in ("field", "values", "base"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(value)) for value in row.values()))
    Console().print(table)
    typer.echo(f"{plan.trials} trials, {plan.side_by_side} at a time: the search space is valid")


def _definition(plan: "Sweep", name: str) -> str:
    import yaml

    from keisei.sweep.wandb_agent import sweep_definition

    definition: dict[str, Any] = sweep_definition(plan, name)
    return yaml.safe_dump(definition, sort_keys=False, allow_unicode=True)
