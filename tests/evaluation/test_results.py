"""Past results: kept whole, shared by processes, and refused where they are something else."""

import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation import results
from keisei.evaluation.match import MatchSettings, PlayedGame
from keisei.evaluation.ratings import PairResult
from keisei.evaluation.results import (
    Conditions,
    ResultStore,
    StoredPlayer,
    StoreError,
)
from keisei.players.player import LegalIndices
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.types import Color
from keisei.shogi.vector import VectorShogi

USUAL = Conditions()


@dataclass
class Nobody:
    """A player without moves."""

    name: str
    identity: str

    def choose(
        self, env: VectorShogi, games: LegalIndices, random: np.random.Generator
    ) -> LegalIndices:
        raise NotImplementedError

    def close(self) -> None:
        pass


A, B, C = (Nobody(name, f"{name}#1") for name in "ABC")
GAMES = [
    PlayedGame(Color.BLACK, Color.BLACK, "checkmate", 80),
    PlayedGame(Color.BLACK, None, "repetition", 50),
    PlayedGame(Color.WHITE, Color.BLACK, "resignation", 90),
    PlayedGame(Color.WHITE, Color.WHITE, "checkmate", 101),
    PlayedGame(Color.WHITE, Color.WHITE, "checkmate", 103),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "ladder.sqlite3"


def test_results_come_back_by_pair_and_colour(path: Path) -> None:
    with ResultStore(path, create=True) as store:
        assert store.add(A, B, GAMES, conditions=USUAL, seed=0)
        assert store.add(C, A, GAMES[:1], conditions=USUAL, seed=0)
    with ResultStore(path) as store:
        assert store.results(USUAL) == [
            PairResult("A#1", "B#1", 1, 1, 0),
            PairResult("B#1", "A#1", 1, 0, 2),
            PairResult("C#1", "A#1", 1, 0, 0),
        ]
        assert store.results(USUAL, {"A#1", "C#1"}) == [PairResult("C#1", "A#1", 1, 0, 0)]
        assert store.games_between(B, A, USUAL) == 5
        assert store.games_between(B, C, USUAL) == 0
        assert store.players() == [
            StoredPlayer("A#1", "A", 6),
            StoredPlayer("B#1", "B", 5),
            StoredPlayer("C#1", "C", 1),
        ]


def test_matches_add_up_in_whichever_order_the_players_come(path: Path) -> None:
    with ResultStore(path, create=True) as store:
        store.add(A, B, GAMES, conditions=USUAL, seed=0)
        store.add(B, A, GAMES, conditions=USUAL, seed=7)
        assert store.results(USUAL) == [
            PairResult("A#1", "B#1", 2, 1, 2),
            PairResult("B#1", "A#1", 2, 1, 2),
        ]
        assert store.seeds(A, B) == store.seeds(B, A) == {0, 7}
        assert store.seeds(A, C) == set()


def test_games_under_other_conditions_are_kept_apart(path: Path) -> None:
    short = Conditions(ply_limit=100)
    with ResultStore(path, create=True) as store:
        store.add(A, B, GAMES, conditions=USUAL, seed=0)
        store.add(A, C, GAMES[:2], conditions=short, seed=0)
        assert [pair.white for pair in store.results(short)] == ["C#1"]
        assert [player.name for player in store.players(short)] == ["A", "C"]
        assert [player.games for player in store.players()] == [7, 5, 2]
        assert store.conditions() == [(USUAL, 5), (short, 2)]


def test_the_same_match_is_not_counted_twice(path: Path) -> None:
    with ResultStore(path, create=True) as store:
        assert store.add(A, B, GAMES, conditions=USUAL, seed=3)
        assert not store.add(B, A, GAMES, conditions=USUAL, seed=3)
        assert store.games_between(A, B, USUAL) == 5
        assert store.add(A, B, GAMES, conditions=Conditions(ply_limit=9), seed=3)


def test_a_match_is_stored_part_by_part_and_no_part_twice(path: Path) -> None:
    with ResultStore(path, create=True) as store, ResultStore(path) as other:
        assert not store.add(A, B, GAMES[2:], conditions=USUAL, seed=3, after=2), "not begun yet"
        assert store.seeds(A, B) == set()
        assert store.add(A, B, GAMES[:2], conditions=USUAL, seed=3)
        assert other.add(A, B, GAMES[2:4], conditions=USUAL, seed=3, after=2)
        assert not store.add(A, B, GAMES[2:4], conditions=USUAL, seed=3, after=2)
        assert store.add(A, B, GAMES[4:], conditions=USUAL, seed=3, after=4)
        assert not store.add(A, B, GAMES[4:], conditions=USUAL, seed=4, after=4)
        assert store.games_between(A, B, USUAL) == len(GAMES)
        assert store.seeds(A, B) == {3}


def test_nobody_is_rated_by_playing_himself(path: Path) -> None:
    with (
        ResultStore(path, create=True) as store,
        pytest.raises(StoreError, match="A played against itself"),
    ):
        store.add(A, Nobody("other name", "A#1"), GAMES, conditions=USUAL, seed=0)


def test_a_player_has_its_latest_name(path: Path) -> None:
    with ResultStore(path, create=True) as store:
        store.add(A, B, GAMES, conditions=USUAL, seed=0)
        store.add(Nobody("renamed", "A#1"), B, GAMES, conditions=USUAL, seed=1)
        assert store.players()[0] == StoredPlayer("A#1", "renamed", 10)


def test_every_game_is_written_down_with_when_and_how(path: Path) -> None:
    with ResultStore(path, create=True) as store:
        store.add(A, B, GAMES, conditions=USUAL, seed=5)
    database = sqlite3.connect(path)
    assert database.execute("SELECT winner, ending, plies FROM games").fetchall() == [
        ("black", "checkmate", 80),
        (None, "repetition", 50),
        ("black", "resignation", 90),
        ("white", "checkmate", 101),
        ("white", "checkmate", 103),
    ]
    ((seed, when, version),) = database.execute("SELECT seed, played_at, keisei FROM matches")
    assert (seed, when[:2], version[0]) == (5, "20", "0")
    database.close()


def test_a_match_that_fails_halfway_leaves_nothing(path: Path) -> None:
    bad = [*GAMES, PlayedGame(Color.BLACK, None, "repetition", None)]  # type: ignore[arg-type]
    with ResultStore(path, create=True) as store:
        with pytest.raises(sqlite3.IntegrityError):
            store.add(A, B, bad, conditions=USUAL, seed=0)
        assert store.results(USUAL) == []
        assert store.add(A, B, GAMES, conditions=USUAL, seed=0), "and it can go on"


def test_conditions_of_a_match() -> None:
    assert Conditions.of(MatchSettings(games=1)) == USUAL
    assert str(USUAL) == ("4 opening plies from startpos, ply limit 512, declaration points 27")
    openings = ("4k4/9/9/9/9/9/4P4/9/4K4 w - 1", "4k4/9/9/9/9/9/4P4/9/4K4 b - 1")
    one, other = (
        Conditions.of(
            MatchSettings(games=1, openings=order, opening_plies=0, declaration=DeclarationRule.OFF)
        )
        for order in (openings, openings[::-1])
    )
    assert one == other, "the order of the openings does not matter"
    assert one.openings.startswith("2 positions #")
    assert one.declaration == "off"


# ---- files that are something else ----


def test_reading_makes_no_file(path: Path) -> None:
    with pytest.raises(StoreError, match="the file does not exist"):
        ResultStore(path)
    assert not path.parent.exists()


def test_an_empty_file_is_no_ladder_but_can_become_one(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(StoreError, match="the file is empty"):
        ResultStore(path)
    with ResultStore(path, create=True) as store:
        assert store.players() == []


def test_other_files_are_refused_and_untouched(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("some notes that are no database\n" * 200)
    foreign = tmp_path / "foreign.sqlite3"
    database = sqlite3.connect(foreign)
    database.execute("CREATE TABLE recipes (name TEXT)")
    database.close()
    before = foreign.read_bytes()
    for create in (False, True):
        with pytest.raises(StoreError, match=r"notes\.txt: it is not a result store"):
            ResultStore(text, create=create)
        with pytest.raises(StoreError, match="the database of another program"):
            ResultStore(foreign, create=create)
    assert foreign.read_bytes() == before
    with pytest.raises(StoreError, match="cannot be opened or created"):
        ResultStore(tmp_path, create=True)
    with pytest.raises(KeiseiError, match="cannot make"):
        ResultStore(text / "ladder.sqlite3", create=True)


def test_a_newer_format_is_refused(path: Path) -> None:
    ResultStore(path, create=True).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(KeiseiError, match="has format version 2, but this Keisei"):
        ResultStore(path)


def test_a_damaged_file_is_told_of(path: Path) -> None:
    with ResultStore(path, create=True) as store:
        store.add(A, B, GAMES, conditions=USUAL, seed=0)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with ResultStore(path) as store, pytest.raises(StoreError, match="it is damaged"):
        store.results(USUAL)


def test_a_write_protected_file_can_be_read_only(path: Path) -> None:
    with ResultStore(path, create=True) as store:
        store.add(A, B, GAMES, conditions=USUAL, seed=0)
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write everything")
    with ResultStore(path) as store:
        assert store.games_between(A, B, USUAL) == 5
    with pytest.raises(StoreError, match="it is write-protected"):
        ResultStore(path, create=True)


def test_a_lock_that_stays_is_told_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "LOCK_TIMEOUT", 0.1)
    ResultStore(path, create=True).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="another process has locked it"):
        ResultStore(path, create=True)
    other.execute("ROLLBACK")
    other.close()


# ---- several processes, and their sudden ends ----

WRITER = """
import sys
from pathlib import Path
from keisei.evaluation.results import Conditions, ResultStore
from tests.evaluation.test_results import A, B, GAMES

first, last = int(sys.argv[2]), int(sys.argv[3])
with ResultStore(Path(sys.argv[1]), create=True) as store:
    print("ready", flush=True)
    for seed in range(first, last):
        store.add(A, B, GAMES * 100, conditions=Conditions(), seed=seed)
"""


def start_writer(path: Path, first: int, last: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(last)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_write_at_once(path: Path) -> None:
    writers = [start_writer(path, 0, 20), start_writer(path, 10, 30)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    with ResultStore(path) as store:
        assert store.seeds(A, B) == set(range(30))
        assert store.games_between(A, B, USUAL) == 30 * 500, "those of both are counted once"


def test_a_killed_process_leaves_whole_matches(path: Path) -> None:
    writer = start_writer(path, 0, 1_000_000)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    time.sleep(0.3)
    writer.kill()
    writer.wait()
    writer.stdout.close()
    with ResultStore(path, create=True) as store:
        seeds = store.seeds(A, B)
        assert seeds == set(range(len(seeds)))
        assert store.games_between(A, B, USUAL) == 500 * len(seeds)
        assert store.add(A, B, GAMES, conditions=USUAL, seed=-1)
