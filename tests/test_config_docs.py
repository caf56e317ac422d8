"""docs/configuration.md matches the schema."""

import re
import runpy
from pathlib import Path

import pytest

from keisei.config import sections
from keisei.config_docs import configuration_page

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
COMMAND = "python -m keisei.config_docs docs/configuration.md"


def test_the_page_is_up_to_date() -> None:
    is_fresh = PAGE.read_text(encoding="utf-8") == configuration_page()
    assert is_fresh, f"docs/configuration.md is stale; run: {COMMAND}"


def test_the_page_names_the_command_that_writes_it() -> None:
    assert COMMAND in configuration_page()


def test_the_command_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr("sys.argv", ["config_docs", str(page)])
    runpy.run_path("keisei/config_docs.py", run_name="__main__")
    assert page.read_text(encoding="utf-8") == configuration_page()


def test_every_field_has_a_line_with_five_columns() -> None:
    lines = configuration_page().splitlines()
    for section, schema in sections().items():
        for field in schema.model_fields:
            (line,) = (line for line in lines if line.startswith(f"| `{section}.{field}` |"))
            assert len(re.findall(r"\|", line)) == 6, line


@pytest.mark.parametrize(
    "text",
    [
        "| `ppo.minibatch_size` | whole number > 0, ≤ 16_777_216 or `auto` |",
        "| `ppo.target_kl` | number > 0 or `none` | `none` |",
        "| `ppo.clip_range` | number > 0, < 1 |",
        "| `device.mixed_precision` | `off`, `bf16`, `fp16`, `auto` | `off` |",
        "| `evaluation.opponents` | list of texts | `[random, greedy, alphabeta:2, alphabeta:3]` |",
        '| `run.name` | text | `""` |',
        "| `quickstart` | ",
        "| `env.num_games` | whole number > 0, ≤ 1_048_576 | `512` | new games |",
        '| `run.name` | text | `""` | fixed |',
        "| `ppo.epochs` | whole number > 0 | `1` | applies |",
    ],
)
def test_values_and_defaults_are_in_plain_text(text: str) -> None:
    assert text in configuration_page()
