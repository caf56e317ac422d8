"""A run for the dashboard: while it grows, after a resume, and when its files are broken."""

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.run_files import (
    CONFIG,
    LIVE,
    METRICS,
    STRENGTH,
)
from keisei.runs import run_reader as module
from keisei.runs.artifacts import read_ratings
from keisei.runs.folder import RunsFolder
from keisei.runs.history import History
from keisei.runs.journal import JournalEntry, rewind
from keisei.runs.listing import read_overview
from keisei.runs.run_reader import RunReader, read_live
from keisei.runs.run_record import (
    MAX_EVALUATIONS,
    RunRecord,
    sample_lines,
    scores_against,
)
from tests.runs.journals import (
    append,
    entry,
    evaluation,
    fake_journal,
    new_run,
    step,
)


def read_all(folder: Path, name: str = "run") -> RunReader:
    data = RunReader(RunsFolder(folder), name)
    while data.read():
        pass
    return data


def test_it_agrees_with_keisei_runs(tmp_path: Path) -> None:
    run = fake_journal(tmp_path, "run")
    found = read_all(tmp_path).overview(now=2e9)
    expected = read_overview(run, now=2e9)
    for name in ("state", "note", "timestep", "total_timesteps", "update", "games", "seconds",
                 "started", "scores", "model", "parameters"):  # fmt: skip
        assert getattr(found, name) == getattr(expected, name), name


def test_its_curves_are_those_of_the_journal(tmp_path: Path) -> None:
    run = fake_journal(tmp_path, "run")
    data = read_all(tmp_path)
    history = History.read(run)
    assert data.steps == len(history.steps)
    for name in data.metric_names:
        plies, values = history.series(name)
        curve = data.curve(name, "timestep")
        np.testing.assert_array_equal(curve.x, plies)
        np.testing.assert_array_equal(curve.mean, values)
    updates = data.curve("charts/SPS", "update").x
    np.testing.assert_array_equal(updates, [found.update for found in history.steps])
    assert [found.update for found in data.evaluations] == [
        found.update for found in history.evaluations
    ]


def test_it_follows_a_run(tmp_path: Path) -> None:
    run = new_run(tmp_path, "run", entry("start", 0, facts={"parameters": 7}).to_line())
    data = read_all(tmp_path)
    version = data.version
    assert data.overview(now=1000.0).state == "running"
    data.read()
    assert data.version == version, "nothing is new"
    append(run, step(1, charts__SPS=10.0), step(2, charts__SPS=20.0), evaluation(2, 0.4))
    data.read()
    assert data.version > version
    summary = data.overview(now=1004.0)
    assert (summary.update, summary.metrics["charts/SPS"]) == (2, 20.0)
    assert summary.scores["greedy"].score == 0.4
    assert data.curve("charts/SPS", "seconds").x.tolist() == [2.0, 4.0]
    append(run, entry("end", 2, reason="finished").to_line())
    data.read()
    assert data.overview(now=1e9).state == "finished"


def test_a_line_that_is_being_written_waits(tmp_path: Path) -> None:
    line = step(1, a=1.0)
    run = new_run(tmp_path, "run", line[:20])
    data = read_all(tmp_path)
    assert data.steps == 0
    append(run, line[20:])
    data.read()
    assert (data.steps, data.broken_lines) == (1, 0)


def test_a_resumed_run_is_read_again(tmp_path: Path) -> None:
    run = new_run(tmp_path, "run", *(step(update, a=float(update)) for update in range(1, 9)))
    data = read_all(tmp_path)
    rewind(run / METRICS, 5)
    append(run, step(6, a=-1.0))
    data.read()
    assert data.curve("a", "update").mean.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, -1.0]


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"[]",
        b"17",
        b'"event"',
        b"null",
        b"\xff\xfe",
        b'{"event":"step"}',
        b'{"event":"step","metrics":{"a":"x"},"timestep":1,"seconds":1,"update":1}',
        b'{"event":"step","metrics":{"a":[1]},"timestep":1,"seconds":1,"update":1}',
        b'{"event":"step","metrics":{"a":1},"timestep":"far","seconds":1,"update":1}',
        b'{"event":"step","metrics":{"a":1},"timestep":null,"seconds":1,"update":1}',
        b'{"event":"step","metrics":7,"timestep":1,"seconds":1,"update":1}',
        b'{"event":"step","metrics":[1],"timestep":1,"seconds":1,"update":1}',
        b'{"event":"step","metrics":"a","timestep":1,"seconds":1,"update":1}',
        b'{"event":"step","metrics":{"a":1},"timestep":1e300,"seconds":1,"update":1}',
        b'{"event":"evaluation","update":1}',
        b'{"event":["step"],"update":1}',
        b"[" * 5000,
    ],
)
def test_lines_that_are_not_entries_are_counted_and_skipped(tmp_path: Path, broken: bytes) -> None:
    new_run(tmp_path, "run", step(1, a=1.0), broken + b"\n", step(2, a=2.0))
    data = read_all(tmp_path)
    assert data.curve("a", "update").mean.tolist() == [1.0, 2.0]
    assert data.broken_lines == 1
    assert data.overview(now=1004.0).update == 2


def test_the_last_step_that_can_be_read_tells_how_the_run_is_doing(tmp_path: Path) -> None:
    broken = step(2, a=2.0).replace(b'"metrics":{"a":2.0}', b'"metrics":[1]')
    new_run(tmp_path, "run", step(1, a=1.0), broken)
    data = read_all(tmp_path)
    assert (data.overview(now=1004.0).update, data.broken_lines) == (1, 1)


EVENTS = ["start", "step", "evaluation", "checkpoint", "end"]
FIELDS = [field.name for field in fields(JournalEntry)]
ODD: list[Any] = [
    *(None, True, -1, 10**400, 1.5, 1e300, "", "a", "nan", "inf"),
    *([], [1], ["ab"], [[1, 2]]),
    *({}, {"a": 1}, {"a": [1]}, {"a": {}}, {"a": "inf"}),
]
"""A value or two of every kind that JSON has."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(ODD),
    lambda values: (
        st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3)
    ),
    max_leaves=5,
)
EVALUATED = [f"eval/greedy/{figure}" for figure in ("score", "low", "wins", "as_black")]


def survives(root: Path, *odd: dict[str, Any]) -> None:
    """Lines with all kinds of values must neither raise nor hide what stands around them."""
    lines = [json.dumps(line).encode() + b"\n" for line in odd]
    run = new_run(root, "run", step(1, good=1.0), *lines, step(3, good=3.0))
    data = read_all(root)
    summary = data.overview(now=1006.0)
    assert summary.metrics["good"] == 3.0
    assert summary.fraction_done <= 1.0
    assert data.curve("good", "update").mean.tolist() == [1.0, 3.0]
    for name in data.metric_names:
        for values in data.curve(name, "timestep"):
            assert np.isfinite(values).all()
    assert all(score.games >= 0 for found in data.evaluations for score in found.scores.values())
    assert all(isinstance(found.path, str) for found in data.checkpoints)
    assert orjson.dumps(dict(data.facts)) is not None
    assert read_overview(run, now=1006.0).state != "broken"


def odd_line(event: str, /, **fields: Any) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(entry(event, 2, metrics={"bad": 1.0}).to_line())
    return line | fields


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("event", EVENTS)
def test_every_kind_of_value_in_every_field_is_survived(
    tmp_path: Path, event: str, field: str
) -> None:
    survives(tmp_path, *(odd_line(event, **{field: value}) for value in ODD))


@pytest.mark.parametrize("event", EVENTS)
def test_every_kind_of_value_of_a_metric_is_survived(tmp_path: Path, event: str) -> None:
    survives(
        tmp_path,
        *(odd_line(event, metrics={name: value}) for name in EVALUATED for value in ODD),
        *(odd_line(event, metrics={EVALUATED[0]: 1.0, name: x}) for name in EVALUATED for x in ODD),
    )


@given(
    st.sampled_from(EVENTS),
    st.dictionaries(st.sampled_from(FIELDS), JSON),
    st.none() | st.dictionaries(st.sampled_from(EVALUATED), JSON, min_size=1),
)
@settings(deadline=None)
def test_values_of_any_kind_are_survived(
    tmp_path_factory: pytest.TempPathFactory,
    event: str,
    odd: dict[str, Any],
    metrics: dict[str, Any] | None,
) -> None:
    if metrics is not None:
        odd = odd | {"metrics": metrics}
    survives(tmp_path_factory.mktemp("runs"), odd_line(event, **odd))


@pytest.mark.parametrize("field", ["time", "update", "games", "sfen", "last_move"])
def test_live_games_of_any_kind_are_survived(tmp_path: Path, field: str) -> None:
    run = new_run(tmp_path, "run")
    for value in ODD:
        game = {"sfen": "startpos", "last_move": "7g7f"} | {field: value}
        live = {"time": 1.0, "update": 1, "games": [game]} | {field: value}
        for text in (live, value):
            (run / LIVE).write_text(json.dumps(text))
            (run / STRENGTH).write_text(json.dumps(text))
            found = read_live(RunsFolder(tmp_path), "run")
            for board in () if found is None else found.boards:
                assert isinstance(board.sfen, str)
                assert isinstance(board.last_move, str | None)
            assert read_ratings(RunsFolder(tmp_path), "run") is None


def test_values_that_are_not_finite_leave_gaps(tmp_path: Path) -> None:
    new_run(tmp_path, "run", step(1, a=1.0), step(2, a=math.nan), step(3, a=3.0, b=1.0))
    data = read_all(tmp_path)
    assert data.curve("a", "update").x.tolist() == [1.0, 3.0]
    assert data.curve("b", "update").x.tolist() == [3.0]


def test_a_run_without_a_journal_has_a_note(tmp_path: Path) -> None:
    run = new_run(tmp_path, "run")
    (run / METRICS).unlink()
    data = read_all(tmp_path)
    summary = data.overview(now=0.0)
    assert summary.state == "broken"
    assert "metrics.jsonl" in summary.note
    append(run, step(1, a=1.0))
    data.read()
    assert data.overview(now=1002.0).state == "running"


@pytest.mark.parametrize("config", ["", "[1]", "{", '{"model": 3}'])
def test_settings_that_cannot_be_read_are_ignored(tmp_path: Path, config: str) -> None:
    run = new_run(tmp_path, "run", step(1, a=1.0))
    (run / CONFIG).write_text(config)
    assert read_all(tmp_path).overview(now=1002.0).model == ""


def test_a_long_journal_is_sampled_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONG_BYTES", 10_000)
    monkeypatch.setattr(module, "_TAIL_BYTES", 2_000)
    monkeypatch.setattr(module, "_SAMPLED_BYTES", 2_000)
    monkeypatch.setattr(module, "_STEP_BYTES", 150)
    monkeypatch.setattr(module, "_SAMPLED_STEPS", 20)
    lines = [entry("start", 0, facts={"parameters": 7}).to_line()]
    for update in range(1, 401):
        lines.append(step(update, a=float(update)))
        if update % 50 == 0:
            lines.append(evaluation(update, update / 400))
    new_run(tmp_path, "run", *lines)
    data = RunReader(RunsFolder(tmp_path), "run")
    data.read_tail()
    summary = data.overview(now=1800.0)
    assert (summary.update, summary.started, summary.parameters) == (400, 1000.0, 7)
    assert summary.scores["greedy"].score == 1.0
    pieces = 0
    while not data.is_sampled:
        assert data.read(4000)
        pieces += 1
    assert pieces > 5
    assert data.progress < 1.0
    assert [found.update for found in data.evaluations] == list(range(50, 401, 50))
    sampled = data.curve("a", "update")
    assert 10 <= len(sampled.x) <= 100
    assert sampled.x[-1] == 400
    np.testing.assert_array_equal(sampled.x, sampled.mean)
    while data.read(4000):
        assert data.steps == len(sampled.x), "the sketch is shown until all is read"
    assert data.is_read
    assert data.curve("a", "update").x.tolist() == [float(update) for update in range(1, 401)]
    assert [found.update for found in data.evaluations] == list(range(50, 401, 50))


def test_short_journals_are_not_sampled(tmp_path: Path) -> None:
    new_run(tmp_path, "run", step(1, a=1.0))
    data = RunReader(RunsFolder(tmp_path), "run")
    data.read_tail()
    assert not data.read()
    assert data.is_sampled
    assert data.steps == 1


def test_an_evaluation_of_an_earlier_moment_does_not_turn_back_the_clock(tmp_path: Path) -> None:
    new_run(tmp_path, "run", step(8, a=1.0), evaluation(4, 0.5), evaluation(4, 0.6))
    data = read_all(tmp_path)
    assert data.overview(now=1016.0).update == 8
    assert [strength.score for _, strength in scores_against(data.evaluations, "greedy")] == [0.6]


def test_very_many_evaluations_are_thinned_out() -> None:
    record = RunRecord()
    record.add_lines([evaluation(update, 0.5).rstrip() for update in range(1, 3 * MAX_EVALUATIONS)])
    found = [evaluation.update for evaluation in record.evaluations]
    assert MAX_EVALUATIONS / 2 <= len(found) <= MAX_EVALUATIONS
    assert found[-1] >= 3 * MAX_EVALUATIONS - 3
    assert json.dumps(found) == json.dumps(sorted(found))


def test_a_sample_has_all_but_most_of_the_steps() -> None:
    start, end = entry("start", 0).to_line(), entry("end", 9, reason="finished").to_line()
    steps = [step(update, a=float(update)) for update in range(1, 9)]
    odd = b'{"update": 3, "event": "step"}\n'
    data = b"".join([start, *steps[:5], odd, *steps[5:], end])
    wanted = [start, steps[2], odd, steps[5], steps[7], end]
    assert sorted(sample_lines(data, 3)) == sorted(line.rstrip() for line in wanted)
    assert list(sample_lines(data, 1)) == data.split(b"\n")[:-1]
    assert list(sample_lines(b"", 3)) == []
