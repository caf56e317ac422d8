"""The dashboard's charts, as options of ECharts."""

import csv
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nicegui")

from keisei.runs.artifacts import CheckpointRating, RunRatings
from keisei.runs.curves import Curve
from keisei.runs.journal import EloEstimate, ScoreEstimate
from keisei.runs.run_record import Evaluation
from keisei.web.dashboard import charts
from keisei.web.dashboard.chart_csv import csv_name, csv_text
from keisei.web.dashboard.components import view_of, view_query
from keisei.web.dashboard.run_panels import worker_table
from keisei.web.dashboard.runs_table import trend_points

EVIL = ":renderItem"
"""A name from a file that would be run as code if it became a key."""


def curve(*values: float) -> Curve:
    mean = np.array(values)
    return Curve(np.arange(1.0, len(values) + 1), mean, mean - 1.0, mean + 2.0)


def evaluations(*scores: float, opponent: str = "greedy") -> list[Evaluation]:
    return [
        Evaluation(
            update,
            1000 * update,
            90.0 * update,
            {opponent: ScoreEstimate(score, score - 0.1, score + 0.1, 0.5, 0.5, 40)},
            EloEstimate(1000 * score, 1000 * score - 50, 1000 * score + 50),
        )
        for update, score in enumerate(scores, 1)
    ]


def keys(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from keys(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from keys(value)


def every_chart(name: str) -> list[charts.Options]:
    ratings = RunRatings(
        1, (CheckpointRating(100, EloEstimate(50.0, 20.0, 80.0)),), ((name, 900.0),)
    )
    return [
        charts.curve_chart([charts.ChartLine(name, "red", curve(1.0, 2.0))], charts.ChartView()),
        charts.strength_chart(
            [(name, "red", evaluations(0.5, opponent=name), name)],
            "update",
            checkpoints=[(1.0, name)],
        ),
        charts.elo_chart([(name, "red", ratings)]),
        charts.elo_chart([(name, "red", ratings), ("other", "blue", ratings)]),
        charts.bands_chart(
            np.array([1.0]), np.ones((1, 2)), [name, "b"], ["red", "blue"], "update"
        ),
        charts.ladder_chart([(name, EloEstimate(10.0, 5.0, 15.0))], highlight=[name]),
    ]


def test_names_never_become_code() -> None:
    """NiceGUI runs values of keys that begin with a colon as JavaScript: none comes from a file."""
    for ours, theirs in zip(every_chart("a"), every_chart(EVIL), strict=True):
        code = [key for key in keys(ours) if key.startswith(":")]
        assert code == [key for key in keys(theirs) if key.startswith(":")]


def test_all_of_it_is_json() -> None:
    for options in every_chart("a"):
        assert json.loads(json.dumps(options, allow_nan=False)) == options


def test_charts_without_data() -> None:
    empty = Curve(*(np.empty(0) for _ in range(4)))
    empty_ratings = RunRatings(1, (), ())
    for options in (
        charts.curve_chart([charts.ChartLine("a", "red", empty)], charts.ChartView()),
        charts.curve_chart([], charts.ChartView()),
        charts.strength_chart([], "timestep"),
        charts.strength_chart([("a", "red", [], "greedy")], "timestep"),
        charts.elo_chart([("a", "red", empty_ratings)]),
        charts.bands_chart(np.empty(0), np.empty((0, 2)), ["a", "b"], ["red", "blue"], "update"),
        charts.ladder_chart([]),
    ):
        assert not any(series["data"] for series in options["series"])


def test_a_curve_is_drawn_with_its_extremes() -> None:
    view = charts.ChartView("seconds")
    options = charts.curve_chart([charts.ChartLine("KL", "red", curve(1.0, 3.0))], view)
    by_id = {series.get("id"): series for series in options["series"]}
    assert by_id["low-0"]["data"] == [[1 / 60, 0.0], [2 / 60, 2.0]] or by_id["low-0"]["data"] == [
        [round(1 / 60, 6), 0.0],
        [round(2 / 60, 6), 2.0],
    ]
    assert [height for _, height in by_id["high-0"]["data"]] == [3.0, 3.0]
    line = options["series"][-1]
    assert line["name"] == "KL"
    assert [point[1:] for point in line["data"]] == [[1.0, 0.0, 3.0], [3.0, 2.0, 5.0]]


def test_several_runs_share_a_chart() -> None:
    options = charts.curve_chart(
        [charts.ChartLine(name, "red", curve(1.0)) for name in ("one", "two")],
        charts.ChartView("update"),
    )
    assert [series["name"] for series in options["series"]] == ["one", "two"]
    assert options["legend"]["show"]


def test_groups_have_bands_of_their_own() -> None:
    lines = [
        charts.ChartLine("one", "red", curve(1.0, 2.0), has_band=True),
        charts.ChartLine("two", "blue", curve(3.0, 4.0), has_band=True),
        charts.ChartLine("three", "green", curve(5.0, 6.0)),
    ]
    series = charts.curve_chart(lines, charts.ChartView("update"))["series"]
    bands = [found for found in series if "stack" in found]
    assert [found["id"] for found in bands] == ["low-0", "high-0", "low-1", "high-1"]
    assert len({found["stack"] for found in bands}) == 2
    assert [found["name"] for found in series[4:]] == ["one", "two", "three"]


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show() -> None:
    view = charts.ChartView("update", is_log=True)
    line = charts.ChartLine("a", "red", curve(-1.0, 0.5, 10.0))
    options = charts.curve_chart([line], view, from_zero=True)
    assert options["yAxis"]["type"] == "log"
    assert [point[:2] for point in options["series"][-1]["data"]] == [[2.0, 0.5], [3.0, 10.0]]
    assert all(low > 0.0 for _, _, low, _ in options["series"][-1]["data"])
    assert not any("stack" in series for series in options["series"])
    shares = charts.curve_chart([line], view, percent=True)
    assert shares["yAxis"]["type"] == "value", "shares from 0 to 1 have their own scale"


def test_smoothing_can_be_chosen() -> None:
    values = [0.0, 1.0] * 50
    line = charts.ChartLine("a", "red", curve(*values))
    for share, spread in ((0.0, 1.0), (0.05, 0.2), (0.25, 0.05)):
        options = charts.curve_chart([line], charts.ChartView("update", smoothing=share))
        shown = [point[1] for point in options["series"][-1]["data"]]
        assert max(shown) - min(shown) <= spread + 1e-9
        assert options["series"][-2]["id"] == "raw"


@pytest.mark.parametrize("axis", list(charts.X_AXES))
def test_files_have_the_values_and_not_their_average(axis: str) -> None:
    lines = [charts.ChartLine(name, "red", curve(-1 / 3, 60.0, 2.0, 7.0)) for name in ("=1", "b")]
    view = charts.ChartView(axis, smoothing=1.0, is_log=True)
    head, *rows = csv.reader(csv_text(charts.curve_chart(lines, view)).splitlines())
    name = {"seconds": "minutes"}.get(axis, axis)
    assert head == ["series", name, "value", "low", "high", "games"]
    assert [row[0] for row in rows] == ["'=1"] * 4 + ["b"] * 4, "no formula for a spreadsheet"
    assert [float(row[2]) for row in rows] == [-1 / 3, 60.0, 2.0, 7.0] * 2
    unit = 60.0 if axis == "seconds" else 1.0
    assert [float(row[1]) for row in rows[:4]] == [x / unit for x in (1.0, 2.0, 3.0, 4.0)]


def test_files_of_other_charts() -> None:
    one = charts.curve_chart([charts.ChartLine("a", "red", curve(1.0, 2.0))], charts.ChartView())
    assert len(csv_text(one).splitlines()) == 3, "neither its band nor its faint line"
    shares = np.array([[1.0, 3.0], [0.0, 0.0], [2.0, 2.0]] * 50)
    bands = charts.bands_chart(np.arange(150.0), shares, ["a", "b"], ["red", "blue"], "update")
    assert csv_text(bands).splitlines()[1:3] == ["a,0.0,0.25,,,", "a,2.0,0.5,,,"]
    rating = EloEstimate(10.0, 5.0, 15.0)
    ladder = charts.ladder_chart([("first", rating), ("second", rating)])
    assert csv_text(ladder).splitlines() == [
        "series,rank,value,low,high,games", "first,1,10.0,5.0,15.0,", "second,2,10.0,5.0,15.0,",
    ]  # fmt: skip
    scores = charts.strength_chart([("a", "red", evaluations(0.5), "greedy")], "update")
    assert csv_text(scores).splitlines()[1:] == ["a,1.0,0.5,0.4,0.6,40"]
    assert csv_name("Value loss, 95 %") == "Value-loss-95.csv"


@pytest.mark.parametrize(
    ("query", "view"),
    [
        (("", "", ""), charts.ChartView()),
        (("seconds", "0", "1"), charts.ChartView("seconds", 0.0, True)),
        (("update", "100", ""), charts.ChartView("update", 0.25, False)),
        (("nonsense", "999", "x"), charts.ChartView("timestep", 0.25, False)),
        (("update", "-5", "0"), charts.ChartView("update")),
    ],
)
def test_a_view_is_read_from_the_address(
    query: tuple[str, str, str], view: charts.ChartView
) -> None:
    found = view_of(*query)
    assert found == view
    address = view_query(found)
    again = view_of(address["x"], address.get("smooth", ""), address.get("log", ""))
    assert again == pytest.approx(view)


def test_evaluations_are_curves_too() -> None:
    found = charts.rating_curve(evaluations(0.5, 0.8), "timestep")
    assert (found.x.tolist(), found.mean.tolist()) == ([1000.0, 2000.0], [500.0, 800.0])
    assert found.low.tolist() == [450.0, 750.0]
    scored = charts.score_curve(evaluations(0.5), "update", "greedy")
    assert (scored.x.tolist(), scored.high.tolist()) == ([1.0], [0.6])
    assert len(charts.rating_curve([], "update").x) == 0


def test_scores_have_their_intervals() -> None:
    options = charts.strength_chart(
        [("vs greedy", "red", evaluations(0.25, 0.5), "greedy")], "seconds"
    )
    line, bars = options["series"]
    assert line["data"] == [[1.5, 0.25, 0.15, 0.35, 40], [3.0, 0.5, 0.4, 0.6, 40]]
    assert bars["type"] == "custom"
    assert bars["data"] == line["data"]


def test_long_runs_have_bars_at_some_of_their_points() -> None:
    many = evaluations(*[0.5] * 1000)
    line, bars = charts.strength_chart([("a", "red", many, "greedy")], "update")["series"]
    assert len(line["data"]) == 1000
    assert 20 <= len(bars["data"]) <= 60
    assert bars["data"][0] == line["data"][-1], "the newest point always has one"


def test_an_opponent_that_was_not_met_has_no_points() -> None:
    options = charts.strength_chart([("a", "red", evaluations(0.5), "random")], "update")
    assert options["series"][0]["data"] == []


def test_bands_are_shares_of_the_whole() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    amounts = np.array([[1.0, 3.0], [0.0, 0.0], [np.nan, 1.0], [2.0, 2.0]])
    options = charts.bands_chart(x, amounts, ["a", "b"], ["red", "blue"], "update")
    assert [series["data"] for series in options["series"]] == [
        [[1.0, 0.25], [4.0, 0.5]],
        [[1.0, 0.75], [4.0, 0.5]],
    ]


@pytest.mark.parametrize("value", [0.0, 1.0, -3.25, 123456.0, 1.23456789e-7, 5e7, 98765432.0])
def test_points_are_rounded_to_what_can_be_seen(value: float) -> None:
    [[shown]] = charts._points(np.array([value]))
    assert math.isclose(shown, value, rel_tol=1e-4, abs_tol=1e-15)
    if value == round(value):
        assert shown == value


def test_the_trend_goes_from_left_to_right_and_up() -> None:
    assert trend_points(evaluations(0.0, 0.5, 1.0)) == "33.3,30.0 66.7,15.0 100.0,0.0"
    assert trend_points(evaluations(0.5)) == "100.0,30.0 100.0,30.0"
    assert trend_points([]) == ""
    assert len(trend_points(evaluations(*[0.5] * 1000)).split()) <= 62


def test_ratings_are_charted_with_their_intervals() -> None:
    options = charts.rating_chart(
        [("mine", "#123456", evaluations(0.5, 0.8))], "timestep", checkpoints=[(2000.0, "step-2")]
    )
    low, height, line, _ = options["series"]
    assert (line["name"], line["type"]) == ("mine", "line")
    assert low["data"] == [[1000.0, 450.0], [2000.0, 750.0]]
    assert height["data"] == [[1000.0, 100.0], [2000.0, 100.0]], "from low to high"
    assert height["areaStyle"]["color"] == "#123456"
    assert [point[:4] for point in line["data"]] == [[1000, 500, 450, 550], [2000, 800, 750, 850]]
    marks = next(series for series in options["series"] if series.get("name") == "checkpoints")
    assert marks["data"] == [{"value": [2000.0, 450.0], "name": "step-2"}]
    assert charts.rating_chart([], "timestep", checkpoints=[(1.0, "a")])["series"] == []


def test_each_run_has_a_band_of_its_own() -> None:
    ratings = RunRatings(
        1, tuple(CheckpointRating(x, EloEstimate(x, x - 9.0, x + 9.0)) for x in (100, 200)), ()
    )
    for options in (
        charts.rating_chart([(name, "red", evaluations(0.5, 0.8)) for name in "ab"], "seconds"),
        charts.elo_chart([(name, "red", ratings) for name in "ab"]),
    ):
        found = [series.get("id") or series["name"] for series in options["series"]]
        assert found == ["low-0", "high-0", "a", "low-1", "high-1", "b"]


def test_the_interval_of_a_single_rating_is_a_bar() -> None:
    line, bar = charts.rating_chart([("a", "red", evaluations(0.5))], "update")["series"]
    assert (line["data"], bar["type"]) == ([[1.0, 500.0, 450.0, 550.0]], "custom")


def test_levels_are_drawn_across_the_line_of_a_run() -> None:
    points = tuple(CheckpointRating(x, EloEstimate(x, x - 9.0, x + 9.0)) for x in (100, 200))
    options = charts.elo_chart([("a", "red", RunRatings(1, points, (("greedy", 900.0),)))])
    assert options["series"][-1]["markLine"]["data"][0]["yAxis"] == 900.0
    assert (options["yAxis"]["min"], options["yAxis"]["max"]) == (0.0, 1000.0)


def test_ratings_beyond_the_scale_have_their_bound_in_words() -> None:
    beyond = EloEstimate(4400.0, 4100.0, 4700.0, "above")
    moments = [found._replace(elo=beyond) for found in evaluations(0.5, 0.9)]
    point = charts.rating_chart([("a", "red", moments)], "update")["series"][-1]["data"][0]
    assert point == {
        "value": [1.0, 4400.0, 4100.0, 4700.0], "bound": "above the scale: 4100 or more",
    }  # fmt: skip
    places = charts.ladder_chart([("a", beyond), ("b", EloEstimate(0.0, 0.0, 0.0))])["series"][-1]
    assert [place["bound"] for place in places["data"]] == ["", "above the scale: 4100 or more"]


def test_each_worker_has_a_row_with_all_its_metrics() -> None:
    columns, rows = worker_table(
        {
            "workers/10/SPS": 512.4,
            "workers/2/SPS": 480.0,
            "workers/2/waiting": 0.25,
            "workers/2/rss_mb": 301.5,
            "workers/10/new metric": 1.5,
            "workers/policy_lag": 3.0,
            "charts/SPS": 1000.0,
        }
    )
    labels = [column["label"] for column in columns]
    assert labels == ["Worker", "plies/s", "new metric", "waiting", "memory (MB)"]
    assert [row["worker"] for row in rows] == [2, 10]
    assert list(rows[0].values()) == [2, "480", "", "25 %", "302"]
    assert list(rows[1].values()) == [10, "512", "1.5", "", ""]


def test_without_workers_there_is_no_table() -> None:
    assert worker_table({"charts/SPS": 1000.0})[1] == []
