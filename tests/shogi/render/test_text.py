"""Text diagrams: golden pictures, and columns that line up for every position."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from keisei.constants import NUM_SQUARES
from keisei.errors import KeiseiError
from keisei.shogi.notation.sfen import STARTPOS_SFEN, parse_sfen
from keisei.shogi.render.glyphs import (
    Lettering,
    RenderError,
    display_width,
    piece_kanji,
    require_square,
)
from keisei.shogi.render.text import Role, board_lines, board_rich, board_text
from keisei.shogi.types import (
    Color,
    Diagram,
    Move,
    Piece,
    PieceKind,
    parse_square,
)
from tests.shogi.diagram_strategies import diagrams

START = parse_sfen(STARTPOS_SFEN)
MIDDLE_GAME = parse_sfen(
    "8l/1l+R2P3/p2pBG1pp/kps1p4/Nn1P2G2/P1P1P2PP/1PS6/1KSG3+r1/LN2+p3L w Sbgn3p 124"
)
PROMOTION = Move.from_usi("6b7b+")

START_KANJI = """\
White in hand: none
   ９  ８  ７  ６  ５  ４  ３  ２  １
+-------------------------------------+
| v香 v桂 v銀 v金 v王 v金 v銀 v桂 v香 | 一
|  ・ v飛  ・  ・  ・  ・  ・ v角  ・ | 二
| v歩 v歩 v歩 v歩 v歩 v歩 v歩 v歩 v歩 | 三
|  ・  ・  ・  ・  ・  ・  ・  ・  ・ | 四
|  ・  ・  ・  ・  ・  ・  ・  ・  ・ | 五
|  ・  ・  ・  ・  ・  ・  ・  ・  ・ | 六
|  歩  歩  歩  歩  歩  歩  歩  歩  歩 | 七
|  ・  角  ・  ・  ・  ・  ・  飛  ・ | 八
|  香  桂  銀  金  玉  金  銀  桂  香 | 九
+-------------------------------------+
Black in hand: none
Move 1, Black to move"""

START_LETTERS = """\
White in hand: none
   9  8  7  6  5  4  3  2  1
+----------------------------+
|  l  n  s  g  k  g  s  n  l | a
|  .  r  .  .  .  .  .  b  . | b
|  p  p  p  p  p  p  p  p  p | c
|  .  .  .  .  .  .  .  .  . | d
|  .  .  .  .  .  .  .  .  . | e
|  .  .  .  .  .  .  .  .  . | f
|  P  P  P  P  P  P  P  P  P | g
|  .  B  .  .  .  .  .  R  . | h
|  L  N  S  G  K  G  S  N  L | i
+----------------------------+
Black in hand: none
Move 1, Black to move"""

MIDDLE_GAME_KANJI = """\
White in hand: 角 金 桂 歩3
   ９  ８  ７  ６  ５  ４  ３  ２  １
+-------------------------------------+
|  ・  ・  ・  ・  ・  ・  ・  ・ v香 | 一
|  ・ v香[ 龍] ・  ・  歩  ・  ・  ・ | 二
| v歩  ・  ・ v歩  角  金  ・ v歩 v歩 | 三
| v王 v歩 v銀  ・ v歩  ・  ・  ・  ・ | 四
|  桂 v桂  ・  歩  ・  ・  金  ・  ・ | 五
|  歩  ・  歩  ・  歩  ・  ・  歩  歩 | 六
|  ・  歩  銀  ・  ・  ・  ・  ・  ・ | 七
|  ・  玉  銀  金  ・  ・  ・ v龍  ・ | 八
|  香  桂  ・  ・ vと  ・  ・  ・  香 | 九
+-------------------------------------+
Black in hand: 銀
Move 124, White to move, last move 6b7b+"""

MIDDLE_GAME_LETTERS = """\
White in hand: b g n p3
   9  8  7  6  5  4  3  2  1
+----------------------------+
|  .  .  .  .  .  .  .  .  l | a
|  .  l[+R] .  .  P  .  .  . | b
|  p  .  .  p  B  G  .  p  p | c
|  k  p  s  .  p  .  .  .  . | d
|  N  n  .  P  .  .  G  .  . | e
|  P  .  P  .  P  .  .  P  P | f
|  .  P  S  .  .  .  .  .  . | g
|  .  K  S  G  .  .  . +r  . | h
|  L  N  .  . +p  .  .  .  L | i
+----------------------------+
Black in hand: S
Move 124, White to move, last move 6b7b+"""

few = settings(max_examples=30, deadline=None)
styles = st.sampled_from(get_args(Lettering))
squares = st.integers(0, NUM_SQUARES - 1)
moves = st.none() | st.builds(Move, squares, squares)


@pytest.mark.parametrize(
    ("diagram", "style", "last_move", "expected"),
    [
        (START, "kanji", None, START_KANJI),
        (START, "letters", None, START_LETTERS),
        (MIDDLE_GAME, "kanji", PROMOTION, MIDDLE_GAME_KANJI),
        (MIDDLE_GAME, "letters", PROMOTION, MIDDLE_GAME_LETTERS),
    ],
)
def test_pictures_are_the_golden_ones(
    diagram: Diagram, style: Lettering, last_move: Move | None, expected: str
) -> None:
    assert board_text(diagram, style=style, last_move=last_move) == expected


def test_kanji_are_the_default() -> None:
    assert board_text(START) == START_KANJI


@pytest.mark.parametrize(
    ("target", "row"),
    [
        ("9a", "|[v香]v桂 v銀 v金 v王 v金 v銀 v桂 v香 | 一"),
        ("1a", "| v香 v桂 v銀 v金 v王 v金 v銀 v桂[v香]| 一"),
        ("9i", "|[ 香] 桂  銀  金  玉  金  銀  桂  香 | 九"),
    ],
)
def test_brackets_fit_at_the_edges(target: str, row: str) -> None:
    picture = board_text(START, last_move=Move(parse_square("5e"), parse_square(target)))
    assert row in picture.splitlines()
    assert picture.count("[") == picture.count("]") == 1


def test_a_drop_is_marked_at_its_target() -> None:
    picture = board_text(MIDDLE_GAME, style="letters", last_move=Move.from_usi("G*4c"))
    assert "|  p  .  .  p  B[ G] .  p  p | c" in picture.splitlines()
    assert picture.endswith("last move G*4c")


def test_every_piece_has_its_own_kanji() -> None:
    black = "".join(piece_kanji(Piece(Color.BLACK, kind)) for kind in PieceKind)
    white = "".join(piece_kanji(Piece(Color.WHITE, kind)) for kind in PieceKind)
    assert black == "歩香桂銀金角飛玉と杏圭全馬龍"
    assert white == "歩香桂銀金角飛王と杏圭全馬龍"


@few
@given(diagrams, styles, moves)
def test_columns_line_up(diagram: Diagram, style: Lettering, last_move: Move | None) -> None:
    lines = board_text(diagram, style=style, last_move=last_move).splitlines()
    files, top, ranks, bottom = lines[1], lines[2], lines[3:12], lines[12]
    assert len({display_width(rank) for rank in ranks}) == 1
    assert top == bottom
    assert {display_width(rank.rpartition("|")[0]) + 1 for rank in ranks} == {len(top)}
    file_cells = [cell for _, cell, text in cells(files) if text.strip()]
    for row, rank in enumerate(ranks):
        glyph_by_cell = {cell: text for _, cell, text in cells(rank)}
        for column, cell in enumerate(file_cells):
            piece = diagram.board[row * 9 + column]
            assert glyph_by_cell[cell] == expected_glyph(piece, style)


def cells(text: str) -> list[tuple[int, int, str]]:
    """Index, terminal cell and character of each character of a line."""
    return [(index, display_width(text[:index]), character) for index, character in enumerate(text)]


def expected_glyph(piece: Piece | None, style: Lettering) -> str:
    if style == "kanji":
        return "・" if piece is None else piece_kanji(piece)
    return "." if piece is None else piece.symbol[-1]


@few
@given(diagrams, moves)
def test_letters_are_ascii(diagram: Diagram, last_move: Move | None) -> None:
    assert board_text(diagram, style="letters", last_move=last_move).isascii()


@few
@given(diagrams, styles, moves)
def test_widths_agree_with_those_of_rich(
    diagram: Diagram, style: Lettering, last_move: Move | None
) -> None:
    for line in board_text(diagram, style=style, last_move=last_move).splitlines():
        assert display_width(line) == cell_len(line)
        assert line == line.rstrip()


@few
@given(diagrams, styles)
def test_hands_are_written_with_their_counts(diagram: Diagram, style: Lettering) -> None:
    lines = board_text(diagram, style=style).splitlines()
    for line, color in ((lines[0], Color.WHITE), (lines[13], Color.BLACK)):
        expected = []
        for kind in (6, 5, 4, 3, 2, 1, 0):
            piece, count = Piece(color, PieceKind(kind)), diagram.hands[color][kind]
            name = piece_kanji(piece) if style == "kanji" else piece.symbol
            expected += [name + ("" if count == 1 else str(count))] if count else []
        assert line == f"{color.name.title()} in hand: {' '.join(expected) or 'none'}"


@few
@given(diagrams, styles, moves)
def test_rich_text_reads_as_the_plain_one(
    diagram: Diagram, style: Lettering, last_move: Move | None
) -> None:
    coloured = board_rich(diagram, style=style, last_move=last_move)
    assert coloured.plain == board_text(diagram, style=style, last_move=last_move)


def test_rich_text_colours_what_matters() -> None:
    coloured = board_rich(MIDDLE_GAME, style="letters", last_move=PROMOTION)
    styles = {coloured.plain[span.start : span.end]: str(span.style) for span in coloured.spans}
    assert "on bright_yellow" in styles["+R"]
    assert "red" in styles["+r"].split()
    assert "red" not in styles[" K"].split()
    assert styles[" K"] != styles[" k"]
    assert coloured.no_wrap


def test_spans_say_what_they_show() -> None:
    spans = board_lines(MIDDLE_GAME, style="letters", last_move=PROMOTION)[4]
    marked: dict[Role, list[str]] = {"origin": [], "target": []}
    for span in spans:
        for role in span.roles:
            if role in marked:
                marked[role].append(span.text)
    assert marked == {"origin": [" ."], "target": ["[", "+R", "]"]}


def test_an_unknown_style_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(RenderError, match=r"'emoji'.*'kanji', 'letters'"):
        board_text(START, style="emoji")  # type: ignore[arg-type]


def test_a_board_of_another_size_is_refused() -> None:
    with pytest.raises(RenderError, match="81 squares, not 80"):
        board_text(Diagram(START.board[:80]))


@pytest.mark.parametrize("move", [Move(0, 81), Move(-1, 5), Move(None, -1, False, PieceKind.PAWN)])
def test_a_move_off_the_board_is_refused(move: Move) -> None:
    with pytest.raises(RenderError, match=r"of the last move is square (81|-1)"):
        board_text(START, last_move=move)


def test_errors_are_the_users_and_value_errors() -> None:
    with pytest.raises(KeiseiError, match="here is square 99"):
        require_square("here", 99)
    assert issubclass(RenderError, ValueError)
