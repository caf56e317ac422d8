"""Panels of a run's page: live games, workers, checkpoints, sample games, settings."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from nicegui import events, run, ui

from keisei.errors import KeiseiError
from keisei.formats import (
    NOTHING,
    count,
    duration,
    percent,
    short_count,
    small,
)
from keisei.runs.artifacts import OpenedGame, RunCheckpoint, list_games, open_game
from keisei.runs.run_reader import LiveGamesSnapshot, RunReader
from keisei.web.dashboard.components import (
    REFRESH_INTERVAL,
    Dashboard,
    board_picture,
    card,
    live_picture,
    play_address,
)

_MAX_BOARDS: Final = 8
_WORKER_METRIC: Final = re.compile(r"workers/(\d+)/(.+)")
_WORKER_LABELS: Final = {
    "SPS": "plies/s",
    "waiting": "waiting",
    "games": "games",
    "version": "weights of update",
    "rss_mb": "memory (MB)",
}
"""The labels of a worker's metrics; others keep their names."""


class LiveGamesPanel:
    """The games that self-play is playing right now. Hidden if there are none."""

    def __init__(self, dashboard: Dashboard, name: str) -> None:
        self._watch, self._name = dashboard.watch, name
        self._stamp = 0
        self._pictures: list[ui.html] = []
        with card("Live games") as self._card:
            self._hint = ui.label("").classes("d-hint")
            self._grid = ui.element("div").classes("d-boards").mark("boards")
        self._card.set_visibility(False)
        ui.timer(REFRESH_INTERVAL, self._refresh)

    async def _refresh(self) -> None:
        """Draw the boards if they have changed."""
        live = self._watch.live(self._name)
        if live is None or not live.boards:
            self._card.set_visibility(False)
            return
        age = max(0.0, self._watch.clock() - live.time)
        self._hint.text = f"Self-play after update {count(live.update)}, " + (
            "now."
            if age < 3.0
            else f"{duration(age)} ago; the games pause while the network learns."
        )
        if live.stamp == self._stamp:
            return
        self._stamp = live.stamp
        # In a thread: the first time, Numba has to be imported.
        drawn = await run.io_bound(_draw, live)
        if drawn is None:  # the server is shutting down
            return
        while len(self._pictures) < len(drawn):
            with self._grid:
                self._pictures.append(ui.html(sanitize=False).classes("d-board"))
        while len(self._pictures) > len(drawn):
            self._pictures.pop().delete()
        for element, svg in zip(self._pictures, drawn, strict=True):
            element.content = svg
        self._card.set_visibility(True)


def _draw(live: LiveGamesSnapshot) -> list[str]:
    return [picture for game in live.boards[:_MAX_BOARDS] if (picture := live_picture(game))]


class WorkersPanel:
    """A table with a row for each self-play worker. Hidden if there are none."""

    def __init__(self) -> None:
        with card("Workers", "The self-play processes at the latest update.") as self._card:
            self._table = ui.table(columns=[], rows=[], row_key="worker").classes("d-table")
            self._table.props("flat dense")
        self._card.set_visibility(False)

    def show(self, metrics: Mapping[str, float]) -> None:
        """Fill the table from an update's metrics ``workers/<number>/<metric>``."""
        columns, rows = worker_table(metrics)
        self._card.set_visibility(bool(rows))
        if columns != self._table.columns:
            self._table.columns = columns
        if rows != self._table.rows:
            self._table.rows = rows


def worker_table(
    metrics: Mapping[str, float],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (columns, rows) of a table with all metrics of each worker."""
    found: dict[int, dict[str, float]] = {}
    for name, value in metrics.items():
        if (match := _WORKER_METRIC.fullmatch(name)) is not None:
            found.setdefault(int(match[1]), {})[match[2]] = value
    shown = list(dict.fromkeys(metric for worker in found.values() for metric in worker))
    columns = [
        {"name": f"f{place}", "label": _WORKER_LABELS.get(metric, metric), "field": f"f{place}",
         "align": "right"}
        for place, metric in enumerate(shown)
    ]  # fmt: skip
    columns = [{"name": "worker", "label": "Worker", "field": "worker", "align": "left"}, *columns]
    rows = [
        {"worker": number}
        | {
            f"f{place}": _metric_text(metric, worker[metric]) if metric in worker else ""
            for place, metric in enumerate(shown)
        }
        for number, worker in sorted(found.items())
    ]
    return columns, rows


def _metric_text(metric: str, value: float) -> str:
    if metric == "waiting" and 0.0 <= value <= 1.0:
        return percent(value)
    return count(value) if abs(value) >= 100 or value == int(value) else small(value)


class CheckpointsPanel:
    """A table of the checkpoints, each with a button to play against it."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._listed: dict[str, RunCheckpoint] = {}
        with card("Checkpoints", "The saved networks. Play against any of them."):
            self._table = ui.table(
                columns=[
                    {"name": "name", "label": "Checkpoint", "field": "name", "align": "left"},
                    {"name": "plies", "label": "Plies", "field": "plies", "align": "right"},
                    {"name": "update", "label": "Update", "field": "update", "align": "right",
                     "classes": "d-wide-only", "headerClasses": "d-wide-only"},
                    {"name": "time", "label": "Time", "field": "time", "align": "right",
                     "classes": "d-wide-only", "headerClasses": "d-wide-only"},
                    {"name": "scores", "label": "Scores", "field": "scores", "align": "left"},
                    {"name": "play", "label": "", "field": "name", "align": "right"},
                ],
                rows=[],
                row_key="name",
                pagination={"rowsPerPage": 10},
            )  # fmt: skip
            self._table.classes("d-table").props("flat dense")
            self._table.add_slot("body-cell-play", _PLAY_CELL)
            self._table.add_slot(
                "no-data", "<span>None yet; checkpoint.interval sets when they are saved.</span>"
            )
            self._table.on("play", lambda event: self.play(str(event.args)))

    def show(self, listed: list[RunCheckpoint]) -> None:
        """List checkpoints, newest first."""
        self._listed = {found.name: found for found in listed}
        rows = [
            {
                "name": found.name,
                "plies": short_count(found.timestep),
                "update": NOTHING if found.update is None else found.update,
                "time": NOTHING if found.seconds is None else duration(found.seconds),
                "scores": ", ".join(
                    f"{opponent} {percent(result.score)}"
                    for opponent, result in found.scores.items()
                ),
            }
            for found in listed
        ]
        if rows != self._table.rows:
            self._table.rows = rows

    def play(self, name: str) -> None:
        """Open the board with a game against a checkpoint."""
        found = self._listed.get(name)
        if found is None:
            return
        is_newest = found is next(iter(self._listed.values()))
        ui.navigate.to(play_address(self._run, found, is_newest=is_newest))


_PLAY_CELL: Final = """
<q-td :props="props"><q-btn dense flat no-caps color="primary" icon="sports_esports" label="Play"
 @click="() => $parent.$emit('play', props.row.name)"/></q-td>"""


class SampleGamesPanel:
    """The recorded games of the evaluations, to step through. Hidden if there are none."""

    def __init__(self, dashboard: Dashboard, name: str) -> None:
        self._folder, self._name = dashboard.watch.folder, name
        self._game: OpenedGame | None = None
        games = list_games(self._folder, name)
        if not games:
            return
        labels = {
            game.file: f"update {game.update}: {game.players.replace('-vs-', ' - ')}"
            for game in games
        }
        with card("Sample games", "From the evaluations, newest first."):
            select = ui.select(
                labels, label="Game", on_change=self._open, with_input=True, clearable=False
            )
            select.props("outlined dense options-dense behavior=menu").mark("game")
            select.style("max-width: 420px")
            with ui.element("div").classes("d-viewer") as self._viewer:
                self._picture = ui.html(sanitize=False).classes("d-board")
                self._caption = ui.label("").classes("d-hint").style("text-align: center")
                with ui.element("div").classes("d-row").style("flex-wrap: nowrap"):
                    self._step("first_page", "First position", lambda: 0)
                    self._step("chevron_left", "Previous move", lambda: self._ply - 1)
                    self._slider = ui.slider(min=0, max=1, value=0, on_change=self._draw)
                    self._slider.props('aria-label="Ply"')
                    self._step("chevron_right", "Next move", lambda: self._ply + 1)
                    self._step("last_page", "Last position", lambda: self._last)
            self._viewer.set_visibility(False)

    @property
    def _ply(self) -> int:
        return int(self._slider.value)

    @property
    def _last(self) -> int:
        return len(self._game.frames) - 1 if self._game is not None else 0

    def _step(self, icon: str, label: str, ply: Callable[[], int]) -> None:
        def go() -> None:
            self._slider.value = min(max(0, ply()), self._last)

        ui.button(icon=icon, on_click=go).props(f'flat round dense aria-label="{label}"')

    async def _open(self, event: events.ValueChangeEventArguments[Any]) -> None:
        try:
            game = await run.io_bound(open_game, self._folder, self._name, str(event.value))
        except KeiseiError as error:
            ui.notify(str(error), type="negative")
            return
        if game is None:  # the server is shutting down
            return
        self._game = game
        self._viewer.set_visibility(True)
        self._slider.props(f"max={self._last}")
        if self._ply == self._last:
            self._draw()
        self._slider.value = self._last

    def _draw(self) -> None:
        if self._game is None:
            return
        frame = self._game.frames[min(self._ply, self._last)]
        self._picture.content = board_picture(frame.diagram, frame.last_move, frame.check_square)
        move = f", {frame.last_move.usi}" if frame.last_move is not None else ""
        ending = f": {self._game.ending}" if self._ply == self._last and self._game.ending else ""
        self._caption.text = (
            f"{self._game.black} (Black) - {self._game.white} (White), "
            f"move {self._ply} of {self._last}{move}{ending}"
        )


def show_settings(run_data: RunReader) -> None:
    """Add the settings and facts of a run, folded."""
    with (
        ui.element("section").classes("k-card"),
        ui.expansion("Settings and facts").classes("full-width").props("dense"),
    ):
        text = ui.label("").classes("d-code d-pre").mark("settings")
    both = {"facts": dict(run_data.facts), "settings": dict(run_data.config)}
    text.text = json.dumps(both, indent=2, ensure_ascii=False, default=str)
