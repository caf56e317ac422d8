"""Panels of a run's page: live games, workers, checkpoints, sample games, settings."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from nicegui import run, ui

from keisei.errors import KeiseiError
from keisei.formats import (
    NOTHING,
    count,
    duration,
    percent,
    short_count,
    small,
)
from keisei.runs.artifacts import RunCheckpoint, list_games
from keisei.runs.notes import RunNotes
from keisei.runs.run_reader import LiveGamesSnapshot, RunReader
from keisei.web.dashboard.components import (
    GAMES_ADDRESS,
    REFRESH_INTERVAL,
    Dashboard,
    card,
    live_picture,
    plain_table,
    play_address,
    set_name,
)
from keisei.web.dashboard.game_viewer import GameViewer
from keisei.web.dashboard.run_messages import message_text
from keisei.web.languages import mark, page_language, tr
from keisei.web.theme import toast

_FRESH_SECONDS: Final = 3.0
"""Age of the boards up to which they are those of this moment."""

_MAX_BOARDS: Final = 8
_ROUNDED_FROM: Final = 100
"""From this value on, metrics of workers have no decimals."""

_WORKER_METRIC: Final = re.compile(r"workers/(\d+)/(.+)")
_WORKER_LABELS: Final = {
    "SPS": mark("plies/s"),
    "waiting": mark("waiting"),
    "games": mark("games played"),
    "version": mark("weights of update"),
    "rss_mb": mark("memory (MB)"),
}
"""The labels of a worker's metrics; others keep their names."""


class LiveGamesPanel:
    """The games that self-play is playing right now. Hidden if there are none."""

    def __init__(self, dashboard: Dashboard, name: str) -> None:
        self._watch, self._name = dashboard.watch, name
        self._stamp = 0
        self._pictures: list[ui.html] = []
        with card(tr("Live games")) as self._card:
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
        update = count(live.update)
        self._hint.text = (
            tr("Self-play after update {update}, now.", update=update)
            if age < _FRESH_SECONDS
            else tr(
                "Self-play after update {update}, {time} ago; the games pause while the network "
                "learns.",
                update=update,
                time=duration(age),
            )
        )
        if live.stamp == self._stamp:
            return
        self._stamp = live.stamp
        # In a thread: the first time, Numba has to be imported.
        drawn = await run.io_bound(_draw, live, page_language())
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


def _draw(live: LiveGamesSnapshot, language: str) -> list[str]:
    pictures = (live_picture(game, language) for game in live.boards[:_MAX_BOARDS])
    return [picture for picture in pictures if picture]


class WorkersPanel:
    """A table with a row for each self-play worker. Hidden if there are none."""

    def __init__(self) -> None:
        hint = tr("The self-play processes at the latest update.")
        with card(tr("Workers"), hint) as self._card:
            self._table = plain_table([], "worker", tr("Workers")).classes("d-figures")
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
        {"name": f"f{place}", "label": _worker_label(metric), "field": f"f{place}",
         "align": "right"}
        for place, metric in enumerate(shown)
    ]  # fmt: skip
    columns = [
        {"name": "worker", "label": tr("Worker"), "field": "worker", "align": "left"},
        *columns,
    ]
    rows = [
        {"worker": number}
        | {
            f"f{place}": _metric_text(metric, worker[metric]) if metric in worker else ""
            for place, metric in enumerate(shown)
        }
        for number, worker in sorted(found.items())
    ]
    return columns, rows


def _worker_label(metric: str) -> str:
    return tr(_WORKER_LABELS[metric]) if metric in _WORKER_LABELS else metric


def _metric_text(metric: str, value: float) -> str:
    if metric == "waiting" and 0.0 <= value <= 1.0:
        return percent(value)
    return count(value) if abs(value) >= _ROUNDED_FROM or value == int(value) else small(value)


class CheckpointsPanel:
    """A table of the checkpoints, each with a button to play against it."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._listed: dict[str, RunCheckpoint] = {}
        with card(tr("Checkpoints"), tr("The saved networks. Play against any of them.")):
            self._table = ui.table(
                columns=[
                    {"name": "name", "label": tr("Checkpoint"), "field": "name", "align": "left"},
                    {"name": "plies", "label": tr("Plies"), "field": "plies", "align": "right"},
                    {"name": "update", "label": tr("Update"), "field": "update", "align": "right",
                     "classes": "d-wide-only", "headerClasses": "d-wide-only"},
                    {"name": "time", "label": tr("Time"), "field": "time", "align": "right",
                     "classes": "d-wide-only", "headerClasses": "d-wide-only"},
                    {"name": "scores", "label": tr("Scores"), "field": "scores", "align": "left"},
                    {"name": "play", "label": tr("Play"), "field": "name", "align": "right"},
                ],
                rows=[],
                row_key="name",
                pagination={"rowsPerPage": 10},
            )  # fmt: skip
            self._table.classes("d-table").props("flat dense")
            set_name(self._table, tr("Checkpoints"))
            self._table.add_slot("body-cell-play", _PLAY_CELL)
            missing = tr("None yet; checkpoint.interval sets when they are saved.")
            self._table.add_slot("no-data", f"<span>{missing}</span>")
            self._table.on("play", lambda event: self.play(str(event.args)))

    def show(self, listed: list[RunCheckpoint]) -> None:
        """List checkpoints, newest first."""
        self._listed = {found.name: found for found in listed}
        rows = [
            {
                "name": found.name,
                "play": tr("Play"),
                "label": tr("Play {name}", name=found.name),
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
<q-td :props="props"><q-btn dense flat no-caps color="primary" icon="sports_esports"
 :label="props.row.play" :aria-label="props.row.label"
 @click="() => $parent.$emit('play', props.row.name)"/></q-td>"""


class SampleGamesPanel:
    """The recorded games of the evaluations, to step through. Hidden if there are none."""

    def __init__(self, dashboard: Dashboard, name: str) -> None:
        games = list_games(dashboard.watch.folder, name)
        if not games:
            return
        with card(tr("Sample games"), tr("From the evaluations, newest first.")):
            GameViewer(dashboard.watch.folder, name, games)
            ui.link(
                tr("Compare with the games of another run"),
                f"{GAMES_ADDRESS}?runs={quote(name, safe='')}",
            ).classes("k-soft")


class NotesPanel:
    """Notes and tags of a run, which are kept in its directory, and the archive."""

    def __init__(self, run_reader: RunReader, *, is_editable: bool) -> None:
        self._run = run_reader
        notes = run_reader.notes
        with card(tr("Notes and tags"), tr("Kept in notes.json in the directory of the run.")):
            self._text = ui.textarea(tr("Notes"), value=notes.text)
            self._text.props("outlined dense autogrow").classes("full-width").mark("notes")
            with ui.element("div").classes("d-row").style("margin-top: 8px"):
                self._tags = ui.input(tr("Tags"), value=" ".join(notes.tags))
                self._tags.props("outlined dense").style("min-width: min(100%, 280px)").mark("tags")
                self._archived = ui.checkbox(tr("In the archive"), value=notes.is_archived)
                self._archived.props("dense").mark("archived")
                save = ui.button(tr("Save"), on_click=self._save)
                save.props("unelevated no-caps color=primary")
        if not is_editable:
            save.set_visibility(False)
            for field in (self._text, self._tags):
                field.props("readonly")
            self._archived.disable()

    def _save(self) -> None:
        try:
            notes = RunNotes.of(
                str(self._text.value or ""),
                str(self._tags.value or ""),
                is_archived=bool(self._archived.value),
            )
            self._run.set_notes(notes)
        except KeiseiError as error:
            toast(message_text(str(error)))
            return
        self._tags.value = " ".join(notes.tags)
        toast(tr("Saved."), kind="positive")


def show_settings(run_data: RunReader) -> None:
    """Add the settings and facts of a run, folded."""
    with (
        ui.element("section").classes("k-card"),
        ui.expansion(tr("Settings and facts")).classes("full-width").props("dense"),
    ):
        text = ui.label("").classes("d-code d-pre").mark("settings")
        # What scrolls can be reached by keys.
        set_name(text, tr("Settings and facts")).props('tabindex="0" role="region"')
    both = {"facts": dict(run_data.facts), "settings": dict(run_data.config)}
    text.text = json.dumps(both, indent=2, ensure_ascii=False, default=str)
