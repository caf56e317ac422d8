"""The options that a USI engine says it has, and what they can be set to.

>>> depth = Option.parse("option name LimitDepth type spin default 100 min 4 max 100")
>>> setting_command({"limitdepth": depth}, "limitdepth", "6")
'setoption name LimitDepth value 6'
"""

import re
from dataclasses import dataclass
from typing import Final

_NEED_NO_ANNOUNCEMENT: Final = ("USI_Hash", "USI_Ponder")


class WrongOptionError(Exception):
    """What is wrong with an option."""


@dataclass(frozen=True)
class Option:
    """An option as the engine announces it."""

    name: str
    kind: str
    least: int | None
    most: int | None
    choices: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> "Option | None":
        """Read an ``option`` line; names and choices may contain spaces."""
        match = re.match(r"option name (.+?) type (\w+)(.*)", line)
        if match is None:
            return None
        name, kind, rest = match.groups()
        limits = dict(re.findall(r" (min|max) (-?\d{1,30})", rest)) if kind == "spin" else {}
        choices = re.findall(r" var (.*?)(?= var |$)", rest) if kind == "combo" else []
        return cls(
            name,
            kind,
            int(limits["min"]) if "min" in limits else None,
            int(limits["max"]) if "max" in limits else None,
            tuple(choices),
        )

    def checked(self, value: str) -> str:
        """The value in the engine's spelling; raises if it does not take it."""
        if self.kind == "spin":
            return self._checked_number(value)
        choices = {"check": ("true", "false"), "combo": self.choices, "button": ("",)}
        if self.kind not in choices:
            return value
        for choice in choices[self.kind]:
            if choice.casefold() == value.casefold():
                return choice
        wanted = ", ".join(choices[self.kind]) or "no value"
        raise WrongOptionError(f"option {self.name!r} can't be {value!r}, it takes {wanted}")

    def _checked_number(self, value: str) -> str:
        if re.fullmatch(r"-?[0-9]{1,30}", value) is None:
            raise WrongOptionError(f"option {self.name!r} is {value!r}, it must be a whole number")
        too_low = self.least is not None and int(value) < self.least
        if too_low or (self.most is not None and int(value) > self.most):
            raise WrongOptionError(
                f"option {self.name!r} is {value}, it must be from {self.least} to {self.most}"
            )
        return value


def setting_command(announced: dict[str, Option], name: str, value: str) -> str:
    """The command that sets an option; names are found as GUIs do, whatever their case."""
    option = announced.get(name.casefold())
    if option is not None:
        name, value = option.name, option.checked(value)
    elif name not in _NEED_NO_ANNOUNCEMENT:
        known = ", ".join(option.name for option in announced.values()) or "none at all"
        raise WrongOptionError(f"it has no option {name!r}; it has {known}")
    return f"setoption name {name} value {value}" if value else f"setoption name {name}"
