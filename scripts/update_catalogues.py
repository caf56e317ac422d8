"""Bring the catalogues of translations up to date with the texts in the code.

    python scripts/update_catalogues.py

New texts are added without a translation, and those that are no longer used are removed; then
translate what is empty in ``keisei/web/locales/*.po``. For a new language copy a catalogue first.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from keisei.play.session import REASONS
from keisei.web.languages import LOCALES

PAGES: Final = Path(__file__).parents[1] / "keisei" / "web"
ARGUMENTS: Final = {"tr": 1, "mark": 1, "trn": 2}
"""Functions of `keisei.web.languages` and the number of their arguments that are texts."""


def texts() -> dict[str | tuple[str, ...], set[str]]:
    """Return all texts of the pages, and the files that have them."""
    found: dict[str | tuple[str, ...], set[str]] = {}
    for path in sorted(PAGES.rglob("*.py")):
        for text in _texts_of(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(text, set()).add(path.relative_to(PAGES).as_posix())
    for text in REASONS.values():
        found.setdefault(text, set()).add("../play/session.py")
    return found


def _texts_of(tree: ast.Module) -> Iterator[str | tuple[str, ...]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        values = [
            argument.value
            for argument in node.args[: ARGUMENTS.get(node.func.id, 0)]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        ]
        if len(values) == ARGUMENTS.get(node.func.id):
            yield values[0] if len(values) == 1 else tuple(values)


def main() -> None:
    """Update each catalogue."""
    template = Catalog(charset="utf-8")
    for text, files in texts().items():
        template.add(text, locations=[(name, 0) for name in sorted(files)])
    for path in sorted(LOCALES.glob("*.po")):
        with path.open("rb") as file:
            catalogue = read_po(file, locale=path.stem)
        catalogue.update(template, no_fuzzy_matching=True)
        with path.open("wb") as file:
            file.write(_header(catalogue).encode())
            write_po(file, catalogue, ignore_obsolete=True, sort_output=True, omit_header=True)


def _header(catalogue: Catalog) -> str:
    """Return what readers of the file need to know; Babel's own has a date that always changes."""
    return (
        f'msgid ""\nmsgstr ""\n"Language: {catalogue.locale}\\n"\n'
        '"Content-Type: text/plain; charset=utf-8\\n"\n'
        f'"Plural-Forms: {catalogue.plural_forms}\\n"\n\n'
    )


if __name__ == "__main__":
    main()
