"""Pieces that the dashboard's pages are made of."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from nicegui import ui

from keisei.runs.watch import Watch
from keisei.web.dashboard.charts import X_AXES, Options
from keisei.web.theme import STATIC, add_style, frame

if TYPE_CHECKING:
    from keisei.runs.run_reader import LiveBoard
    from keisei.shogi.types import Diagram, Move

REFRESH: Final = 0.5
"""Seconds between two looks at whether there is news to show."""

STATES: Final = {
    "running": "training",
    "finished": "finished",
    "interrupted": "stopped",
    "failed": "failed",
    "broken": "no data",
}
"""What the states of runs are called."""


@dataclass(frozen=True)
class Dashboard:
    """What all pages know."""

    watch: Watch
    store: Path
    """The results that the ladder is made of."""


@contextmanager
def page(title: str) -> Iterator[None]:
    """A page of the dashboard."""
    add_style("dashboard.css")
    ui.add_head_html(f"<script>{_script()}</script>")
    with (
        frame(title, links={"Runs": "/", "Ladder": "/ladder"}),
        ui.element("div").classes("d-stack"),
    ):
        yield


@cache
def _script() -> str:
    return (STATIC / "dashboard.js").read_text(encoding="utf-8")


def run_address(name: str) -> str:
    """The page of a run."""
    return f"/run/{quote(name, safe='')}"


@contextmanager
def card(title: str = "", hint: str = "", *, classes: str = "") -> Iterator[ui.element]:
    """A box with a heading."""
    with ui.element("section").classes(f"k-card {classes}") as box:
        if title:
            ui.label(title).classes("d-card-title")
        if hint:
            ui.label(hint).classes("d-hint")
        yield box


class Chart:
    """A plot that is only drawn anew when there is something new to draw."""

    def __init__(
        self, *, tall: bool = False, empty: str = "Nothing has been measured yet."
    ) -> None:
        self.element = ui.echart({"series": []}, renderer="svg")
        self.element.classes("d-chart d-tall" if tall else "d-chart")
        self._empty = ui.label(empty).classes("d-none")
        self._empty.set_visibility(False)
        self._shown: Options | None = None

    def show(self, options: Options) -> None:
        """Draw, or say that there is nothing to draw."""
        if options == self._shown:
            return
        self._shown = options
        has_points = any(series["data"] for series in options["series"])
        self.element.set_visibility(has_points)
        self._empty.set_visibility(not has_points)
        self.element.options.clear()
        self.element.options.update(options)
        self.element.update()


def axis_choice(value: str, on_change: Callable[[str], None]) -> ui.toggle:
    """What the plots are drawn over."""
    toggle = ui.toggle(
        dict(X_AXES), value=value, on_change=lambda event: on_change(str(event.value))
    )
    toggle.props('dense no-caps unelevated toggle-color=primary size=12px padding="3px 10px"')
    return toggle.mark("axis")


def tile(label: str) -> "tuple[ui.label, ui.label]":
    """A number with its name; returns the labels of the number and of what is said below it."""
    with ui.element("div").classes("d-tile"):
        ui.label(label).classes("d-label").tooltip(label)
        return ui.label("-").classes("d-value"), ui.label("").classes("d-more")


def board_picture(
    diagram: "Diagram", last_move: "Move | None", check_square: int | None = None
) -> str:
    """A position as SVG."""
    from keisei.shogi.render.svg import board_svg

    return board_svg(diagram, last_move=last_move, labels="western", check_square=check_square)


def live_picture(board: "LiveBoard") -> str | None:
    """A game under way as SVG; None if the file that tells of it is no good."""
    from keisei.errors import KeiseiError
    from keisei.shogi.notation.sfen import parse_sfen
    from keisei.shogi.types import Move

    try:
        last_move = None if board.last_move is None else Move.from_usi(board.last_move)
        return board_picture(parse_sfen(board.sfen), last_move)
    except (KeiseiError, ValueError, TypeError, AttributeError):
        return None


def nothing_here(text: str, command: str) -> None:
    """What to do where there is nothing to see."""
    with ui.element("div").classes("d-none"):
        ui.label(text)
        ui.label(command).classes("d-code").style("display: inline-block; margin-top: 8px")


def colors_of(names: list[str], palette: tuple[str, ...]) -> Mapping[str, str]:
    """A colour for each."""
    return {name: palette[index % len(palette)] for index, name in enumerate(names)}
