"""The languages of the pages: which one a visitor gets, and that no text is missing in any."""

import ast
import re
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
    tr,
    trn,
)
from tests.scripts import load_script
from tests.web.conftest import Server

CODES = [code for code in languages.languages() if code != ENGLISH]
TRANSLATED = ("analysis", "rooms.py", "dashboard", "play", "theme.py", "server.py", "not_found.py")
"""Parts of ``keisei/web`` all of whose texts are translated."""

MAKERS = {"label", "button", "tooltip", "notify", "menu_item", "checkbox", "textarea", "input"}
"""Functions of NiceGUI whose first argument is read by people."""


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
    root = LOCALES.parent
    for name in TRANSLATED:
        path = root / name
        for file in path.rglob("*.py") if path.is_dir() else [path]:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                assert not is_bare_text(node), f"{file.name}, line {getattr(node, 'lineno', 0)}"


def is_bare_text(node: ast.AST) -> bool:
    """Return whether a call shows a text that is the same in all languages."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in MAKERS or not node.args:
        return False
    first = node.args[0]
    return (
        isinstance(first, ast.Constant)
        and isinstance(first.value, str)
        and re.search("[a-z]{3}", first.value) is not None
        and first.value != "Keisei"
    )


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
