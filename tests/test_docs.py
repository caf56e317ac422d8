"""README and docs name what exists: commands, files, tests, pages."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest
import typer

from keisei.cli import app
from keisei.shogi.row_groups import row_spec
from keisei.shogi.row_numbering import Table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
OLD_TERMS = (
    r"judge\w*", "luck", "forest", "tickets?", "slab", "anew", "nobody", "somebody", "whoever",
)  # fmt: skip
"""Words that the glossary has replaced."""


def command_names(command: typer.core.TyperCommand, prefix: str = "") -> list[str]:
    subcommands = getattr(command, "commands", {})
    if not subcommands:
        return [prefix.strip()]
    return [
        name
        for key, subcommand in subcommands.items()
        for name in command_names(subcommand, f"{prefix} {key}")
    ]


def test_every_command_is_listed_once() -> None:
    listed = re.findall(r"`keisei ([a-z ]+)`", (DOCS / "commands.md").read_text("utf-8"))
    assert sorted(listed) == sorted(command_names(typer.main.get_command(app)))  # type: ignore[arg-type]


REQUIREMENTS = {"A": 5, "B": 5, "C": 7, "D": 11, "E": 9, "F": 3, "G": 3, "H": 3}
"""Number of requirements by chapter."""


def test_every_requirement_is_shown_by_tests_that_exist() -> None:
    page = (DOCS / "requirements.md").read_text("utf-8")
    rows = re.findall(r"^\| ([A-H]\d+) \| (.+) \| (.+) \|$", page, re.M)
    wanted = {f"{letter}{n}" for letter, last in REQUIREMENTS.items() for n in range(1, last + 1)}
    assert {number for number, _, _ in rows} == wanted
    assert [point for _, point, shown in rows if "::" not in shown and "`make " not in shown] == []
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", page)
    assert len(named) > len(rows)
    texts = {file: (ROOT / "tests" / file).read_text("utf-8") for file, _ in named}
    assert [name for file, name in named if f"def {name}(" not in texts[file]] == []
    everything = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    shortened = re.findall(r"`::(test_\w+)", page)
    assert [name for name in shortened if f"def {name}(" not in everything] == []


def test_names_from_elsewhere_lead_to_names_that_exist() -> None:
    page = (DOCS / "names.md").read_text("utf-8")
    for name in re.findall(r"`(keisei(?:\.\w+)+)`", page):
        assert resolve_name(name) is not None


def test_branches_for_other_systems_are_listed() -> None:
    package = ROOT / "keisei"
    page = (DOCS / "platforms.md").read_text("utf-8")
    listed = set(re.findall(r"^\| `([\w/]+\.py)` \|", page, re.M))
    branches = re.compile(r"sys\.platform|os\.name\b|_DIRECTORY\.is_dir|platform\.system\(\) ==")
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if branches.search(path.read_text("utf-8"))
    }
    assert listed == found


def test_every_front_door_is_in_the_api_reference() -> None:
    page = (DOCS / "api.md").read_text("utf-8")
    doors = [path.parent.name for path in (ROOT / "keisei").glob("*/__init__.py")]
    for door in set(doors) - {"benchmark", "commands"}:
        assert f".. automodule:: keisei.{door}\n   :members:\n" in page, door
        package = import_module(f"keisei.{door}")
        assert set(package.__all__) <= {*dir(package)}, "autodoc and editors read dir()"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_use_the_words_of_the_glossary(page: Path) -> None:
    found = re.findall(rf"\b(?:{'|'.join(OLD_TERMS)})\b", page.read_text("utf-8"), re.I)
    assert found == []


@pytest.mark.parametrize("table", ["position", "move"])
def test_tables_of_rows_are_those_of_the_registry(table: Table) -> None:
    """`docs/sparse.md` lists each group with its axes, its number of rows and its meaning."""
    spec = row_spec(table, "all")
    lines = [f"| group | axes | rows | a row says of a {table} |", "|---|---|---|---|"]
    for group in spec.groups:
        axes = ", ".join(f"{axis.name} {axis.size}" for axis in group.axes)
        lines.append(f"| `{group.name}` | {axes} | {group.num_rows:,} | {group.meaning} |")
    lines.append(f"| all | | {spec.num_rows:,} | |")
    expected = "\n".join(lines)
    assert expected in (DOCS / "sparse.md").read_text("utf-8"), f"put this there:\n{expected}"
