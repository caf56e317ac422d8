"""The journal of a run: its lines, its history, and how it survives a kill."""

import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.runs import journal
from keisei.runs.history import History, RunStatus, read_status
from keisei.runs.journal import (
    JournalEntry,
    drop_repeated_evaluation,
    is_orderly_end,
    rewind,
)
from keisei.system import FileAccessError


def entry(event: str = "step", update: int = 1, **fields: object) -> JournalEntry:
    return JournalEntry(
        event=event,
        update=update,
        timestep=100 * update,
        total_timesteps=1_000,
        games=update,
        seconds=1.5 * update,
        time=1_700_000_000.0 + update,
        **fields,  # type: ignore[arg-type]
    )


def write(directory: Path, *entries: JournalEntry, tail: bytes = b"") -> Path:
    path = directory / "metrics.jsonl"
    path.write_bytes(b"".join(entry.to_line() for entry in entries) + tail)
    return path


@given(
    st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
    st.text(),
    st.integers(0, 10**9),
)
def test_a_line_can_be_read_back(metrics: dict[str, float], reason: str, update: int) -> None:
    written = entry(update=update, metrics=metrics, reason=reason)
    line = written.to_line()
    assert line.count(b"\n") == 1
    assert JournalEntry.from_line(line) == written


def test_values_that_are_not_finite_are_null() -> None:
    line = entry(metrics={"a": math.nan, "b": math.inf, "c": 1.0}).to_line()
    assert b'"metrics":{"a":null,"b":null,"c":1.0}' in line
    assert math.isnan(JournalEntry.from_line(line).metrics["a"])


def test_facts_of_any_kind_are_written() -> None:
    line = entry("start", facts={"path": Path("weights"), "planes": 46}).to_line()
    assert JournalEntry.from_line(line).facts == {"path": "weights", "planes": 46}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b'{"event":"step","upd',
        b"[]",
        b"3",
        b'{"event":"step"}',
        b"\xff\xfe",
        b"[" * 100_000,
        entry().to_line().replace(b'"games":1', b'"games":"1"'),
        entry().to_line().replace(b'"games":1', b'"games":NaN'),
        entry().to_line().replace(b'"games":1', b'"games":1e300'),
        entry().to_line().replace(b'"games":1', b'"games":1,"facts":[[1,2]]'),
        entry().to_line().replace(b'"games":1', b'"games":1,"metrics":{"a":%d}' % (10**400)),
    ],
)
def test_broken_lines_are_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        JournalEntry.from_line(line)


def test_rewinding_drops_what_came_later(tmp_path: Path) -> None:
    path = write(tmp_path, *(entry(update=update) for update in range(1, 6)))
    rewind(path, 3)
    assert [step.update for step in History.read(tmp_path).steps] == [1, 2, 3]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("length", range(0, 150, 10))
def test_rewinding_repairs_a_torn_line(tmp_path: Path, length: int) -> None:
    torn = entry(update=2).to_line()[:length]
    path = write(tmp_path, entry(update=1), tail=torn)
    rewind(path, 5)
    data = path.read_bytes()
    assert data.endswith(b"}\n")
    assert data.splitlines()[0] + b"\n" == entry(update=1).to_line()


def test_a_repeated_evaluation_is_dropped_from_a_long_journal(tmp_path: Path) -> None:
    """One longer than other files may be."""
    path = write(tmp_path, entry("checkpoint", 1), entry("evaluation", 1), tail=b"")
    with path.open("ab") as file:
        file.truncate(65 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    drop_repeated_evaluation(path, 1)
    lines = list(journal.parse_lines(path.read_bytes()))
    assert [found.event for _, found in lines if found] == ["checkpoint"]


def test_a_line_that_only_lacks_its_newline_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, entry(update=1), tail=entry(update=2).to_line().rstrip(b"\n"))
    rewind(path, 2)
    assert path.read_bytes() == entry(update=1).to_line() + entry(update=2).to_line()


def test_rewinding_keeps_lines_to_the_letter(tmp_path: Path) -> None:
    line = entry(update=1).to_line().replace(b"{", b'{ "from": "a later version", ')
    path = write(tmp_path, tail=line + entry(update=9).to_line())
    rewind(path, 1)
    assert path.read_bytes() == line


def test_a_journal_in_order_is_not_touched(tmp_path: Path) -> None:
    path = write(tmp_path, entry(update=1))
    before = path.stat()
    rewind(path, 1)
    assert path.stat().st_ino == before.st_ino
    rewind(tmp_path / "missing.jsonl", 1)
    assert not (tmp_path / "missing.jsonl").exists()


def test_a_full_disk_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, entry(update=1), entry(update=2))
    before = path.read_bytes()

    def disk_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", disk_full)
    with pytest.raises(FileAccessError, match="No space left"):
        rewind(path, 1)
    assert path.read_bytes() == before


def test_history_of_a_run(tmp_path: Path) -> None:
    write(
        tmp_path,
        entry("start", 0, facts={"device": "cpu"}),
        entry("step", 1, metrics={"charts/SPS": 10.0, "x": math.nan}),
        entry("step", 2, metrics={"charts/SPS": 20.0, "x": 1.0}),
        entry("evaluation", 2, metrics={"eval/random/score": 0.5}),
        entry("end", 2, reason="interrupted"),
        entry("start", 2, facts={"device": "cuda"}),
        entry("evaluation", 2, metrics={"eval/random/score": 0.6}),
        tail=b'{"event":"st',
    )
    history = History.read(tmp_path)
    assert history.broken_lines == 1
    assert history.series("charts/SPS") == ([100, 200], [10.0, 20.0])
    assert history.series("x") == ([200], [1.0])
    assert [one.metrics["eval/random/score"] for one in history.evaluations] == [0.6]
    assert len(history.starts) == 2
    assert history.facts == {"device": "cuda"}
    assert history.end is None
    assert History(history.entries[:5]).end == entry("end", 2, reason="interrupted")


def test_an_evaluation_may_be_written_late(tmp_path: Path) -> None:
    write(
        tmp_path, entry(update=1), entry(update=2), entry("evaluation", update=1), entry(update=3),
        entry("evaluation", update=2),
    )  # fmt: skip
    history = History.read(tmp_path)
    assert [found.timestep for found in history.evaluations] == [100, 200]
    assert (history.furthest.event, history.furthest.update) == ("step", 3)
    end = History((*history.entries, entry("end", update=3)))
    assert end.furthest.event == "end", "of several of one update, the last"


def test_an_empty_history() -> None:
    history = History(())
    assert history.end is None
    assert history.facts == {}
    assert history.series(journal.STEP) == ([], [])


def test_reasons() -> None:
    assert [is_orderly_end(reason) for reason in ("finished", "time limit", "interrupted")]
    assert not is_orderly_end("the loss is not a number")


EVENTS = st.lists(
    st.sampled_from(["start", "step", "step", "step", "evaluation", "end", "torn", "blank"]),
    max_size=30,
)


def line_of(event: str, update: int) -> bytes:
    if event in ("torn", "blank"):
        return b'{"event":"step","upd\n' if event == "torn" else b"\n"
    late = max(0, update - 3) if event == "evaluation" else update
    return entry(event, late, metrics={"a": update, "eval/x/score": update}).to_line()


@given(EVENTS, st.integers(0, 30))
def test_the_status_without_parsing_every_step_is_that_of_the_history(
    events: list[str], cut: int
) -> None:
    lines = [line_of(event, update) for update, event in enumerate(events)]
    whole, parts = RunStatus(), RunStatus()
    for _, found in journal.parse_lines(b"".join(lines)):
        if found is not None:
            whole.add(found)
    parts.add_lines(line.rstrip(b"\n") for line in lines[:cut])
    parts.add_lines(line.rstrip(b"\n") for line in lines[cut:])
    assert parts == whole


def test_the_status_of_a_run_is_read_in_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, *(entry(update=update) for update in range(1, 50)), tail=b'{"event":"st')
    read = journal.JournalReader.read
    monkeypatch.setattr(journal.JournalReader, "read", lambda self: read(self, 400))
    status = read_status(tmp_path)
    assert status.first is not None
    assert status.last is not None
    assert (status.first.update, status.last.update) == (1, 49)
    with pytest.raises(FileAccessError, match=r"cannot read .*metrics\.jsonl"):
        read_status(tmp_path / "nowhere")
