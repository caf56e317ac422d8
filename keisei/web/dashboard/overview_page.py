"""The first page: a table of all runs, and a chart that compares some of them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from nicegui import events, ui

from keisei import metric_names as names
from keisei.formats import (
    NOTHING,
    duration,
    short_count,
)
from keisei.runs.artifacts import RunRatings, read_ratings
from keisei.runs.listing import RunOverview
from keisei.runs.run_reader import RunReader
from keisei.runs.run_record import Evaluation
from keisei.runs.watch import FIRST_RUNS, Watch
from keisei.web.dashboard import charts
from keisei.web.dashboard.components import (
    REFRESH_INTERVAL,
    STATES,
    Chart,
    Dashboard,
    axis_choice,
    card,
    colors_of,
    empty_page,
    page,
    run_address,
)

MAX_COMPARED: Final = 16
"""Runs in one chart; more lines cannot be told apart."""

_RATING: Final = "rating"
_SCORE: Final = "score/"
_ELO: Final = "elo"
_METRIC: Final = "metric/"

LABELS: Final = {
    names.SPS: "plies per second",
    names.POLICY_LOSS: "policy loss",
    names.VALUE_LOSS: "value loss",
    names.ENTROPY: "entropy",
    names.APPROX_KL: "KL divergence",
    names.CLIP_FRACTION: "clip fraction",
    names.EXPLAINED_VARIANCE: "explained variance",
    names.GRAD_NORM: "gradient norm",
    names.LEARNING_RATE: "learning rate",
    names.MEAN_PLIES: "game length",
    names.DRAWS: "share of draws",
    names.MEMORY: "memory (MB)",
}
"""The labels of metrics; others keep their names."""

_CELLS: Final = {
    "name": """
        <q-td :props="props">
          <div class="d-name">
            <span class="d-dot" :style="{background: props.row.color || 'transparent'}"></span>
            <div><a :href="props.row.address">{{ props.row.name }}</a>
            <div class="d-sub">{{ props.row.model }}</div></div>
          </div>
        </q-td>""",
    "state": """
        <q-td :props="props">
          <span class="d-state" :class="'d-' + props.row.kind" :title="props.row.note">
          {{ props.row.state }}</span>
        </q-td>""",
    "progress": """
        <q-td :props="props">
          <div class="d-bar" role="progressbar" :aria-valuenow="props.row.percent">
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


def overview_page(dashboard: Dashboard, runs: str | None, show: str, x: str) -> None:
    """Build the overview; `runs`, `show` and `x` come from its address."""
    with page("Runs"):
        if not dashboard.watch.runs:
            _wait_for_runs(dashboard.watch)
            return
        _OverviewPage(dashboard.watch, runs, show, x)


def _wait_for_runs(watch: Watch) -> None:
    with card():
        empty_page(
            f"There are no runs in {watch.folder.path} yet. "
            "The first one appears here as soon as it starts:",
            "keisei train",
        )

    def look() -> None:
        if watch.runs:
            ui.navigate.reload()

    ui.timer(REFRESH_INTERVAL, look)


class _OverviewPage:
    """The overview as one visitor sees it."""

    def __init__(self, watch: Watch, runs: str | None, show: str, x: str) -> None:
        self._watch = watch
        self._axis = x if x in charts.X_AXES else "timestep"
        self._show = show
        self._seen: object = None
        self._table_rows: list[dict[str, Any]] = []
        self._trends: dict[str, tuple[int, str]] = {}
        summaries = self._watch.overviews()
        newest = [summary.name for summary in summaries if summary.state != "broken"]
        if runs is None:
            self._chosen = newest[:FIRST_RUNS]
        else:
            self._chosen = [name for name in runs.split("/") if name in watch.runs]
        watch.prioritize(self._chosen)
        self._options = self._choices(summaries)
        if self._show not in self._options:
            self._show = next(iter(self._options))
        self._build()
        self._refresh()
        ui.timer(REFRESH_INTERVAL, self._refresh)

    # ---- the page ----

    def _build(self) -> None:
        with card(classes="d-compare"):
            with ui.element("div").classes("d-row d-between"):
                self._select = ui.select(
                    self._options, value=self._show, on_change=self._choose_show, with_input=True
                )
                self._select.props('outlined dense options-dense behavior=menu label="Compare"')
                self._select.style("min-width: min(100%, 270px)").mark("show")
                axis_choice(self._axis, self._choose_axis)
            self._chart = Chart(tall=True, empty="The selected runs have no data for this yet.")
            self._note = ui.label("").classes("d-hint")
        with card():
            with ui.element("div").classes("d-row d-between"):
                self._count = ui.label("").classes("d-card-title")
                search = ui.input(placeholder="Search").props(
                    'dense outlined clearable aria-label="Search runs"'
                )
                search.style("max-width: 190px")
            self._table = ui.table(
                columns=[],
                rows=[],
                row_key="name",
                selection="multiple",
                pagination={"rowsPerPage": 50, "sortBy": "started", "descending": True},
                on_select=self._choose_runs,
            )
            self._table.classes("d-table").props("flat binary-state-sort")
            self._table.bind_filter_from(search, "value", lambda text: text or "")
            for cell, template in _CELLS.items():
                self._table.add_slot(f"body-cell-{cell}", template)
            self._links = ui.label("").classes("d-hint")

    def _refresh(self) -> None:
        """Show new data; costs next to nothing if there are none."""
        # The time counts, too: a run that was killed writes nothing, but its state changes.
        watch = self._watch
        seen = (watch.version, int(watch.clock()) // 5, tuple(self._chosen), self._show, self._axis)
        if seen == self._seen:
            return
        self._seen = seen
        summaries = self._watch.overviews()
        options = self._choices(summaries)
        if options != self._options:
            self._options = options
            self._select.set_options(options)
        self._chart.show(self._plot())
        self._fill_table(summaries)
        links = watch.folder.links()
        self._links.text = f"Symbolic links are not followed: {', '.join(links)}" if links else ""

    # ---- choosing ----

    def _choose_show(self, event: events.ValueChangeEventArguments[Any]) -> None:
        if event.value in self._options:
            self._show = event.value
            self._remember()

    def _choose_axis(self, axis: str) -> None:
        self._axis = axis
        self._remember()

    def _choose_runs(self, event: events.TableSelectionEventArguments) -> None:
        chosen = {row["name"] for row in event.selection}
        kept = [name for name in self._chosen if name in chosen]
        self._chosen = kept + sorted(chosen - set(kept))
        self._watch.prioritize(self._chosen)
        self._remember()

    def _remember(self) -> None:
        """Keep the choice in the address, which can be reloaded or shared."""
        query = {"runs": "/".join(self._chosen), "show": self._show, "x": self._axis}
        ui.navigate.history.replace(f"/?{urlencode(query, quote_via=quote)}")
        self._refresh()

    def _choices(self, summaries: Sequence[RunOverview]) -> dict[str, str]:
        """Return what can be compared, key to label; the strongest opponent first."""
        choices = {_RATING: "Elo"}
        choices |= {
            f"{_SCORE}{opponent}": f"Score against {opponent}"
            for opponent in reversed(_opponents(summaries))
        }
        choices[_ELO] = "Elo of checkpoints (keisei evaluate)"
        known = {name for run in self._watch.runs.values() for name in run.metric_names}
        listed = [name for name in LABELS if name in known]
        listed += sorted(known - set(listed))
        return choices | {
            f"{_METRIC}{name}": LABELS.get(name, name).capitalize() if name in LABELS else name
            for name in listed
        }

    # ---- showing ----

    @property
    def _shown(self) -> Mapping[str, str]:
        """The runs in the chart with their colours."""
        runs = self._watch.runs
        listed = [name for name in self._chosen if name in runs][:MAX_COMPARED]
        return colors_of(listed, charts.PALETTE)

    def _plot(self) -> charts.Options:
        runs, shown = self._watch.runs, self._shown
        hidden = len(self._chosen) - len(shown)
        reading = [name for name in shown if not runs[name].is_sampled]
        self._note.text = (
            "Bars are 95 % intervals: where they overlap, a difference may be due to chance."
            if self._show.startswith(_SCORE) or self._show in (_ELO, _RATING)
            else ""
        )
        if hidden > 0:
            self._note.text += f" {hidden} more selected runs are not shown."
        if reading:
            self._note.text += f" Still reading {', '.join(reading)}."
        if self._show == _RATING:
            return charts.rating_chart(
                [(name, color, runs[name].evaluations) for name, color in shown.items()],
                self._axis,
            )
        if self._show == _ELO:
            found = [(name, color, self._ratings(name)) for name, color in shown.items()]
            return charts.elo_chart([(n, c, ratings) for n, c, ratings in found if ratings])
        if self._show.startswith(_SCORE):
            opponent = self._show.removeprefix(_SCORE)
            return charts.strength_chart(
                [(name, color, runs[name].evaluations, opponent) for name, color in shown.items()],
                self._axis,
            )
        metric = self._show.removeprefix(_METRIC)
        return charts.curve_chart(
            [
                charts.ChartLine(name, color, runs[name].curve(metric, self._axis))
                for name, color in shown.items()
            ],
            self._axis,
        )

    def _trend(self, run: RunReader) -> str:
        """Return the points of a run's trend line, recomputed only if the run has changed."""
        version, trend = self._trends.get(run.name, (-1, ""))
        if version != run.version:
            trend = trend_points(run.evaluations)
            self._trends[run.name] = run.version, trend
        return trend

    def _ratings(self, name: str) -> RunRatings | None:
        return read_ratings(self._watch.folder, name)

    def _fill_table(self, summaries: Sequence[RunOverview]) -> None:
        columns = _columns()
        runs, shown = self._watch.runs, self._shown
        rows = [
            _row(summary, shown.get(summary.name, "")) | {"trend": self._trend(runs[summary.name])}
            for summary in summaries
            if summary.name in runs
        ]
        training = sum(summary.state == "running" for summary in summaries)
        self._count.text = (
            f"{len(rows)} run{'s' * (len(rows) != 1)} in {self._watch.folder.path}"
            + (f", {training} training" if training else "")
        )
        if columns != self._table.columns:
            self._table.columns = columns
        if rows != self._table_rows:
            self._table_rows = rows
            self._table.rows = rows
        chosen = set(self._chosen)
        selected = [row for row in rows if row["name"] in chosen]
        if selected != self._table.selected:
            self._table.selected = selected


def _opponents(summaries: Sequence[RunOverview]) -> list[str]:
    """Return all opponents in the order of evaluation; the last one is usually the strongest."""
    found: dict[str, int] = {}
    for summary in summaries:
        for place, opponent in enumerate(summary.scores):
            found[opponent] = max(place, found.get(opponent, 0))
    return sorted(found, key=lambda opponent: found[opponent])


def _columns() -> list[dict[str, Any]]:
    wide = {"classes": "d-wide-only", "headerClasses": "d-wide-only"}
    columns: list[dict[str, Any]] = [
        {"name": "name", "label": "Run", "field": "name", "align": "left", "sortable": True},
        {"name": "state", "label": "State", "field": "state", "align": "left", "sortable": True},
        {"name": "progress", "label": "Plies", "field": "timestep", "align": "left",
         "sortable": True, **wide},
        {"name": "speed", "label": "Plies/s", "field": "speed", "align": "right",
         "sortable": True, **wide},
    ]  # fmt: skip
    return [
        *columns,
        {"name": "elo", "label": "Elo", "field": "elo", "align": "right", "sortable": True,
         ":sort": "(a, b) => parseFloat(a) - parseFloat(b) || 0"},
        {"name": "trend", "label": "Trend", "field": "trend",
         "align": "left", **wide},
        {"name": "time", "label": "Time", "field": "time", "align": "right", **wide},
        {"name": "started", "label": "Started", "field": "started", "align": "right",
         "sortable": True, ":format": "window.keisei.when", **wide},
    ]  # fmt: skip


def _row(summary: RunOverview, color: str) -> dict[str, Any]:
    speed = summary.metrics.get(names.SPS, math.nan)
    row: dict[str, Any] = {
        "name": summary.name,
        "address": run_address(summary.name),
        "color": color,
        "model": ", ".join(
            [summary.model] * bool(summary.model)
            + ([] if summary.parameters is None else [short_count(summary.parameters)])
        ),
        "state": STATES[summary.state],
        "kind": summary.state,
        "note": summary.note,
        "timestep": summary.timestep,
        "percent": round(100 * summary.fraction_done, 1),
        "plies": f"{short_count(summary.timestep)} of {short_count(summary.total_timesteps)}"
        if summary.total_timesteps
        else NOTHING,
        "speed": round(speed) if math.isfinite(speed) else None,
        "time": duration(summary.seconds) if summary.seconds else NOTHING,
        "started": summary.started or None,
    }
    elo = summary.elo
    row["elo"] = NOTHING if elo is None else f"{elo.elo:.0f} ±{elo.margin:.0f}"
    return row


def trend_points(evaluations: Sequence[Evaluation]) -> str:
    """Return the ratings as the points of an SVG polyline, from the lowest to the highest."""
    points = [(found.update, found.elo.elo) for found in evaluations if found.elo is not None]
    if len(points) > 60:
        points = points[:: len(points) // 60 + 1] + points[-1:]
    if len(points) == 1:
        points *= 2  # a line of length zero: its round ends draw a dot
    last = max(1, points[-1][0]) if points else 1
    lowest = min((elo for _, elo in points), default=0.0)
    span = max((elo for _, elo in points), default=0.0) - lowest or 1.0
    return " ".join(
        f"{100 * update / last:.1f},{30 - 30 * (elo - lowest) / span:.1f}" for update, elo in points
    )
