"""Numbers that decide something have names.

Ruff (PLR2004) sees to fractions and tolerances. Its rule for whole numbers would also want names
for two players and three files; here it is those above `LARGEST_PLAIN`.
"""

import ast
from pathlib import Path

import keisei

PACKAGE = Path(keisei.__file__).parent

LARGEST_PLAIN = 3

RULES_AND_NOTATIONS = PACKAGE / "shogi"
"""Here numbers are the game's own: five characters of a USI move, four fields of an SFEN."""


def test_whole_numbers_in_comparisons_have_names() -> None:
    found = [
        f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.is_relative_to(RULES_AND_NOTATIONS)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and any(
            isinstance(side, ast.Constant)
            and isinstance(side.value, int)
            and side.value > LARGEST_PLAIN
            for side in (node.left, *node.comparators)
        )
    ]
    assert found == []
