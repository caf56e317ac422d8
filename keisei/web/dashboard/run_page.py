"""The page of one run, live while it trains."""

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from nicegui import ui

from keisei import metric_names as names
from keisei.errors import KeiseiError
from keisei.formats import (
    NOTHING,
    count,
    duration,
    percent,
    short_count,
    small,
)
from keisei.runs.artifacts import RunCheckpoint, list_run_checkpoints, read_ratings
from keisei.runs.folder import OutsideError
from keisei.runs.listing import RunOverview
from keisei.runs.run_reader import RunReader
from keisei.web.dashboard import charts
from keisei.web.dashboard.components import (
    REFRESH_INTERVAL,
    STATES,
    Chart,
    Dashboard,
    ViewControls,
    activity,
    card,
    colors_of,
    empty_page,
    heading,
    page,
    run_address,
    set_name,
    tile,
    view_query,
)
from keisei.web.dashboard.control_buttons import ControlButtons
from keisei.web.dashboard.run_messages import message_text
from keisei.web.dashboard.run_panels import (
    CheckpointsPanel,
    LiveGamesPanel,
    NotesPanel,
    SampleGamesPanel,
    WorkersPanel,
    show_settings,
)
from keisei.web.languages import mark, tr, trn


class _Plot(NamedTuple):
    """A metric with a chart of its own."""

    metric: str
    title: str
    hint: str
    color: str
    from_zero: bool = False


_LEARNING: Final = (
    _Plot(names.POLICY_LOSS, mark("Policy loss"), mark("Small and noisy around zero."),
          charts.PALETTE[0]),
    _Plot(names.VALUE_LOSS, mark("Value loss"),
          mark("Falls, then follows how predictable games are."), charts.PALETTE[0]),
    _Plot(names.ENTROPY, mark("Entropy"),
          mark("In nats. A sudden drop means that exploration has stopped."),
          charts.PALETTE[2], True),
    _Plot(names.APPROX_KL, mark("KL divergence"), mark("0.005 to 0.03 is healthy."),
          charts.PALETTE[1], True),
    _Plot(names.CLIP_FRACTION, mark("Clip fraction"),
          mark("5 to 25 % is healthy; at 0 nothing is learned."), charts.PALETTE[1], True),
    _Plot(names.EXPLAINED_VARIANCE, mark("Explained variance"),
          mark("How well the value head predicts: towards 1."), charts.PALETTE[3]),
    _Plot(names.GRAD_NORM, mark("Gradient norm"), mark("Before clipping."), charts.PALETTE[4],
          True),
    _Plot(names.LEARNING_RATE, mark("Learning rate"), mark("Follows its schedule."),
          charts.PALETTE[4], True),
    _Plot(names.MEAN_PLIES, mark("Game length"), mark("Mean plies of the games of each update."),
          charts.PALETTE[6], True),
)  # fmt: skip

_MACHINE: Final = (
    _Plot(names.SPS, mark("Speed"), mark("Plies per second of the whole update."),
          charts.PALETTE[2], True),
    _Plot(names.MEMORY, mark("Memory (MB)"), mark("Of the training process."), charts.PALETTE[6],
          True),
)  # fmt: skip

_USAGE: Final = {
    names.CPU_SHARE: mark("CPU"),
    names.MEMORY_SHARE: mark("Memory of the machine"),
    names.GPU_SHARE: "GPU",
}

_OUTCOMES: Final = (mark("Black wins"), mark("draw"), mark("ply limit"), mark("White wins"))
_OUTCOME_COLORS: Final = tuple(f"var(--d-{name})" for name in ("black", "draw", "limit", "white"))
_TILES: Final = {
    "plies": mark("plies played"),
    "updates": mark("updates"),
    "games": mark("games played"),
    "speed": mark("plies/s"),
    "time": mark("time"),
    "memory": mark("memory"),
    "entropy": mark("entropy"),
    "KL": "KL",
}
_TIME: Final = "time/"
_TIME_LABELS: Final = {
    "env": mark("moves"),
    "inference": mark("inference"),
    "learning": mark("learning"),
    "waiting": mark("waiting"),
    "other": mark("other"),
}


def run_page(dashboard: Dashboard, name: str, view: charts.ChartView) -> None:
    """Build the page of a run; `name` and `view` come from its address."""
    watch = dashboard.watch
    try:
        watch.folder.run(name)
        run = watch.find(name)
    except (KeiseiError, OutsideError, OSError):
        run = None
    with page(name if run is not None else tr("No such run")):
        if run is None:
            ui.context.client.status_code = 404
            with card():
                empty_page(
                    tr(
                        "There is no such run in {folder}. It may have been moved or removed. "
                        "Start a new one with",
                        folder=watch.folder.path,
                    ),
                    "keisei train",
                )
            return
        _RunPage(dashboard, run, view)


class _RunPage:
    """The page of a run as one visitor sees it."""

    def __init__(self, dashboard: Dashboard, run: RunReader, view: charts.ChartView) -> None:
        self._dashboard, self._run, self._view = dashboard, run, view
        self._seen: object = None
        self._plots: list[tuple[_Plot, Chart]] = []
        self._checkpoints: CheckpointsPanel
        dashboard.watch.prioritize([run.name])
        self._build()
        self._refresh()
        ui.timer(REFRESH_INTERVAL, self._refresh)

    # ---- the page ----

    def _build(self) -> None:
        self._build_head()
        LiveGamesPanel(self._dashboard, self._run.name)
        with card():
            self._rating = Chart(
                "Elo",
                tr(
                    "Rating on the scale, with 95 % intervals. A triangle is a checkpoint: "
                    "click it to play."
                ),
                tall=True,
                empty=tr("No evaluation yet; evaluation.interval sets when they run."),
            )
            self._rating.element.on_point_click(
                lambda event: self._checkpoints.play(str(event.name))
            )
        with card():
            hint = tr("Points per game against each opponent, with 95 % intervals.")
            self._strength = Chart(tr("Scores"), hint, tall=True)
        self._elo_card = ui.element("div")
        with self._elo_card, card():
            self._elo = Chart(
                tr("Elo of checkpoints"),
                tr("Measured afterwards by keisei evaluate, with 95 % intervals."),
                tall=True,
            )
        with ui.element("div").classes("d-grid"):
            for plot in _LEARNING:
                self._add(plot)
            with card():
                self._outcomes = Chart(tr("How games end"), tr("Outcomes of the self-play games."))
            with card():
                self._times = Chart(tr("Where the time goes"), tr("Shares of each update."))
            for plot in _MACHINE:
                self._add(plot)
            with card():
                hint = tr("Of the processors and the memory, and of the GPU where there is one.")
                self._usage = Chart(tr("Share in use"), hint)
        self._workers = WorkersPanel()
        self._checkpoints = CheckpointsPanel(self._run.name)
        SampleGamesPanel(self._dashboard, self._run.name)
        NotesPanel(self._run, is_editable=self._dashboard.allows_control)
        show_settings(self._run)

    def _add(self, plot: _Plot) -> None:
        with card():
            self._plots.append((plot, Chart(tr(plot.title), tr(plot.hint))))

    def _build_head(self) -> None:
        with card():
            with ui.element("div").classes("d-row d-between").style("margin-bottom: 10px"):
                with ui.element("div").classes("d-row"):
                    heading(self._run.name).style("font-size: 20px; font-weight: 650")
                    self._state = ui.label("").classes("d-state").mark("state")
                    self._activity = ui.label("").classes("d-faint").mark("activity")
                    self._about = ui.label("").classes("d-faint")
                ViewControls(self._view, self._choose_view)
            self._control: ControlButtons | None = None
            if self._dashboard.allows_control:
                self._control = ControlButtons(self._dashboard.watch.folder, self._run.name)
            with ui.element("div").classes("d-bar") as bar:
                self._bar = ui.element("div")
            bar.style("height: 8px; margin-bottom: 10px")
            bar.props('role="progressbar" aria-valuemin="0" aria-valuemax="100"')
            self._progress = set_name(bar, tr("Progress"))
            with ui.element("div").classes("d-tiles"):
                self._tiles = {key: tile(tr(label)) for key, label in _TILES.items()}
                self._scores = ui.element("div").style("display: contents")
            self._note = ui.label("").classes("d-hint d-problem").style("margin: 8px 0 0")

    def _choose_view(self, view: charts.ChartView) -> None:
        self._view = view
        query = urlencode(view_query(view), quote_via=quote)
        ui.navigate.history.replace(f"{run_address(self._run.name)}?{query}")
        self._refresh()

    # ---- showing ----

    def _refresh(self) -> None:
        watch, run = self._dashboard.watch, self._run
        current = watch.runs.get(run.name)
        if current is not None and current is not run:  # it was removed and created again
            run = self._run = current
        seen = (id(run), current is None, run.version, int(watch.clock()) // 2, self._view)
        if seen == self._seen:
            return
        self._seen = seen
        summary = run.overview(watch.clock())
        self._show_head(summary)
        if current is None:
            self._show_removed()
            return
        checkpoints = list_run_checkpoints(watch.folder, run)
        self._checkpoints.show(checkpoints)
        self._show_strength(checkpoints)
        for plot, chart in self._plots:
            curve = run.curve(plot.metric, self._view.axis)
            line = charts.ChartLine(tr(plot.title), plot.color, curve)
            chart.show(charts.curve_chart([line], self._view, from_zero=plot.from_zero))
        self._show_bands()
        self._workers.show(summary.metrics)

    def _show_head(self, summary: RunOverview) -> None:
        run = self._run
        self._state.text = tr(STATES[summary.state])
        self._state.classes(replace=f"d-state d-{summary.state}")
        if self._control is not None:
            self._control.show(is_running=summary.state == "running")
        self._activity.text = activity(summary)
        facts = run.facts
        about = [summary.model] * bool(summary.model)
        if summary.parameters is not None:
            about.append(tr("{number} parameters", number=short_count(summary.parameters)))
        about += [str(facts[key]) for key in ("device", "precision") if key in facts]
        if run.sessions > 1:
            resumed = trn("resumed {number} time", "resumed {number} times", run.sessions - 1)
            about.append(resumed)
        self._about.text = ", ".join(about)
        self._bar.style(f"width: {100 * summary.fraction_done:.1f}%")
        self._progress.props["aria-valuenow"] = round(100 * summary.fraction_done)
        left = math.nan
        if summary.state == "running" and summary.timestep and summary.fraction_done < 1.0:
            per_ply = summary.seconds / summary.timestep
            left = per_ply * max(0, summary.total_timesteps - summary.timestep)
        metrics = summary.metrics
        network = percent(metrics.get(names.NETWORK_SHARE, math.nan))
        clipped = percent(metrics.get(names.CLIP_FRACTION, math.nan))
        total = short_count(summary.total_timesteps)
        values: dict[str, tuple[str, str]] = {
            "plies": (short_count(summary.timestep), tr("of {total}", total=total)),
            "updates": (count(summary.update), percent(summary.fraction_done)),
            "games": (count(summary.games), _plies_per_game(metrics)),
            "speed": (
                count(metrics.get(names.SPS, math.nan)),
                tr("network {share}", share=network),
            ),
            "time": (duration(summary.seconds), _left(left)),
            "memory": (f"{count(metrics.get(names.MEMORY, math.nan))} MB", ""),
            "entropy": (small(metrics.get(names.ENTROPY, math.nan)), tr("nats")),
            "KL": (
                small(metrics.get(names.APPROX_KL, math.nan)),
                tr("clipped {share}", share=clipped),
            ),
        }
        if summary.elo is not None:
            elo = summary.elo
            values["Elo"] = (
                NOTHING if elo.bound else f"{elo.elo:.0f}",
                message_text(elo.bound) or f"{elo.low:.0f} – {elo.high:.0f}",
            )
        values |= {
            _against(opponent): (
                percent(result.score),
                f"{percent(result.low)} – {percent(result.high)}",
            )
            for opponent, result in summary.scores.items()
        }
        for label in [name for name in values if name not in self._tiles]:
            with self._scores:
                self._tiles[label] = tile(label)
        for label, (value, more) in self._tiles.items():
            # A run that was resumed at an earlier checkpoint has lost its later scores.
            value.text, more.text = values.get(label, (NOTHING, ""))
        notes = [message_text(summary.note)] * bool(summary.note)
        if run.broken_lines:
            notes.append(
                trn(
                    "{number} line of its journal is unreadable",
                    "{number} lines of its journal are unreadable",
                    run.broken_lines,
                )
            )
        if not run.is_read:
            done = percent(run.progress)
            notes.append(tr("still reading its journal: {share}", share=done))
        self._note.text = tr("; ").join(notes)

    def _show_removed(self) -> None:
        """Say that the run is gone; its last known data stay on the page."""
        self._state.text = tr(STATES["removed"])
        self._state.classes(replace="d-state d-broken")
        self._activity.text = ""
        self._note.text = tr(
            "This run has been moved or removed; what the page shows is what was known of it."
        )

    def _show_strength(self, checkpoints: list[RunCheckpoint]) -> None:
        run = self._run
        evaluations = run.evaluations
        opponents = list(dict.fromkeys(name for found in evaluations for name in found.scores))
        colors = colors_of(opponents, charts.PALETTE)
        marks = [
            (charts.place(self._view.axis, found), found.name)
            for found in checkpoints
            if getattr(found, self._view.axis) is not None
        ]
        is_rated = any(found.elo is not None for found in evaluations)
        self._rating.show(
            charts.rating_chart(
                [(run.name, charts.PALETTE[0], evaluations)] if is_rated else [],
                self._view.axis,
                checkpoints=marks,
            )
        )
        self._strength.show(
            charts.strength_chart(
                [(_against(name), colors[name], evaluations, name) for name in opponents],
                self._view.axis,
            )
        )
        ratings = read_ratings(self._dashboard.watch.folder, run.name)
        self._elo_card.set_visibility(ratings is not None)
        if ratings is not None:
            self._elo.show(charts.elo_chart([(run.name, charts.PALETTE[0], ratings)]))

    def _show_bands(self) -> None:
        run, axis = self._run, self._view.axis
        wanted = (names.BLACK_WINS, names.DRAWS, names.PLY_LIMIT_RATE, names.WHITE_WINS)
        x, shares = run.means(wanted, axis)
        if len(x):
            shares[:, 1] -= shares[:, 2]  # games that end at the ply limit are shown apart
        outcomes = [tr(label) for label in _OUTCOMES]
        self._outcomes.show(
            charts.bands_chart(x, shares.clip(0.0), outcomes, _OUTCOME_COLORS, axis)
        )
        known = set(run.metric_names)
        times = [name for name in _TIME_LABELS if _TIME + name in known]
        x, seconds = run.means(tuple(_TIME + name for name in times), axis)
        labels = [tr(_TIME_LABELS[name]) for name in times]
        colors = [f"var(--d-{name})" for name in times]
        self._times.show(charts.bands_chart(x, seconds, labels, colors, axis))
        usage = [
            charts.ChartLine(tr(label), color, run.curve(metric, axis))
            for (metric, label), color in zip(_USAGE.items(), charts.PALETTE, strict=False)
            if metric in known
        ]
        self._usage.show(charts.curve_chart(usage, self._view, percent=True))


def _against(opponent: str) -> str:
    return tr("vs {opponent}", opponent=opponent)


def _plies_per_game(metrics: Mapping[str, Any]) -> str:
    plies = metrics.get(names.MEAN_PLIES, math.nan)
    return tr("of {number} plies", number=f"{plies:.0f}") if math.isfinite(plies) else ""


def _left(seconds: float) -> str:
    text = duration(seconds)
    return "" if text == NOTHING else tr("{time} left", time=text)
