"""What stands around the board: a line for each player, and the bar of expectations."""

from typing import Final

from nicegui import ui

from keisei.shogi.pieces import Color
from keisei.web.table import Table

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
