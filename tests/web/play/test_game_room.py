"""Tables without pages: machines move, opinions come, whoever leaves ends the engines."""

import asyncio
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from keisei.checkpoints.rotation import list_checkpoints
from keisei.errors import KeiseiError
from keisei.play.session import End, GameSession
from keisei.run_files import CHECKPOINTS
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.record import Ending
from keisei.shogi.types import Color, Move
from keisei.web.play.catalogue import (
    BOTS,
    NETWORK_LEVELS,
    Catalogue,
    require_existing,
)
from keisei.web.play.game_room import Table
from keisei.web.play.game_setup import PERSON, Seat, Setup
from keisei.web.play.room_directory import MOST_TABLES, Tables
from tests.web.conftest import Engine

RANDOM = Seat("bots", 0)


@pytest.fixture
def catalogue(runs: Path) -> Catalogue:
    return Catalogue(runs)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


def watched(table: Table) -> list[int]:
    """Attach a page that counts what it is told."""
    told: list[int] = []
    table.attach(lambda: told.append(table.session.length))
    return told


def page() -> None:
    """Looks on."""


# ---- who can be played ----


def test_runs_and_their_checkpoints_and_bots_can_be_chosen(catalogue: Catalogue) -> None:
    entries = catalogue.entries()
    assert [entry.label for entry in entries] == ["tiny", "tiny, 64 plies", "Bots"]
    assert [entry.is_network for entry in entries] == [True, True, False]


def test_levels_are_words_of_players(catalogue: Catalogue, runs: Path) -> None:
    tiny, _, bots = catalogue.entries()
    assert tiny.player() == str(runs / "tiny"), "as its run measures it"
    assert tiny.player(0) == f"{runs / 'tiny'}:policy,temperature=1"
    assert tiny.player(99) == f"{runs / 'tiny'}:search=1024"
    assert bots.player() == "greedy"
    assert [bots.player(level) for level in range(len(BOTS))] == [bot.word for bot in BOTS]


@pytest.mark.parametrize(
    "key",
    [
        "run:../tiny", "run:/etc", "run:tiny/../..", "named:/etc/passwd", "usi:sh", "../../etc",
        "run:no-run", "run:tiny/checkpoints", "", "named:usi:sh -c true", "run:tiny\\..\\..",
    ],
)  # fmt: skip
def test_what_is_not_in_the_catalogue_is_not_opened(catalogue: Catalogue, key: str) -> None:
    with pytest.raises(KeiseiError, match="there is no player"):
        catalogue.find(key)
    with pytest.raises(KeiseiError, match="there is no player"):
        Table(catalogue, Setup(white=Seat(key)))


def test_links_that_lead_out_of_the_runs_are_not_followed(runs: Path, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(runs / "tiny", target_is_directory=True)
    assert [entry.label for entry in Catalogue(inside).entries()] == ["Bots"]
    assert "tiny" in [entry.label for entry in Catalogue(runs).entries()]


def test_players_of_the_command_line_come_first(runs: Path) -> None:
    words = [str(runs / "tiny"), "alphabeta:2", f"{runs / 'tiny'}:search=4", "usi:some engine"]
    entries = Catalogue(runs / "none", words).entries()
    assert [entry.word for entry in entries] == [*words, ""]
    assert [bool(entry.levels) for entry in entries] == [True, False, False, False, True]
    assert [entry.is_network for entry in entries] == [True, False, True, False, False]
    assert entries[0].levels is NETWORK_LEVELS


def test_a_model_that_is_not_there_is_told_before_anything_is_loaded(runs: Path) -> None:
    for word in ("random", "alphabeta:2", "usi:x", str(runs / "tiny"), f"{runs / 'tiny'}:search=8"):
        require_existing(word)
    with pytest.raises(KeiseiError, match=r"there is no run or checkpoint nowhere, nor"):
        require_existing("nowhere:policy,temperature=1")


def test_runs_that_cannot_be_read_hide_no_others(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", "broken", "removed"):
        shutil.copytree(runs / "tiny", tmp_path / name)
    shutil.rmtree(tmp_path / "broken" / CHECKPOINTS)
    (tmp_path / "broken" / CHECKPOINTS).write_text("no directory")

    def list_while_it_goes(directory: Path) -> list[Path]:
        if directory.parent.name == "removed":
            raise FileNotFoundError(directory)
        return list_checkpoints(directory)

    monkeypatch.setattr("keisei.web.play.catalogue.list_checkpoints", list_while_it_goes)
    labels = [entry.label for entry in Catalogue(tmp_path).entries()]
    assert labels == ["good", "good, 64 plies", "Bots"]


# ---- playing ----


def test_machines_answer(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(white=RANDOM), seed=1)
        told = watched(table)
        table.move("7g7f")
        assert table.thinking is None, "the answer comes later"
        with pytest.raises(KeiseiError, match="not your turn"):
            table.move("2g2f")
        await table.settled()
        assert table.session.length == 2
        assert told[-1] == 2
        assert table.session.is_persons_turn
        assert table.session.name(Color.WHITE) == "random"
        assert table.session.name(Color.BLACK) == "You"

    run(story())


def test_nobody_thinks_where_nobody_watches(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(black=RANDOM))
        await table.settled()
        assert table.session.length == 0
        watched(table)
        await table.settled()
        assert table.session.length == 1

    run(story())


def test_a_move_that_is_taken_back_is_not_answered(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(white=RANDOM))
        watched(table)
        table.move("7g7f")
        table.take_back()
        table.move("2g2f")
        await table.settled()
        assert table.session.game.moves[0].usi == "2g2f"
        assert table.session.length == 2

    run(story())


def test_two_machines_play_to_the_end(catalogue: Catalogue) -> None:
    async def story() -> None:
        mate = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
        table = Table(catalogue, Setup(Seat("bots", 3), RANDOM, mate), seed=0, pace=0.0)
        watched(table)
        await table.settled()
        assert table.session.end is not None
        assert table.session.end.winner is Color.BLACK

    run(story())


def test_pausing_a_game_of_machines(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(RANDOM, RANDOM), pace=0.0)
        table.pause(True)
        watched(table)
        await table.settled()
        assert table.session.length == 0

        def stop() -> None:
            if table.session.length == 3 and not table.paused:
                table.pause(True)

        table.attach(stop)
        table.pause(False)
        await table.settled()
        assert table.session.length == 3

    run(story())


def test_looking_back_while_machines_play(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(white=RANDOM))
        watched(table)
        table.move("7g7f")
        table.go_to(0)
        await table.settled()
        assert (table.session.length, table.session.cursor) == (2, 0)
        with pytest.raises(KeiseiError, match="go to the last move"):
            table.move("2g2f")

    run(story())


def test_strength_can_change_within_a_game(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(white=RANDOM))
        watched(table)
        table.move("7g7f")
        await table.settled()
        table.seat(Color.WHITE, Seat("bots", 1))
        assert table.session.name(Color.WHITE) == "greedy"
        assert table.session.length == 2
        table.move("2g2f")
        await table.settled()
        assert table.session.length == 4

    run(story())


def test_networks_play_and_have_opinions(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(white=Seat("run:tiny")), adviser="run:tiny")
        watched(table)
        table.move("7g7f")
        await table.settled()
        assert table.session.length == 2
        assert len(table.opinions) == 3
        assert all(0 <= opinion.black <= 1 for opinion in table.opinions)
        legal = {move.usi for move in table.session.game.legal_moves}
        candidates = dict(table.opinions[2].candidates)
        assert len(candidates) == 5
        assert set(candidates) <= legal
        table.take_back()
        await table.settled()
        assert len(table.opinions) == 1
        table.advise(None)
        assert table.opinions == []
        with pytest.raises(KeiseiError, match="no network"):
            table.advise("bots")

    run(story())


def test_a_game_goes_on_when_training_deletes_the_checkpoint(runs: Path, tmp_path: Path) -> None:
    async def story() -> None:
        shutil.copytree(runs / "tiny", tmp_path / "tiny")
        catalogue = Catalogue(tmp_path)
        older = catalogue.entries()[1]
        table = Table(catalogue, Setup(white=Seat(older.key)), adviser=older.key)
        watched(table)
        table.move("7g7f")
        await table.settled()
        shutil.rmtree(older.word)
        assert older.key not in [entry.key for entry in catalogue.entries()]
        table.move("2g2f")
        await table.settled()
        assert (table.session.length, table.problem, table.adviser) == (4, "", older.key)
        assert table.entry(older.key) == older
        table.seat(Color.WHITE, Seat(older.key, 0))
        assert table.session.name(Color.WHITE) == "tiny, 64 plies (temperature 1)"
        table.move("2f2e")
        await table.settled()
        assert table.paused, "this needs the file"
        assert older.word in table.problem

    run(story())


def test_a_network_at_the_table_is_asked_for_its_opinion(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(RANDOM, RANDOM))
        table.advise_by_default()
        assert table.adviser is None
        table.seat(Color.WHITE, Seat("run:tiny"))
        table.advise_by_default()
        assert table.adviser == "run:tiny"

    run(story())


def test_an_opinion_of_the_end_is_the_result(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, adviser="run:tiny")
        watched(table)
        table.begin(Setup(start="4k4/9/4P4/9/9/9/9/9/4K4 b G 1"))
        table.move("G*5b")
        await table.settled()
        assert table.opinions[1].black == 1.0
        assert table.opinions[1].candidates == ()

    run(story())


def test_a_player_that_fails_pauses_the_game_and_says_why(runs: Path) -> None:
    async def story() -> None:
        table = Table(Catalogue(runs, ["usi:no-such-engine-anywhere"]))
        watched(table)
        table.begin(Setup(black=Seat("named:usi:no-such-engine-anywhere")))
        await table.settled()
        assert table.paused
        assert "no-such-engine-anywhere" in table.problem
        table.begin(Setup())
        assert (table.paused, table.problem) == (False, "")

    run(story())


def test_leaving_ends_engines(runs: Path, engine: Engine) -> None:
    async def story() -> None:
        table = Table(Catalogue(runs, [engine.word]))
        table.attach(page)
        table.begin(Setup(black=Seat(f"named:{engine.word}")))
        await table.settled()
        assert [move.usi for move in table.session.game.moves] == ["7g7f"], table.problem
        assert engine.is_running()
        await table.detach(page)
        assert not engine.is_running(), "the process has ended"
        table.attach(page)  # coming back: another process
        table.move("3c3d")
        await table.settled()
        assert table.session.length == 3, table.problem
        assert engine.is_running()
        await table.close()
        assert not engine.is_running()

    run(story())


# ---- ends, clocks, files ----


def test_resigning_and_time(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(white=RANDOM))
        table.finish(Ending.RESIGNATION)
        assert table.session.end == End(Ending.RESIGNATION, Color.WHITE)
        timed = Table(catalogue, Setup(limit=TimeLimit(-1)))
        timed.tick()
        assert timed.session.end == End(Ending.TIME_UP, Color.WHITE)

    run(story())


BYOYOMI = TimeLimit(0, byoyomi=10)


def test_nobody_loses_time_at_an_empty_table(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(limit=BYOYOMI))
        ran = [table.session.clock_runs]
        table.attach(page)
        ran.append(table.session.clock_runs)
        table.move("7g7f")
        ran.append(table.session.clock_runs)
        await table.detach(page)
        ran.append(table.session.clock_runs)
        assert ran == [False, True, True, False]

    run(story())


def test_machines_that_are_paused_lose_no_time(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(RANDOM, limit=BYOYOMI))
        table.pause(True)
        watched(table)
        await table.settled()
        assert not table.session.clock_runs
        table.pause(False)
        await table.settled()
        assert table.session.length == 1
        table.pause(True)
        assert table.session.clock_runs, "a person's time is not stopped by pausing machines"

    run(story())


def test_machines_lose_no_time_while_they_load(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(RANDOM, limit=BYOYOMI))
        ran: list[bool] = []

        class Slow:
            def choose(self, _: ShogiGame) -> Move:
                ran.append(table.session.clock_runs)
                return Move.from_usi("7g7f")

        def load(*_: object) -> Slow:
            ran.append(table.session.clock_runs)
            return Slow()

        monkeypatch.setattr("keisei.web.play.game_room._open", load)
        watched(table)
        await table.settled()
        assert ran == [False, True]
        assert table.session.clock_runs

    run(story())


def test_a_machine_that_fails_does_not_lose_on_time(runs: Path) -> None:
    async def story() -> None:
        table = Table(
            Catalogue(runs, ["usi:no-such-engine"]),
            Setup(black=Seat("named:usi:no-such-engine"), limit=BYOYOMI),
        )
        watched(table)
        await table.settled()
        assert table.paused
        assert not table.session.clock_runs

    run(story())


def test_a_game_from_a_file_belongs_to_people(catalogue: Catalogue) -> None:
    async def story() -> None:
        table = Table(catalogue, Setup(white=RANDOM))
        watched(table)
        table.open(GameSession("startpos moves 7g7f 3c3d 2g2f"))
        await table.settled()
        assert table.session.length == 3
        assert table.setup.seats == {Color.BLACK: PERSON, Color.WHITE: PERSON}
        table.go_to(1)
        table.play_on()
        table.seat(Color.WHITE, RANDOM)
        await table.settled()
        assert table.session.length == 2

    run(story())


# ---- all tables ----


def test_a_page_finds_its_table_again(catalogue: Catalogue) -> None:
    async def story() -> None:
        tables = Tables()
        first = Table(catalogue)
        tables.attach(first, page)
        others = [Table(catalogue) for _ in range(MOST_TABLES + 3)]
        for table in others:
            tables.attach(table, page)
            await table.detach(page)
        assert tables.find(first.id) is first, "it is watched"
        assert tables.find(others[0].id) is None
        assert tables.find(others[-1].id) is others[-1]
        assert tables.find("../etc/passwd") is None

    run(story())


def test_where_all_tables_are_taken_there_is_no_other(catalogue: Catalogue) -> None:
    async def story() -> None:
        tables = Tables()
        taken = [Table(catalogue) for _ in range(MOST_TABLES)]
        for table in taken:
            tables.attach(table, page)
        late = Table(catalogue)
        with pytest.raises(KeiseiError, match=f"{MOST_TABLES} tables are taken"):
            tables.attach(late, page)
        assert not late.is_watched
        assert tables.find(late.id) is None
        tables.attach(taken[0], lambda: None)  # another page at the same table
        await taken[1].detach(page)
        tables.attach(late, page)
        assert tables.find(late.id) is late
        assert tables.find(taken[1].id) is None

    run(story())


def test_a_page_that_connects_again_is_told_once(catalogue: Catalogue) -> None:
    async def story() -> None:
        tables, table = Tables(), Table(catalogue)
        told: list[int] = []

        def listen() -> None:
            told.append(table.session.length)

        tables.attach(table, listen)
        tables.attach(table, listen)
        table.move("7g7f")
        assert told == [1]
        await table.detach(listen)
        assert not table.is_watched

    run(story())
