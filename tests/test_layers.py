"""Dependencies point one way, as docs/architecture.md says; read off the import statements."""

import ast
from pathlib import Path

import pytest

import keisei

PACKAGE = Path(keisei.__file__).parent

FORBIDDEN = {
    "shogi": ("torch", "pydantic", "typer", "keisei.config_schema", "keisei.network"),
    "network": ("keisei.ppo", "keisei.selfplay", "keisei.training"),
    "ppo": ("keisei.selfplay", "keisei.training"),
    "selfplay": ("keisei.training",),
    "checkpoints": ("keisei.ppo", "keisei.selfplay", "keisei.training"),
    "evaluation": ("keisei.training",),
    "search": ("keisei.training",),
    "play": ("keisei.training",),
    "analysis": ("keisei.training", "torch"),
    "usi": ("keisei.training",),
}
"""What a package must not import, by package; those that don't exist yet forbid nothing."""


def imported_modules(source: str) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "relative imports are not used here"
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return modules


@pytest.mark.parametrize("package", FORBIDDEN)
def test_no_layer_imports_one_above_it(package: str) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {module}"
        for path in (PACKAGE / package).rglob("*.py")
        for module in imported_modules(path.read_text(encoding="utf-8"))
        if any(f"{module}.".startswith(f"{name}.") for name in FORBIDDEN[package])
    ]
    assert wrong == []
