"""`ConfigError`, and how it says what is wrong: the field, the value, what would be allowed.

>>> from keisei.config import load_config
>>> load_config(overrides=["ppo.clip_range=3"])
Traceback (most recent call last):
    ...
keisei.config_problems.ConfigError: ppo.clip_range: 3 is not allowed: should be less than 1
"""

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from keisei.config_schema import AppConfig, Section
from keisei.errors import KeiseiError


class ConfigError(KeiseiError, ValueError):
    """Settings that cannot be used; the message lists every problem."""

    problems: tuple[str, ...]
    """One sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        heading = f"{len(self.problems)} problems in the configuration:"
        super().__init__(
            self.problems[0] if len(self.problems) == 1 else "\n  ".join((heading, *self.problems))
        )


def sections() -> dict[str, type[Section]]:
    """The sections of `AppConfig` by name, in order."""
    classes = {name: field.annotation for name, field in AppConfig.model_fields.items()}
    return {
        name: section
        for name, section in classes.items()
        if isinstance(section, type) and issubclass(section, Section)
    }


def explain(error: ValidationError) -> ConfigError:
    """What pydantic found, in the words of the configuration file: one problem per field."""
    by_field: dict[str, list[ErrorDetails]] = {}
    for fault in error.errors(include_url=False):
        by_field.setdefault(_path(fault["loc"]), []).append(fault)
    return ConfigError([_problem(path, faults) for path, faults in by_field.items()])


_SHOULD_BE: Final[Mapping[str, str]] = {
    "bool_parsing": "should be true or false",
    "bool_type": "should be true or false",
    "finite_number": "should be a finite number",
    "float_parsing": "should be a number",
    "float_type": "should be a number",
    "int_from_float": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_parsing_size": "should have fewer digits",
    "int_type": "should be a whole number",
    "model_type": "should be settings, one `name: value` per line",
    "string_pattern_mismatch": "should be text without control characters",
    "string_type": "should be text",
    "string_unicode": "should be valid Unicode",
    "tuple_type": "should be a list such as [one, two]",
}
"""Pydantic's types of errors for which there are plainer words."""

_LONGEST_VALUE: Final = 60


def _path(location: Sequence[int | str]) -> str:
    """``section.field[index]``; what pydantic adds to tell the branches of a union is left out."""
    names = ".".join(str(part) for part in location[:2])
    return names + "".join(f"[{part}]" for part in location[2:] if isinstance(part, int))


def _problem(path: str, faults: Sequence[ErrorDetails]) -> str:
    first = faults[0]
    match first["type"]:
        case "extra_forbidden" | "invalid_key":
            return _unknown(path)
        case "json_invalid":
            return first["msg"]
        case "value_error" if path in sections():  # its fields don't fit together
            return f"{path}: {allowed_by(first)}"
    allowed = " or ".join(allowed_by(fault) for fault in faults).replace("or should be", "or")
    place = f"{path}: " if path else ""
    return f"{place}{shown(first['input'])} is not allowed: {allowed}"


def allowed_by(fault: ErrorDetails) -> str:
    """What would be right instead, in plain words."""
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    return _SHOULD_BE.get(fault["type"], fault["msg"].removeprefix("Input "))


def shown(value: object) -> str:
    """A value as the user wrote it, within reason."""
    if value is None:
        return "nothing"
    if isinstance(value, str) and value.isprintable() and value.strip() == value != "":
        return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."
    return reprlib.repr(value)


def _unknown(path: str) -> str:
    section, dot, field = path.partition(".")
    known = sections()
    if not dot:
        near = _near(section, known) or _paths_near(section)
        remedy = _did_you_mean(near) or f"the sections are {', '.join(known)}"
        return f"{shown(path)}: unknown section: {remedy}"
    fields = known[section].model_fields
    near = [f"{section}.{name}" for name in _near(field, fields)] or _paths_near(field)
    remedy = _did_you_mean(near) or f"the fields of {section} are {', '.join(fields)}"
    return f"{shown(path)}: unknown field: {remedy}"


def _near(name: str, known: Iterable[str]) -> list[str]:
    return get_close_matches(name, list(known), n=1)


def _paths_near(name: str) -> list[str]:
    """The fields of any section that are called like this: perhaps the section is wrong."""
    paths = {
        f"{section}.{field}": field
        for section, fields in sections().items()
        for field in fields.model_fields
    }
    near = _near(name, paths.values())
    return [path for path, field in paths.items() if field in near]


def _did_you_mean(paths: Sequence[str]) -> str:
    return f"did you mean {' or '.join(paths)}?" if paths else ""
