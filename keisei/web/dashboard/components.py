"""Components shared by the dashboard's pages: frame, cards, charts, tiles, boards, links."""

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
    from keisei.runs.artifacts import RunCheckpoint
    from keisei.runs.run_reader import LiveBoard
    from keisei.shogi.types import Diagram, Move

REFRESH_INTERVAL: Final = 0.5
"""Seconds between two checks for new data to show."""

PLAY_ADDRESS: Final = "/play"
"""The page with the board of ``keisei play``."""

STATES: Final = {
    "running": "training",
    "finished": "finished",
    "interrupted": "stopped",
    "failed": "failed",
    "broken": "no data",
}
"""The labels of the states of a run."""


@dataclass(frozen=True)
class Dashboard:
    """The data that all pages share."""

    watch: Watch
    store: Path
    """The stored results that the ladder is computed from."""

    allows_control: bool = False
    """Whether visitors may pause, resume and reset runs."""


@contextmanager
def page(title: str) -> Iterator[None]:
    """Frame a page of the dashboard; its content is made in the ``with`` block."""
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
    """Return the address of a run's page."""
    return f"/run/{quote(name, safe='')}"


def play_address(run: str, checkpoint: "RunCheckpoint", *, is_newest: bool) -> str:
    """Return the address of a game against a checkpoint.

    The catalogue of players lists a run's newest checkpoint under the name of the run.
    """
    key = f"run:{run}" if is_newest else f"run:{run}/{checkpoint.name}"
    return f"{PLAY_ADDRESS}?against={quote(key, safe='')}"


@contextmanager
def card(title: str = "", hint: str = "", *, classes: str = "") -> Iterator[ui.element]:
    """Frame a box with a heading; its content is made in the ``with`` block."""
    with ui.element("section").classes(f"k-card {classes}") as box:
        if title:
            ui.label(title).classes("d-card-title")
        if hint:
            ui.label(hint).classes("d-hint")
        yield box


class Chart:
    """A chart that is only redrawn when its data have changed."""

    def __init__(self, *, tall: bool = False, empty: str = "No data yet.") -> None:
        self.element = ui.echart({"series": []}, renderer="svg")
        self.element.classes("d-chart d-tall" if tall else "d-chart")
        self._empty = ui.label(empty).classes("d-none")
        self._empty.set_visibility(False)
        self._shown: Options | None = None

    def show(self, options: Options) -> None:
        """Draw the chart, or the text for an empty one."""
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
    """Add a toggle for the x axis of the charts."""
    toggle = ui.toggle(
        dict(X_AXES), value=value, on_change=lambda event: on_change(str(event.value))
    )
    toggle.props('dense no-caps unelevated toggle-color=primary size=12px padding="3px 10px"')
    return toggle.mark("axis")


def tile(label: str) -> "tuple[ui.label, ui.label]":
    """Add a number with its name; return the labels of the number and of the text below it."""
    with ui.element("div").classes("d-tile"):
        ui.label(label).classes("d-label").tooltip(label)
        return ui.label("-").classes("d-value"), ui.label("").classes("d-more")


def board_picture(
    diagram: "Diagram", last_move: "Move | None", check_square: int | None = None
) -> str:
    """Return a position as SVG."""
    from keisei.shogi.render.svg import board_svg

    return board_svg(diagram, last_move=last_move, labels="western", check_square=check_square)


def live_picture(board: "LiveBoard") -> str | None:
    """Return a game in progress as SVG; None if its data are invalid."""
    from keisei.errors import KeiseiError
    from keisei.shogi.notation.sfen import parse_sfen
    from keisei.shogi.types import Move

    try:
        last_move = None if board.last_move is None else Move.from_usi(board.last_move)
        return board_picture(parse_sfen(board.sfen), last_move)
    except (KeiseiError, ValueError, TypeError, AttributeError):
        return None


def empty_page(text: str, command: str) -> None:
    """Explain why there is nothing to show, and which command changes that."""
    with ui.element("div").classes("d-none"):
        ui.label(text)
        ui.label(command).classes("d-code").style("display: inline-block; margin-top: 8px")


def colors_of(names: list[str], palette: tuple[str, ...]) -> Mapping[str, str]:
    """Assign a colour of the palette to each name, in order."""
    return {name: palette[index % len(palette)] for index, name in enumerate(names)}
