"""What stands around the board: a line for each player, and the bar of expectations."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from keisei.shogi.game import ShogiGame
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.render.svg import FONTS, piece_shape
from keisei.shogi.types import Color, Piece, PieceKind
from keisei.web.play.game_room import Table


class Board(Element, component="static/board.js"):
    """A board that pieces can be moved on, by mouse, finger or keyboard."""

    def __init__(
        self, *, on_move: Callable[[str], None], on_command: Callable[[str], None]
    ) -> None:
        """Make a board, empty at first.

        Args:
            on_move: gets the move that a person made, as USI; it was legal when it was shown.
            on_command: gets the name of the command whose key was pressed anywhere on the page.
        """
        super().__init__()
        self._props["state"] = _state(ShogiGame(), legal=False)
        self._props["lettering"] = "kanji"
        self._props["arrows"] = []
        self._props.set_bool("flip", False)
        self.on("move", lambda event: on_move(_text(event)))
        self.on("command", lambda event: on_command(_text(event)))

    def show(
        self,
        game: ShogiGame,
        *,
        legal: bool,
        flip: bool,
        lettering: Lettering,
        arrows: Sequence[tuple[str, float]],
    ) -> None:
        """Draw a position.

        Args:
            game: the position, with the last move.
            legal: whether a person may move now.
            flip: whether White sits at the bottom.
            lettering: what is written on the pieces.
            arrows: moves to point out, as USI, with their probabilities.
        """
        self._props["state"] = _state(game, legal=legal)
        self._props["lettering"] = lettering
        self._props["arrows"] = [list(arrow) for arrow in arrows]
        self._props["flip"] = flip
        self.update()

    def refuse(self) -> None:
        """Take back what was shown of a move that could not be played."""
        self.run_method("refuse")


class MoveList(Element, component="static/moves.js"):
    """The moves of a game; one can be chosen."""

    def __init__(self, on_choose: Callable[[int], None]) -> None:
        """Make a list; `on_choose` gets the number of the move that was clicked."""
        super().__init__()
        self.show([], cursor=0, first=Color.BLACK, end="")
        self.on("choose", lambda event: on_choose(_number(event)))

    def show(self, moves: list[str], *, cursor: int, first: Color, end: str) -> None:
        """List the moves; `cursor` of them lead to the position that is looked at."""
        self._props["moves"] = moves
        self._props["cursor"] = cursor
        self._props["first"] = int(first)
        self._props["end"] = end
        self.update()


class Graph(Element, component="static/graph.js"):
    """What Black can expect of the points, move by move."""

    def __init__(self, on_choose: Callable[[int], None]) -> None:
        """Make a graph; `on_choose` gets the number of the move that was pointed at."""
        super().__init__()
        self.show([], cursor=0, length=0)
        self.on("choose", lambda event: on_choose(_number(event)), throttle=0.05)

    def show(self, values: list[float], *, cursor: int, length: int) -> None:
        """Draw the curve of a game with `length` moves."""
        self._props["values"] = values
        self._props["cursor"] = cursor
        self._props["length"] = length
        self.update()


def add_pieces() -> None:
    """Add the drawings of all pieces to the page, which boards refer to; and their fonts."""
    ui.add_body_html(_pieces())
    ui.add_head_html(
        "<style>"
        + "".join(f".kb-{name}{{font-family:{fonts}}}" for name, fonts in FONTS.items())
        + "</style>"
    )


@cache
def _pieces() -> str:
    symbols = "".join(
        f'<g id="k-{lettering}-{piece.symbol}-{int(turned)}">'
        f"{piece_shape(piece, lettering, turned=turned)}</g>"
        for lettering in FONTS
        for color in Color
        for kind in PieceKind
        for piece in [Piece(color, kind)]
        for turned in (False, True)
    )
    return f'<svg width="0" height="0" style="position:absolute" aria-hidden="true">{symbols}</svg>'


def _state(game: ShogiGame, *, legal: bool) -> dict[str, Any]:
    """A position for the board's script."""
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
    }


def _text(event: GenericEventArguments) -> str:
    """What a page sent, which may be anything: a word, cut to what a word can be."""
    return str(event.args)[:16]


def _number(event: GenericEventArguments) -> int:
    return event.args if isinstance(event.args, int) else 0


_LOW_SECONDS: Final = 10.0
_SIDE_MARK: Final = (
    '<svg viewBox="0 0 20 24" class="kp-mark"><path d="M10 1 17 5 19 23H1L3 5Z" fill="{}" '
    'stroke="var(--k-soft)" stroke-width="1.5"/></svg>'
)


class PlayerStrip:
    """A line above or below the board: who plays that side, and the clock."""

    def __init__(self) -> None:
        with ui.element("div").classes("kp-player") as self._strip:
            self._mark = ui.html("", sanitize=False)
            self._name = ui.label().classes("kp-name")
            ui.element("span").classes("kp-dots").props('aria-label="is thinking"')
            ui.element("div").classes("kp-grow")
            self._clock = ui.label().classes("kp-clock")

    def show(self, table: Table, color: Color) -> None:
        """Draw a side of the table."""
        session = table.session
        fill = "var(--k-black-side)" if color is Color.BLACK else "var(--k-white-side)"
        self._mark.content = _SIDE_MARK.format(fill)
        self._name.text = session.name(color)
        self._strip.props(f'data-color="{color.name.lower()}"')
        _set_class(self._strip, "kp-to-move", session.end is None and session.turn is color)
        _set_class(self._strip, "kp-thinking", table.thinking is color)
        self.show_clock(table, color)

    def show_clock(self, table: Table, color: Color) -> None:
        """Draw the clock alone."""
        left = table.session.time_left(color)
        self._clock.visible = left is not None
        if left is not None:
            self._clock.text = str(left)
            _set_class(self._clock, "kp-low", left.main + left.byoyomi <= _LOW_SECONDS)


class ExpectationBar:
    """Black's share of the points, dark, in a bar beside the board."""

    def __init__(self) -> None:
        with ui.element("div").classes("kp-bar").props('role="img"') as self._bar:
            ui.element("div").classes("kp-black")

    def show(self, black: float | None, *, visible: bool, flip: bool) -> None:
        """Draw what Black can expect, from 0 to 1; None: nobody knows."""
        share = 0.5 if black is None else black
        self._bar.visible = visible
        self._bar.style(f"--share: {share:.1%}")
        self._bar.props(f'aria-label="Black expects {share:.0%} of the points"')
        _set_class(self._bar, "kp-flipped", flip)


def _set_class(element: ui.element, name: str, wanted: bool) -> None:
    element.classes(add=name if wanted else "", remove="" if wanted else name)
