"""Load, merge, validate and save the configuration of a run.

Each layer overrides those before it, and the result is validated once:

1. the defaults of `AppConfig`;
2. a YAML file, or one of the recipes that come with Keisei (``quickstart``, ``laptop``, ``gpu``);
3. flags of the command line, then ``--set section.field=value``;
4. the parameters of a sweep.

>>> load_config("quickstart", ["ppo.epochs=2"], sweep={"ppo.epochs": 3}).ppo.epochs
3
"""

import reprlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from keisei.config_schema import AppConfig, Section
from keisei.errors import KeiseiError, did_you_mean
from keisei.system import FileAccessError, read_bytes, write_atomically

__all__ = ["ConfigError", "load_config", "load_saved_config", "recipes", "save_config"]

_NONE: Final[Mapping[str, object]] = {}


class ConfigError(KeiseiError, ValueError):
    """Invalid settings; the message lists every problem."""

    problems: tuple[str, ...]
    """One line per problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        heading = f"{len(self.problems)} problems in the configuration:"
        super().__init__(
            self.problems[0] if len(self.problems) == 1 else "\n  ".join((heading, *self.problems))
        )


def load_config(
    path: Path | str | None = None,
    overrides: Sequence[str] = (),
    *,
    saved: Path | None = None,
    flags: Mapping[str, object] = _NONE,
    sweep: Mapping[str, object] = _NONE,
) -> AppConfig:
    """Merge defaults, files, flags, overrides and sweep, in this order, and validate the result.

    Args:
        path: A YAML file (or the ``config.json`` of a run), or the name of a recipe.
        saved: The ``config.json`` of a run to resume, which `path` overrides.
        overrides: ``section.field=value``, with a YAML value; later ones win.
        flags: Values by ``section.field``.
        sweep: Values by ``section.field``.

    Raises:
        ConfigError: Settings are invalid; every problem is listed.
        FileAccessError: The file cannot be read.
    """
    documents = [_read(file) for file in (saved, path) if file is not None]
    files = [setting for document in documents for setting in document.items()]
    merged = _merged((*files, *flags.items(), *_parsed(overrides), *sweep.items()))
    try:
        return AppConfig.model_validate(merged)
    except ValidationError as error:
        raise explain(error) from None


def save_config(config: AppConfig, path: Path) -> None:
    """Write all settings as JSON, atomically."""
    write_atomically(path, config.model_dump_json(indent=2).encode() + b"\n")


def load_saved_config(path: Path) -> AppConfig:
    """Load a configuration that `save_config` wrote.

    Raises:
        ConfigError: The file is damaged, or from another version of Keisei.
        FileAccessError: The file cannot be read.
    """
    try:
        return AppConfig.model_validate_json(read_bytes(path))
    except ValidationError as error:
        problems = explain(error).problems
        raise ConfigError([f"{path}: {problem}" for problem in problems]) from None


def recipes() -> dict[str, Path]:
    """Return the files of the recipes that come with Keisei, by name."""
    package = Path(__file__).parent
    # In a wheel they are inside the package, in a checkout next to it.
    inside = package / "configs"
    folder = inside if inside.is_dir() else package.parent / "configs"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _read(path: Path | str) -> Mapping[str, object]:
    known = recipes()
    file = known.get(str(path), Path(path))
    try:
        data = read_bytes(file)
    except FileAccessError as error:
        hint = f"the recipes are {', '.join(known)}{did_you_mean(str(path), known)}"
        raise FileAccessError(f"{error}; {hint}") from error
    document = parse(decode(data, str(file)), str(file))
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise ConfigError([f"{file}: should be sections with settings, such as `ppo:`"])
    return {str(key): value for key, value in document.items()}


def _parsed(overrides: Sequence[str]) -> list[tuple[str, object]]:
    malformed = [text for text in overrides if text.find("=") < 1]
    if malformed:
        raise ConfigError(
            [f"{text!r} is not an override: write section.field=value" for text in malformed]
        )
    pairs = (text.split("=", 1) for text in overrides)
    return [(path, parse(value, f"value of {path}")) for path, value in pairs]


def texts_of(overrides: Sequence[str]) -> frozenset[str]:
    """Return all texts among the values of overrides: what a user has typed.

    >>> sorted(texts_of(["evaluation.opponents=[random, 'usi:engine,depth=3']"]))
    ['random', 'usi:engine,depth=3']
    """

    def texts(value: object) -> Iterable[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping | list):
            for part in value.values() if isinstance(value, Mapping) else value:
                yield from texts(part)

    return frozenset(text for _, value in _parsed(overrides) for text in texts(value))


def _merged(settings: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return fields by section, from values by ``section.field`` or ``section``; later ones win."""
    merged: dict[str, object] = {}
    for path, value in settings:
        section, dot, field = path.partition(".")
        above = {field: value} if dot else value
        below = merged.get(section, {})
        if above is None:  # `ppo:` with all its lines commented out
            above = {}
        if not isinstance(below, Mapping):
            continue  # keep what is not a section, so that validation reports it
        merged[section] = {**below, **above} if isinstance(above, Mapping) else above
    return merged


# ---- problems in plain words ----


def sections() -> dict[str, type[Section]]:
    """Return the section classes of `AppConfig` by name, in order."""
    classes = {name: field.annotation for name, field in AppConfig.model_fields.items()}
    return {
        name: section
        for name, section in classes.items()
        if isinstance(section, type) and issubclass(section, Section)
    }


def explain(error: ValidationError) -> ConfigError:
    """Translate pydantic's errors into one problem per field, in the terms of the YAML file."""
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
"""Plainer messages for some of pydantic's error types."""

_MAX_VALUE_LENGTH: Final = 60


def _path(location: Sequence[int | str]) -> str:
    """Return ``section.field[index]``, without the union branches that pydantic adds."""
    names = ".".join(str(part) for part in location[:2])
    return names + "".join(f"[{part}]" for part in location[2:] if isinstance(part, int))


def _problem(path: str, faults: Sequence[ErrorDetails]) -> str:
    first = faults[0]
    match first["type"]:
        case "extra_forbidden" | "invalid_key":
            return _unknown(path)
        case "json_invalid":
            return first["msg"]
        case "value_error" if path in sections():  # a conflict between fields
            return f"{path}: {allowed_by(first)}"
    allowed = " or ".join(allowed_by(fault) for fault in faults).replace("or should be", "or")
    place = f"{path}: " if path else ""
    return f"{place}{shown(first['input'])} is not allowed: {allowed}"


def allowed_by(fault: ErrorDetails) -> str:
    """Return what would be allowed instead, in plain words."""
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    return _SHOULD_BE.get(fault["type"], fault["msg"].removeprefix("Input "))


def shown(value: object) -> str:
    """Return a value as the user wrote it, shortened."""
    if value is None:
        return "nothing"
    if isinstance(value, str) and value.isprintable() and value.strip() == value != "":
        return value if len(value) <= _MAX_VALUE_LENGTH else f"{value[:_MAX_VALUE_LENGTH]}..."
    return reprlib.repr(value)


def _unknown(path: str) -> str:
    section, dot, field = path.partition(".")
    known = sections()
    if not dot or section not in known:  # also of names that have a dot of their own
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
    """Return the fields of any section with a similar name: the section may be wrong."""
    paths = {
        f"{section}.{field}": field
        for section, fields in sections().items()
        for field in fields.model_fields
    }
    near = _near(name, paths.values())
    return [path for path, field in paths.items() if field in near]


def _did_you_mean(paths: Sequence[str]) -> str:
    return f"did you mean {' or '.join(paths)}?" if paths else ""


# ---- YAML ----

_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL", "none", "None"})


def parse(text: str, source: str) -> object:
    """Parse a YAML document into dicts, lists, strings and None.

    Raises:
        ConfigError: Invalid YAML or a duplicate key; the message has `source`, line and column.
    """
    try:
        # A loader that creates only strings, lists and dicts cannot be made to run code.
        loader = _TextLoader(text)
        try:
            return loader.get_single_data()
        except (OverflowError, ValueError) as error:  # an escape beyond Unicode: \UFFFFFFFF
            line, column, problem = loader.line + 1, loader.column + 1, str(error)
        except RecursionError:
            line, column, problem = loader.line + 1, loader.column + 1, "nested too deeply"
    except yaml.reader.ReaderError as error:
        line, column = _place(text, error.position)
        problem = f"character {error.character!r} is not allowed: {error.reason}"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = error.problem or error.context or "not YAML"
    raise ConfigError([f"{source}, line {line}, column {column}: {problem}"])


def decode(data: bytes, source: str) -> str:
    """Decode a UTF-8 file.

    Raises:
        ConfigError: The file is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(error.object[: error.start].decode(), error.start)
    raise ConfigError([f"{source}, line {line}, column {column}: not UTF-8"])


def _place(text: str, position: int) -> tuple[int, int]:
    """Return line and column, counted from 1."""
    before = text[:position]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class _TextLoader(yaml.BaseLoader):
    """A `yaml.BaseLoader`, which keeps strings: with None for null, no aliases, no key twice."""

    def construct_scalar(self, node: yaml.ScalarNode) -> Any:
        value = super().construct_scalar(node)
        is_quoted = node.style is not None
        return value if is_quoted or value not in _NOTHING else None

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # a few lines of them make a tree of gigabytes
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) are not supported: write the value out",
                problem_mark=event.start_mark,
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"duplicate key {key.value}", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)
