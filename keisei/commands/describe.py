"""``keisei describe``: the parts and the size of a configuration's network."""

import json
from typing import TYPE_CHECKING

import typer

from keisei.commands.options import NETWORK_FLAGS, AsJson, ConfigOptions, with_config_options

if TYPE_CHECKING:
    from rich.table import Table

    from keisei.network.description import Description, InputTable


@with_config_options(NETWORK_FLAGS)
def describe(
    options: ConfigOptions,
    as_json: AsJson = False,
) -> None:
    """Show the network of a configuration: inputs, parts, parameters, multiplications."""
    config = options.load()

    from keisei.commands.tables import progress_bar

    with progress_bar() as progress:
        progress.add_task("building the network", total=None)

        from keisei.network.model_factory import describe_network

        description = describe_network(config)
    if as_json:
        facts = {"config": config.model.model_dump(), "features": config.env.input_features}
        typer.echo(json.dumps(facts | description.as_dict(), indent=2))
    else:
        _print_report(description)


def _print_report(description: "Description") -> None:
    from rich.console import Console

    console = Console()
    for table in description.inputs:
        console.print(_input_table(table))
    console.print(_part_table(description))


def _input_table(inputs: "InputTable") -> "Table":
    from rich.table import Table

    table = Table(title=inputs.name, title_justify="left", show_footer=True)
    has_axes = any(group.axes for group in inputs.groups)
    table.add_column("group" if has_axes else "feature", footer="all")
    if has_axes:
        table.add_column("axes")
    table.add_column(inputs.unit, justify="right", footer=f"{inputs.size:,}")
    table.add_column("from - to", justify="right", no_wrap=True)
    for group in inputs.groups:
        place = f"{group.first} - {group.first + group.size - 1}"
        axes = [group.axes] if has_axes else []
        table.add_row(group.name, *axes, f"{group.size:,}", place)
    return table


def _part_table(description: "Description") -> "Table":
    from rich.table import Table

    table = Table(title=description.model, title_justify="left", show_footer=True)
    table.add_column("part", footer="all")
    table.add_column("parameters", justify="right", footer=f"{description.parameters:,}")
    table.add_column("share", justify="right", footer="100 %")
    table.add_column("MACs/position", justify="right", footer=f"{description.macs:,}")
    for part in description.parts:
        share = f"{100 * part.parameters / description.parameters:.1f} %"
        table.add_row(part.name, f"{part.parameters:,}", share, f"{part.macs:,}")
    return table
