"""Components shared by the dashboard's pages: frame, cards, charts, tiles, boards, links."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from nicegui import ui

from keisei.runs.artifacts import import_shogi
from keisei.runs.watch import Watch
from keisei.web.dashboard.chart_csv import csv_name, csv_text
from keisei.web.dashboard.charts import EXACT, X_AXES, X_NAME, ChartView, Options
from keisei.web.events import number_within
from keisei.web.languages import ENGLISH, mark, page_language, tr, translated, trn
from keisei.web.theme import STATIC, add_style, frame

if TYPE_CHECKING:
    from keisei.runs.artifacts import RunCheckpoint
    from keisei.runs.heartbeat import RunHeartbeat
    from keisei.runs.listing import RunOverview
    from keisei.runs.run_reader import LiveBoard
    from keisei.shogi.notation.record import Ending
    from keisei.shogi.render.layout import Labels
    from keisei.shogi.types import Diagram, Move

_DESCRIPTION: Final = re.compile("<title>.*?</title><desc>.*?</desc>", re.DOTALL)
"""What `board_svg` tells screen readers, in English."""

REFRESH_INTERVAL: Final = 0.5
"""Seconds between two checks for new data to show."""

PLAY_ADDRESS: Final = "/play"
"""The page with the board of ``keisei play``."""

GAMES_ADDRESS: Final = "/games"
"""The page that compares the games of two runs."""

STATES: Final = {
    "running": mark("training"),
    "finished": mark("finished"),
    "interrupted": mark("stopped"),
    "failed": mark("failed"),
    "broken": mark("no data"),
    "removed": mark("removed"),
}
"""The labels of the states of a run."""

_PHASES: Final = {
    "starting": mark("starting"),
    "playing": mark("playing"),
    "learning": mark("learning"),
    "saving": mark("saving"),
    "paused": mark("paused"),
    "waiting": mark("waiting for an evaluation"),
    "evaluating": mark("evaluating"),
}


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
    links = {tr("Runs"): "/", tr("Games"): GAMES_ADDRESS, tr("Ladder"): "/ladder"}
    with frame(title, links=links), ui.element("div").classes("d-stack"):
        ui.add_head_html(f"<script>{_script()}\n{_words()}</script>")
        yield


def _words() -> str:
    """Return the script that tells the charts their words."""
    words = {axis: tr(label) for axis, label in X_AXES.items()}
    words |= {"games": tr("games"), "play": tr("click to play")}
    # Translations are data: no text of theirs can end the script.
    text = json.dumps(words, ensure_ascii=False).replace("<", "\\u003c")
    return f"Object.assign(window.keisei.words, {text});"


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


def heading(text: str, level: int = 2) -> ui.label:
    """Add a heading; `level` is that of HTML."""
    label = ui.label(text).classes("d-card-title")
    label.tag = f"h{level}"
    return label


@contextmanager
def card(title: str = "", hint: str = "", *, classes: str = "") -> Iterator[ui.element]:
    """Frame a box with a heading; its content is made in the ``with`` block."""
    with ui.element("section").classes(f"k-card {classes}") as box:
        if title:
            heading(title)
        if hint:
            ui.label(hint).classes("d-hint")
        yield box


class Chart:
    """A chart that is only redrawn when its data have changed, with its tools above it."""

    def __init__(
        self, title: str, hint: str = "", *, tall: bool = False, empty: str | None = None
    ) -> None:
        """Add a chart.

        Args:
            title: its heading, and the name of files with it.
            hint: a sentence below the heading.
            tall: whether it is the main chart of its card.
            empty: the text while there is nothing to show; None: that there are no data yet.
        """
        self._title = title
        with ui.element("div").classes("d-chart-head"):
            with ui.element("div"):
                self._heading = heading(title)
                if hint:
                    ui.label(hint).classes("d-hint")
            self._tools = ui.element("div").classes("d-tools")
        self.element = ui.echart({"series": []}, renderer="svg")
        self.element.classes("d-chart d-tall" if tall else "d-chart")
        self.element.props["role"] = "img"
        self.element.props["aria-label"] = title
        with self._tools:
            self._add_tools()
        self._empty = ui.label(tr("No data yet.") if empty is None else empty).classes("d-none")
        self._empty.set_visibility(False)
        self._shown: Options | None = None

    def _add_tools(self) -> None:
        number = self.element.id
        for icon, label, call in (
            ("zoom_in", tr("Zoom in"), f"zoom({number}, 0.5)"),
            ("zoom_out", tr("Zoom out"), f"zoom({number}, 2)"),
            ("restart_alt", tr("Reset zoom"), f"resetZoom({number})"),
        ):
            _tool(icon, f"{label}: {self._title}", label).on(
                "click", js_handler=f"() => window.keisei.{call}"
            )
        label = tr("Download")
        with _tool("download", f"{label}: {self._title}", label), ui.menu():
            ui.menu_item("CSV", self._save_csv).props("role=menuitem")
            for kind in ("png", "svg"):
                title = json.dumps(self._title)
                item = ui.menu_item(kind.upper()).props("role=menuitem")
                item.on(
                    "click", js_handler=f"() => window.keisei.save({number}, '{kind}', {title})"
                )

    def _save_csv(self) -> None:
        if self._shown is not None:
            ui.download.content(csv_text(self._shown), csv_name(self._title))

    def show(self, options: Options) -> None:
        """Draw the chart, or the text for an empty one."""
        if options == self._shown:
            return
        self._shown = options
        has_points = any(series["data"] for series in options["series"])
        for element in (self.element, self._tools):
            element.set_visibility(has_points)
        self._empty.set_visibility(not has_points)
        self.element.options.clear()
        self.element.options.update(_sent(options))
        self.element.update()


def _sent(options: Options) -> Options:
    """Return the part of a chart's options that browsers need."""
    series = [
        {key: value for key, value in one.items() if key != EXACT} for one in options["series"]
    ]
    return {key: value for key, value in options.items() if key != X_NAME} | {"series": series}


def _tool(icon: str, label: str, tooltip: str) -> ui.button:
    button = ui.button(icon=icon).props("flat round dense size=sm").classes("d-tool")
    button.props["aria-label"] = label
    with button:
        ui.tooltip(tooltip)
    return button


class ViewControls:
    """The controls of all charts of a page: axis, smoothing, logarithmic scale."""

    MAX_SMOOTHING: Final = 0.25

    def __init__(self, view: ChartView, on_change: Callable[[ChartView], None]) -> None:
        self.view, self._on_change = view, on_change
        with ui.element("div").classes("d-row d-controls"):
            axes = {axis: tr(label) for axis, label in X_AXES.items()}
            toggle = ui.toggle(axes, value=view.axis, on_change=self._changed)
            toggle.props(
                'dense no-caps unelevated toggle-color=primary size=12px padding="3px 10px"'
            )
            toggle.props["aria-label"] = tr("x axis")
            self._axis = toggle.mark("axis")
            with ui.element("label").classes("d-row d-control"):
                ui.label(tr("Smoothing"))
                share = round(100 * view.smoothing / self.MAX_SMOOTHING)
                self._smoothing = ui.slider(min=0, max=100, value=share).classes("d-slider")
                self._smoothing.props["aria-label"] = tr("Smoothing")
                # Not at each pixel of the way: all charts of the page are redrawn.
                self._smoothing.on(
                    "update:model-value", self._changed, throttle=0.3, leading_events=False
                ).mark("smoothing")
            self._log = ui.checkbox(tr("Log scale"), value=view.is_log, on_change=self._changed)
            self._log.props("dense").mark("log")

    def _changed(self) -> None:
        share = self.MAX_SMOOTHING * number_within(self._smoothing.value, 100) / 100
        axis = self._axis.value if self._axis.value in X_AXES else self.view.axis
        self.view = ChartView(axis, share, bool(self._log.value))
        self._on_change(self.view)


def view_of(axis: str, smoothing: str, log: str) -> ChartView:
    """Return the view that is part of an address; what is not valid is replaced by defaults."""
    share = ChartView().smoothing
    if smoothing.isdecimal() and len(smoothing) <= 3:
        share = ViewControls.MAX_SMOOTHING * min(100, int(smoothing)) / 100
    return ChartView(axis if axis in X_AXES else ChartView().axis, share, log == "1")


def view_query(view: ChartView) -> dict[str, str]:
    """Return the part of an address that keeps a view: the opposite of `view_of`."""
    share = round(100 * view.smoothing / ViewControls.MAX_SMOOTHING)
    query = {"x": view.axis, "smooth": str(share), "log": "1" if view.is_log else ""}
    default = {
        "smooth": str(round(100 * ChartView().smoothing / ViewControls.MAX_SMOOTHING)),
        "log": "",
    }
    return {key: value for key, value in query.items() if value != default.get(key)}


def activity(overview: "RunOverview") -> str:
    """Return what a running run is doing, in the language of the page."""
    heartbeat = overview.heartbeat
    if heartbeat is None:
        return ""
    text = _phase(heartbeat)
    return tr("; ").join([text, tr("ends after this update")]) if heartbeat.is_stopping else text


def _phase(heartbeat: "RunHeartbeat") -> str:
    progress = heartbeat.progress
    name = tr(_PHASES[progress.phase])
    if progress.phase == "evaluating" and progress.total:
        games = trn("{number} game", "{number} games", progress.total)
        return tr("{phase}, {done} of up to {games}", phase=name, done=progress.done, games=games)
    return f"{name} {progress.fraction:.0%}" if progress.total else name


def tile(label: str) -> "tuple[ui.label, ui.label]":
    """Add a number with its name; return the labels of the number and of the text below it."""
    with ui.element("div").classes("d-tile"):
        ui.label(label).classes("d-label").tooltip(label)
        return ui.label("-").classes("d-value"), ui.label("").classes("d-more")


def board_picture(
    diagram: "Diagram", last_move: "Move | None", language: str, check_square: int | None = None
) -> str:
    """Return a position as SVG for readers of a language."""
    from keisei.shogi.render.svg import board_svg

    labels: Labels = "japanese" if language == "ja" else "western"
    picture = board_svg(diagram, last_move=last_move, labels=labels, check_square=check_square)
    if language == ENGLISH:
        return picture
    side = translated(language, diagram.turn.name.title())
    title = translated(language, mark("Shogi position, {side} to move"), side=side)
    return _DESCRIPTION.sub(f"<title>{title}</title>", picture, count=1)


def moves_text(start: "Diagram", moves: "Iterable[Move]") -> str:
    """Return moves in the notation that readers of the page's language know."""
    from keisei.play.move_text import move_texts

    return " ".join(move_texts(start, moves, "kanji" if page_language() == "ja" else "letters"))


def ending_text(ending: "Ending") -> str:
    """Return how a game ended, in a few words."""
    from keisei.play.session import REASONS

    return tr(REASONS[ending])


def live_picture(board: "LiveBoard", language: str) -> str | None:
    """Return a game in progress as SVG; None if its data are invalid."""
    import_shogi()
    from keisei.errors import KeiseiError
    from keisei.shogi.notation.sfen import parse_sfen
    from keisei.shogi.types import Move

    try:
        last_move = None if board.last_move is None else Move.from_usi(board.last_move)
        return board_picture(parse_sfen(board.sfen), last_move, language)
    except (KeiseiError, ValueError, TypeError, AttributeError):
        return None


def empty_page(text: str, command: str = "") -> None:
    """Explain why there is nothing to show, and which command changes that, if one does."""
    with ui.element("div").classes("d-none"):
        ui.label(text)
        if not command:
            return
        ui.label(command).classes("d-code").style("display: inline-block; margin-top: 8px")


def set_name(element: ui.element, name: str) -> ui.element:
    """Give an element a name for screen readers, and return it; `name` may contain anything."""
    element.props["aria-label"] = name
    return element


def plain_table(columns: list[dict[str, Any]], row_key: str, name: str) -> ui.table:
    """Add a table in the style of the dashboard; `name` is for screen readers."""
    # What scrolls can be reached by keys.
    with ui.element("div").classes("d-scroll").props('tabindex="0" role="region"') as scroll:
        table = ui.table(columns=columns, rows=[], row_key=row_key).classes("d-table")
    table.props("flat dense")
    set_name(scroll, name)
    return table


def colors_of(names: list[str], palette: tuple[str, ...]) -> Mapping[str, str]:
    """Assign a colour of the palette to each name, in order."""
    return {name: palette[index % len(palette)] for index, name in enumerate(names)}
