"""Errors in the language of the page."""

import re

import pytest

pytest.importorskip("nicegui")

from keisei.errors import KeiseiError, NotationError
from keisei.play.session import GameSession
from keisei.play.transfer import read_session
from keisei.web import languages
from keisei.web.play import error_wording
from keisei.web.play.error_wording import error_text, retold

ILLEGAL = [
    ("startpos", "7g7e", "7g7e: 歩は7七から7五へ動けません"),
    ("startpos", "7e7d", "7e7d: 7五に駒がありません"),
    ("startpos", "3c3d", "3c3d: 3三の歩は後手の駒で、今は相手の手番です"),
    ("startpos", "9i9g", "9i9g: 9七には先手自身の駒があります"),
    ("startpos", "7g7f+", "7g7f+: 7七も7六も敵陣ではありません"),
    ("startpos", "5i5h+", "5i5h+: 玉は成れません"),
    ("startpos", "P*5e", "P*5e: 先手は歩を持っていません"),
    ("4k4/9/9/9/9/4P4/9/9/4K4 b P 1", "P*5e", "P*5e: 二歩：先手の歩が5筋にすでにあります"),
    ("4k4/9/9/9/9/4P4/9/9/4K4 b P 1", "P*5f", "P*5f: 5六には駒があります。駒は空いた"),
    ("4k4/9/9/9/9/9/9/9/4K4 b P 1", "P*4a", "P*4a: 4一に打った歩は行き所がありません"),
    ("4k4/3P5/9/9/9/9/9/9/4K4 b - 1", "6b6a", "6b6a: 歩は6一で成らなければなりません"),
    ("4k4/9/9/9/9/9/9/4r4/3SK4 b G 1", "6i7h", "6i7h: 先手への王手が解けません"),
    ("4k4/9/9/9/9/9/4r4/4G4/4K4 b - 1", "5h4h", "5h4h: 5八の金を動かすと先手の玉に"),
    ("4k4/9/9/9/9/9/4r4/9/5K3 b - 1", "4i5i", "4i5i: 5九では玉に王手がかかります"),
    ("7nk/9/7SG/9/9/9/9/9/4K4 b P 1", "P*1b", "P*1b: 打ち歩詰め：1二に歩を打って詰ま"),
]  # fmt: skip


@pytest.fixture
def japanese(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (languages, error_wording):
        monkeypatch.setattr(module, "page_language", lambda: "ja")


def error_of(sfen: str, move: str) -> KeiseiError:
    with pytest.raises(KeiseiError) as raised:
        GameSession(sfen).push(move)
    return raised.value


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize(("sfen", "move", "text"), ILLEGAL)
def test_why_a_move_is_illegal(sfen: str, move: str, text: str) -> None:
    assert error_text(error_of(sfen, move)).startswith(text)


@pytest.mark.usefixtures("japanese")
def test_what_cannot_be_read() -> None:
    assert "指し手ではありません" in error_text(error_of("startpos", "hello"))
    with pytest.raises(NotationError) as raised:
        read_session(b"https://example.org/game")
    assert "棋譜はありません" in error_text(raised.value)
    text = error_text(NotationError("something new", line=3))
    assert text == "読み取れません。（line 3: something new）"
    assert error_text(KeiseiError("the disk is full")) == "the disk is full"


def test_in_english_they_are_as_they_were() -> None:
    error = error_of("startpos", "7g7e")
    assert error_text(error) == str(error)


@pytest.mark.usefixtures("japanese")
def test_every_pattern_has_been_met() -> None:
    """A message that was changed elsewhere must not lose its translation unnoticed."""
    met = {re.sub(r"^\S+: ", "", str(error_of(sfen, move))) for sfen, move, _ in ILLEGAL}
    unmet = [
        template
        for template in error_wording.ERRORS
        if "{" in template and "{text}" not in template
        and not any(retold(message, [template]) for message in met)
    ]  # fmt: skip
    assert unmet == []
