"""Messages about runs and results in the language of the page."""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("nicegui")

from keisei.errors import KeiseiError
from keisei.evaluation.match import PlayedGame
from keisei.evaluation.rating_text import bound_text
from keisei.evaluation.results import Conditions, ResultStore
from keisei.run_files import METRICS
from keisei.runs.artifacts import open_game, read_ladder
from keisei.runs.control import control_run
from keisei.runs.folder import RunsFolder
from keisei.runs.listing import read_overview
from keisei.runs.notes import RunNotes
from keisei.shogi.types import Color
from keisei.web import languages
from keisei.web.dashboard import run_messages
from keisei.web.dashboard.run_messages import message_text
from tests.evaluation.test_results import Nobody
from tests.runs.journals import new_run, step
from tests.web.page_check import IDENTIFIER, LATIN


@pytest.fixture
def japanese(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (languages, run_messages):
        monkeypatch.setattr(module, "page_language", lambda: "ja")


def error_of(act: Callable[[], object]) -> str:
    with pytest.raises(KeiseiError) as raised:
        act()
    return str(raised.value)


def ladder_of(path: Path, *, conditions: Conditions | None = None) -> list[str]:
    games = [PlayedGame(Color.BLACK, Color.BLACK, "checkmate", 90)] * 4
    with ResultStore(path, create=True) as store:
        store.add(Nobody("strong", "strong"), Nobody("weak", "weak"), games,
                  conditions=conditions or Conditions(), seed=0)  # fmt: skip
        store.add(Nobody("one", "one"), Nobody("two", "two"), games[:2],
                  conditions=conditions or Conditions(), seed=0)  # fmt: skip
    ladder, known = read_ladder(path, None)
    return [*ladder.notes, ladder.scale, *map(str, known)]


@pytest.mark.usefixtures("japanese")
def test_all_that_is_said_of_runs_and_results_is_translated(tmp_path: Path) -> None:
    folder = RunsFolder(tmp_path)
    run = new_run(tmp_path, "one", step(1, a=1.0))
    broken = new_run(tmp_path, "two", b"no line\n")
    empty, foreign = tmp_path / "empty.sqlite3", tmp_path / "foreign.sqlite3"
    empty.touch()
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE x (y)")
    database.close()
    torn = tmp_path / "torn.sqlite3"
    torn.write_bytes(b"no database" * 100)
    messages = [
        read_overview(run, now=1e10).note,
        read_overview(broken, now=1e10).note,
        error_of(lambda: folder.run("three")),
        error_of(lambda: control_run(run, "resume")),
        error_of(lambda: control_run(run, "pause")),
        error_of(lambda: RunNotes.of("x" * 1_000_000, "", is_archived=False)),
        error_of(lambda: RunNotes.of("", " ".join(map(str, range(1000))), is_archived=False)),
        error_of(lambda: RunNotes.of("", "x" * 1000, is_archived=False)),
        error_of(lambda: open_game(folder, "one", "x.kif")),
        *(error_of(partial(read_ladder, path, None)) for path in (empty, foreign, torn)),
        *ladder_of(tmp_path / "usual.sqlite3"),
        *ladder_of(tmp_path / "other.sqlite3", conditions=Conditions(ply_limit=99)),
        error_of(lambda: read_ladder(tmp_path / "usual.sqlite3", Conditions(ply_limit=98))),
        str(Conditions(openings="12 positions #abc", declaration="off")),
    ]
    names = {"one", "two", "strong", "weak", "three", "xxx", "kif", "abc"}
    for message in messages:
        text = message_text(message)
        words = set(LATIN.findall(IDENTIFIER.sub(" ", text))) - names
        assert not words, f"{message} -> {text}"


@pytest.mark.usefixtures("japanese")
def test_conditions_of_a_ladder() -> None:
    text = message_text(str(Conditions()))
    assert text == "平手の初期局面からランダムに4手、最大512手、入玉宣言：27点法"
    assert message_text(f"there is no {METRICS} yet") == f"{METRICS} がまだありません"
    assert message_text("RuntimeError: out of memory") == "RuntimeError: out of memory"


def test_in_english_they_are_as_they_were() -> None:
    assert message_text(str(Conditions())) == str(Conditions())


@pytest.mark.usefixtures("japanese")
def test_bounds_of_ratings() -> None:
    assert message_text(bound_text(4100.0, 4700.0, "above")) == (
        "スケールの上限を超えています：4100以上"
    )
    assert message_text(bound_text(-900.0, -500.0, "below")) == (
        "スケールの下限を下回っています：-500以下"
    )
