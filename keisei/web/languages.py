"""The languages of the pages: English as written in the code, others from ``locales/*.po``.

>>> tr("Level {number}", number=4)
'Level 4'

A page's language is the visitor's choice (a cookie), or else the first of the browser's languages
that there is a catalogue for. `tr` translates into the language of the page that is being built or
whose event is handled; elsewhere, as in tests and tasks without a page, it returns English.

A catalogue is a gettext file: copy ``locales/ja.po``, translate it, and it is offered. A test
compares each with the texts in the code.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from gettext import GNUTranslations, NullTranslations
from pathlib import Path
from typing import Any, Final

LOCALES: Final = Path(__file__).parent / "locales"
"""Directory of the catalogues, one ``.po`` file for each language."""

ENGLISH: Final = "en"

LANGUAGE_COOKIE: Final = "keisei-language"

_OWN_NAMES: Final = {ENGLISH: "English", "ja": "日本語"}
_QUASAR: Final = {ENGLISH: "en-US"}
"""Names of the widgets' own languages where they differ from ours."""

_STORED: Final = "language"

_LONG: Final = ("details", "file", "folder")
"""Places of `retell` in which anything may stand; in others there is no colon."""

_QUOTED: Final = "text"
"""The place of `retell` in which a quotation stands, as `repr` writes it."""

_QUOTATION: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""


def tr(message: str, /, **values: object) -> str:
    """Return a text in the language of the page, with `values` in its ``{places}``."""
    return translated(page_language(), message, **values)


def translated(language: str, message: str, /, **values: object) -> str:
    """Return a text in any language, as `tr` does in that of the page."""
    if not message:  # in a catalogue, that is the key of its own header
        return ""
    text = _translations(language).gettext(message)
    return text.format(**values) if values else text


def trn(singular: str, plural: str, number: int, /, **values: object) -> str:
    """Return a text in the form that goes with a number, which stands in its place ``{number}``."""
    text = _translations(page_language()).ngettext(singular, plural, number)
    return text.format(number=number, **values)


def mark(message: str) -> str:
    """Return a text as it is, and mark it as one that `tr` will translate where it is shown."""
    return message


_MAX_RETOLD: Final = 1_000
"""Characters of a message that `retell` looks at: with two places or more in a template, the time
grows faster than the length, and what stands there may come from a stranger."""


def retell(message: str, templates: Sequence[str], translate: Callable[[str], str] = str) -> str:
    """Return a message of another package, which is in English, in the language of the page.

    Args:
        message: the message, such as an error's.
        templates: texts with places, one of which the message may fit.
        translate: translates what stands in a place.

    Returns:
        The translation; empty if the message fits no template.
    """
    for template in templates if len(message) <= _MAX_RETOLD else ():
        if (found := _pattern(template).fullmatch(message)) is not None:
            values = {name: translate(text) for name, text in found.groupdict().items()}
            return tr(template, **values)
    return ""


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Return what matches a message, with a group for each place; a file's name may follow."""

    def group(place: re.Match[str]) -> str:
        name = place[1]
        words = _QUOTATION if name == _QUOTED else ".+?" if name in _LONG else "[^:]+?"
        return f"(?P<{name}>{words})"

    pattern = re.sub(r"\\\{(\w+)\\\}", group, re.escape(template))
    return re.compile(pattern + r"(?: \(in text\.txt\))?", re.DOTALL)


def languages() -> dict[str, str]:
    """Return the languages that there are, code to own name, English first."""
    codes = [ENGLISH, *sorted(path.stem for path in LOCALES.glob("*.po"))]
    return {code: _OWN_NAMES.get(code, code) for code in codes}


def page_language() -> str:
    """Return the language of the current page; English where there is none."""
    from nicegui.slot import Slot

    stack = Slot.get_stack()  # `ui.context` would make a client where there is none
    if not stack:
        return ENGLISH
    client = stack[-1].parent.client
    if _STORED not in client.storage:
        try:
            cookies, headers = client.request.cookies, client.request.headers
        except RuntimeError:  # made by no visitor
            return ENGLISH
        chosen = language_of(cookies.get(LANGUAGE_COOKIE, ""), headers.get("accept-language", ""))
        client.storage[_STORED] = chosen
        # For widgets and the document's attribute ``lang``; other visitors share the page's object.
        client.page = copy(client.page)
        client.page.language = _QUASAR.get(chosen, chosen)  # type: ignore[assignment]
    return str(client.storage[_STORED])


def language_of(cookie: str, accepted: str) -> str:
    """Return the language for a cookie and an ``Accept-Language`` header.

    >>> language_of("", "de;q=0.9, ja-JP;q=0.8, en;q=0.7"), language_of("en", "ja")
    ('ja', 'en')
    """
    known = languages()
    if cookie in known:
        return cookie
    wanted: list[tuple[float, str]] = []
    for part in accepted.split(",")[:20]:
        name, _, quality = part.partition(";q=")
        try:
            wanted.append((float(quality or 1), name.strip().lower().partition("-")[0]))
        except ValueError:
            continue
    wanted.sort(key=lambda pair: -pair[0])  # stable: the first of two equals
    return next((code for quality, code in wanted if code in known and quality > 0), ENGLISH)


def messages_of(language: str) -> Mapping[str | tuple[str, ...], Any]:
    """Return a catalogue's messages by their English texts, as `babel` reads them."""
    return {message.id: message for message in _catalogue(language) if message.id}


@cache
def _translations(language: str) -> NullTranslations:
    if language == ENGLISH:
        return NullTranslations()
    from babel.messages.mofile import write_mo

    compiled = io.BytesIO()
    write_mo(compiled, _catalogue(language))
    compiled.seek(0)
    return GNUTranslations(compiled)


def _catalogue(language: str) -> Any:
    from babel.messages.pofile import read_po

    with (LOCALES / f"{language}.po").open("rb") as file:
        return read_po(file, locale=language)
