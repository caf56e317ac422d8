"""The table of all runs: choose some, search by name, tag or note, look into the archive."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nicegui import events, ui

from keisei import metric_names as names
from keisei.formats import NOTHING, duration, short_count
from keisei.runs.listing import RunOverview
from keisei.runs.run_reader import RunReader
from keisei.runs.run_record import Evaluation
from keisei.runs.watch import Watch
from keisei.web.dashboard.components import STATES, activity, heading, run_address, set_name
from keisei.web.dashboard.run_messages import message_text
from keisei.web.languages import tr, trn

_CELLS: Final = {
    "name": """
        <q-td :props="props">
          <div class="d-name">
            <span class="d-dot" :style="{background: props.row.color || 'transparent'}"></span>
            <div><a :href="props.row.address">{{ props.row.name }}</a>
            <div class="d-sub">{{ props.row.model }}</div>
            <div class="d-tags" v-if="props.row.tags.length">
            <span class="d-tag" v-for="tag in props.row.tags" :key="tag">{{ tag }}</span></div>
            </div>
          </div>
        </q-td>""",
    "state": """
        <q-td :props="props">
          <span class="d-state" :class="'d-' + props.row.kind" :title="props.row.note">
          {{ props.row.state }}</span>
          <div class="d-sub">{{ props.row.activity }}</div>
        </q-td>""",
    "progress": """
        <q-td :props="props">
          <div class="d-bar" role="progressbar" :aria-label="props.row.plies"
           aria-valuemin="0" aria-valuemax="100" :aria-valuenow="props.row.percent">
          <div :style="{width: props.row.percent + '%'}"></div></div>
          <div class="d-sub">{{ props.row.plies }}</div>
        </q-td>""",
    "trend": """
        <q-td :props="props">
          <svg class="d-spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
          <line x1="0" y1="15" x2="100" y2="15"/>
          <polyline :points="props.row.trend"/></svg>
        </q-td>""",
}


class RunsTable:
    """The table as one visitor sees it."""

    def __init__(self, watch: Watch, on_choose: Callable[[list[str]], None]) -> None:
        """Add the table.

        Args:
            watch: the runs.
            on_choose: called with the names of the chosen runs when the choice changes.
        """
        self._watch, self._on_choose = watch, on_choose
        self._rows: list[dict[str, Any]] = []
        self._trends: dict[str, tuple[int, str]] = {}
        self._chosen: list[str] = []
        self._shown: tuple[Sequence[RunOverview], Mapping[str, str]] = ((), {})
        with ui.element("div").classes("d-row d-between"):
            self._count = heading("")
            with ui.element("div").classes("d-row"):
                self._archive = ui.checkbox(tr("Show archive"), on_change=self._show_again)
                self._archive.props("dense").mark("archive")
                self._search = ui.input(placeholder=tr("Search"), on_change=self._show_again)
                self._search.props("dense outlined clearable").style("max-width: 190px")
                set_name(self._search, tr("Search runs"))
        self._table = ui.table(
            columns=_columns(),
            rows=[],
            row_key="name",
            selection="multiple",
            pagination={"rowsPerPage": 50, "sortBy": "started", "descending": True},
            on_select=self._select,
        )
        self._table.classes("d-table").props("flat binary-state-sort")
        set_name(self._table, tr("Runs"))
        for cell, template in _CELLS.items():
            self._table.add_slot(f"body-cell-{cell}", template)
        for place, label in (
            ("header", f'aria-label="{tr("Select all")}"'),
            ("body", ':aria-label="props.row.select"'),
        ):
            self._table.add_slot(
                f"{place}-selection", f'<q-checkbox v-model="props.selected" {label}/>'
            )

    def show(
        self, summaries: Sequence[RunOverview], colors: Mapping[str, str], chosen: Sequence[str]
    ) -> None:
        """Show runs.

        Args:
            summaries: all runs, as they are to be listed.
            colors: colours of those in the charts.
            chosen: names of those that are chosen.
        """
        self._shown, self._chosen = (summaries, colors), list(chosen)
        self._show_again()

    def _show_again(self) -> None:
        summaries, colors = self._shown
        runs = self._watch.runs
        text = str(self._search.value or "").casefold()
        listed = [
            summary
            for summary in summaries
            if summary.name in runs
            and (self._archive.value or not summary.notes.is_archived)
            and text in _searched(summary)
        ]
        rows = [
            _row(summary, colors.get(summary.name, "")) | {"trend": self._trend(runs[summary.name])}
            for summary in listed
        ]
        number = trn("{number} run", "{number} runs", len(rows))
        training = sum(summary.state == "running" for summary in summaries)
        parts = [tr("{runs} in {folder}", runs=number, folder=self._watch.folder.path)]
        if training:
            parts.append(tr("{number} training", number=training))
        if hidden := sum(summary.notes.is_archived for summary in summaries):
            parts.append(tr("{number} in the archive", number=hidden))
        self._count.text = tr(", ").join(parts)
        if rows != self._rows:
            self._rows = rows
            self._table.rows = rows
        chosen = set(self._chosen)
        selected = [row for row in rows if row["name"] in chosen]
        if selected != self._table.selected:
            self._table.selected = selected

    def _select(self, event: events.TableSelectionEventArguments) -> None:
        listed = {row["name"] for row in self._rows}
        # A page may send anything; so each row is looked for, not read.
        chosen = {row["name"] for row in self._rows if row in event.selection}
        chosen |= {name for name in self._chosen if name not in listed}  # not seen, not unticked
        kept = [name for name in self._chosen if name in chosen]
        self._on_choose(kept + sorted(chosen - set(kept)))

    def _trend(self, run: RunReader) -> str:
        """Return the points of a run's trend line, recomputed only if the run has changed."""
        version, trend = self._trends.get(run.name, (-1, ""))
        if version != run.version:
            trend = trend_points(run.evaluations)
            self._trends[run.name] = run.version, trend
        return trend


def _searched(summary: RunOverview) -> str:
    """Return the text of a run in which words are searched."""
    notes = summary.notes
    return "\n".join((summary.name, summary.model, notes.text, *notes.tags)).casefold()


def _columns() -> list[dict[str, Any]]:
    wide = {"classes": "d-wide-only", "headerClasses": "d-wide-only"}
    return [
        {"name": "name", "label": tr("Run"), "field": "name", "align": "left", "sortable": True},
        {"name": "state", "label": tr("State"), "field": "state", "align": "left",
         "sortable": True},
        {"name": "progress", "label": tr("Plies"), "field": "timestep", "align": "left",
         "sortable": True, **wide},
        {"name": "speed", "label": tr("Plies/s"), "field": "speed", "align": "right",
         "sortable": True, **wide},
        {"name": "elo", "label": "Elo", "field": "elo", "align": "right", "sortable": True,
         ":sort": "(a, b, one, other) => one.rating - other.rating"},
        {"name": "trend", "label": tr("Trend"), "field": "trend",
         "align": "left", **wide},
        {"name": "time", "label": tr("Time"), "field": "time", "align": "right", **wide},
        {"name": "started", "label": tr("Started"), "field": "started", "align": "right",
         "sortable": True, ":format": "window.keisei.when", **wide},
    ]  # fmt: skip


def _row(summary: RunOverview, color: str) -> dict[str, Any]:
    speed = summary.metrics.get(names.SPS, math.nan)
    elo = summary.elo
    return {
        "name": summary.name,
        "address": run_address(summary.name),
        "select": tr("Compare {name}", name=summary.name),
        "color": color,
        "model": ", ".join(
            [summary.model] * bool(summary.model)
            + ([] if summary.parameters is None else [short_count(summary.parameters)])
        ),
        "tags": list(summary.notes.tags),
        "state": tr(STATES[summary.state]),
        "kind": summary.state,
        "note": message_text(summary.note),
        "activity": activity(summary),
        "timestep": summary.timestep,
        "percent": round(100 * summary.fraction_done, 1),
        "plies": tr(
            "{number} of {total}",
            number=short_count(summary.timestep),
            total=short_count(summary.total_timesteps),
        )
        if summary.total_timesteps
        else NOTHING,
        "speed": round(speed) if math.isfinite(speed) else None,
        "time": duration(summary.seconds) if summary.seconds else NOTHING,
        "started": summary.started or None,
        "elo": NOTHING if elo is None else message_text(elo.short_text),
        "rating": _UNRATED if elo is None else elo.elo,
    }


_UNRATED: Final = -1e9
"""Rating by which runs without one are sorted: below all others."""

_MAX_TREND_POINTS: Final = 60


def trend_points(evaluations: Sequence[Evaluation]) -> str:
    """Return the ratings as the points of an SVG polyline, from the lowest to the highest."""
    points = [(found.update, found.elo.elo) for found in evaluations if found.elo is not None]
    if len(points) > _MAX_TREND_POINTS:
        points = points[:: len(points) // _MAX_TREND_POINTS + 1] + points[-1:]
    if len(points) == 1:
        points *= 2  # a line of length zero: its round ends draw a dot
    last = max(1, points[-1][0]) if points else 1
    lowest = min((elo for _, elo in points), default=0.0)
    span = max((elo for _, elo in points), default=0.0) - lowest or 1.0
    return " ".join(
        f"{100 * update / last:.1f},{30 - 30 * (elo - lowest) / span:.1f}" for update, elo in points
    )
