"""Errors for people, in the language of the page.

Lower packages write their errors in English. The ones that people meet on the board are recognised
by their patterns, and told again: ``line 3: 7g7e: a pawn cannot go from 7g to 7e``.
"""

import re
from collections.abc import Sequence
from typing import Final

from keisei.errors import IllegalMoveError, KeiseiError, NotationError
from keisei.play.session import REASONS
from keisei.shogi.notation.record import Ending
from keisei.shogi.types import Color, PieceKind
from keisei.web.languages import ENGLISH, page_language, retell, tr
from keisei.web.play.error_templates import ERRORS, EXPECTED, PLACES
from keisei.web.play.wording import PIECES, side_text, square_text

_MAX_PLACES: Final = 4
"""Places that can stand before an error, one inside the other."""

_MOVES: Final = re.compile(r"[1-9PLNSGBR][a-i*]\S+( or \S+)+")


def error_text(error: KeiseiError) -> str:
    """Return an error for people; details that cannot be translated follow its kind."""
    message = str(error)
    if page_language() == ENGLISH:
        return message
    if (text := tr(message)) != message:
        return text
    return _told(message) or _kind(error, message)


def _told(message: str) -> str:
    """Return an error in the page's language, with the places before it; empty if it is unknown."""
    places: list[str] = []
    while not (text := retold(message, ERRORS)):
        place, colon, message = message.partition(": ")
        if not colon or len(places) == _MAX_PLACES:
            return ""
        places.append(retold(place, PLACES) or place)
    return ": ".join([*places, text])


def _kind(error: KeiseiError, details: str) -> str:
    if isinstance(error, IllegalMoveError):
        return tr("This move is not possible. ({details})", details=details)
    if isinstance(error, NotationError):
        return tr("This cannot be read. ({details})", details=details)
    return tr("Something went wrong. ({details})", details=details)


def retold(message: str, templates: Sequence[str]) -> str:
    """Return a message that fits one of the templates in the page's language; empty if none."""
    return retell(message, templates, _word)


def _word(text: str) -> str:
    """Return what stands in a place of a template in the language of the page."""
    if re.fullmatch("[1-9][a-i]", text):
        return square_text(text)
    if text in EXPECTED:
        return tr(text)
    if _MOVES.fullmatch(text):
        return text.replace(" or ", tr(", "))
    sides = {color.name.title(): side_text(color) for color in Color}
    names = {kind.name.lower().replace("_", " "): tr(PIECES[kind]) for kind in PieceKind}
    kinds = {kind.symbol: tr(PIECES[kind]) for kind in PieceKind}
    endings = {ending.value: tr(REASONS[ending]) for ending in Ending}
    for words in (sides, names, kinds, endings):
        if text in words:
            return words[text]
    return text
