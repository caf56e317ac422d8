"""Charts of the dashboard as options of ECharts: pure functions without pages.

Colours are CSS variables, so that charts, which are drawn as SVG, follow when the page turns dark.
Only names of this module become keys of the options, never text from files: NiceGUI runs the value
of a key that begins with a colon as JavaScript.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from keisei.runs.artifacts import RunCheckpoint, RunRatings
from keisei.runs.curves import SMOOTHING, Curve, Floats, smooth
from keisei.runs.journal import EloEstimate
from keisei.runs.run_record import Evaluation, scores_against
from keisei.web.dashboard.run_messages import message_text
from keisei.web.languages import mark, tr

Options = dict[str, Any]

PALETTE: Final = tuple(f"var(--d-{index})" for index in range(8))
"""Colours of runs and opponents; see ``static/dashboard.css``."""

X_AXES: Final = {
    "timestep": mark("plies"),
    "seconds": mark("minutes"),
    "update": mark("updates"),
}
"""The x axes to choose from, with their labels."""

_X_NAMES: Final = {"timestep": "timestep", "seconds": "minutes", "update": "update"}
"""Names of the x axes in files, in the units that are shown."""

X_NAME: Final = "x_name"
"""Key of a chart's options that stays on the server: name of the x axis in files."""

EXACT: Final = "exact"
"""Key of a series that stays on the server: its points for files, where they differ from ``data``.
"""

_FEW_POINTS: Final = 30
"""Lines with at most this many points have markers, so that a single point is visible."""

_MAX_BARS: Final = 60
"""Maximum number of error bars of a line; more would hide it and be slow to draw."""

_WIDE_RANGE: Final = 1500.0
"""Range of Elo ratings from which the axis has fewer lines."""

_DIGITS: Final = 5

_ERROR_BAR: Final = "window.keisei.errorBar"
_WHOLE: Final = "Math.round"
_NUMBER: Final = "window.keisei.number"
_PERCENT: Final = "window.keisei.percent"


class ChartLine(NamedTuple):
    """A curve with its name and colour."""

    name: str
    color: str
    curve: Curve
    has_band: bool = False
    """Whether the area from its lowest to its highest values is drawn, as for groups of seeds."""


class ChartView(NamedTuple):
    """How all curves of a page are drawn, as its visitor chose."""

    axis: str = "timestep"
    """The x axis, a key of `X_AXES`."""

    smoothing: float = SMOOTHING
    """Reach of the moving average, as a share of the curve; 0: none."""

    is_log: bool = False
    """Whether the y axis is logarithmic; then values up to 0 are left out."""


def along(axis: str, x: Floats) -> Floats:
    """Convert values of an axis to the unit that is shown: seconds to minutes."""
    return x / 60.0 if axis == "seconds" else x


def place(axis: str, moment: Evaluation | RunCheckpoint) -> float:
    """Return the place of an evaluation or checkpoint on an axis."""
    value = float(getattr(moment, axis))
    return value / 60.0 if axis == "seconds" else value


def base(
    axis: str, *, percent: bool = False, from_zero: bool = False, is_log: bool = False
) -> Options:
    """Return the options of a chart with axes and no series."""
    y: Options = {
        "type": "log" if is_log else "value",
        "scale": not from_zero,
        "splitLine": {"lineStyle": {"color": "var(--k-line)"}},
        "axisLabel": {"color": "var(--k-soft)", ":formatter": _PERCENT if percent else _NUMBER},
    }
    if percent:
        y |= {"min": 0, "max": 1, "interval": 0.25}
    return {
        X_NAME: _X_NAMES[axis],
        "animation": False,
        "grid": {"left": 8, "right": 14, "top": 30, "bottom": 4, "containLabel": True},
        "legend": {
            "type": "scroll",
            "top": 0,
            "left": 0,
            "icon": "roundRect",
            "itemWidth": 10,
            "itemHeight": 10,
            "textStyle": {"color": "var(--k-soft)"},
            "pageIconColor": "var(--k-accent)",
            "pageTextStyle": {"color": "var(--k-soft)"},
        },
        "tooltip": {
            "trigger": "axis",
            "confine": True,
            "transitionDuration": 0,
            "backgroundColor": "var(--k-raised)",
            "borderColor": "var(--k-line)",
            "textStyle": {"color": "var(--k-ink)", "fontSize": 12},
            "axisPointer": {"lineStyle": {"color": "var(--k-soft)"}},
            ":formatter": f"window.keisei.tips.{axis}",
        },
        "dataZoom": [
            # With the shift key: the wheel alone scrolls the page. Buttons zoom as well.
            {"type": "inside", "zoomOnMouseWheel": "shift", "moveOnMouseMove": "shift"}
        ],
        "xAxis": {
            "type": "value",
            "splitLine": {"show": False},
            "axisLine": {"lineStyle": {"color": "var(--k-line)"}},
            "axisLabel": {"color": "var(--k-soft)", ":formatter": _NUMBER, "hideOverlap": True},
        },
        "yAxis": y,
        "series": [],
    }


def curve_chart(
    lines: Sequence[ChartLine], view: ChartView, *, percent: bool = False, from_zero: bool = False
) -> Options:
    """Chart metrics as moving averages; a single one with its values and their spread behind it."""
    is_log = view.is_log and not percent
    options = base(view.axis, percent=percent, from_zero=from_zero and not is_log, is_log=is_log)
    raw = [_rows(along(view.axis, line.curve.x), *line.curve[1:]) for line in lines]
    if is_log:
        lines = [line._replace(curve=_positive(line.curve)) for line in lines]
    options["legend"]["show"] = len(lines) > 1 or any(line.has_band for line in lines)
    if not options["legend"]["show"]:
        options["grid"]["top"] = 12
    for number, line in enumerate(lines):
        # Areas are stacked, which a logarithmic axis cannot show.
        if (line.has_band or len(lines) == 1) and not is_log:
            curve = line.curve._replace(x=along(view.axis, line.curve.x))
            options["series"] += _spread(curve, line.color, number)
    if len(lines) == 1 and not lines[0].has_band:
        options["series"].append(_raw(lines[0], view.axis))
    for line, rows in zip(lines, raw, strict=True):
        options["series"].append(_mean(line, view) | {EXACT: rows})
    return options


def _rows(*columns: Floats) -> list[list[float]]:
    rows: list[list[float]] = np.stack(columns, axis=1).tolist()
    return rows


def _positive(curve: Curve) -> Curve:
    some = curve.mean > 0.0
    low = np.where(curve.low > 0.0, curve.low, curve.mean)
    return Curve(curve.x[some], curve.mean[some], low[some], curve.high[some])


def _mean(line: ChartLine, view: ChartView) -> Options:
    curve = line.curve
    mean = smooth(curve.mean, view.smoothing)
    points = _points(along(view.axis, curve.x), mean, curve.low, curve.high)
    is_short = len(points) <= _FEW_POINTS
    return _line(line.name, line.color, points) | {"showSymbol": is_short, "symbolSize": 5}


def _raw(line: ChartLine, axis: str) -> Options:
    """Return the series of the curve's points without smoothing, drawn faintly."""
    points = _points(along(axis, line.curve.x), line.curve.mean)
    return _line("", line.color, points) | {
        "id": "raw",
        "showSymbol": False,
        "silent": True,
        "lineStyle": {"width": 1, "opacity": 0.4, "color": line.color},
    }


def _spread(curve: Curve, color: str, number: int) -> list[Options]:
    """Return the series of the area from low to high, stacked on an invisible one."""
    quiet: Options = {
        "type": "line",
        "stack": f"spread-{number}",
        # Otherwise values below zero would be stacked apart from those above.
        "stackStrategy": "all",
        "symbol": "none",
        "silent": True,
        "lineStyle": {"width": 0},
        "tooltip": {"show": False},
        "emphasis": {"disabled": True},
    }
    area = {"color": color, "opacity": 0.22}
    return [
        quiet | {"id": f"low-{number}", "data": _points(curve.x, curve.low)},
        quiet
        | {
            "id": f"high-{number}",
            "data": _points(curve.x, curve.high - curve.low),
            "areaStyle": area,
        },
    ]


def rating_curve(evaluations: Sequence[Evaluation], axis: str) -> Curve:
    """Return the ratings of a run as a curve with their intervals."""
    rated = [(found, found.elo) for found in evaluations if found.elo is not None]
    rows = [(getattr(found, axis), elo.elo, elo.low, elo.high) for found, elo in rated]
    return Curve(*np.array(rows, float).reshape(-1, 4).T)


def score_curve(evaluations: Sequence[Evaluation], axis: str, opponent: str) -> Curve:
    """Return the scores of a run against an opponent as a curve with their intervals."""
    rows = [
        (getattr(found, axis), score.score, score.low, score.high)
        for found, score in scores_against(evaluations, opponent)
    ]
    return Curve(*np.array(rows, float).reshape(-1, 4).T)


def strength_chart(
    runs: Sequence[tuple[str, str, Sequence[Evaluation], str]],
    axis: str,
    *,
    checkpoints: Sequence[tuple[float, str]] = (),
) -> Options:
    """Chart scores with their 95 % intervals.

    Args:
        runs: (name of the line, colour, evaluations, opponent).
        axis: the x axis, a key of `X_AXES`.
        checkpoints: (place on the axis, name) of the checkpoints, each to be played by a click.
    """
    options = base(axis, percent=True)
    for name, color, evaluations, opponent in runs:
        points = [
            [place(axis, evaluation), strength.score, strength.low, strength.high, strength.games]
            for evaluation, strength in scores_against(evaluations, opponent)
        ]
        options["series"] += _with_bars(name, color, points)
    if options["series"]:
        options["series"][0]["markLine"] = _rule(0.5)
    if checkpoints:
        options["series"].append(_checkpoint_marks(checkpoints, 0.0))
    return options


def _checkpoint_marks(checkpoints: Sequence[tuple[float, str]], y: float) -> Options:
    return {
        "type": "scatter",
        "id": "checkpoints",
        "name": tr("checkpoints"),
        "symbol": "triangle",
        "symbolSize": 11,
        "cursor": "pointer",
        "color": "var(--k-accent)",
        "data": [{"value": [x, y], "name": name} for x, name in checkpoints],
    }


def rating_chart(
    runs: Sequence[tuple[str, str, Sequence[Evaluation]]],
    axis: str,
    *,
    checkpoints: Sequence[tuple[float, str]] = (),
) -> Options:
    """Chart ratings over an axis, with their 95 % intervals as bands.

    Args:
        runs: (name of the line, colour, evaluations).
        axis: the x axis, a key of `X_AXES`.
        checkpoints: (place on the axis, name) of the checkpoints, each to be played by a click.
    """
    options = base(axis)
    options["yAxis"]["axisLabel"][":formatter"] = _WHOLE
    lowest = math.inf
    for number, (name, color, evaluations) in enumerate(runs):
        rated = [(place(axis, found), found.elo) for found in evaluations if found.elo is not None]
        lowest = min([lowest, *(elo.low for _, elo in rated)])
        options["series"] += _with_band(name, color, rated, number)
    if checkpoints and math.isfinite(lowest):
        options["series"].append(_checkpoint_marks(checkpoints, lowest))
    return options


def elo_chart(runs: Sequence[tuple[str, str, RunRatings]]) -> Options:
    """Chart the Elo of checkpoints over plies, with 95 % intervals as bands.

    With one run, its opponents are drawn as levels.
    """
    options = base("timestep")
    options["yAxis"]["axisLabel"][":formatter"] = _WHOLE
    options["legend"]["show"] = len(runs) > 1
    for number, (name, color, ratings) in enumerate(runs):
        points = [(float(point.timestep), point.rating) for point in ratings.checkpoints]
        options["series"] += _with_band(name, color, points, number)
    if len(runs) == 1:
        _add_levels(options, runs[0][2])
    return options


def _add_levels(options: Options, ratings: RunRatings) -> None:
    """Draw the opponents of a run as lines across its chart."""
    ends = [elo for _, elo in ratings.opponents]
    ends += [end for _, rating in ratings.checkpoints for end in (rating.low, rating.high)]
    if not ratings.checkpoints or not all(math.isfinite(end) for end in ends):
        return
    rule = _rule(*(elo for _, elo in ratings.opponents))
    for line, (name, _) in zip(rule["data"], ratings.opponents, strict=True):
        line["label"] = {
            "show": True,
            "formatter": name,
            "position": "insideStartTop",
            "color": "var(--k-soft)",
        }
    options["series"][-1]["markLine"] = rule
    # ECharts scales the axis to the points only; the levels have to fit, too.
    step = 250.0 if max(ends) - min(ends) < _WIDE_RANGE else 500.0
    options["yAxis"] |= {
        "min": step * math.floor(min(ends) / step),
        "max": step * math.ceil(max(ends) / step),
        "interval": step,
    }
    options["grid"]["top"] = 12


def _with_band(
    name: str, color: str, points: Sequence[tuple[float, EloEstimate]], number: int
) -> list[Options]:
    """Return a line through ratings ``(x, rating)``, with a band from low to high behind it.

    Where a rating is beyond the scale, its point has the ``bound`` in words. A single point has an
    error bar: a band would have no width.
    """
    data = [_rating_point(x, rating) for x, rating in points]
    if len(points) == 1:
        return _with_bars(name, color, data)
    line = _line(name, color, data)
    rows = [(x, rating.elo, rating.low, rating.high) for x, rating in points]
    curve = Curve(*np.array(rows, float).reshape(-1, 4).T)
    return [
        *_spread(curve, color, number),
        line | {"showSymbol": len(points) <= _MAX_BARS, "symbolSize": 6, "z": 3},
    ]


def _rating_point(x: float, rating: EloEstimate) -> Any:
    value = [x, rating.elo, rating.low, rating.high]
    return {"value": value, "bound": message_text(rating.bound)} if rating.bound else value


def _with_bars(name: str, color: str, points: list[Any]) -> list[Options]:
    """Return a line through points ``[x, value, low, high, ...]``, and some of their error bars."""
    is_short = len(points) <= _MAX_BARS
    some = points if is_short else points[:: -(len(points) // _MAX_BARS + 1)]
    return [
        _line(name, color, points) | {"showSymbol": is_short, "symbolSize": 6, "z": 3},
        {
            "type": "custom",
            "name": name,
            ":renderItem": _ERROR_BAR,
            "itemStyle": {"color": color},
            "encode": {"x": 0, "y": [1, 2, 3]},
            "data": some,
            "silent": True,
            "clip": True,
            "z": 2,
        },
    ]


def bands_chart(
    x: Floats, shares: Floats, names: Sequence[str], colors: Sequence[str], axis: str
) -> Options:
    """Chart shares of a whole as stacked bands.

    Args:
        x: ``[points]``.
        shares: ``[points, names]``; rows of zeros or NaN are left out.
        names: labels of the shares.
        colors: colours of the shares.
        axis: the x axis, a key of `X_AXES`.
    """
    options = base(axis, percent=True)
    totals = shares.sum(axis=1)
    some = np.isfinite(totals) & (totals > 0.0)
    x, parts = along(axis, x[some]), shares[some] / totals[some, None]
    raw = [_rows(x, part) for part in parts.T]
    if len(x) == 1:  # a single update is drawn as a block
        x, parts = np.array([0.0, x[0]]), np.repeat(parts, 2, axis=0)
    for index, (name, color) in enumerate(zip(names, colors, strict=True)):
        options["series"].append(
            _line(name, color, _points(x, smooth(parts[:, index], 1 / 60)))
            | {
                EXACT: raw[index],
                "stack": "all",
                "areaStyle": {"color": color, "opacity": 0.9},
                "lineStyle": {"width": 0},
                "showSymbol": False,
            }
        )
    if len(x):
        options["xAxis"]["max"] = "dataMax"
    return options


def ladder_chart(
    standings: Iterable[tuple[str, EloEstimate]], *, highlight: Iterable[str] = ()
) -> Options:
    """Chart ratings (name, rating) with their intervals, the strongest at the top."""
    listed = list(reversed(list(standings)))
    marked = set(highlight)
    options = base("timestep") | {X_NAME: "rank"}
    options["legend"]["show"] = False
    options["grid"]["top"] = 8
    options["tooltip"] |= {"trigger": "item"}
    options["xAxis"] |= {"scale": True}
    options["xAxis"]["axisLabel"][":formatter"] = _WHOLE
    options["xAxis"]["splitLine"] = {"lineStyle": {"color": "var(--k-line)"}}
    options["yAxis"] = {
        "type": "category",
        "data": [name for name, _ in listed],
        "axisLine": {"lineStyle": {"color": "var(--k-line)"}},
        "axisTick": {"show": False},
        "axisLabel": {"color": "var(--k-ink)", "width": 190, "overflow": "truncate"},
    }
    points = [
        {
            "value": [rating.elo, row, rating.low, rating.high],
            "name": name,
            "bound": message_text(rating.bound),
            "itemStyle": {"color": PALETTE[1 if name in marked else 0]},
        }
        for row, (name, rating) in enumerate(listed)
    ]
    options["series"] = [
        {
            "type": "custom",
            "name": "95 %",
            ":renderItem": "window.keisei.errorBarAcross",
            "encode": {"x": [0, 2, 3], "y": 1},
            "data": points,
            "silent": True,
        },
        {
            "type": "scatter",
            "name": "Elo",
            "symbolSize": 9,
            "encode": {"x": 0, "y": 1},
            "data": points,
            EXACT: [
                {"value": [len(listed) - row, rating.elo, rating.low, rating.high], "name": name}
                for row, (name, rating) in enumerate(listed)
            ][::-1],
        },
    ]
    return options


def _line(name: str, color: str, points: list[list[Any]]) -> Options:
    return {
        "type": "line",
        "name": name,
        "color": color,
        "data": points,
        "lineStyle": {"width": 2, "color": color},
        "itemStyle": {"color": color},
        "emphasis": {"disabled": True},
        "symbol": "circle",
    }


def _rule(*levels: float) -> Options:
    return {
        "silent": True,
        "symbol": "none",
        "label": {"show": False},
        "lineStyle": {"color": "var(--k-soft)", "type": "dashed", "width": 1, "opacity": 0.6},
        "data": [{"yAxis": level} for level in levels],
    }


def _points(*columns: Floats) -> list[list[float]]:
    """Return the columns as rows, rounded to the digits that can be seen in a chart."""
    if len(columns[0]) == 0:
        return []
    table = np.stack(columns, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.floor(np.log10(np.abs(table)))
    # Digits after the point; the x axis keeps its whole numbers.
    digits = np.where(np.isfinite(size), _DIGITS - 1 - size, 0)
    digits = np.clip(digits, 0, 15)
    scale = 10.0**digits
    rounded: list[list[float]] = (np.round(table * scale) / scale).tolist()
    return rounded
