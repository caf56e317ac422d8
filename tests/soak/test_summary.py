"""The table of what the soak tests found; this test takes no time."""

import time
from pathlib import Path

import pytest

from tests.soak.summary import note, note_outcome, table


def test_the_table_has_what_was_found_and_how_the_tests_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "soak.jsonl"
    assert table(path).count("\n") == 1, "its heading"
    monkeypatch.setenv("KEISEI_SOAK_SUMMARY", str(path))
    note("games", "200 games", "lost on time: 1", since=time.monotonic())
    note("games", "200 games", "lost on time: 0", since=time.monotonic())
    for outcome in ("passed", "passed", "failed"):
        note_outcome("soak/test_games.py::test_games", outcome, 30.0)
    assert table(path).splitlines()[2:] == [
        "| games | 200 games | lost on time: 0 | 0.0 |",
        "| `soak/test_games.py::test_games` | 3 | 2 passed, 1 failed | 1.5 |",
    ]
