"""Games as HTML for notebooks: well-formed, escaped, and with the right boards."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import Ending, GameRecord, Result
from keisei.shogi.render.html import MAX_GAMES
from keisei.shogi.vector import VectorShogi

SVG = "{http://www.w3.org/2000/svg}"


def parsed(html: str) -> ElementTree.Element:
    """Notebooks read HTML; this is XML as well but for the line breaks."""
    return ElementTree.fromstring(f"<body>{html.replace('<br>', '<br/>')}</body>")


def positions(root: ElementTree.Element) -> list[str]:
    """The SFENs of the boards that are drawn."""
    descriptions = [element.text or "" for element in root.iter(f"{SVG}desc")]
    return [text.partition("SFEN: ")[2] for text in descriptions]


def record() -> GameRecord:
    made = GameRecord.from_moves(
        ["7g7f", "3c3d", "8h2b+"],
        headers={"black": "<script>alert(1)</script>", "white": "Botan", "event": "A & B"},
        result=Result(Ending.RESIGNATION),
    )
    made.moves[0] = replace(made.moves[0], seconds=2.5, comment="<b>Good</b>\nvery")
    return made


def test_a_record_shows_its_last_board_and_its_moves() -> None:
    root = parsed(record()._repr_html_())
    game = ShogiGame("startpos moves 7g7f 3c3d 8h2b+")
    assert positions(root) == [game.sfen()]
    assert "Last move 8h2b+." in str(root.find(f".//{SVG}desc").text)  # type: ignore[union-attr]
    assert ["".join(item.itertext()) for item in root.iter("li")] == [
        "7g7f (2.5 s)<b>Good</b>very",
        "3c3d",
        "8h2b+",
    ]
    assert "".join(root.find(".//summary").itertext()) == (  # type: ignore[union-attr]
        "3 moves, resignation: Black wins"
    )
    assert "".join(root.find(".//p").itertext()) == (  # type: ignore[union-attr]
        "<script>alert(1)</script> - Botan, A & B"
    )


def test_what_a_record_says_is_only_text() -> None:
    root = parsed(record()._repr_html_())
    assert not list(root.iter("script"))
    assert ["".join(element.itertext()) for element in root.iter("b")] == [
        "<script>alert(1)</script>",
        "Botan",
    ]


def test_a_record_without_anything() -> None:
    root = parsed(GameRecord()._repr_html_())
    assert positions(root) == [ShogiGame().sfen()]
    assert "".join(root.find(".//summary").itertext()) == "0 moves"  # type: ignore[union-attr]
    assert "".join(root.find(".//p").itertext()) == "Black - White"  # type: ignore[union-attr]


@pytest.mark.parametrize("number", [1, MAX_GAMES, MAX_GAMES + 1, 2000])
def test_many_games_show_the_first(number: int) -> None:
    env = VectorShogi(number, seed=1, opening_plies=5)
    html = env._repr_html_()
    shown = min(number, MAX_GAMES)
    assert positions(parsed(html)) == [env.game(index).sfen() for index in range(shown)]
    assert ("more" in html) == (number > MAX_GAMES)
    if number == 2000:
        assert f"and {2000 - MAX_GAMES:,} more" in html
