"""Writes ``docs/configuration.md`` from `AppConfig`.

python -m keisei.config_docs docs/configuration.md
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from keisei.config import recipes, sections
from keisei.config_schema import Section
from keisei.system import write_atomically

Schema = Mapping[str, Any]
"""The JSON schema of one field."""

INTRODUCTION: Final = """\
# Configuration

<!-- Written by `python -m keisei.config_docs docs/configuration.md`; don't edit it by hand. -->

Every setting has a default, so that `keisei train` needs no file at all. What you set is laid over
the defaults in this order, and checked once at the end:

1. a YAML file, or the name of a recipe: `keisei train --config quickstart`;
2. flags: `keisei train --tower_depth 4`;
3. any field by its path: `keisei train --set ppo.epochs=2 --set evaluation.opponents=[random]`;
4. the parameters of a sweep.

Unknown names and values that are not allowed are refused, each with its path and with what would be
allowed. The settings of a run are kept in its directory, in `config.json`.

A file names only what differs from the defaults:

```yaml
env:
  input_features: core46+check
ppo:
  epochs: 2
  learning_rate: 3e-4
```
"""


_WORDS: Final = {
    "boolean": "`true`, `false`",
    "integer": "whole number",
    "null": "`none`",
    "number": "number",
    "string": "text",
}


def configuration_page() -> str:
    """The whole page, Markdown."""
    chapters = (_chapter(name, section) for name, section in sections().items())
    return "\n".join((INTRODUCTION, _recipe_table(), *chapters))


def _recipe_table() -> str:
    """Name and purpose of each recipe; the purpose is the file's first line, a comment."""
    rows = []
    for name, path in recipes().items():
        purpose = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        rows.append(f"| `{name}` | {purpose} | `configs/{path.name}` |")
    return "\n".join(("## Recipes", "", "| recipe | purpose | file |", "|---|---|---|", *rows, ""))


def _chapter(name: str, section: type[Section]) -> str:
    fields = section.model_json_schema()["properties"]
    rows = (
        f"| `{name}.{field}` | {_values(schema)} | `{_default(schema['default'])}` "
        f"| {schema['description']} |"
        for field, schema in fields.items()
    )
    heading = (f"## {name}", "", str(section.__doc__), "")
    table = ("| field | values | default | meaning |", "|---|---|---|---|", *rows, "")
    return "\n".join(heading + table)


def _values(schema: Schema) -> str:
    """What a field may be, in words."""
    if "anyOf" in schema:
        return " or ".join(_values(choice) for choice in schema["anyOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if schema["type"] == "array":
        return f"list of {_values(schema['items'])}s"
    return _WORDS[schema["type"]] + _bounds(schema)


def _bounds(schema: Schema) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    bounds = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    return f" {', '.join(bounds)}" if bounds else ""


def _default(value: object) -> str:
    """A default as one would write it in YAML."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:_}"
        case "":
            return '""'
        case list():
            return f"[{', '.join(map(str, value))}]"
        case _:
            return str(value)


if __name__ == "__main__":
    write_atomically(Path(sys.argv[1]), configuration_page().encode())
