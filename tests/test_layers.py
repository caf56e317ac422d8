"""Dependencies point one way: the allowed edges between packages, read off the import statements.

A new edge is a decision: add it here, or move the code. A module directly below ``keisei`` counts
as a package of its own; the leaves (`LEAVES`) may be imported by all.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import keisei

PACKAGE = Path(keisei.__file__).parent
LEAVES = {
    "constants", "errors", "formats", "front_door", "interrupts", "levels", "metric_names",
    "plotting", "shared_memory", "system", "timing",
}  # fmt: skip
"""Modules that anything may import; among each other they import only `errors`."""

ALLOWED: Mapping[str, set[str]] = {
    "shogi": set(),
    "config_schema": {"run_files", "shogi"},
    "config": {"config_schema"},
    "run_files": set(),
    "checkpoints": set(),
    "network": {"checkpoints", "config_schema", "run_files", "shogi"},
    "search": {"network", "shogi"},
    "usi": {"network", "search", "shogi"},
    "players": {"config_schema", "network", "search", "shogi", "usi"},
    "evaluation": {"checkpoints", "config_schema", "network", "players", "run_files", "shogi"},
    "analysis": {"network", "search", "shogi"},
    "play": {"analysis", "network", "players", "search", "shogi"},
    "callbacks": {"config_schema", "evaluation", "shogi"},
    "runs": {"callbacks", "checkpoints", "evaluation", "run_files", "shogi"},
    "display": {"callbacks", "config_schema", "run_files", "runs", "shogi"},
    "ppo": {"config_schema", "network", "shogi"},
    "selfplay": {"config_schema", "network", "ppo", "search", "shogi"},
    "training": {
        "callbacks", "checkpoints", "config", "config_schema", "display", "evaluation", "network",
        "players", "ppo", "run_files", "runs", "selfplay", "shogi",
    },
    "sweep": {
        "checkpoints", "config", "config_schema", "network", "players", "ppo", "run_files", "runs",
        "shogi", "training",
    },
    "web": {"analysis", "checkpoints", "evaluation", "play", "run_files", "runs", "shogi"},
    "benchmark": {
        "callbacks", "checkpoints", "config", "config_schema", "display", "evaluation", "network",
        "players", "ppo", "run_files", "runs", "search", "selfplay", "shogi", "training",
    },
    "warmup": {"config_schema", "network", "search", "shogi"},
    "doctor": {"shogi", "warmup"},
}  # fmt: skip
"""What each package may import beside `LEAVES`; `commands`, `cli` and `config_docs` may import
anything, and nothing imports them."""

TOP = {"__main__", "cli", "commands", "config_docs"}

WITHOUT_TORCH = {
    "analysis", "callbacks", "checkpoints", "commands", "config", "config_schema", "display",
    "evaluation", "play", "players", "run_files", "runs", "search", "selfplay", "shogi", "sweep",
    "training", "usi", "warmup", "web", *LEAVES,
}  # fmt: skip
"""Packages in which no import statement names torch."""


def modules_of(package: str) -> list[Path]:
    single = PACKAGE / f"{package}.py"
    return [single] if single.is_file() else sorted((PACKAGE / package).rglob("*.py"))


def packages() -> set[str]:
    found = {path.stem for path in PACKAGE.glob("*.py")}
    return (found | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}) - {"__init__"}


def imports(path: Path) -> Iterator[str]:
    """Full names of all imported modules and names, wherever the statement stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "relative imports are not used here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def edges(package: str) -> dict[str, list[str]]:
    """The packages that a package imports, each with the modules that do."""
    found: dict[str, list[str]] = {}
    for path in modules_of(package):
        for name in imports(path):
            root, _, rest = name.partition(".")
            target = rest.partition(".")[0]
            if root == "keisei" and target in packages() - {package}:
                found.setdefault(target, []).append(path.relative_to(PACKAGE).as_posix())
    return found


def test_every_package_is_listed() -> None:
    assert packages() == {*ALLOWED, *LEAVES, *TOP}


@pytest.mark.parametrize("package", sorted({*ALLOWED, *LEAVES}))
def test_packages_import_only_what_they_may(package: str) -> None:
    allowed = {"errors"} if package in LEAVES else ALLOWED[package] | LEAVES
    new = {target: where for target, where in edges(package).items() if target not in allowed}
    assert new == {}, "a new edge between packages is a decision"


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_every_allowed_edge_is_needed(package: str) -> None:
    assert ALLOWED[package] - edges(package).keys() == set()


def test_there_is_no_cycle() -> None:
    TopologicalSorter(ALLOWED).prepare()  # raises CycleError


@pytest.mark.parametrize("package", sorted(WITHOUT_TORCH))
def test_torch_stays_behind_the_network(package: str) -> None:
    wrong = [
        path.relative_to(PACKAGE).as_posix()
        for path in modules_of(package)
        if any(name.partition(".")[0] == "torch" for name in imports(path))
    ]
    assert wrong == []


IMPORTED_WITHOUT_TORCH = (
    "keisei.commands.play", "keisei.commands.usi", "keisei.play.terminal", "keisei.players",
    "keisei.usi.engine", "keisei.network", "keisei.training.trainer", "keisei.evaluation",
    "keisei.selfplay.workers.process_pool", "keisei.runs", "keisei.search", "keisei.warmup",
    "keisei.doctor", "keisei.ppo.sparse_learner", "keisei.network.network_file",
    "keisei.network.onnx.sparse_onnx", "keisei.benchmark.network_speed",
    "keisei.benchmark.capacity", "keisei.benchmark.weight_sync", "keisei.benchmark.worker_speed",
)  # fmt: skip


def test_importing_needs_no_torch() -> None:
    code = f"import sys, {', '.join(IMPORTED_WITHOUT_TORCH)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_file_names_and_class_names_are_unique() -> None:
    files: dict[str, list[str]] = {}
    classes: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        if path.name != "__init__.py" and not place.startswith("commands/"):
            files.setdefault(path.name, []).append(place)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(place)
    assert {name: places for name, places in files.items() if len(places) > 1} == {}
    assert {name: places for name, places in classes.items() if len(places) > 1} == {}
