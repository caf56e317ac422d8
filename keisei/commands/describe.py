"""``keisei describe``: the parts and the size of a configuration's network."""

import json
from typing import TYPE_CHECKING

import typer

from keisei.commands.options import NETWORK_FLAGS, AsJson, ConfigOptions, with_config_options

if TYPE_CHECKING:
    from rich.table import Table

    from keisei.network.towers.describe import Description


@with_config_options(NETWORK_FLAGS)
def describe(
    options: ConfigOptions,
    as_json: AsJson = False,
) -> None:
    """Show the network of a configuration: parts, parameters, multiplications, input planes."""
    config = options.load()

    from keisei.commands.tables import progress_bar

    with progress_bar() as progress:
        progress.add_task("building the network", total=None)

        from keisei.network.model_factory import build_model
        from keisei.network.towers.describe import describe_model
        from keisei.shogi.features import feature_spec

        features = feature_spec(config.env.input_features)
        network = build_model(config.model, features)
        description = describe_model(network, features)
    if as_json:
        facts = {"config": config.model.model_dump(), "features": features.name}
        typer.echo(json.dumps(facts | description.as_dict(), indent=2))
    else:
        _print_report(description)


def _print_report(description: "Description") -> None:
    from rich.console import Console

    console = Console()
    console.print(_input_table(description))
    console.print(_part_table(description))


def _input_table(description: "Description") -> "Table":
    from rich.table import Table

    table = Table(title="input", title_justify="left", show_footer=True)
    table.add_column("feature", footer="all")
    table.add_column("planes", justify="right", footer=str(description.in_planes))
    table.add_column("from - to", justify="right")
    for group in description.inputs:
        place = f"{group.first} - {group.first + group.planes - 1}"
        table.add_row(group.feature, str(group.planes), place)
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
