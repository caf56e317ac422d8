"""The configuration of a run: read, merged, validated, saved.

There is one merge path. Each layer overrides those before it, and the result is validated once:

1. the defaults of `AppConfig`;
2. a YAML file, or one of the recipes that come with Keisei (``quickstart``, ``laptop``, ``gpu``);
3. flags of the command line, then ``--set section.field=value``;
4. the parameters of a sweep.

>>> load_config("quickstart", ["ppo.epochs=2"], sweep={"ppo.epochs": 3}).ppo.epochs
3
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from keisei.config_problems import ConfigError, explain
from keisei.config_schema import AppConfig
from keisei.config_text import decode, parse
from keisei.files import FileAccessError, read_bytes, write_atomically

__all__ = ["ConfigError", "load_config", "load_saved_config", "recipes", "save_config"]

_NONE: Final[Mapping[str, object]] = {}


def load_config(
    path: Path | str | None = None,
    overrides: Sequence[str] = (),
    *,
    flags: Mapping[str, object] = _NONE,
    sweep: Mapping[str, object] = _NONE,
) -> AppConfig:
    """Defaults, file, flags and overrides, sweep: merged in this order, then validated.

    Args:
        path: A YAML file (or the ``config.json`` of a run), or the name of a recipe.
        overrides: ``section.field=value``, where the value is YAML; of two, the later wins.
        flags: Values by ``section.field``.
        sweep: Values by ``section.field``.

    Raises:
        ConfigError: Something is not allowed; every problem is listed.
        FileAccessError: The file cannot be read.
    """
    document = {} if path is None else _read(path)
    merged = _merged((*document.items(), *flags.items(), *_parsed(overrides), *sweep.items()))
    try:
        return AppConfig.model_validate(merged)
    except ValidationError as error:
        raise explain(error) from None


def save_config(config: AppConfig, path: Path) -> None:
    """Write all settings as JSON; a reader never sees half a file."""
    write_atomically(path, config.model_dump_json(indent=2).encode() + b"\n")


def load_saved_config(path: Path) -> AppConfig:
    """What `save_config` wrote, field by field the same.

    Raises:
        ConfigError: The file is damaged, or of another version of Keisei.
        FileAccessError: The file cannot be read.
    """
    try:
        return AppConfig.model_validate_json(read_bytes(path))
    except ValidationError as error:
        problems = explain(error).problems
        raise ConfigError([f"{path}: {problem}" for problem in problems]) from None


def recipes() -> dict[str, Path]:
    """The recipes that come with Keisei, by name."""
    package = Path(__file__).parent
    # A wheel carries them inside the package; a checkout has them at the top.
    inside = package / "configs"
    folder = inside if inside.is_dir() else package.parent / "configs"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _read(path: Path | str) -> Mapping[str, object]:
    known = recipes()
    file = known.get(str(path), Path(path))
    try:
        data = read_bytes(file)
    except FileAccessError as error:
        raise FileAccessError(f"{error}; the recipes are {', '.join(known)}") from error
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


def _merged(settings: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Fields by section, from values by ``section.field`` or by ``section``; later ones win."""
    merged: dict[str, object] = {}
    for path, value in settings:
        section, dot, field = path.partition(".")
        above = {field: value} if dot else value
        below = merged.get(section, {})
        if above is None:  # `ppo:` with all its lines commented out
            above = {}
        if not isinstance(below, Mapping):
            continue  # a section that is none stays, so that validation names it
        merged[section] = {**below, **above} if isinstance(above, Mapping) else above
    return merged
