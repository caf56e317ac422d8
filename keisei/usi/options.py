"""The options that a GUI can set.

>>> Settings().with_option("simulations", "64").simulations
64
"""

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from keisei.constants import MAX_PLY_LIMIT
from keisei.errors import KeiseiError
from keisei.shogi.rules import DeclarationRule

AS_MANY_AS_TIME_ALLOWS: Final = -1
NEVER_RESIGNS: Final = 100_000


class OptionError(KeiseiError, ValueError):
    """An option that does not exist, or a value that it can't have."""


@dataclass(frozen=True)
class Settings:
    """The values of all options."""

    simulations: int = AS_MANY_AS_TIME_ALLOWS
    temperature: int = 0
    threads: int = 1
    batch: int = 16
    megabytes: int = 256
    multipv: int = 1
    network_delay: int = 150
    resign_value: int = NEVER_RESIGNS
    declaration: DeclarationRule = DeclarationRule.POINTS_27
    max_moves: int = 0
    seed: int = 0
    ponder: bool = False
    own_book: bool = False

    def with_option(self, name: str, value: str) -> "Settings":
        """The same with an option set; names are found whatever their case."""
        option = _BY_NAME.get(name.casefold())
        if option is None:
            known = ", ".join(option.name for option in OPTIONS)
            raise OptionError(f"there is no option {name!r}; there is {known}")
        changes: dict[str, Any] = {option.field: option.read(value)}
        return replace(self, **changes)

    def announcements(self) -> list[str]:
        """The ``option`` lines; these values are the defaults."""
        return [
            option.announcement(getattr(self, option.field))
            for option in OPTIONS
            if option.is_announced
        ]


class Option(NamedTuple):
    """One option."""

    name: str
    field: str
    """Of `Settings`."""

    limits: tuple[int, int] | None = None
    """Of a number."""

    choices: tuple[tuple[str, DeclarationRule], ...] = ()
    is_announced: bool = True
    """GUIs send those of the protocol itself without being told of them."""

    def read(self, value: str) -> int | bool | DeclarationRule:
        """What a text means."""
        if self.choices:
            for word, meaning in self.choices:
                if word.casefold() == value.casefold():
                    return meaning
            wanted = ", ".join(word for word, _ in self.choices)
            raise OptionError(f"option {self.name} can't be {value!r}, it takes {wanted}")
        if self.limits is None:
            if value not in ("true", "false"):
                raise OptionError(f"option {self.name} can't be {value!r}, it takes true, false")
            return value == "true"
        least, most = self.limits
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
            raise OptionError(f"option {self.name} is {value!r}, it must be a whole number")
        if not least <= int(value) <= most:
            raise OptionError(f"option {self.name} is {value}, it must be from {least} to {most}")
        return int(value)

    def announcement(self, default: int | bool | DeclarationRule) -> str:
        """The line that tells a GUI of it."""
        head = f"option name {self.name} type"
        if self.choices:
            words = " ".join(f"var {word}" for word, _ in self.choices)
            now = next(word for word, meaning in self.choices if meaning is default)
            return f"{head} combo default {now} {words}"
        if self.limits is None:
            return f"{head} check default {'true' if default else 'false'}"
        return f"{head} spin default {default} min {self.limits[0]} max {self.limits[1]}"


OPTIONS: Final = (
    Option("USI_OwnBook", "own_book"),
    Option("Simulations", "simulations", (-1, 10_000_000)),
    Option("Temperature", "temperature", (0, 1_000)),
    Option("Threads", "threads", (1, 512)),
    Option("BatchSize", "batch", (1, 256)),
    Option("MultiPV", "multipv", (1, 593)),
    Option("NetworkDelay", "network_delay", (0, 60_000)),
    Option("ResignValue", "resign_value", (0, NEVER_RESIGNS)),
    Option(
        "EnteringKingRule",
        "declaration",
        choices=(
            ("CSARule27", DeclarationRule.POINTS_27),
            ("CSARule24", DeclarationRule.POINTS_24),
            ("NoEnteringKing", DeclarationRule.OFF),
        ),
    ),
    Option("MaxMovesToDraw", "max_moves", (0, MAX_PLY_LIMIT)),
    Option("Seed", "seed", (0, 2**31 - 1)),
    Option("USI_Ponder", "ponder", is_announced=False),
    Option("USI_Hash", "megabytes", (1, 1 << 20), is_announced=False),
    Option("USI_MultiPV", "multipv", (1, 593), is_announced=False),
)
"""The order in which GUIs show them."""

_BY_NAME: Final = {option.name.casefold(): option for option in OPTIONS}
