"""The options that the commands about strength share."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from keisei.config import sections
from keisei.config_schema import AppConfig
from keisei.constants import MAX_PLY_LIMIT
from keisei.run_files import LADDER


class Flag(NamedTuple):
    """An option of its own for a field that is set often."""

    name: str
    path: str
    """The field: ``section.field``."""

    kind: type = str
    stands_for: str = ""
    """What an option without a value, of the kind `bool`, sets the field to."""

    @property
    def parameter(self) -> str:
        """The name under which Typer passes the value on."""
        return self.name.removeprefix("--")

    @property
    def annotation(self) -> object:
        """What Typer makes the option from."""
        section, field = self.path.split(".")
        text = sections()[section].model_fields[field].description
        if self.stands_for:
            text = f"{text} The flag stands for {self.stands_for}."
        return Annotated[self.kind | None, typer.Option(self.name, help=text)]


NETWORK_FLAGS: Final = (
    Flag("--model", "model.type"),
    Flag("--input_features", "env.input_features"),
    Flag("--tower_depth", "model.tower_depth", int),
    Flag("--tower_width", "model.tower_width", int),
    Flag("--se_ratio", "model.se_ratio", float),
)
"""What the network is made from."""

TRAIN_FLAGS: Final = (
    *NETWORK_FLAGS,
    Flag("--mixed_precision", "device.mixed_precision", bool, stands_for="auto"),
    Flag("--ddp", "parallel.ddp", bool, stands_for="true"),
    Flag("--name", "run.name"),
    Flag("--seed", "run.seed", int),
)

Config = Annotated[
    str | None,
    typer.Option("--config", help="A YAML file, or a recipe: quickstart, laptop, gpu."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.FIELD=VALUE",
        help="Set any field; may be given several times. docs/configuration.md lists them all.",
    ),
]


@dataclass(frozen=True)
class ConfigOptions:
    """What the command line says about the configuration."""

    config: str | None
    flags: Mapping[str, object]
    """Values by the path of their field; only of flags that were given."""

    settings: Sequence[str]

    def load(self, *, saved: Path | None = None) -> AppConfig:
        """The configuration that this adds up to.

        To resume a run, give its ``config.json`` as `saved`: it takes the place of ``--config``,
        and the other options change it from there.

        Raises:
            ConfigError: Something is not allowed; every problem is listed.
            FileAccessError: The file cannot be read.
        """
        from keisei.config import load_config

        return load_config(saved or self.config, self.settings, flags=self.flags)


Command = Callable[..., None]


def with_config_options(flags: Sequence[Flag]) -> Callable[[Command], Command]:
    """Give the command below ``--config``, these flags and ``--set``, before options of its own.

    It gets them as a `ConfigOptions`, its first argument. To Typer it is a function that takes
    each by its name.
    """
    options: dict[str, Any] = {
        "config": Config,
        **{flag.parameter: flag.annotation for flag in flags},
        "settings": Settings,
    }

    def decorate(command: Command) -> Command:
        def run(**arguments: Any) -> None:
            said = {name: arguments.pop(name) for name in options}
            given = [flag for flag in flags if said[flag.parameter] is not None]
            values = {flag.path: flag.stands_for or said[flag.parameter] for flag in given}
            command(ConfigOptions(said["config"], values, said["settings"] or ()), **arguments)

        _, *own = inspect.signature(command).parameters.values()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        added = [
            inspect.Parameter(name, kind, default=None, annotation=annotation)
            for name, annotation in options.items()
        ]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature([*added, *own])  # type: ignore[attr-defined]
        return run

    return decorate


MAX_SEED: Final = 1 << 53
"""So large that it still is the same number in everybody's JSON."""

DEFAULT_STORE: Final = Path(LADDER)

PLAYER_HELP: Final = (
    "random, greedy, alphabeta:DEPTH, a run, checkpoint or ONNX file, RUN:search=N, or usi:COMMAND."
)

Games = Annotated[int, typer.Option(min=1, help="Games of each two players.")]
OpeningPlies = Annotated[
    int, typer.Option(min=0, max=MAX_PLY_LIMIT, help="Random plies at the start of each game.")
]
PlyLimit = Annotated[
    int, typer.Option(min=1, max=MAX_PLY_LIMIT, help="Ply at which a game is a draw.")
]
Seed = Annotated[
    int, typer.Option(min=0, max=MAX_SEED, help="First seed; those of stored games are skipped.")
]
Store = Annotated[Path, typer.Option(metavar="FILE", help="Where results are kept.")]
Device = Annotated[str, typer.Option(help="Where networks compute: auto, cpu, cuda, cuda:1, mps.")]
Threads = Annotated[
    int, typer.Option(min=0, help="Of networks, searches and engines; 0: one for each core.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
