"""The page of one run, live while it trains."""

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

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
    axis_choice,
    card,
    colors_of,
    empty_page,
    page,
    tile,
)
from keisei.web.dashboard.control_buttons import ControlButtons
from keisei.web.dashboard.run_panels import (
    CheckpointsPanel,
    LiveGamesPanel,
    SampleGamesPanel,
    WorkersPanel,
    show_settings,
)


class _Plot(NamedTuple):
    """A metric with a chart of its own."""

    metric: str
    title: str
    hint: str
    color: str
    from_zero: bool = False


_LEARNING: Final = (
    _Plot(names.POLICY_LOSS, "Policy loss", "Small and noisy around zero.", charts.PALETTE[0]),
    _Plot(names.VALUE_LOSS, "Value loss", "Falls, then follows how predictable games are.",
          charts.PALETTE[0]),
    _Plot(names.ENTROPY, "Entropy", "In nats. A sudden drop means that exploration has stopped.",
          charts.PALETTE[2], True),
    _Plot(names.APPROX_KL, "KL divergence", "0.005 to 0.03 is healthy.", charts.PALETTE[1], True),
    _Plot(names.CLIP_FRACTION, "Clip fraction", "5 to 25 % is healthy; at 0 nothing is learned.",
          charts.PALETTE[1], True),
    _Plot(names.EXPLAINED_VARIANCE, "Explained variance",
          "How well the value head predicts: towards 1.", charts.PALETTE[3]),
    _Plot(names.GRAD_NORM, "Gradient norm", "Before clipping.", charts.PALETTE[4], True),
    _Plot(names.LEARNING_RATE, "Learning rate", "Follows its schedule.", charts.PALETTE[4], True),
)  # fmt: skip

_LENGTHS: Final = _Plot(
    names.MEAN_PLIES, "Game length", "Mean plies of the games of each update.", charts.PALETTE[6],
    True,
)  # fmt: skip
_SPEED: Final = _Plot(
    names.SPS,
    "Speed",
    "Plies per second of the whole update.",
    charts.PALETTE[2],
    True,
)

_OUTCOMES: Final = ("Black wins", "draw", "ply limit", "White wins")
_OUTCOME_COLORS: Final = tuple(f"var(--d-{name})" for name in ("black", "draw", "limit", "white"))
_TILES: Final = ("plies", "updates", "games", "plies/s", "time", "memory", "entropy", "KL")
_TIME: Final = "time/"
_TIME_COLORS: Final = {
    name: f"var(--d-{name})" for name in ("env", "inference", "learning", "waiting", "other")
}


def run_page(dashboard: Dashboard, name: str, x: str) -> None:
    """Build the page of a run; `name` and `x` come from its address."""
    watch = dashboard.watch
    try:
        watch.folder.run(name)
        run = watch.find(name)
    except (KeiseiError, OutsideError, OSError):
        run = None
    with page(name if run is not None else "No such run"):
        if run is None:
            with card():
                empty_page(
                    f"There is no such run in {watch.folder.path}. It may have been moved or "
                    "removed. Start a new one with",
                    "keisei train",
                )
            return
        _RunPage(dashboard, run, x)


class _RunPage:
    """The page of a run as one visitor sees it."""

    def __init__(self, dashboard: Dashboard, run: RunReader, x: str) -> None:
        self._dashboard, self._run = dashboard, run
        self._axis = x if x in charts.X_AXES else "timestep"
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
        with card(
            "Elo",
            "Rating on the scale, with 95 % intervals. A triangle is a checkpoint: click it to "
            "play.",
        ):
            self._rating = Chart(
                tall=True, empty="No evaluation yet; evaluation.interval sets when they run."
            )
            self._rating.element.on_point_click(
                lambda event: self._checkpoints.play(str(event.name))
            )
        with card("Scores", "Points per game against each opponent, with 95 % intervals."):
            self._strength = Chart(tall=True)
        self._elo_card = ui.element("div")
        with (
            self._elo_card,
            card(
                "Elo of checkpoints",
                "Measured afterwards by keisei evaluate, with 95 % intervals.",
            ),
        ):
            self._elo = Chart(tall=True)
        with ui.element("div").classes("d-grid"):
            for plot in _LEARNING:
                self._add(plot)
            self._add(_LENGTHS)
            with card("How games end", "Outcomes of the self-play games."):
                self._outcomes = Chart()
            self._add(_SPEED)
            with card("Where the time goes", "Shares of each update."):
                self._times = Chart()
        self._workers = WorkersPanel()
        self._checkpoints = CheckpointsPanel(self._run.name)
        SampleGamesPanel(self._dashboard, self._run.name)
        show_settings(self._run)

    def _add(self, plot: _Plot) -> None:
        with card(plot.title, plot.hint):
            self._plots.append((plot, Chart()))

    def _build_head(self) -> None:
        with card():
            with ui.element("div").classes("d-row d-between").style("margin-bottom: 10px"):
                with ui.element("div").classes("d-row"):
                    ui.label(self._run.name).style("font-size: 20px; font-weight: 650")
                    self._state = ui.label("").classes("d-state").mark("state")
                    self._about = ui.label("").classes("d-faint")
                axis_choice(self._axis, self._choose_axis)
            self._control: ControlButtons | None = None
            if self._dashboard.allows_control:
                self._control = ControlButtons(self._dashboard.watch.folder, self._run.name)
            with ui.element("div").classes("d-bar").style("height: 8px; margin-bottom: 10px"):
                self._bar = ui.element("div")
            with ui.element("div").classes("d-tiles"):
                self._tiles = {label: tile(label) for label in _TILES}
                self._scores = ui.element("div").style("display: contents")
            self._note = ui.label("").classes("d-hint d-problem").style("margin: 8px 0 0")

    def _choose_axis(self, axis: str) -> None:
        self._axis = axis
        self._refresh()

    # ---- showing ----

    def _refresh(self) -> None:
        watch, run = self._dashboard.watch, self._run
        current = watch.runs.get(run.name)
        if current is not None and current is not run:  # it was removed and created again
            run = self._run = current
        seen = (id(run), run.version, int(watch.clock()) // 5, self._axis)
        if seen == self._seen:
            return
        self._seen = seen
        summary = run.overview(watch.clock())
        self._show_head(summary)
        checkpoints = list_run_checkpoints(watch.folder, run)
        self._checkpoints.show(checkpoints)
        self._show_strength(checkpoints)
        for plot, chart in self._plots:
            line = charts.ChartLine(plot.title, plot.color, run.curve(plot.metric, self._axis))
            chart.show(charts.curve_chart([line], self._axis, from_zero=plot.from_zero))
        self._show_bands()
        self._workers.show(summary.metrics)

    def _show_head(self, summary: RunOverview) -> None:
        run = self._run
        self._state.text = STATES[summary.state]
        self._state.classes(replace=f"d-state d-{summary.state}")
        if self._control is not None:
            self._control.show(is_running=summary.state == "running")
        facts = run.facts
        about = [summary.model] * bool(summary.model)
        if summary.parameters is not None:
            about.append(f"{short_count(summary.parameters)} parameters")
        about += [str(facts[key]) for key in ("device", "precision") if key in facts]
        if run.sessions > 1:
            about.append(f"resumed {run.sessions - 1} times")
        self._about.text = ", ".join(about)
        self._bar.style(f"width: {100 * summary.fraction_done:.1f}%")
        left = math.nan
        if summary.state == "running" and summary.timestep:
            per_ply = summary.seconds / summary.timestep
            left = per_ply * max(0, summary.total_timesteps - summary.timestep)
        metrics = summary.metrics
        values: dict[str, tuple[str, str]] = {
            "plies": (short_count(summary.timestep), f"of {short_count(summary.total_timesteps)}"),
            "updates": (count(summary.update), percent(summary.fraction_done)),
            "games": (count(summary.games), _plies_per_game(metrics)),
            "plies/s": (
                count(metrics.get(names.SPS, math.nan)),
                f"network {percent(metrics.get(names.NETWORK_SHARE, math.nan))}",
            ),
            "time": (duration(summary.seconds), _left(left)),
            "memory": (f"{count(metrics.get(names.MEMORY, math.nan))} MB", ""),
            "entropy": (small(metrics.get(names.ENTROPY, math.nan)), "nats"),
            "KL": (
                small(metrics.get(names.APPROX_KL, math.nan)),
                f"clipped {percent(metrics.get(names.CLIP_FRACTION, math.nan))}",
            ),
        }
        if summary.elo is not None:
            elo = summary.elo
            values["Elo"] = (f"{elo.elo:.0f}", f"{elo.low:.0f} to {elo.high:.0f}")
        values |= {
            f"vs {opponent}": (
                percent(result.score),
                f"{percent(result.low)} to {percent(result.high)}",
            )
            for opponent, result in summary.scores.items()
        }
        for label in [name for name in values if name not in self._tiles]:
            with self._scores:
                self._tiles[label] = tile(label)
        for label, (value, more) in self._tiles.items():
            # A run that was resumed at an earlier checkpoint has lost its later scores.
            value.text, more.text = values.get(label, (NOTHING, ""))
        notes = [summary.note] * bool(summary.note)
        if run.broken_lines:
            notes.append(f"{run.broken_lines} lines of its journal are unreadable")
        if not run.is_read:
            notes.append(f"still reading its journal: {percent(run.progress)}")
        self._note.text = "; ".join(notes)

    def _show_strength(self, checkpoints: list[RunCheckpoint]) -> None:
        run = self._run
        evaluations = run.evaluations
        opponents = list(dict.fromkeys(name for found in evaluations for name in found.scores))
        colors = colors_of(opponents, charts.PALETTE)
        marks = [
            (charts.place(self._axis, found), found.name)
            for found in checkpoints
            if getattr(found, self._axis) is not None
        ]
        is_rated = any(found.elo is not None for found in evaluations)
        self._rating.show(
            charts.rating_chart(
                [(run.name, charts.PALETTE[0], evaluations)] if is_rated else [],
                self._axis,
                checkpoints=marks,
            )
        )
        self._strength.show(
            charts.strength_chart(
                [(f"vs {name}", colors[name], evaluations, name) for name in opponents],
                self._axis,
            )
        )
        ratings = read_ratings(self._dashboard.watch.folder, run.name)
        self._elo_card.set_visibility(ratings is not None)
        if ratings is not None:
            self._elo.show(charts.elo_chart([(run.name, charts.PALETTE[0], ratings)]))

    def _show_bands(self) -> None:
        run, axis = self._run, self._axis
        wanted = (names.BLACK_WINS, names.DRAWS, names.PLY_LIMIT_RATE, names.WHITE_WINS)
        x, shares = run.means(wanted, axis)
        if len(x):
            shares[:, 1] -= shares[:, 2]  # games that end at the ply limit are shown apart
        self._outcomes.show(
            charts.bands_chart(x, shares.clip(0.0), _OUTCOMES, _OUTCOME_COLORS, axis)
        )
        known = set(run.metric_names)
        times = [name for name in _TIME_COLORS if _TIME + name in known]
        x, seconds = run.means(tuple(_TIME + name for name in times), axis)
        self._times.show(
            charts.bands_chart(x, seconds, times, [_TIME_COLORS[name] for name in times], axis)
        )


def _plies_per_game(metrics: Mapping[str, Any]) -> str:
    plies = metrics.get(names.MEAN_PLIES, math.nan)
    return f"of {plies:.0f} plies" if math.isfinite(plies) else ""


def _left(seconds: float) -> str:
    text = duration(seconds)
    return "" if text == NOTHING else f"{text} left"
