"""The first page: a table of all runs, and charts that compare some of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from nicegui import events, ui

from keisei import metric_names as names
from keisei.runs.artifacts import read_ratings
from keisei.runs.comparison import SeedGroup, differing_settings, mean_curve, seed_groups
from keisei.runs.curves import Curve
from keisei.runs.listing import RunOverview
from keisei.runs.run_reader import RunReader
from keisei.runs.watch import FIRST_RUNS, Watch
from keisei.web.dashboard import charts
from keisei.web.dashboard.components import (
    GAMES_ADDRESS,
    REFRESH_INTERVAL,
    Chart,
    Dashboard,
    ViewControls,
    card,
    colors_of,
    empty_page,
    heading,
    page,
    plain_table,
    view_of,
    view_query,
)
from keisei.web.dashboard.runs_table import RunsTable
from keisei.web.languages import mark, tr, trn

MAX_COMPARED: Final = 16
"""Runs in one chart; more lines cannot be told apart."""

MAX_CHARTS: Final = 12
"""Charts side by side."""

_RATING: Final = "rating"
_SCORE: Final = "score/"
_ELO: Final = "elo"
_METRIC: Final = "metric/"

LABELS: Final = {
    names.SPS: mark("Plies per second"),
    names.POLICY_LOSS: mark("Policy loss"),
    names.VALUE_LOSS: mark("Value loss"),
    names.ENTROPY: mark("Entropy"),
    names.APPROX_KL: mark("KL divergence"),
    names.CLIP_FRACTION: mark("Clip fraction"),
    names.EXPLAINED_VARIANCE: mark("Explained variance"),
    names.GRAD_NORM: mark("Gradient norm"),
    names.LEARNING_RATE: mark("Learning rate"),
    names.MEAN_PLIES: mark("Game length"),
    names.DRAWS: mark("Share of draws"),
    names.MEMORY: mark("Memory (MB)"),
    names.CPU_SHARE: mark("CPU in use"),
    names.GPU_SHARE: mark("GPU in use"),
}
"""The labels of metrics; others keep their names."""


def overview_page(
    dashboard: Dashboard,
    runs: str | None,
    shows: Sequence[str],
    view: charts.ChartView,
    *,
    group: bool,
) -> None:
    """Build the overview; what it shows comes from its address."""
    with page(tr("Runs")):
        if not dashboard.watch.runs:
            _wait_for_runs(dashboard.watch)
            return
        _OverviewPage(dashboard.watch, runs, shows, view, group)


def view_from(query: Mapping[str, str]) -> charts.ChartView:
    """Return the view in the query of an address."""
    return view_of(query.get("x", ""), query.get("smooth", ""), query.get("log", ""))


def _wait_for_runs(watch: Watch) -> None:
    with card():
        empty_page(
            tr(
                "There are no runs in {folder} yet. "
                "The first one appears here as soon as it starts:",
                folder=watch.folder.path,
            ),
            "keisei train",
        )

    def look() -> None:
        if watch.runs:
            ui.navigate.reload()

    ui.timer(REFRESH_INTERVAL, look)


class _OverviewPage:
    """The overview as one visitor sees it."""

    def __init__(
        self,
        watch: Watch,
        runs: str | None,
        shows: Sequence[str],
        view: charts.ChartView,
        is_grouped: bool,
    ) -> None:
        self._watch, self._view, self._is_grouped = watch, view, is_grouped
        self._seen: object = None
        summaries = self._watch.overviews()
        if runs is None:
            self._chosen = [
                summary.name
                for summary in summaries
                if summary.state != "broken" and not summary.notes.is_archived
            ][:FIRST_RUNS]
        else:
            self._chosen = [name for name in runs.split("/") if name in watch.runs]
        watch.prioritize(self._chosen)
        self._options = self._choices(summaries)
        self._shows = [show for show in dict.fromkeys(shows) if show in self._options][:MAX_CHARTS]
        self._shows = self._shows or [next(iter(self._options))]
        self._charts: dict[str, Chart] = {}
        self._build()
        self._refresh()
        ui.timer(REFRESH_INTERVAL, self._refresh)

    # ---- the page ----

    def _build(self) -> None:
        with card(classes="d-compare"):
            with ui.element("div").classes("d-row d-between"):
                self._select = ui.select(
                    self._options,
                    value=self._shows,
                    multiple=True,
                    label=tr("Compare"),
                    on_change=self._choose_shows,
                )
                self._select.props("outlined dense options-dense behavior=menu use-chips")
                self._select.style("min-width: min(100%, 270px); max-width: 100%").mark("show")
                with ui.element("div").classes("d-row"):
                    ViewControls(self._view, self._choose_view)
                    group = ui.checkbox(
                        tr("Group seeds"), value=self._is_grouped, on_change=self._choose_group
                    )
                    group.props("dense").mark("group")
                    with group:
                        ui.tooltip(
                            tr("Runs that differ by their seed only: their mean, and a band.")
                        )
            self._grid = ui.element("div")
            self._note = ui.label("").classes("d-hint")
        self._build_charts()
        with card():
            self._table = RunsTable(self._watch, self._choose_runs)
            self._links = ui.label("").classes("d-hint")
        with card() as self._differences_card:
            with ui.element("div").classes("d-row d-between"):
                heading(tr("Settings that differ"))
                self._games_link = ui.link(tr("Compare the games of two runs"), GAMES_ADDRESS)
                self._games_link.classes("k-soft")
            self._same = ui.label(tr("The selected runs have the same settings.")).classes("d-hint")
            self._differences = plain_table([], "setting", tr("Settings that differ"))
            self._differences.props('hide-pagination :rows-per-page-options="[0]"')

    def _build_charts(self) -> None:
        """Make a chart for each of the chosen things to compare."""
        self._grid.clear()
        self._grid.classes(replace="d-grid" if len(self._shows) > 1 else "")
        with self._grid:
            for show in self._shows:
                with ui.element("div"):
                    self._charts[show] = Chart(
                        self._options[show],
                        tall=len(self._shows) == 1,
                        empty=tr("The selected runs have no data for this yet."),
                    )

    def _refresh(self) -> None:
        """Show new data; costs next to nothing if there are none."""
        # The time counts, too: a run that was killed writes nothing, but its state changes.
        watch = self._watch
        choice = (tuple(self._chosen), tuple(self._shows), self._view, self._is_grouped)
        seen = (watch.version, int(watch.clock()) // 5, choice)
        if seen == self._seen:
            return
        self._seen = seen
        summaries = watch.overviews()
        options = self._choices(summaries)
        if options != self._options:
            self._options = options | {show: self._options[show] for show in self._shows}
            self._select.set_options(self._options)
        groups = self._groups()
        for show in self._shows:
            self._charts[show].show(self._plot(show, groups))
        self._show_note(has_groups=any(len(group.runs) > 1 for group in groups))
        colors = colors_of([group.name for group in groups], charts.PALETTE)
        self._table.show(
            summaries,
            {name: colors[group.name] for group in groups for name in group.runs},
            self._chosen,
        )
        links = watch.folder.links()
        self._links.text = (
            tr("Symbolic links are not followed: {names}", names=", ".join(links)) if links else ""
        )
        self._show_differences()

    # ---- choosing ----

    def _choose_shows(self, event: events.ValueChangeEventArguments[Any]) -> None:
        wanted = [show for show in event.value or [] if isinstance(show, str)]
        chosen = [show for show in wanted if show in self._options][:MAX_CHARTS]
        if chosen and chosen != self._shows:
            self._shows = chosen
            self._build_charts()
            self._remember()

    def _choose_view(self, view: charts.ChartView) -> None:
        self._view = view
        self._remember()

    def _choose_group(self, event: events.ValueChangeEventArguments[Any]) -> None:
        self._is_grouped = bool(event.value)
        self._remember()

    def _choose_runs(self, chosen: list[str]) -> None:
        self._chosen = chosen
        self._watch.prioritize(self._chosen)
        self._remember()

    def _remember(self) -> None:
        """Keep the choice in the address, which can be reloaded or shared."""
        query: dict[str, Any] = {"runs": "/".join(self._chosen), "show": self._shows}
        query |= {"group": "1"} if self._is_grouped else {}
        query |= view_query(self._view)
        ui.navigate.history.replace(f"/?{urlencode(query, doseq=True, quote_via=quote)}")
        self._refresh()

    def _choices(self, summaries: Sequence[RunOverview]) -> dict[str, str]:
        """Return what can be compared, key to label; the strongest opponent first."""
        choices = {_RATING: "Elo"}
        choices |= {
            f"{_SCORE}{opponent}": tr("Score against {opponent}", opponent=opponent)
            for opponent in reversed(_opponents(summaries))
        }
        choices[_ELO] = tr("Elo of checkpoints (keisei evaluate)")
        known = {name for run in self._watch.runs.values() for name in run.metric_names}
        listed = [name for name in LABELS if name in known]
        listed += sorted(known - set(listed))
        return choices | {
            f"{_METRIC}{name}": tr(LABELS[name]) if name in LABELS else name for name in listed
        }

    # ---- showing ----

    @property
    def _shown(self) -> dict[str, RunReader]:
        """The runs in the charts."""
        runs = self._watch.runs
        listed = [name for name in self._chosen if name in runs][:MAX_COMPARED]
        return {name: runs[name] for name in listed}

    def _groups(self) -> list[SeedGroup]:
        """Return the lines of the charts: runs, or groups of those with the same settings."""
        shown = self._shown
        if not self._is_grouped:
            return [SeedGroup(name, (name,)) for name in shown]
        return seed_groups({name: run.config for name, run in shown.items()})

    def _show_note(self, *, has_groups: bool) -> None:
        shown = self._shown
        notes = []
        has_bars = any(show.startswith(_SCORE) or show in (_ELO, _RATING) for show in self._shows)
        if has_bars and not has_groups:
            notes.append(
                tr(
                    "Bars and bands are 95 % intervals: where they overlap, a difference may be "
                    "due to chance."
                )
            )
        if has_groups:
            notes.append(tr("Bands go from the lowest to the highest run of a group."))
        if hidden := len(self._chosen) - len(shown):
            notes.append(
                trn(
                    "{number} more selected run is not shown.",
                    "{number} more selected runs are not shown.",
                    hidden,
                )
            )
        if reading := [name for name, run in shown.items() if not run.is_sampled]:
            notes.append(tr("Still reading {names}.", names=", ".join(reading)))
        self._note.text = " ".join(notes)

    def _plot(self, show: str, groups: Sequence[SeedGroup]) -> charts.Options:
        runs, axis = self._watch.runs, self._view.axis
        colors = colors_of([group.name for group in groups], charts.PALETTE)
        alone = [(group.name, colors[group.name], runs[group.runs[0]]) for group in groups]
        has_groups = any(len(group.runs) > 1 for group in groups)
        if show == _ELO:
            single = [(name, color, runs[name]) for name, color in self._run_colors(groups)]
            found = [
                (name, color, read_ratings(self._watch.folder, run.name))
                for name, color, run in single
            ]
            return charts.elo_chart([(n, c, ratings) for n, c, ratings in found if ratings])
        if show == _RATING:
            if not has_groups:
                return charts.rating_chart([(n, c, run.evaluations) for n, c, run in alone], axis)
            lines = self._lines(groups, lambda run: charts.rating_curve(run.evaluations, axis))
            return charts.curve_chart(lines, self._view._replace(smoothing=0.0, is_log=False))
        if show.startswith(_SCORE):
            opponent = show.removeprefix(_SCORE)
            if not has_groups:
                scored = [(n, c, run.evaluations, opponent) for n, c, run in alone]
                return charts.strength_chart(scored, axis)
            lines = self._lines(
                groups, lambda run: charts.score_curve(run.evaluations, axis, opponent)
            )
            return charts.curve_chart(lines, self._view._replace(smoothing=0.0), percent=True)
        metric = show.removeprefix(_METRIC)
        lines = self._lines(groups, lambda run: run.curve(metric, axis))
        return charts.curve_chart(lines, self._view)

    def _run_colors(self, groups: Sequence[SeedGroup]) -> list[tuple[str, str]]:
        colors = colors_of([group.name for group in groups], charts.PALETTE)
        return [(name, colors[group.name]) for group in groups for name in group.runs]

    def _lines(
        self, groups: Sequence[SeedGroup], curve_of: Callable[[RunReader], Curve]
    ) -> list[charts.ChartLine]:
        runs = self._watch.runs
        colors = colors_of([group.name for group in groups], charts.PALETTE)
        lines = []
        for name, members in groups:
            number = len(members)
            label = name
            if number > 1:
                seeds = trn("{number} seed", "{number} seeds", number)
                label = tr("{name} ({details})", name=name, details=seeds)
            curve = mean_curve([curve_of(runs[member]) for member in members])
            lines.append(charts.ChartLine(label, colors[name], curve, has_band=number > 1))
        return lines

    def _show_differences(self) -> None:
        shown = self._shown
        rows = differing_settings({name: run.config for name, run in shown.items()})
        self._differences_card.set_visibility(len(shown) > 1)
        self._same.set_visibility(not rows)
        self._differences.set_visibility(bool(rows))
        first_two = "/".join(quote(name, safe="") for name in list(shown)[:2])
        self._games_link.props["href"] = f"{GAMES_ADDRESS}?runs={first_two}"
        # Fields are numbered: names of runs come from files.
        columns = [
            {"name": "setting", "label": tr("Setting"), "field": "setting", "align": "left"},
            *(
                {"name": f"r{place}", "label": name, "field": f"r{place}", "align": "left"}
                for place, name in enumerate(shown)
            ),
        ]
        if columns != self._differences.columns:
            self._differences.columns = columns
        table = [
            {"setting": path} | {f"r{place}": value for place, value in enumerate(values)}
            for path, values in rows
        ]
        if table != self._differences.rows:
            self._differences.rows = table


def _opponents(summaries: Sequence[RunOverview]) -> list[str]:
    """Return all opponents in the order of evaluation; the last one is usually the strongest."""
    found: dict[str, int] = {}
    for summary in summaries:
        for place, opponent in enumerate(summary.scores):
            found[opponent] = max(place, found.get(opponent, 0))
    return sorted(found, key=lambda opponent: found[opponent])
