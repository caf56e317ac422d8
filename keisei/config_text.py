r"""YAML as configurations use it: the text of each value, and the schema decides what it means.

YAML's own guesses are a trap: ``off`` would be false, ``6e-4`` a text, ``27`` a number where the
name of a rule is meant, and of two equal keys the first would be lost without a word. So values
stay text here, and pydantic turns them into what the field needs.

>>> parse("declaration: 27\ncompile: off\nopponents: [random]\ntarget_kl: none", "an example")
{'declaration': '27', 'compile': 'off', 'opponents': ['random'], 'target_kl': None}
"""

from collections.abc import Hashable
from typing import Any, Final

import yaml

from keisei.config_problems import ConfigError

_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL", "none", "None"})


def parse(text: str, source: str) -> object:
    """The one document of `text`: dicts, lists, texts and None.

    Raises:
        ConfigError: It is not YAML, or a key is there twice; with `source`, line and column.
    """
    try:
        # A loader that makes nothing but texts, lists and dicts cannot be made to run code.
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
    """The text of a file in UTF-8.

    Raises:
        ConfigError: It is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(error.object[: error.start].decode(), error.start)
    raise ConfigError([f"{source}, line {line}, column {column}: not UTF-8"])


def _place(text: str, position: int) -> tuple[int, int]:
    """Line and column, counted from 1."""
    before = text[:position]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class _TextLoader(yaml.BaseLoader):
    """`yaml.BaseLoader`, which leaves texts as they are; nothing is None, duplicates are errors."""

    def construct_scalar(self, node: yaml.ScalarNode) -> Any:
        value = super().construct_scalar(node)
        is_quoted = node.style is not None
        return value if is_quoted or value not in _NOTHING else None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"{key.value} is there twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)
