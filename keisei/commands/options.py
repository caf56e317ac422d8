"""Options that several commands share: configuration, players, conditions of games, JSON."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand

from keisei.config import sections
from keisei.config_schema import AppConfig
from keisei.constants import MAX_PLY_LIMIT
from keisei.run_files import LADDER


class Flag(NamedTuple):
    """A command-line option for a configuration field that is set often."""

    name: str
    path: str
    """Path of the field: ``section.field``."""

    kind: type = str
    flag_value: str = ""
    """Value that the flag sets, for options of the kind `bool`."""

    bare_value: str = ""
    """Value of an option that may be given without one."""

    @property
    def parameter(self) -> str:
        """Name of the parameter in which Typer passes the value."""
        return self.name.removeprefix("--")

    @property
    def annotation(self) -> object:
        """Annotation from which Typer makes the option."""
        section, field = self.path.split(".")
        text = sections()[section].model_fields[field].description
        if self.flag_value:
            text = f"{text} The flag sets {self.flag_value}."
        if self.bare_value:
            text = f"{text} Without a value: {self.bare_value}."
        return Annotated[self.kind | None, typer.Option(self.name, help=text)]


NETWORK_FLAGS: Final = (
    Flag("--model", "model.type"),
    Flag("--input_features", "env.input_features"),
    Flag("--tower_depth", "model.tower_depth", int),
    Flag("--tower_width", "model.tower_width", int),
    Flag("--se_ratio", "model.se_ratio", float),
)
"""Options of the network."""

TRAIN_FLAGS: Final = (
    *NETWORK_FLAGS,
    Flag("--mixed_precision", "device.mixed_precision", bare_value="auto"),
    Flag("--ddp", "parallel.ddp", bool, flag_value="true"),
    Flag("--name", "run.name"),
    Flag("--seed", "run.seed", int),
)


class TrainCommand(TyperCommand):
    """A command with `TRAIN_FLAGS`, some of which may be given without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a bare option its value: Typer has no options with optional values."""
        bare = {flag.name: flag.bare_value for flag in TRAIN_FLAGS if flag.bare_value}
        for index, name in enumerate(args):
            follower = args[index + 1] if index + 1 < len(args) else "-"
            if name in bare and follower.startswith("-"):
                args[index] = f"{name}={bare[name]}"
        return super().parse_args(ctx, args)


Config = Annotated[
    str | None,
    typer.Option("--config", help="YAML file, or recipe: quickstart, laptop, overnight, gpu."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.FIELD=VALUE",
        help="Set any field; repeatable. docs/configuration.md lists all fields.",
    ),
]


@dataclass(frozen=True)
class ConfigOptions:
    """Configuration options of a command line."""

    config: str | None
    flags: Mapping[str, object]
    """Values of the given flags, by the path of their field."""

    settings: Sequence[str]

    def load(self, *, saved: Path | None = None) -> AppConfig:
        """Load the configuration with these options applied.

        To resume a run, pass its ``config.json`` as `saved`: the options override it.

        Raises:
            ConfigError: Settings are invalid; every problem is listed.
            FileAccessError: The file cannot be read.
        """
        from keisei.config import load_config

        return load_config(self.config, self.settings, saved=saved, flags=self.flags)

    @property
    def named(self) -> frozenset[str]:
        """All texts in the values of ``--set``: see `keisei.training.run.require_allowed`."""
        from keisei.config import texts_of

        return texts_of(self.settings)


Command = Callable[..., None]


def with_config_options(flags: Sequence[Flag]) -> Callable[[Command], Command]:
    """Decorate a command with ``--config``, these flags and ``--set``, before its own options.

    The command receives them as a `ConfigOptions`, its first argument. The decorated function has
    one parameter for each, as Typer needs it.
    """
    options: dict[str, Any] = {
        "config": Config,
        **{flag.parameter: flag.annotation for flag in flags},
        "settings": Settings,
    }

    def decorate(command: Command) -> Command:
        def run(**arguments: Any) -> None:
            values_by_name = {name: arguments.pop(name) for name in options}
            given = [flag for flag in flags if values_by_name[flag.parameter] is not None]
            values = {
                flag.path: flag.flag_value or values_by_name[flag.parameter] for flag in given
            }
            command(
                ConfigOptions(values_by_name["config"], values, values_by_name["settings"] or ()),
                **arguments,
            )

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
"""The largest integer that every JSON reader represents exactly."""

DEFAULT_STORE: Final = Path(LADDER)

PLAYER_HELP: Final = (
    "random, greedy, alphabeta:DEPTH, frozen:NAME, a run, checkpoint or exported file, "
    "RUN:search=N, or usi:COMMAND."
)

Games = Annotated[int, typer.Option(min=1, help="Games per pair of players.")]
OpeningPlies = Annotated[
    int, typer.Option(min=0, max=MAX_PLY_LIMIT, help="Random plies at the start of each game.")
]
PlyLimit = Annotated[
    int, typer.Option(min=1, max=MAX_PLY_LIMIT, help="Ply at which a game is a draw.")
]
MIN_WITHIN: Final = 5.0
"""Smallest margin of a rating that can be asked for, in points: less would take days."""

Within = Annotated[
    float,
    typer.Option(
        min=MIN_WITHIN,
        help="Play until ratings are known within this many points, with 95 % confidence.",
    ),
]
MaxGames = Annotated[int, typer.Option(min=8, help="Games to place a player, at most.")]
Seed = Annotated[
    int, typer.Option(min=0, max=MAX_SEED, help="First seed; seeds of stored games are skipped.")
]
Store = Annotated[Path, typer.Option(metavar="FILE", help="Result store.")]
Device = Annotated[str, typer.Option(help="Device of networks: auto, cpu, cuda, cuda:1, mps.")]
Threads = Annotated[
    int, typer.Option(min=0, help="Threads of networks, searches and engines; 0: one per core.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

LOOPBACK: Final = "127.0.0.1"
Host = Annotated[
    str, typer.Option(help="Address to listen on; addresses other than loopback need a token.")
]
Port = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        show_default=False,
        help="Port; 0: any; default: the first free one from 8360 on.",
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="KEISEI_TOKEN",
        show_default=False,
        help="Access token for visitors; generated where one is needed.",
    ),
]
Browser = Annotated[bool, typer.Option(help="Open the page in the browser.")]
