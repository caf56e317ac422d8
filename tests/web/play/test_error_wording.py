"""Errors in the language of the page."""

import ast
import re
from collections.abc import Mapping
from importlib import import_module
from inspect import getsource
from itertools import cycle, islice
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

pytest.importorskip("nicegui")

from keisei.errors import KeiseiError, NotationError
from keisei.play.saved_games import SavedGames
from keisei.play.session import MAX_GAME_PLIES, REASONS, GameSession
from keisei.play.transfer import TOO_LARGE, read_session
from keisei.play.uploads import ENDED, TOO_SLOW
from keisei.shogi import game, notation, types
from keisei.shogi.notation.record import GameRecord
from keisei.system import write_atomically
from keisei.web import languages
from keisei.web.play import error_wording
from keisei.web.play.catalogue import Catalogue
from keisei.web.play.error_templates import ERRORS, POSITIONS
from keisei.web.play.error_wording import error_text, retold
from keisei.web.rooms import NO_NETWORK

ILLEGAL = [
    ("startpos", "7g7e", "7g7e: 歩は7七から7五へ動けません"),
    ("startpos", "7e7d", "7e7d: 7五に駒がありません"),
    ("startpos", "3c3d", "3c3d: 3三の歩は後手の駒ですが、今は後手の手番ではありません"),
    ("startpos", "9i9g", "9i9g: 9七には先手自身の駒があります"),
    ("startpos", "7g7f+", "7g7f+: 7七も7六も敵陣ではありません"),
    ("startpos", "5i5h+", "5i5h+: 玉は成れません"),
    ("startpos", "P*5e", "P*5e: 先手は歩を持っていません"),
    ("4k4/9/9/9/9/4P4/9/9/4K4 b P 1", "P*5e", "P*5e: 二歩：先手の歩が5筋にすでにあります"),
    ("4k4/9/9/9/9/4P4/9/9/4K4 b P 1", "P*5f", "P*5f: 5六には駒があります。駒は空いている"),
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
    assert "棋譜が見つかりません" in error_text(raised.value)
    text = error_text(NotationError("something new", line=3))
    assert text == "読み取れません。（line 3: something new）"
    text = error_text(KeiseiError("the disk is full"))
    assert text == "エラーが発生しました。（the disk is full）"
    for message in (TOO_SLOW, ENDED):
        assert "エラーが発生しました" not in error_text(KeiseiError(message))


def test_in_english_they_are_as_they_were() -> None:
    error = error_of("startpos", "7g7e")
    assert error_text(error) == str(error)


def other_errors(folder: Path) -> list[str]:
    """The messages of what can go wrong beside moves."""
    file = folder / "file"
    file.touch()
    found = [
        NO_NETWORK.format(player="random"),
        "something went wrong: ValueError(); see the log",
    ]
    for act in (
        lambda: GameSession(moves_of(MAX_GAME_PLIES + 1)),
        lambda: SavedGames(file / "games").save(GameRecord()),
        lambda: write_atomically(folder / "no" / "such" / "folder", b""),
        lambda: Catalogue(folder).find("nothing"),
    ):
        with pytest.raises(KeiseiError) as raised:
            act()
        found.append(str(raised.value))
    return found


def moves_of(plies: int) -> str:
    """A game in which rooks go to and fro."""
    return "startpos moves " + " ".join(islice(cycle(("2h3h", "8b7b", "3h2h", "7b8b")), plies))


FOR_PROGRAMS = (
    "load_games reads them all", "there is no game to write to", "file holds one game",
    "a game file ends in one of", "(in ", "is not an encoding", "save as UTF-8 instead",
)  # fmt: skip
"""Parts of errors about files that are named in the terminal or by programs; a page names none."""

KNOWN = "the game is over"
"""An error that has a template, in the place of one that is passed on."""


NOTATION = [
    import_module(f"{notation.__name__}.{module.name}")
    for module in iter_modules(notation.__path__)
]


def errors_of(modules: list[ModuleType]) -> list[str]:
    """Return an example of each error that modules raise."""
    found = []
    for module in modules:
        for node in ast.walk(ast.parse(getsource(module))):
            if isinstance(node, ast.Call) and node.args and is_error(node.func):
                text = example(node.args[0], vars(module))
                has_words = re.search("[a-z]{2}|[一-龠]", text.replace(KNOWN, ""))
                if has_words and not any(part in text for part in FOR_PROGRAMS):
                    found.append(text)
    return found


def is_error(function: ast.expr) -> bool:
    """Whether a function makes an error for people."""
    name = ast.unparse(function).rpartition(".")[2]
    return name.lower().endswith("error") and name not in ("ValueError", "AttributeError")


def example(text: ast.expr, names: Mapping[str, object]) -> str:
    """A text as in the source, with something in its places; empty if it is made elsewhere."""
    if isinstance(text, ast.Constant):
        return str(text.value)
    if isinstance(text, ast.FormattedValue):
        value = ast.unparse(text.value)
        if value in ("error", "error.reason"):
            return KNOWN
        is_quoted = text.conversion != -1 or "quote(" in value or value.endswith("found")
        return "'1: 2'" if is_quoted else str(names.get(value, "12"))
    if isinstance(text, ast.JoinedStr):
        return "".join(example(part, names) for part in text.values)
    return ""


@pytest.mark.usefixtures("japanese")
def test_every_error_of_notation_has_a_template() -> None:
    texts = [error_text(NotationError(error, line=3, column=4)) for error in errors_of(NOTATION)]
    assert len(texts) > 80
    assert [text for text in texts if not text.startswith("3行目4文字目: ")] == []
    places = set(REASONS.values()) | {"startpos", "moves"}
    assert [text for text in texts if set(re.findall(r"\b[a-z]{3,}", text)) - places] == []


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize(
    ("record", "text"),
    [
        ("手合割：平手\n同　歩", "2行目1文字目: 「同」の前に指し手が必要です"),
        ("先手：A\n▲７六歩△３四歩▲同　歩", "2行目10文字目: 同　歩: そこへ動ける歩はありません"),
        ("手合割：平手\n   1 ７五歩(77)", "2行目6文字目: ７五歩(77)は反則: 7g7e: 歩は7七から7五へ"),
        ("PI\n+\n+7776FU\n+2726FU", "4行目1文字目: 後手の手番なので、'-'が必要です"),
        ("position startpos moves 7g7f 7e7d", "1行目1文字目: 2手目7e7d: 7e7d: 7五に駒が"),
        ("先手：A\ngib 'n' rish", "2行目1文字目: \"gib 'n' rish\"は「先手：名前」のような"),
    ],
)
def test_what_is_wrong_with_a_game(record: str, text: str) -> None:
    with pytest.raises(KeiseiError) as raised:
        read_session(record.encode())
    assert error_text(raised.value).startswith(text)


@pytest.mark.usefixtures("japanese")
def test_every_pattern_has_been_met(tmp_path: Path) -> None:
    """A message that was changed elsewhere must not lose its translation unnoticed."""
    met = {re.sub(r"^\S+: ", "", str(error_of(sfen, move))) for sfen, move, _ in ILLEGAL}
    met |= {*other_errors(tmp_path), TOO_LARGE, *errors_of([types, game, *NOTATION])}
    met |= {message[colon.end() :] for message in met for colon in re.finditer(": ", message)}
    unmet = [
        template
        for template in ERRORS
        if "{" in template and template not in POSITIONS
        and not any(retold(message, [template]) for message in met)
    ]  # fmt: skip
    assert unmet == []
