"""The board on the page, and what stands around it: moves, value graph, players, value bar.

`BoardView`, `MoveList` and `ValueGraph` are NiceGUI elements with a script in ``static/``; their
properties are set by ``show`` and reach the browser with the next update.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from keisei.shogi.game import ShogiGame
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.render.svg import FONTS, piece_shape
from keisei.shogi.types import Color, Piece, PieceKind
from keisei.web.languages import tr
from keisei.web.play.game_room import GameRoom
from keisei.web.play.look import Look
from keisei.web.play.wording import board_texts, player_text, side_texts
from keisei.web.theme import STATIC, tool_button

_MAX_EVENT_TEXT: Final = 16
"""Characters of a move or command that a page sends, which may send anything."""

_LOW_TIME: Final = 10.0
"""Seconds left from which on a clock is highlighted."""

_SIDE_MARK: Final = (
    '<svg viewBox="0 0 20 24" class="kp-mark"><path d="M10 1 17 5 19 23H1L3 5Z" fill="{}" '
    'stroke="var(--k-soft)" stroke-width="1.5"/></svg>'
)


class BoardView(Element, component=STATIC / "board.js"):
    """A board on which pieces can be moved by mouse, touch or keyboard."""

    def __init__(
        self, *, on_move: Callable[[str], None], on_command: Callable[[str], None]
    ) -> None:
        """Make a board with the starting position.

        Args:
            on_move: called with a person's move in USI; it was legal in the position shown.
            on_command: called with the name of the command whose key was pressed on the page.
        """
        super().__init__()
        self._props["state"] = _state(ShogiGame(), legal=False)
        self._props["lettering"] = "kanji"
        self._props["arrows"] = []
        self._props["texts"] = board_texts()
        self._props["board"] = self._props["wood"] = "wood"
        self._props.set_bool("flip", False)
        self._props.set_bool("sound", False)
        self.on("move", lambda event: on_move(str(event.args)[:_MAX_EVENT_TEXT]))
        self.on("command", lambda event: on_command(str(event.args)[:_MAX_EVENT_TEXT]))

    def show(
        self,
        game: ShogiGame,
        *,
        legal: bool,
        flip: bool,
        look: Look,
        arrows: Sequence[tuple[str, float]],
        premove: Color | None = None,
        over: bool = False,
    ) -> None:
        """Draw a position.

        Args:
            game: the position, with its last move.
            legal: whether a person may move now.
            flip: whether White is at the bottom.
            look: what the visitor has chosen.
            arrows: moves to point out, in USI, with their probabilities.
            premove: the side that may enter a move before its turn.
            over: whether the game is over.
        """
        self._props["state"] = _state(game, legal=legal) | {
            "premove": -1 if premove is None else int(premove),
            "over": over,
        }
        self._props["texts"] = self._props["texts"] | {"sides": side_texts(game.start)}
        self._props["lettering"] = look.lettering
        self._props["board"], self._props["wood"] = look.board, look.wood
        self._props["sound"] = look.has_sound
        self._props["arrows"] = [list(arrow) for arrow in arrows]
        self._props["flip"] = flip
        self.update()

    def play_sound(self, name: str) -> None:
        """Play one of ``static/sounds``, unless the visitor wants none."""
        self.run_method("play", name)

    def refuse(self) -> None:
        """Undo the display of a move that could not be played."""
        self.run_method("refuse")


class MoveList(Element, component=STATIC / "moves.js"):
    """The moves of a game; a click chooses one."""

    def __init__(self, on_choose: Callable[[int], None]) -> None:
        """Make a list; `on_choose` is called with the number of the move that was clicked."""
        super().__init__()
        self.show([], cursor=0, first=Color.BLACK, end="")
        self.on("choose", lambda event: on_choose(_number(event)))

    def show(self, moves: list[str], *, cursor: int, first: Color, end: str) -> None:
        """List the moves; the position on the board is the one after `cursor` moves."""
        self._props["moves"] = moves
        self._props["cursor"] = cursor
        self._props["first"] = int(first)
        self._props["end"] = end
        self._props["texts"] = {"moves": tr("Moves"), "none": tr("No moves yet.")}
        self.update()


class ValueGraph(Element, component=STATIC / "graph.js"):
    """Black's expected score, move by move."""

    def __init__(self, on_choose: Callable[[int], None]) -> None:
        """Make a graph; `on_choose` is called with the number of the move pointed at."""
        super().__init__()
        self.show([], cursor=0, length=0)
        self.on("choose", lambda event: on_choose(_number(event)), throttle=0.05)

    def show(self, values: list[float], *, cursor: int, length: int) -> None:
        """Draw the curve of a game with `length` moves; values are from 0 to 1."""
        self._props["values"] = values
        self._props["cursor"] = cursor
        self._props["length"] = length
        self._props["label"] = tr("Expected score of Black by move")
        self.update()


def announcement() -> ui.label:
    """Add a text that only screen readers tell, as soon as it changes."""
    return ui.label().classes("kp-sr").props('aria-live="assertive"')


def step_buttons(command: Callable[[str], None]) -> None:
    """Add buttons that step through the moves, by the commands of the keys that do."""
    for icon, text, name in (
        ("first_page", tr("First position"), "first"),
        ("chevron_left", tr("Previous move"), "back"),
        ("chevron_right", tr("Next move"), "forward"),
        ("last_page", tr("Last position"), "last"),
    ):
        tool_button(icon, text, partial(command, name), name)


def add_pieces() -> None:
    """Add the drawings of all pieces, to which boards refer, and their fonts to the page."""
    ui.add_body_html(_pieces())
    ui.add_head_html(
        "<style>"
        + "".join(f".kb-{name}{{font-family:{fonts}}}" for name, fonts in FONTS.items())
        + "</style>"
    )


@cache
def _pieces() -> str:
    symbols = []
    for lettering in FONTS:
        for color in Color:
            for kind in PieceKind:
                piece = Piece(color, kind)
                for turned in (False, True):
                    shape = piece_shape(
                        piece,
                        lettering,
                        turned=turned,
                        face_fill=_face(piece, lettering),
                        side_fill="var(--kb-side, {})",
                    )
                    name = f"k-{lettering}-{piece.symbol}-{int(turned)}"
                    symbols.append(f'<g id="{name}">{shape}</g>')
    shapes = "".join(symbols)
    return f'<svg width="0" height="0" style="position:absolute" aria-hidden="true">{shapes}</svg>'


def _face(piece: Piece, lettering: Lettering) -> str:
    """Return the fill of a piece's face, which ``play.css`` can change."""
    owner = "" if lettering == "kanji" else f"{piece.color.name.lower()}-"
    return f"var(--kb-{owner}face, {{}})"


def _state(game: ShogiGame, *, legal: bool) -> dict[str, Any]:
    """Return a position as the property ``state`` of ``static/board.js``."""
    diagram, last, check = game.diagram, game.last_move, game.checked_king
    return {
        "board": [piece.symbol if piece else "" for piece in diagram.board],
        "hands": [list(hand) for hand in diagram.hands],
        "turn": int(diagram.turn),
        "legal": [move.usi for move in game.legal_moves] if legal else [],
        "last": None
        if last is None
        else {"from": -1 if last.from_square is None else last.from_square, "to": last.to_square},
        "check": -1 if check is None else check,
        "ply": len(game.actions),
        "premove": -1,
        "over": False,
    }


def _number(event: GenericEventArguments) -> int:
    return event.args if isinstance(event.args, int) else 0


class PlayerStrip:
    """The line above or below the board with a side's player and clock."""

    def __init__(self, place: str) -> None:
        """Make a strip; `place` is the class of its place on the page."""
        with ui.element("div").classes(f"kp-player {place}") as self._strip:
            self._mark = ui.html("", sanitize=False)
            self._name = ui.label().classes("kp-name")
            ui.element("span").classes("kp-dots")
            ui.element("div").classes("kp-grow")
            self._clock = ui.label().classes("kp-clock")

    def show(self, room: GameRoom, color: Color) -> None:
        """Draw a side of the game in a room."""
        session = room.session
        fill = "var(--k-black-side)" if color is Color.BLACK else "var(--k-white-side)"
        self._mark.content = _SIDE_MARK.format(fill)
        self._name.text = player_text(room, color)
        self._strip.props(f'data-color="{color.name.lower()}"')
        _set_class(self._strip, "kp-to-move", session.end is None and session.turn is color)
        _set_class(self._strip, "kp-thinking", room.thinking is color)
        self.show_clock(room, color)

    def show_clock(self, room: GameRoom, color: Color) -> None:
        """Draw the clock only."""
        left = room.session.time_left(color)
        self._clock.visible = left is not None
        if left is not None:
            self._clock.text = str(left)
            _set_class(self._clock, "kp-low", left.main + left.byoyomi <= _LOW_TIME)


class ValueBar:
    """Black's expected score as the dark part of a bar beside the board."""

    def __init__(self) -> None:
        with ui.element("div").classes("kp-bar").props('role="img"') as self._bar:
            ui.element("div").classes("kp-black")

    def show(self, black: float | None, *, visible: bool, flip: bool) -> None:
        """Draw Black's expected score, from 0 to 1; None: unknown, drawn as even."""
        share = 0.5 if black is None else black
        self._bar.visible = visible
        self._bar.style(f"--share: {share:.1%}")
        label = tr("Expected score of Black: {percent}", percent=f"{share:.0%}")
        self._bar.props(f'aria-label="{label}"')
        _set_class(self._bar, "kp-flipped", flip)


def _set_class(element: ui.element, name: str, wanted: bool) -> None:
    element.classes(add=name if wanted else "", remove="" if wanted else name)
