"""The page on which a position is set up, to be analysed or played from."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from keisei.constants import HAND_LIMITS, NUM_SQUARES
from keisei.errors import KeiseiError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import STARTPOS
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import (
    EMPTY_HANDS,
    HAND_KINDS,
    Color,
    Diagram,
    Piece,
    PieceKind,
    parse_square,
)
from keisei.web.analysis.position_check import position_error
from keisei.web.languages import tr
from keisei.web.play.board import add_pieces
from keisei.web.play.error_wording import error_text
from keisei.web.play.look import Look
from keisei.web.play.wording import board_texts, side_text
from keisei.web.theme import STATIC, add_style, frame, toast, tool_button

MOVE: Final = "move"
ERASE: Final = "erase"

_PIECES: Final = {piece.symbol: piece for color in Color for kind in PieceKind
                  for piece in [Piece(color, kind)]}  # fmt: skip
_MAX_SFEN: Final = 300

Change = dict[str, Any]


class EditorBoard(Element, component=STATIC / "editor.js"):
    """A board on which any piece can be put anywhere, between the two hands."""

    def __init__(self, on_change: Callable[[str, Change], None]) -> None:
        """Make a board.

        Args:
            on_change: called with ``put``, ``carry``, ``turn`` or ``count``, and details.
        """
        super().__init__()
        self._props["texts"] = board_texts() | {"board": tr("Position to set up")}
        self._props |= {"board": [""] * NUM_SQUARES, "tool": MOVE, "lettering": "kanji"}
        self._props["hands"] = [list(hand) for hand in EMPTY_HANDS]
        self._props.set_bool("flip", False)
        for name in ("put", "carry", "turn", "count"):
            self.on(name, lambda event, name=name: on_change(name, _details(event)))

    def show(self, diagram: Diagram, *, tool: str, flip: bool, lettering: Lettering) -> None:
        """Draw a position."""
        self._props["board"] = [piece.symbol if piece else "" for piece in diagram.board]
        self._props["hands"] = [list(hand) for hand in diagram.hands]
        self._props |= {"tool": tool, "flip": flip, "lettering": lettering}
        self.update()


class Palette(Element, component=STATIC / "palette.js"):
    """The tools, the pieces to choose from among them."""

    def __init__(self, on_choose: Callable[[str], None]) -> None:
        """Make a palette.

        Args:
            on_choose: called with a tool: a piece's symbol, ``move`` or ``erase``.
        """
        super().__init__()
        texts = board_texts()
        self._props["texts"] = texts | {
            "tools": tr("Tools"),
            "move": tr("Move pieces"),
            "erase": tr("Remove pieces"),
        }
        self._props |= {"tool": MOVE, "lettering": "kanji"}
        self.on("choose", lambda event: on_choose(str(event.args)[:8]))

    def show(self, *, tool: str, lettering: Lettering) -> None:
        """Draw which tool is chosen."""
        self._props |= {"tool": tool, "lettering": lettering}
        self.update()


@dataclass
class Position:
    """A position that is being set up, legal or not."""

    diagram: Diagram = field(default=STARTPOS)

    def put(self, sq: int, piece: Piece | None) -> None:
        """Put a piece on a square, or remove what is there."""
        board = list(self.diagram.board)
        board[sq] = piece
        self.diagram = replace(self.diagram, board=tuple(board))

    def carry(self, origin: int, target: int) -> None:
        """Move a piece to another square; what was there is gone."""
        piece = self.diagram.board[origin]
        if piece is not None and origin != target:
            self.put(origin, None)
            self.put(target, piece)

    def turn_piece(self, sq: int) -> None:
        """Promote a piece, give it to the other side, unpromote it, give it back, and so on."""
        piece = self.diagram.board[sq]
        if piece is None:
            return
        if piece.kind.can_promote:
            self.put(sq, Piece(piece.color, piece.kind.promoted))
        else:
            self.put(sq, Piece(piece.color.opponent, piece.kind.unpromoted))

    def hold(self, color: Color, kind: int, step: int) -> None:
        """Add pieces to a hand, or take them away, within what a set has."""
        hands = [list(hand) for hand in self.diagram.hands]
        hands[color][kind] = max(0, min(hands[color][kind] + step, HAND_LIMITS[kind]))
        self._set_hands(hands)

    def hold_rest(self, color: Color) -> None:
        """Give all pieces of a set that are nowhere else to a hand, as mate problems do."""
        hands = [list(hand) for hand in self.diagram.hands]
        for kind in HAND_KINDS:
            placed = sum(
                piece is not None and piece.kind.unpromoted is kind for piece in self.diagram.board
            )
            other = hands[color.opponent][kind]
            hands[color][kind] = max(0, HAND_LIMITS[kind] - placed - other)
        self._set_hands(hands)

    def empty(self) -> None:
        """Leave the kings only, each on its square."""
        board: list[Piece | None] = [None] * NUM_SQUARES
        for color, name in ((Color.BLACK, "5i"), (Color.WHITE, "5a")):
            board[parse_square(name)] = Piece(color, PieceKind.KING)
        self.diagram = Diagram(tuple(board), EMPTY_HANDS)

    def exchange_sides(self) -> None:
        """Turn the board round and exchange the colours, the hands and the turn."""
        board = tuple(
            None if piece is None else Piece(piece.color.opponent, piece.kind)
            for piece in reversed(self.diagram.board)
        )
        black, white = self.diagram.hands
        self.diagram = Diagram(board, (white, black), self.diagram.turn.opponent)

    def _set_hands(self, hands: list[list[int]]) -> None:
        black, white = (tuple(hand) for hand in hands)
        self.diagram = replace(self.diagram, hands=(black, white))


class EditorPage:
    """One browser's position."""

    def __init__(self, sfen: str, *, lettering: Lettering, play_address: str = "/") -> None:
        self._position = Position()
        self._look = Look.of_visitor(lettering)
        self._play_address = play_address
        self._tool = MOVE
        self._flip = False
        self._given = sfen[:_MAX_SFEN]

    def build(self) -> None:
        """Build the page."""
        add_style("play.css")
        add_style("analysis.css")
        add_pieces()
        links = {tr("Play"): self._play_address, tr("Analysis"): "/analysis"}
        with frame(tr("Position editor"), links=links), ui.element("div").classes("kp kx-page"):
            with ui.element("div").classes("kp-main"), ui.element("div").classes("kp-board"):
                self._board = EditorBoard(self._change)
            with ui.element("div").classes("kp-side"):
                self._build_side()
        if self._given:
            self._read(self._given)
        self._draw()

    def _build_side(self) -> None:
        with ui.element("div").classes("k-card"):
            self._palette = Palette(self._choose)
        with ui.element("div").classes("k-card"):
            turns = {color.name: tr("{side} to move.", side=side_text(color)) for color in Color}
            self._turn = ui.toggle(turns, value=Color.BLACK.name, on_change=self._set_turn)
            self._turn.props(f'no-caps unelevated spread role=group aria-label="{tr("Turn")}"')
            self._turn.style("width: 100%; margin-bottom: 8px")
            self._verdict = ui.label().classes("ka-verdict").props('role="status"')
            with ui.element("div").classes("kp-result"):
                self._analyse = ui.button(tr("Analyse"), icon="query_stats")
                self._analyse.props('unelevated no-caps color=primary data-tool="analyse"')
                self._analyse.on_click(lambda: self._go("/analysis", "sfen"))
                self._play = ui.button(tr("Play from here"), icon="sports_esports")
                self._play.props('outline no-caps color=primary data-tool="play"')
                self._play.on_click(lambda: self._go(self._play_address, "start"))
        with ui.element("div").classes("k-card"):
            with ui.element("div").classes("ka-tools"):
                for icon, text, act, name in (
                    ("restart_alt", tr("Starting position"), self._start, "start"),
                    ("layers_clear", tr("Kings only"), self._clear, "clear"),
                    ("move_to_inbox", tr("The rest to White's hand"), self._rest, "rest"),
                    ("swap_horiz", tr("Exchange the sides"), self._exchange, "exchange"),
                    ("swap_vert", tr("Flip the board (f)"), self._flip_board, "flip"),
                ):
                    tool_button(icon, text, act, name)
            self._sfen = ui.input("SFEN").props(f"outlined dense maxlength={_MAX_SFEN}")
            self._sfen.style("width: 100%").on("change", self._read_typed)
            self._sfen.on("keydown.enter", self._read_typed)
            ui.label(
                tr("Space or the right button turns a piece: promoted, the other side's, and back.")
            ).classes("k-soft")
            ui.label(
                tr("A click adds a piece to a hand; the right button or “Remove pieces” takes one.")
            ).classes("k-soft")

    # ---- drawing ----

    def _draw(self) -> None:
        diagram, lettering = self._position.diagram, self._look.lettering
        self._board.show(diagram, tool=self._tool, flip=self._flip, lettering=lettering)
        self._palette.show(tool=self._tool, lettering=lettering)
        self._turn.value = diagram.turn.name
        self._sfen.value = format_sfen(diagram)
        error = position_error(diagram)
        self._verdict.text = tr("This can be played.") if error is None else error_text(error)
        good, bad = "ka-good", "ka-bad"
        self._verdict.classes(add=bad if error else good, remove=good if error else bad)
        self._analyse.set_enabled(error is None)
        self._play.set_enabled(error is None)

    # ---- what people do ----

    def _change(self, name: str, details: Change) -> None:
        position = self._position
        if name == "put" and (sq := _square(details, "sq")) is not None:
            position.put(sq, _PIECES.get(str(details.get("symbol", ""))))
        elif name == "turn" and (sq := _square(details, "sq")) is not None:
            position.turn_piece(sq)
        elif name == "carry":
            origin, target = _square(details, "from"), _square(details, "to")
            if origin is not None and target is not None:
                position.carry(origin, target)
        elif name == "count":
            self._count(details)
        self._draw()

    def _count(self, details: Change) -> None:
        side, kind, step = (details.get(name, -9) for name in ("side", "kind", "step"))
        if side in (0, 1) and kind in range(len(HAND_KINDS)) and step in (-1, 1):
            self._position.hold(Color(side), kind, step)

    def _choose(self, tool: str) -> None:
        if tool in (MOVE, ERASE, *_PIECES):
            self._tool = tool
        self._draw()

    def _set_turn(self) -> None:
        turn = Color.__members__.get(str(self._turn.value))
        if turn not in (None, self._position.diagram.turn):
            self._position.diagram = replace(self._position.diagram, turn=turn)
            self._draw()

    def _start(self) -> None:
        self._position.diagram = STARTPOS
        self._draw()

    def _clear(self) -> None:
        self._position.empty()
        self._draw()

    def _rest(self) -> None:
        self._position.hold_rest(Color.WHITE)
        self._draw()

    def _exchange(self) -> None:
        self._position.exchange_sides()
        self._draw()

    def _flip_board(self) -> None:
        self._flip = not self._flip
        self._draw()

    def _read_typed(self) -> None:
        if str(self._sfen.value or "").strip() != format_sfen(self._position.diagram):
            self._read(str(self._sfen.value or ""))
            self._draw()

    def _read(self, sfen: str) -> None:
        """Show a position given as text: an SFEN, or a USI position with moves."""
        try:
            self._position.diagram = replace(ShogiGame(sfen).diagram, move_number=1)
        except KeiseiError as error:
            toast(error_text(error))

    def _go(self, address: str, name: str) -> None:
        ui.navigate.to(f"{address}?{name}={quote(format_sfen(self._position.diagram))}")


def _details(event: GenericEventArguments) -> Change:
    """Return what a page sends with an event, which may send anything."""
    return event.args if isinstance(event.args, dict) else {}


def _square(details: Change, name: str) -> int | None:
    value = details.get(name)
    return value if isinstance(value, int) and 0 <= value < NUM_SQUARES else None
