"""The options of ``keisei train``, and the configuration they add up to.

Each option that sets a field takes its help text from that field: there is one source. Options are
spelled like the fields, with underscores.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer.models import OptionInfo

from keisei.config_problems import sections
from keisei.config_schema import AppConfig


def _sets(path: str, name: str, remark: str = "") -> OptionInfo:
    """An option `name` that sets the field at `path`."""
    section, field = path.split(".")
    description = sections()[section].model_fields[field].description
    info: OptionInfo = typer.Option(name, help=f"{description}{remark}")
    return info


Config = Annotated[
    str | None,
    typer.Option("--config", help="A YAML file, or a recipe: quickstart, laptop, gpu."),
]
Model = Annotated[str | None, _sets("model.type", "--model")]
InputFeatures = Annotated[str | None, _sets("env.input_features", "--input_features")]
TowerDepth = Annotated[int | None, _sets("model.tower_depth", "--tower_depth")]
TowerWidth = Annotated[int | None, _sets("model.tower_width", "--tower_width")]
SeRatio = Annotated[float | None, _sets("model.se_ratio", "--se_ratio")]
MixedPrecision = Annotated[
    bool, _sets("device.mixed_precision", "--mixed_precision", " The flag stands for auto.")
]
Name = Annotated[str | None, _sets("run.name", "--name")]
Seed = Annotated[int | None, _sets("run.seed", "--seed")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.FIELD=VALUE",
        help="Set any field; may be given several times. docs/configuration.md lists them all.",
    ),
]
Resume = Annotated[
    str | None,
    typer.Option("--resume", metavar="RUN", help="Go on with this run from its last checkpoint."),
]
Profile = Annotated[bool, typer.Option("--profile", help="Record an update with torch.profiler.")]


def train_config(
    *,
    config: Path | str | None = None,
    model: str | None = None,
    input_features: str | None = None,
    tower_depth: int | None = None,
    tower_width: int | None = None,
    se_ratio: float | None = None,
    mixed_precision: bool = False,
    name: str | None = None,
    seed: int | None = None,
    settings: Sequence[str] | None = None,
) -> AppConfig:
    """The configuration that the command line asks for; what was not given is None.

    To resume a run, give its ``config.json`` as `config`: the other options change it from there.

    Raises:
        ConfigError: Something is not allowed; every problem is listed.
        FileAccessError: The file cannot be read.
    """
    from keisei.config import load_config

    flags = {
        "model.type": model,
        "env.input_features": input_features,
        "model.tower_depth": tower_depth,
        "model.tower_width": tower_width,
        "model.se_ratio": se_ratio,
        "device.mixed_precision": "auto" if mixed_precision else None,
        "run.name": name,
        "run.seed": seed,
    }
    given = {path: value for path, value in flags.items() if value is not None}
    return load_config(config, settings or (), flags=given)
