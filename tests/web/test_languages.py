"""The languages of the pages: which one a visitor gets, and that no text is missing in any."""

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

pytest.importorskip("nicegui")
pytest.importorskip("babel")

from keisei.web import languages
from keisei.web.languages import (
    ENGLISH,
    LOCALES,
    language_of,
    messages_of,
    page_language,
    retell,
    tr,
    trn,
)
from tests.cpu_time import allowed
from tests.scripts import load_script
from tests.web.conftest import Server

CODES = [code for code in languages.languages() if code != ENGLISH]
WORDS = re.compile("[A-Za-z]{2,} [a-z]{2,}|[A-Za-z][a-z]{3,}")
"""What is a text for people, and not an icon, a unit or a format."""

MAKERS = {
    "button", "card", "Chart", "checkbox", "empty_page", "expansion", "heading", "input", "label",
    "link", "menu_item", "not_found", "notification", "notify", "number", "refuse", "select",
    "textarea", "tile", "toast", "tooltip",
}  # fmt: skip
"""Functions whose first argument is read by people."""

PLACES = {"label", "placeholder", "title", "text", "hint", "empty"}
"""Arguments and attributes that are read by people."""

TRANSLATORS = {"tr", "trn", "mark", "message_text", "error_text", "retell"}
SAME_EVERYWHERE = {"Keisei", "keisei train"}
STARTUP = {"server.py", "catalogue.py", "pages.py", "room_files.py"}
"""Modules whose errors are printed in the terminal, or answer requests that no page makes."""


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("code", CODES)
def test_no_text_is_missing_superfluous_or_without_its_values(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = messages_of(code)
    wanted = set(load_script("update_catalogues", monkeypatch).texts())
    fix = "run scripts/update_catalogues.py and translate what is empty"
    assert set(known) == wanted, fix
    for text, message in known.items():
        originals = [text] if isinstance(text, str) else list(text)
        strings = message.string if isinstance(message.string, tuple) else (message.string,)
        assert all(strings), f"{text}: {fix}"
        assert not message.fuzzy, text
        for string in strings:
            assert places(string) == places(originals[-1]), text


def test_every_text_of_a_page_can_be_translated() -> None:
    bare = [
        f"{file.name}, line {text.lineno}: {ast.unparse(text)}"
        for file in sorted(LOCALES.parent.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for shown in shown_texts(node, file)
        for text in bare_texts(shown)
    ]
    assert bare == [], "texts of pages go through tr, trn or mark"


def shown_texts(node: ast.AST, file: Path) -> Iterator[ast.expr]:
    """Yield the expressions of a statement or call that people read."""
    if isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Attribute) and target.attr == "text" for target in node.targets
    ):
        yield node.value
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
        if name in MAKERS:
            yield from node.args[:1]
            yield from (word.value for word in node.keywords if word.arg in PLACES)
        elif name == "KeiseiError" and file.name not in STARTUP:
            yield from node.args[:1]


def bare_texts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of an expression that are the same in all languages, or errors' texts."""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
        if name in TRANSLATORS:
            return
        if name == "str" and "error" in ast.unparse(node):
            yield node
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and WORDS.search(node.value)
        and node.value not in SAME_EVERYWHERE
    ):
        yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from bare_texts(child)


@pytest.mark.parametrize(
    "source",
    [
        'ui.label("Hello there")',
        'ui.button(f"{name} is here")',
        'ui.select([], label="Choose one")',
        "self._reason.text = str(error)",
        'self._status.text = "Paused" if paused else tr("Running")',
        'raise KeiseiError(f"{key} has no network")',
    ],
)
def test_texts_that_cannot_be_translated_are_noticed(source: str) -> None:
    found = [
        text
        for node in ast.walk(ast.parse(source))
        for shown in shown_texts(node, Path("page.py"))
        for text in bare_texts(shown)
    ]
    assert found


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    [
        ("", "", "en"),
        ("", "ja", "ja"),
        ("", "ja-JP,en-US;q=0.7", "ja"),
        ("", "en-US,en;q=0.9,ja;q=0.8", "en"),
        ("", "fr, ja;q=0.4", "ja"),
        ("", "ja;q=0, fr", "en"),
        ("", ";q=x,,;;q=1", "en"),
        ("ja", "en", "ja"),
        ("../../secret", "ja", "ja"),
    ],
)
def test_the_visitors_choice_then_the_browsers(cookie: str, accepted: str, language: str) -> None:
    assert language_of(cookie, accepted) == language


def test_without_a_page_texts_are_english() -> None:
    assert page_language() == ENGLISH
    assert tr("Theme") == "Theme"
    assert trn("{number} game", "{number} games", 2) == "2 games"


def test_a_long_message_is_retold_in_no_time() -> None:
    """Before, 64 kB of a template's own words took seconds."""
    template = "cannot {command} {name}: {details}"
    assert retell("cannot pause run: why", [template]) == "cannot pause run: why"
    start = time.thread_time()
    assert retell(f"cannot {'x ' * 30_000}", [template]) == ""
    assert time.thread_time() - start < allowed(0.2)


def test_plurals_and_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "xx.po").write_text(
        'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
        'msgid "{number} game"\nmsgid_plural "{number} games"\n'
        'msgstr[0] "{number} Partie"\nmsgstr[1] "{number} Partien"\n\n'
        'msgid "Level {number}"\nmsgstr "Stufe {number}"\n'
    )
    monkeypatch.setattr(languages, "LOCALES", tmp_path)
    monkeypatch.setattr(languages, "page_language", lambda: "xx")
    assert languages.languages() == {"en": "English", "xx": "xx"}
    assert trn("{number} game", "{number} games", 1) == "1 Partie"
    assert trn("{number} game", "{number} games", 3) == "3 Partien"
    assert tr("Level {number}", number=4) == "Stufe 4"
    assert tr("Theme") == "Theme", "English until it is translated"
    assert tr("") == ""


def test_homonyms_have_translations_of_their_own() -> None:
    japanese = {str(text): message.string for text, message in messages_of("ja").items()}
    different = [
        ("White", "White wood"),
        ("Play", "Play the move"),
        ("Review", "Review the game"),
        ("games", "games played"),
        ("plies", "plies played"),
    ]
    for one, other in different:
        assert japanese[one] != japanese[other]
    assert japanese["mate {plies}"] == "{plies}手詰"


@pytest.mark.slow
def test_the_document_names_its_language(server: Server) -> None:
    for header, language in (("ja", "ja"), ("de", "en-US")):
        status, text = server.request("/", Accept_Language=header)
        assert status == 200
        assert f'<html lang="{language}"' in text
    _, text = server.request("/", Accept_Language="ja", Cookie="keisei-language=en")
    assert '<html lang="en-US"' in text, "what the visitor chose"
