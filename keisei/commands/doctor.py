"""``keisei doctor``: check the installation."""

import json
from typing import TYPE_CHECKING

import typer

from keisei.commands.options import AsJson

if TYPE_CHECKING:
    from rich.table import Table

    from keisei.doctor import Diagnosis, KernelTiming

STATUS_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "off": "dim"}


def doctor(
    as_json: AsJson = False,
) -> None:
    """Check the installation and compile the kernels; exit with 1 if something is broken."""
    diagnosis = _diagnose_with_progress()
    if as_json:
        typer.echo(json.dumps(diagnosis.as_dict(), indent=2))
    else:
        _print_report(diagnosis)
    raise typer.Exit(0 if diagnosis.usable else 1)


def _diagnose_with_progress() -> "Diagnosis":
    from keisei.commands.tables import progress_bar
    from keisei.doctor import diagnose

    with progress_bar() as progress:
        task = progress.add_task("checking the installation", total=None)
        return diagnose(
            on_progress=lambda step, done, total: progress.update(
                task, description=step, completed=done, total=total
            )
        )


def _print_report(diagnosis: "Diagnosis") -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    console.print(_check_table(diagnosis))
    if diagnosis.kernels:
        console.print(_kernel_table(diagnosis.kernels))
    if diagnosis.usable:
        console.print(Text("Keisei is ready.", style="green"))
    else:
        console.print(Text("Keisei can't run yet: see the failed rows.", style="bold red"))


def _check_table(diagnosis: "Diagnosis") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(title="keisei doctor", title_justify="left")
    for heading in ("", "check", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for check in diagnosis.checks:
        status = Text(check.status, style=STATUS_STYLES[check.status])
        # Text, not str: square brackets in versions, paths and pip commands are not markup.
        table.add_row(status, Text(check.name), Text(check.found), Text(check.hint))
    return table


def _kernel_table(kernels: "tuple[KernelTiming, ...]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(title="kernels", title_justify="left", show_footer=True)
    table.add_column("kernel", footer="all")
    table.add_column("from", footer="")
    for heading, total in (
        ("wall s", sum(kernel.wall_seconds for kernel in kernels)),
        ("CPU s", sum(kernel.cpu_seconds for kernel in kernels)),
    ):
        table.add_column(heading, footer=f"{total:.2f}", justify="right")
    for kernel in kernels:
        table.add_row(
            Text(kernel.name),
            "cache" if kernel.from_cache else "compiler",
            f"{kernel.wall_seconds:.2f}",
            f"{kernel.cpu_seconds:.2f}",
        )
    return table
