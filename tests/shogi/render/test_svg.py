"""SVG boards: valid XML that shows every piece, hand and highlight in the right place."""

import re
from collections import Counter
from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.shogi.notation.sfen import STARTPOS_SFEN, format_sfen, parse_sfen
from keisei.shogi.render.glyphs import RenderError
from keisei.shogi.render.layout import Labels
from keisei.shogi.render.svg import board_svg
from keisei.shogi.types import SQUARE_NAMES, Color, Diagram, Move, parse_square
from tests.shogi.diagram_strategies import diagrams

NS = "{http://www.w3.org/2000/svg}"
START = parse_sfen(STARTPOS_SFEN)
MIDDLE_GAME = parse_sfen(
    "8l/1l+R2P3/p2pBG1pp/kps1p4/Nn1P2G2/P1P1P2PP/1PS6/1KSG3+r1/LN2+p3L w Sbgn3p 124"
)
PROMOTED = parse_sfen("3+P+L+N+S+B+R/4k4/9/9/9/9/9/4K4/3+p+l+n+s+b+r b 16p 301")


few = settings(max_examples=30, deadline=None)


def with_class(root: ET.Element, name: str) -> list[ET.Element]:
    return [element for element in root.iter() if element.get("class") == name]


def place(element: ET.Element) -> tuple[float, float]:
    """The place of a piece in the picture."""
    match = re.fullmatch(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
    assert match is not None
    return float(match[1]), float(match[2])


def points_up(piece: ET.Element) -> bool:
    """Whether the point of the pentagon's face is above the middle of the piece."""
    face = piece.findall(f"{NS}path")[-1].get("d", "")
    match = re.match(r"M(\S+) ([^L]+)L", face)
    assert match is not None
    assert float(match[1]) == 0
    return float(match[2]) < 0


def inscription(piece: ET.Element) -> ET.Element:
    text = piece.find(f"{NS}text")
    assert text is not None
    return text


def by_square(root: ET.Element) -> dict[str, ET.Element]:
    return {piece.get("data-square", ""): piece for piece in with_class(root, "shogi-piece")}


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{NS}text")]


def test_start_position_shows_twenty_pieces_a_side() -> None:
    root = ET.fromstring(board_svg(START))
    pieces = with_class(root, "shogi-piece")
    assert Counter(piece.get("data-color") for piece in pieces) == {"black": 20, "white": 20}
    kanji = Counter(inscription(piece).text for piece in pieces)
    assert kanji == Counter("歩" * 18 + "香桂銀金" * 4 + "飛角" * 2 + "玉王")
    assert with_class(root, "shogi-held") == []


@few
@given(diagrams, st.sampled_from(get_args(Labels)), st.booleans())
def test_every_piece_and_hand_is_drawn(diagram: Diagram, labels: Labels, flip: bool) -> None:
    root = ET.fromstring(board_svg(diagram, labels=labels, flip=flip))
    drawn = {name: piece.get("data-piece") for name, piece in by_square(root).items()}
    assert drawn == {
        SQUARE_NAMES[sq]: piece.symbol
        for sq, piece in enumerate(diagram.board)
        if piece is not None
    }
    held = {
        piece.get("data-piece"): int(piece.get("data-count", ""))
        for piece in with_class(root, "shogi-held")
    }
    assert held == {
        (symbol.lower() if color else symbol): count
        for color in Color
        for symbol, count in zip("PLNSGBR", diagram.hands[color], strict=True)
        if count
    }


@few
@given(diagrams, st.booleans())
def test_nothing_overlaps_or_leaves_the_picture(diagram: Diagram, flip: bool) -> None:
    root = ET.fromstring(board_svg(diagram, flip=flip))
    width, height = (float(part) for part in root.get("viewBox", "").split()[2:])
    places = [
        place(piece) for name in ("shogi-piece", "shogi-held") for piece in with_class(root, name)
    ]
    assert len(set(places)) == len(places)
    assert all(30 < x < width - 30 and 30 < y < height - 30 for x, y in places)
    for rect in root.iter(f"{NS}rect"):
        x, y, wide, high = (float(rect.get(key, "")) for key in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + wide <= width
        assert y + high <= height


def test_the_near_side_points_up_and_the_far_side_is_turned() -> None:
    for piece in by_square(ET.fromstring(board_svg(START))).values():
        is_black = piece.get("data-color") == "black"
        assert points_up(piece) is is_black
        assert ("rotate(180" in inscription(piece).get("transform", "")) is not is_black


def test_flip_puts_white_at_the_bottom() -> None:
    usual = ET.fromstring(board_svg(MIDDLE_GAME))
    flipped = ET.fromstring(board_svg(MIDDLE_GAME, flip=True))
    before, after = by_square(usual), by_square(flipped)
    assert before.keys() == after.keys()
    centres = {
        tuple(sum(pair) for pair in zip(place(before[name]), place(after[name]), strict=True))
        for name in before
    }
    assert len(centres) == 1  # every piece is mirrored in the middle of the board
    assert all(points_up(before[name]) is not points_up(after[name]) for name in before)
    for one, other in ((usual, flipped), (flipped, usual)):
        white = [
            place(held)
            for held in with_class(one, "shogi-held")
            if held.get("data-color") == "white"
        ]
        black = [
            place(held)
            for held in with_class(other, "shogi-held")
            if held.get("data-color") == "black"
        ]
        same_side = {x < 462 for x, _ in white + black}
        assert len(same_side) == 1


def test_files_and_ranks_follow_the_flip() -> None:
    usual, flipped = (
        [
            text
            for text in texts(ET.fromstring(board_svg(START, flip=flip)))
            if text in set("123456789一二三四五六七八九")
        ]
        for flip in (False, True)
    )
    assert "".join(usual[0::2]) == "987654321"
    assert "".join(usual[1::2]) == "一二三四五六七八九"
    assert flipped[0::2] == usual[0::2][::-1]
    assert flipped[1::2] == usual[1::2][::-1]


def test_squares_lie_where_a_printed_diagram_has_them() -> None:
    places = {
        name: place(piece) for name, piece in by_square(ET.fromstring(board_svg(START))).items()
    }
    assert places["9a"][0] < places["1a"][0]
    assert places["9a"][1] == places["1a"][1] < places["9i"][1]
    assert places["9a"][0] == places["9i"][0]


def test_promoted_pieces_are_red() -> None:
    pieces = by_square(ET.fromstring(board_svg(PROMOTED))).values()
    red = {
        inscription(piece).text for piece in pieces if inscription(piece).get("fill") == "#c01818"
    }
    assert red == set("と杏圭全馬龍")
    assert {inscription(piece).text for piece in pieces} - red == set("玉王")


def test_the_last_move_is_highlighted_at_both_ends() -> None:
    root = ET.fromstring(board_svg(MIDDLE_GAME, last_move=Move.from_usi("6b7b+")))
    (origin,) = with_class(root, "shogi-last-from")
    (target,) = with_class(root, "shogi-last-to")
    assert (origin.get("data-square"), target.get("data-square")) == ("6b", "7b")
    assert origin.get("fill") != target.get("fill")
    x, y = place(by_square(root)["7b"])
    assert 0 < x - float(target.get("x", "")) < float(target.get("width", ""))
    assert 0 < y - float(target.get("y", "")) < float(target.get("height", ""))


def test_the_first_square_is_highlighted_as_any_other() -> None:
    root = ET.fromstring(board_svg(START, last_move=Move.from_usi("9a9b")))
    assert [mark.get("data-square") for mark in with_class(root, "shogi-last-from")] == ["9a"]


def test_a_drop_is_highlighted_at_its_target_only() -> None:
    root = ET.fromstring(board_svg(MIDDLE_GAME, last_move=Move.from_usi("G*4c")))
    assert with_class(root, "shogi-last-from") == []
    assert [mark.get("data-square") for mark in with_class(root, "shogi-last-to")] == ["4c"]


@pytest.mark.parametrize("flip", [False, True])
def test_a_king_in_check_is_marked(flip: bool) -> None:
    root = ET.fromstring(board_svg(START, check_square=parse_square("5a"), flip=flip))
    (mark,) = with_class(root, "shogi-check")
    x, y = place(by_square(root)["5a"])
    assert 0 < x - float(mark.get("x", "")) < float(mark.get("width", ""))
    assert 0 < y - float(mark.get("y", "")) < float(mark.get("height", ""))
    assert "The king on 5a is in check." in (root.findtext(f"{NS}desc") or "")


def test_nothing_is_highlighted_unasked() -> None:
    root = ET.fromstring(board_svg(START))
    for name in ("shogi-last-from", "shogi-last-to", "shogi-check"):
        assert with_class(root, name) == []


def test_counts_are_shown_from_two_on() -> None:
    diagram = parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b R2S13P 7")
    shown = texts(ET.fromstring(board_svg(diagram, labels="letters")))
    assert shown.count("13") == 1
    assert shown.count("2") == 2  # two silvers, and file 2
    assert shown.count("1") == 1  # file 1: a single rook needs no count


@pytest.mark.parametrize(("sfen_side", "mover"), [("b", "black"), ("w", "white")])
def test_the_side_to_move_is_shown(sfen_side: str, mover: str) -> None:
    root = ET.fromstring(board_svg(parse_sfen(f"4k4/9/9/9/9/9/9/9/4K4 {sfen_side} - 42")))
    plates = {plate.get("data-color"): plate for plate in with_class(root, "shogi-player")}
    assert {color: plate.get("data-to-move") for color, plate in plates.items()} == {
        color: str(color == mover).lower() for color in ("black", "white")
    }
    assert "42手目" in texts(plates[mover])
    assert plates["black"][0].get("fill") != plates["white"][0].get("fill")
    assert root.findtext(f"{NS}title") == f"Shogi position, {mover.title()} to move"


def test_labels_choose_the_script() -> None:
    japanese, western, letters = (
        "".join(texts(ET.fromstring(board_svg(MIDDLE_GAME, labels=labels))))
        for labels in get_args(Labels)
    )
    assert set("龍先後手一九") <= set(japanese)
    assert "Black" not in japanese
    assert set("龍ai") <= set(western)
    assert "Black" in western
    assert "一" not in western
    assert letters.isascii()
    assert "+R" in letters


def test_letters_are_upright_on_both_sides() -> None:
    pieces = by_square(ET.fromstring(board_svg(START, labels="letters"))).values()
    assert all(inscription(piece).get("transform") is None for piece in pieces)
    assert {points_up(piece) for piece in pieces} == {True, False}


def test_the_picture_is_self_contained_and_fits_any_page() -> None:
    picture = board_svg(MIDDLE_GAME, last_move=Move.from_usi("6b7b+"))
    root = ET.fromstring(picture)
    tags = {element.tag.removeprefix(NS) for element in root.iter()}
    assert tags == {"svg", "title", "desc", "g", "rect", "path", "circle", "text"}
    assert not [element for element in root.iter() if element.get("id")]
    assert "url(" not in picture
    assert "href" not in picture
    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == [f"{NS}title", f"{NS}desc"]


def test_the_description_restores_the_position() -> None:
    root = ET.fromstring(board_svg(MIDDLE_GAME, last_move=Move.from_usi("6b7b+")))
    description = root.findtext(f"{NS}desc") or ""
    assert description.startswith("Move 124. Last move 6b7b+.")
    assert description.partition("SFEN: ")[2] == format_sfen(MIDDLE_GAME)


def test_size_is_the_height_and_keeps_the_proportions() -> None:
    for size in (240, 480, 1000):
        root = ET.fromstring(board_svg(START, size=size))
        width, height = (float(part) for part in root.get("viewBox", "").split()[2:])
        assert root.get("height") == str(size)
        assert float(root.get("width", "")) == pytest.approx(size * width / height, abs=1)


def test_the_same_position_gives_the_same_picture() -> None:
    assert board_svg(MIDDLE_GAME) == board_svg(parse_sfen(format_sfen(MIDDLE_GAME)))


def test_unknown_labels_are_refused_with_what_is_allowed() -> None:
    with pytest.raises(RenderError, match=r"'runes'.*'japanese', 'western', 'letters'"):
        board_svg(START, labels="runes")  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, -480])
def test_a_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(RenderError, match=f"size is {size}"):
        board_svg(START, size=size)


@pytest.mark.parametrize("sq", [-1, 81])
def test_a_check_off_the_board_is_refused(sq: int) -> None:
    with pytest.raises(RenderError, match=f"check_square is square {sq}"):
        board_svg(START, check_square=sq)


def test_a_move_off_the_board_is_refused() -> None:
    with pytest.raises(RenderError, match="target of the last move is square 81"):
        board_svg(START, last_move=Move(0, 81))
