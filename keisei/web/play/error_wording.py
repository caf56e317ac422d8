"""Errors for people, in the language of the page.

Lower packages write their errors in English. The ones that people meet on the board are recognised
by their patterns, and told again: ``7g7e: a pawn cannot go from 7g to 7e``.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from keisei.errors import IllegalMoveError, KeiseiError, NotationError
from keisei.shogi.types import Color, PieceKind
from keisei.web.languages import ENGLISH, mark, page_language, tr
from keisei.web.play.wording import PIECES, side_text, square_text

ERRORS: Final = (
    # keisei.play.session
    mark("there is no move to take back"),
    mark("the game is over"),
    mark("the game is over already"),
    mark("a win can't be declared: the king, 10 pieces and the points, all in the enemy's camp, "
         "and no check"),
    # keisei.shogi.legality, after the move
    mark("{side} has no {piece} in hand"),
    mark("{square} is occupied; pieces are dropped on empty squares"),
    mark("a {piece} dropped on {square} could never move again"),
    mark("nifu: {side} already has a pawn on file {file}"),
    mark("{side} would still be in check"),
    mark("uchifuzume: a pawn dropped on {square} would be mate"),
    mark("there is no piece on {square}"),
    mark("the {piece} on {square} is {side}'s, and it is the other side's turn"),
    mark("{square} holds a piece of {side}'s own"),
    mark("a {piece} cannot go from {origin} to {target}"),
    mark("a {piece} does not promote"),
    mark("neither {origin} nor {target} is in the promotion zone"),
    mark("the {piece} must promote on {square}: it could never move again"),
    mark("the king would be in check on {square}"),
    mark("the {piece} on {square} is pinned: moving it would expose {side}'s king"),
    # keisei.shogi.notation
    mark("{text} is not a move; expected something like 7g7f, P-7f or ７六歩"),
    mark("there is no game in this text: no move, no position and no header such as 先手："),
)  # fmt: skip
"""Messages, with the places of what differs; a piece, side or square in them has a name in every
language."""


def error_text(error: KeiseiError) -> str:
    """Return an error for people; details that cannot be translated follow its kind."""
    message = str(error)
    if page_language() == ENGLISH:
        return message
    if (text := tr(message)) != message or (text := retold(message, ERRORS)) != "":
        return text
    if isinstance(error, IllegalMoveError):
        move, _, reason = message.partition(": ")
        return f"{move}: {told}" if (told := retold(reason, ERRORS)) else _kind(error, message)
    return _kind(error, message)


def _kind(error: KeiseiError, details: str) -> str:
    if isinstance(error, IllegalMoveError):
        return tr("This move is not possible. ({details})", details=details)
    if isinstance(error, NotationError):
        return tr("This cannot be read. ({details})", details=details)
    return details


def retold(message: str, templates: Sequence[str]) -> str:
    """Return a message that fits one of the templates in the page's language; empty if none."""
    for template in templates:
        if (found := _pattern(template).fullmatch(message)) is not None:
            return tr(template, **{name: _word(text) for name, text in found.groupdict().items()})
    return ""


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Return what matches a message, with a group for each place; a file's name may follow."""
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^:]+?)", re.escape(template))
    return re.compile(pattern + r"(?: \(in text\.txt\))?")


def _word(text: str) -> str:
    """Return a side, a piece, a letter of a kind or a square in the language of the page."""
    if re.fullmatch("[1-9][a-i]", text):
        return square_text(text)
    sides = {color.name.title(): side_text(color) for color in Color}
    names = {kind.name.lower().replace("_", " "): tr(PIECES[kind]) for kind in PieceKind}
    kinds = {kind.symbol: tr(PIECES[kind]) for kind in PieceKind}
    return sides.get(text) or names.get(text) or kinds.get(text) or text
