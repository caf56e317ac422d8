"""README and docs name what exists: commands, files, tests, pages."""

import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest
import typer
import yaml

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
    assert len(rows) >= 166, "as many points as were once gone through"
    assert [point for _, point, shown in rows if "::" not in shown and "`make " not in shown] == []
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", page)
    assert len(named) > len(rows)
    texts = {file: (ROOT / "tests" / file).read_text("utf-8") for file, _ in named}
    assert [name for file, name in named if f"def {name}(" not in texts[file]] == []
    marked = re.findall(r"`([\w/]+\.py)::(test_\w+)` †", page)
    assert sorted(marked) == sorted(
        (file, name) for file, name in named if name in long_tests(texts[file])
    )
    files = re.findall(r"`([\w/]+/test_\w+\.py|test_\w+\.py)`", page)
    assert [file for file in files if not (ROOT / "tests" / file).is_file()] == []
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"`make (\w+)`", page)
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
    everything = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    shortened = re.findall(r"`::(test_\w+)", page)
    assert [name for name in shortened if f"def {name}(" not in everything] == []


def long_tests(text: str) -> set[str]:
    """Return the tests of a module that ``make test`` leaves out."""
    marks = {"pytest.mark.soak", "pytest.mark.strength"}
    tree = ast.parse(text)
    is_long = any(
        isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
        and ast.unparse(node.value) in marks
        for node in tree.body
    )
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and (is_long or not marks.isdisjoint(map(ast.unparse, node.decorator_list)))
    }


def test_the_linter_has_the_rules_that_are_promised() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    rules = tools["ruff"]["lint"]
    assert {"BLE", "S110", "S112", "S108", "S306", "T20", "PL"} <= set(rules["select"])
    assert not any("PLR2004".startswith(rule) for rule in rules["ignore"])
    assert "float" not in rules["pylint"]["allow-magic-value-types"]
    assert tools["mypy"]["strict"]
    assert {"keisei", "tests", "examples", "scripts"} <= set(tools["mypy"]["files"])


def test_ci_runs_what_is_promised() -> None:
    jobs = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    for target in ("test", "cover", "docs"):
        assert f"make {target} PYTHON=python" in jobs
    assert "[ubuntu-latest, macos-latest, windows-latest]" in jobs
    check, coverage = (yaml.safe_load(jobs)["jobs"][name] for name in ("check", "coverage"))
    on_ubuntu = "${{ matrix.os == 'ubuntu-latest' && '1' || '' }}"
    assert check["env"]["KEISEI_REQUIRE_BROWSER"] == on_ubuntu
    assert coverage["env"]["KEISEI_REQUIRE_BROWSER"] == "1"
    steps = [step.get("run", "") for step in coverage["steps"]]
    (measured,) = (n for n, step in enumerate(steps) if step.startswith("make cover"))
    (checked,) = (n for n, step in enumerate(steps) if "coverage_badge.py" in step)
    assert measured < checked
    assert "git show HEAD:docs/images/coverage.svg > committed-badge.svg" in steps[checked]
    assert "coverage_badge.py committed-badge.svg --check" in steps[checked]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (folders,) = re.findall(r'^KERNELS := -m "[^"]*" (.*)$', makefile, re.M)
    assert jobs.count(f"{folders}\n") == 2, "Windows runs the kernels' tests without make"


def test_the_packages_of_plug_ins_can_be_built_wherever_tests_are_run() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {
        re.split("[>=<]", requirement)[0]
        for file in (ROOT / "examples" / "plugins").glob("*/pyproject.toml")
        for requirement in tomllib.loads(file.read_text("utf-8"))["build-system"]["requires"]
    }
    dev = project["optional-dependencies"]["dev"]
    assert wanted <= {re.split("[>=<]", requirement)[0] for requirement in dev}
    assert 'importorskip("setuptools")' not in (ROOT / "tests" / "test_plugins.py").read_text()


def test_every_decision_is_listed() -> None:
    folder = DOCS / "decisions"
    assert ":glob:\n\n0*\n" in (folder / "index.md").read_text("utf-8")
    decisions = sorted(path.stem for path in folder.glob("0*.md"))
    assert [int(name[:3]) for name in decisions] == list(range(1, len(decisions) + 1))


def test_names_from_elsewhere_lead_to_names_that_exist() -> None:
    page = (DOCS / "names.md").read_text("utf-8")
    for name in re.findall(r"`(keisei(?:\.\w+)+)`", page):
        assert resolve_name(name) is not None


SYSTEM_BRANCHES = re.compile(
    r"sys\.platform|os\.name\b|_DIRECTORY\.is_dir|platform\.system\(\) [=!]="
    r"|hasattr\((?:os|signal|socket|time), |psutil\.(?:WINDOWS|MACOS|LINUX|POSIX)"
)
"""Code that does one thing on some systems and another on the rest."""


PLANNED_NAMES = (
    *("AppConfig", "config_schema.py", "constants.py", "FeatureSpec", "FEATURE_SPECS"),
    *("PolicyOutputMapper", "ActorCriticResTower", "model_factory", "PPOAgent", "ExperienceBuffer"),
    *("SelfPlayWorker", "WorkerCommunicator", "ModelSynchronizer", "Trainer", "global_timestep"),
    *("train.py", "scripts/selfplay_ddp.py", "scripts/benchmark.py", "tests/test_performance.py"),
)
"""Names that those who asked for Keisei look for."""


def test_names_of_the_plan_are_mapped() -> None:
    page = (DOCS / "names.md").read_text("utf-8")
    names = set(re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| ([^|]+) \|", page, re.M))))
    assert [name for name in PLANNED_NAMES if name not in names] == []
    assert [name for name in names if "/" in name and not (ROOT / name).is_file()] == []
    tests = (ROOT / "tests" / "test_critical_bugs.py").read_text("utf-8")
    for finding in ("b2", "b4", "b5", "b6", "b10", "b11", "kl"):
        assert f"def test_{finding}_" in tests, finding


def test_branches_for_other_systems_are_listed() -> None:
    package = ROOT / "keisei"
    page = (DOCS / "platforms.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (.*) \|$", page, re.M)
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if SYSTEM_BRANCHES.search(path.read_text("utf-8"))
    }
    assert [module for module, _ in rows] == sorted(found)
    files = re.findall(r"`(tests/[\w/]+\.py)`", page)
    imitations = "\n".join((ROOT / file).read_text("utf-8") for file in files)
    imported = set(re.findall(r"^ *from (keisei[\w.]*) import (.*)$", imitations, re.M))
    names = {f"{package}.{name}" for package, line in imported for name in line.split(", ")}
    for module, branch in rows:
        dotted = f"keisei.{module.removesuffix('.py').replace('/', '.')}"
        is_imitated = any(f"{name}.".startswith(f"{dotted}.") for name in names)
        assert is_imitated == branch.endswith(" *"), module


def front_doors() -> list[str]:
    """Full names of all packages below `keisei`."""
    files = (ROOT / "keisei").rglob("*/__init__.py")
    return sorted(".".join(path.parent.relative_to(ROOT).parts) for path in files)


@pytest.mark.parametrize("door", front_doors())
def test_every_front_door_is_in_the_api_reference(door: str) -> None:
    page = (DOCS / "api.md").read_text("utf-8")
    assert f".. automodule:: {door}\n" in page
    if door == "keisei.shogi.envs":
        pytest.importorskip("pettingzoo")
    package = import_module(door)
    exported = set(getattr(package, "__all__", ()))
    assert exported <= {*dir(package)}, "autodoc and editors read dir()"
    if f".. automodule:: {door}\n   :members:\n" not in page:
        assert all(f":: {door}.{name}" in page for name in exported)


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
