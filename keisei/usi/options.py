"""The USI options of the engine.

>>> Settings().with_option("simulations", "64").simulations
64
"""

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from keisei.constants import MAX_PLY_LIMIT
from keisei.errors import KeiseiError
from keisei.levels import LEVELS, MAX_LEVEL
from keisei.shogi.rules import DeclarationRule

UNLIMITED_SIMULATIONS: Final = -1
"""Simulations are limited by time only."""

MAX_DIGITS: Final = 18
"""Digits of a number in a command, at most: Python takes time by the square of their number."""

NEVER_RESIGNS: Final = 100_000


class OptionError(KeiseiError, ValueError):
    """An unknown option, or an invalid value of one."""


def whole_number(text: str) -> int | None:
    """Parse a whole number of up to `MAX_DIGITS` digits; None for any other text.

    >>> whole_number("-12"), whole_number("1e3")
    (-12, None)
    """
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS
    return int(text) if is_number else None


@dataclass(frozen=True)
class Settings:
    """Values of all options."""

    level: int = MAX_LEVEL
    simulations: int = UNLIMITED_SIMULATIONS
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
    spread: float = 0.0
    """Of the policy from which moves are drawn, see `Level`; 0: by `temperature`. Not an option."""

    mate_plies: int | None = None
    """Longest mate that is played by rule, in plies; None: as usual. Not an option of its own."""

    def with_option(self, name: str, value: str) -> "Settings":
        """Return the settings with one option changed; its name is case-insensitive."""
        option = _BY_NAME.get(name.casefold())
        if option is None:
            known = ", ".join(option.name for option in OPTIONS)
            raise OptionError(f"unknown option {name!r}; the options are {known}")
        changes: dict[str, Any] = {option.field: option.read(value)}
        return replace(self, **changes)

    def at_level(self) -> "Settings":
        """Return the settings that the level stands for; the highest one changes nothing."""
        if self.level == MAX_LEVEL:
            return self
        simulations, spread, mate_plies = LEVELS[self.level]
        return replace(
            self, simulations=simulations, temperature=0, spread=spread, mate_plies=mate_plies
        )

    def announcements(self) -> list[str]:
        """Return the ``option`` lines, with these values as defaults."""
        return [
            option.announcement(getattr(self, option.field))
            for option in OPTIONS
            if option.is_announced
        ]


class Option(NamedTuple):
    """One USI option."""

    name: str
    field: str
    """Name of its field in `Settings`."""

    limits: tuple[int, int] | None = None
    """Minimum and maximum of a number."""

    choices: tuple[tuple[str, DeclarationRule], ...] = ()
    is_announced: bool = True
    """GUIs send the options of the protocol itself (``USI_...``) without an announcement."""

    def read(self, value: str) -> int | bool | DeclarationRule:
        """Parse a value."""
        if self.choices:
            for label, meaning in self.choices:
                if label.casefold() == value.casefold():
                    return meaning
            wanted = ", ".join(label for label, _ in self.choices)
            raise OptionError(f"option {self.name} can't be {value!r}, it takes {wanted}")
        if self.limits is None:
            if value not in ("true", "false"):
                raise OptionError(f"option {self.name} can't be {value!r}, it takes true, false")
            return value == "true"
        minimum, maximum = self.limits
        number = whole_number(value)
        if number is None:
            raise OptionError(f"option {self.name} is {value!r}, it must be a whole number")
        if not minimum <= number <= maximum:
            raise OptionError(
                f"option {self.name} is {value}, it must be from {minimum} to {maximum}"
            )
        return number

    def announcement(self, default: int | bool | DeclarationRule) -> str:
        """Return the ``option`` line."""
        head = f"option name {self.name} type"
        if self.choices:
            choices = " ".join(f"var {label}" for label, _ in self.choices)
            now = next(label for label, meaning in self.choices if meaning is default)
            return f"{head} combo default {now} {choices}"
        if self.limits is None:
            return f"{head} check default {'true' if default else 'false'}"
        return f"{head} spin default {default} min {self.limits[0]} max {self.limits[1]}"


OPTIONS: Final = (
    Option("Level", "level", (1, MAX_LEVEL)),
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
"""All options, in the order in which GUIs show them."""

_BY_NAME: Final = {option.name.casefold(): option for option in OPTIONS}
