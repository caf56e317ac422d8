"""Game rooms without a browser: computer players, analysis, clocks, and the lobby."""

import asyncio
import shutil
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from keisei.checkpoints.rotation import list_checkpoints
from keisei.constants import BUILTIN
from keisei.errors import KeiseiError
from keisei.levels import DEFAULT_LEVEL
from keisei.play.opponent import Opponent
from keisei.play.saved_games import SavedGames
from keisei.play.session import End, GameSession
from keisei.play.transfer import read_session
from keisei.run_files import CHECKPOINTS
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.record import Ending, GameRecord
from keisei.shogi.types import Color, Move
from keisei.web.play.catalogue import (
    BOTS,
    NETWORK_LEVELS,
    PERSON,
    Catalogue,
    GameSetup,
    PlayerChoice,
    require_existing,
)
from keisei.web.play.game_room import GameRoom, Lobby
from keisei.web.rooms import MAX_ROOMS
from tests.web.conftest import Engine

RANDOM = PlayerChoice("bots", 0)


@pytest.fixture
def catalogue(runs: Path) -> Catalogue:
    return Catalogue(runs)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


def watched(room: GameRoom) -> list[int]:
    """Attach a page that records the length of the game whenever it is redrawn."""
    redraws: list[int] = []
    room.attach(lambda: redraws.append(room.session.length))
    return redraws


def page() -> None:
    """Redraw of a page that shows nothing."""


# ---- the catalogue ----


def test_runs_and_their_checkpoints_and_bots_can_be_chosen(catalogue: Catalogue) -> None:
    entries = catalogue.entries()
    assert [entry.label for entry in entries] == ["Keisei", "tiny", "tiny, 64 plies", "Bots"]
    assert [entry.is_network for entry in entries] == [True, True, True, False]


def test_levels_are_player_specs(catalogue: Catalogue, runs: Path) -> None:
    builtin, tiny, _, bots = catalogue.entries()
    assert tiny.player_spec() == f"{runs / 'tiny'}:level={DEFAULT_LEVEL}"
    assert tiny.player_spec(0) == f"{runs / 'tiny'}:level=1"
    assert builtin.player_spec(99) == "builtin:level=10"
    assert bots.player_spec() == "greedy"
    assert [bots.player_spec(level) for level in range(len(BOTS))] == [bot.spec for bot in BOTS]


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
        GameRoom(catalogue, GameSetup(white=PlayerChoice(key)))


def test_links_that_lead_out_of_the_runs_are_not_followed(runs: Path, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(runs / "tiny", target_is_directory=True)
    assert [entry.label for entry in Catalogue(inside).entries()] == ["Keisei", "Bots"]
    assert "tiny" in [entry.label for entry in Catalogue(runs).entries()]


def test_players_of_the_command_line_come_first(runs: Path) -> None:
    specs = [str(runs / "tiny"), "alphabeta:2", f"{runs / 'tiny'}:search=4", "usi:some engine"]
    entries = Catalogue(runs / "none", specs).entries()
    assert [entry.spec for entry in entries] == [*specs, "builtin", ""]
    assert [bool(entry.levels) for entry in entries] == [True, False, False, False, True, True]
    assert [entry.is_network for entry in entries] == [True, False, True, False, True, False]
    assert entries[0].levels is NETWORK_LEVELS


def test_a_model_that_is_not_there_is_redraws_before_anything_is_loaded(runs: Path) -> None:
    for spec in ("random", "alphabeta:2", "usi:x", "builtin", "builtin:level=3", str(runs / "tiny"),
                 f"{runs / 'tiny'}:search=8"):  # fmt: skip
        require_existing(spec)
    with pytest.raises(KeiseiError, match=r"there is no run or checkpoint nowhere, and"):
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
    assert labels == ["Keisei", "good", "good, 64 plies", "Bots"]


# ---- playing ----


def test_computer_players_answer(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(white=RANDOM), seed=1)
        redraws = watched(room)
        room.move("7g7f")
        assert room.thinking is None, "the answer comes later"
        with pytest.raises(KeiseiError, match="not your turn"):
            room.move("2g2f")
        await room.settled()
        assert room.session.length == 2
        assert redraws[-1] == 2
        assert room.session.is_persons_turn
        assert room.session.name(Color.WHITE) == "random"
        assert room.session.name(Color.BLACK) == "You"

    run(story())


def test_without_pages_nothing_is_computed(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(black=RANDOM))
        await room.settled()
        assert room.session.length == 0
        watched(room)
        await room.settled()
        assert room.session.length == 1

    run(story())


def test_a_move_that_is_taken_back_is_not_answered(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(white=RANDOM))
        watched(room)
        room.move("7g7f")
        room.take_back()
        room.move("2g2f")
        await room.settled()
        assert room.session.game.moves[0].usi == "2g2f"
        assert room.session.length == 2

    run(story())


def test_two_computer_players_play_to_the_end(catalogue: Catalogue) -> None:
    async def story() -> None:
        mate = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
        room = GameRoom(
            catalogue, GameSetup(PlayerChoice("bots", 3), RANDOM, mate), seed=0, pace=0.0
        )
        watched(room)
        await room.settled()
        assert room.session.end is not None
        assert room.session.end.winner is Color.BLACK

    run(story())


def test_pausing_computer_players(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(RANDOM, RANDOM), pace=0.0)
        room.pause(True)
        watched(room)
        await room.settled()
        assert room.session.length == 0

        def stop() -> None:
            if room.session.length == 3 and not room.paused:
                room.pause(True)

        room.attach(stop)
        room.pause(False)
        await room.settled()
        assert room.session.length == 3

    run(story())


def test_looking_back_while_computer_players_play(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(white=RANDOM))
        watched(room)
        room.move("7g7f")
        room.go_to(0)
        await room.settled()
        assert (room.session.length, room.session.cursor) == (2, 0)
        with pytest.raises(KeiseiError, match="go to the last move"):
            room.move("2g2f")

    run(story())


def test_strength_can_change_within_a_game(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(white=RANDOM))
        watched(room)
        room.move("7g7f")
        await room.settled()
        room.change_player(Color.WHITE, PlayerChoice("bots", 1))
        assert room.session.name(Color.WHITE) == "greedy"
        assert room.session.length == 2
        room.move("2g2f")
        await room.settled()
        assert room.session.length == 4

    run(story())


def test_networks_play_and_analyse(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(white=PlayerChoice("run:tiny")), analyst="run:tiny")
        watched(room)
        room.move("7g7f")
        await room.settled()
        assert room.session.length == 2
        assert len(room.analyses) == 3
        assert all(0 <= analysis.chances(Color.BLACK) <= 1 for analysis in room.analyses)
        legal = {move.usi for move in room.session.game.legal_moves}
        candidates = {candidate.move.usi for candidate in room.analyses[2].candidates}
        assert len(candidates) == 5
        assert candidates <= legal
        room.take_back()
        await room.settled()
        assert len(room.analyses) == 1
        room.analyse_with(None)
        assert room.analyses == []
        with pytest.raises(KeiseiError, match="no network"):
            room.analyse_with("bots")

    run(story())


def test_a_game_continues_when_training_deletes_the_checkpoint(runs: Path, tmp_path: Path) -> None:
    async def story() -> None:
        shutil.copytree(runs / "tiny", tmp_path / "tiny")
        catalogue = Catalogue(tmp_path)
        older = next(e for e in catalogue.entries() if e.label == "tiny, 64 plies")
        room = GameRoom(catalogue, GameSetup(white=PlayerChoice(older.key)), analyst=older.key)
        watched(room)
        room.move("7g7f")
        await room.settled()
        shutil.rmtree(older.spec)
        assert older.key not in [entry.key for entry in catalogue.entries()]
        room.move("2g2f")
        await room.settled()
        assert (room.session.length, room.problem, room.analyst) == (4, "", older.key)
        assert room.entry(older.key) == older
        room.change_player(Color.WHITE, PlayerChoice(older.key, 0))
        assert room.session.name(Color.WHITE) == "tiny, 64 plies (level 1)"
        room.move("2f2e")
        await room.settled()
        assert room.paused, "this needs the file"
        assert older.spec in room.problem

    run(story())


def test_by_default_a_network_that_plays_analyses(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(RANDOM, RANDOM))
        room.analyse_by_default()
        assert room.analyst is None
        room.change_player(Color.WHITE, PlayerChoice("run:tiny"))
        room.analyse_by_default()
        assert room.analyst == "run:tiny"

    run(story())


def test_the_analysis_of_the_last_position_is_the_result(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, analyst="run:tiny")
        watched(room)
        room.begin(GameSetup(start="4k4/9/4P4/9/9/9/9/9/4K4 b G 1"))
        room.move("G*5b")
        await room.settled()
        assert room.analyses[1].chances(Color.BLACK) == 1.0
        assert room.analyses[1].candidates == ()

    run(story())


def test_a_player_that_fails_pauses_the_game_and_shows_why(runs: Path) -> None:
    async def story() -> None:
        room = GameRoom(Catalogue(runs, ["usi:no-such-engine-anywhere"]))
        watched(room)
        room.begin(GameSetup(black=PlayerChoice("named:usi:no-such-engine-anywhere")))
        await room.settled()
        assert room.paused
        assert "no-such-engine-anywhere" in room.problem
        room.begin(GameSetup())
        assert (room.paused, room.problem) == (False, "")

    run(story())


def test_closing_the_last_page_stops_engines(runs: Path, engine: Engine) -> None:
    async def story() -> None:
        room = GameRoom(Catalogue(runs, [engine.spec]))
        room.attach(page)
        room.begin(GameSetup(black=PlayerChoice(f"named:{engine.spec}")))
        await room.settled()
        assert [move.usi for move in room.session.game.moves] == ["7g7f"], room.problem
        assert engine.is_running()
        await room.detach(page)
        assert not engine.is_running(), "the process has ended"
        room.attach(page)  # a page comes back: another process
        room.move("3c3d")
        await room.settled()
        assert room.session.length == 3, room.problem
        assert engine.is_running()
        await room.close()
        assert not engine.is_running()

    run(story())


# ---- ends, clocks, files ----


def test_resigning_and_time(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(white=RANDOM))
        room.finish(Ending.RESIGNATION)
        assert room.session.end == End(Ending.RESIGNATION, Color.WHITE)
        timed = GameRoom(catalogue, GameSetup(limit=TimeLimit(-1)))
        timed.check_clock()
        assert timed.session.end == End(Ending.TIME_UP, Color.WHITE)

    run(story())


BYOYOMI = TimeLimit(0, byoyomi=10)


def test_clocks_stop_without_pages(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(limit=BYOYOMI))
        ran = [room.session.clock_runs]
        room.attach(page)
        ran.append(room.session.clock_runs)
        room.move("7g7f")
        ran.append(room.session.clock_runs)
        await room.detach(page)
        ran.append(room.session.clock_runs)
        assert ran == [False, True, True, False]

    run(story())


def test_clocks_of_paused_computer_players_stop(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(RANDOM, limit=BYOYOMI))
        room.pause(True)
        watched(room)
        await room.settled()
        assert not room.session.clock_runs
        room.pause(False)
        await room.settled()
        assert room.session.length == 1
        room.pause(True)
        assert room.session.clock_runs, "pausing computer players does not stop a person's clock"

    run(story())


def test_clocks_stop_while_players_load(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(RANDOM, limit=BYOYOMI))
        ran: list[bool] = []

        class Slow:
            def choose(self, _: ShogiGame) -> Move:
                ran.append(room.session.clock_runs)
                return Move.from_usi("7g7f")

        def load(*_: object) -> Slow:
            ran.append(room.session.clock_runs)
            return Slow()

        monkeypatch.setattr("keisei.web.play.game_room._open_player", load)
        watched(room)
        await room.settled()
        assert ran == [False, True]
        assert room.session.clock_runs

    run(story())


def test_clocks_stop_when_a_player_fails(runs: Path) -> None:
    async def story() -> None:
        room = GameRoom(
            Catalogue(runs, ["usi:no-such-engine"]),
            GameSetup(black=PlayerChoice("named:usi:no-such-engine"), limit=BYOYOMI),
        )
        watched(room)
        await room.settled()
        assert room.paused
        assert not room.session.clock_runs

    run(story())


def test_a_game_from_a_file_belongs_to_people(catalogue: Catalogue) -> None:
    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(white=RANDOM))
        watched(room)
        room.open(GameSession("startpos moves 7g7f 3c3d 2g2f"))
        await room.settled()
        assert room.session.length == 3
        assert room.setup.players == {Color.BLACK: PERSON, Color.WHITE: PERSON}
        room.go_to(1)
        room.play_on()
        room.change_player(Color.WHITE, RANDOM)
        await room.settled()
        assert room.session.length == 2

    run(story())


# ---- the lobby ----


def test_a_page_finds_its_room_again(catalogue: Catalogue) -> None:
    async def story() -> None:
        lobby = Lobby()
        first = GameRoom(catalogue)
        lobby.enter(first, page)
        others = [GameRoom(catalogue) for _ in range(MAX_ROOMS + 3)]
        for room in others:
            lobby.enter(room, page)
            await room.detach(page)
        assert lobby.find(first.id) is first, "it is watched"
        assert lobby.find(others[0].id) is None
        assert lobby.find(others[-1].id) is others[-1]
        assert lobby.find("../etc/passwd") is None

    run(story())


def test_no_room_is_opened_if_all_are_in_use(catalogue: Catalogue) -> None:
    async def story() -> None:
        lobby = Lobby()
        taken = [GameRoom(catalogue) for _ in range(MAX_ROOMS)]
        for room in taken:
            lobby.enter(room, page)
        late = GameRoom(catalogue)
        with pytest.raises(KeiseiError, match="All game rooms are in use"):
            lobby.enter(late, page)
        assert not late.is_watched
        assert lobby.find(late.id) is None
        lobby.enter(taken[0], lambda: None)  # another page of the same room
        await taken[1].detach(page)
        lobby.enter(late, page)
        assert lobby.find(late.id) is late
        assert lobby.find(taken[1].id) is None

    run(story())


def test_a_page_that_connects_again_is_redrawn_once(catalogue: Catalogue) -> None:
    async def story() -> None:
        lobby, room = Lobby(), GameRoom(catalogue)
        redraws: list[int] = []

        def listen() -> None:
            redraws.append(room.session.length)

        lobby.enter(room, listen)
        lobby.enter(room, listen)
        room.move("7g7f")
        assert redraws == [1]
        await room.detach(listen)
        assert not room.is_watched

    run(story())


def test_a_replaced_game_comes_back_with_its_players(catalogue: Catalogue) -> None:
    room = GameRoom(catalogue, GameSetup(white=PlayerChoice("bots", 0)))

    def offers() -> bool:
        return room.offers_restore

    assert not offers()
    with pytest.raises(KeiseiError, match="there is no earlier game"):
        room.restore()
    room.move("7g7f")
    first = room.session
    room.open(read_session(b"startpos moves 2g2f 8c8d"))
    assert room.shows_analysis
    assert offers()
    room.restore()
    assert room.session is first
    assert (room.setup.white, room.shows_analysis) == (PlayerChoice("bots", 0), False)
    room.restore()
    assert room.session.length == 2, "and the other way round"
    assert room.reviewing
    room.session.go_to(1)
    room.play_on()
    assert (room.session.length, room.reviewing) == (1, False)
    assert offers()
    room.move("3c3d")
    assert not offers(), "it is a game of its own now"
    room.restore()
    assert room.session.length == 2, "moves that were dropped"


@pytest.mark.parametrize("by_playing_on", [False, True])
def test_the_clock_of_a_replaced_game_stands_still(
    catalogue: Catalogue, by_playing_on: bool
) -> None:
    async def story() -> None:
        time = 0.0
        room = GameRoom(catalogue)
        room.attach(page)
        timed = GameSession(limit=TimeLimit(10), now=lambda: time)
        room.open(timed)
        for move in ("7g7f", "3c3d"):
            room.move(move)
        time += 4
        if by_playing_on:
            room.go_to(1)
            room.play_on()
        else:
            room.begin(GameSetup())
        time += 60
        room.restore()
        room.check_clock()
        left = room.session.time_left(Color.BLACK)
        assert (room.session.length, room.session.end) == (2, None)
        assert left is not None
        assert left.main == (10 if by_playing_on else 6)
        time += 1
        left = room.session.time_left(Color.BLACK)
        assert left is not None
        assert left.main == (9 if by_playing_on else 5), "it runs again"
        await room.close()

    run(story())


def test_games_of_people_are_saved_and_go_on(catalogue: Catalogue, tmp_path: Path) -> None:
    async def story() -> None:
        saved = SavedGames(tmp_path)
        limit = TimeLimit(600, byoyomi=30)
        setup = GameSetup(white=PlayerChoice("bots", 1), limit=limit)
        room = GameRoom(catalogue, setup, saved=saved)
        room.attach(lambda: None)
        assert saved.games() == [], "no empty games"
        room.move("7g7f")
        await room.settled()
        (game,) = saved.games()
        assert len(game.record.moves) == 2
        again = GameRoom(catalogue, saved=saved)
        again.reopen(game)
        assert (again.setup.white, again.session.limit) == (PlayerChoice("bots", 1), limit)
        assert again.session.is_persons_turn
        again.attach(lambda: None)
        again.move("2g2f")
        await again.settled()
        (game,) = saved.games()
        assert len(game.record.moves) == 4, "in the same file"
        again.begin(GameSetup(black=PlayerChoice("bots", 0), white=PlayerChoice("bots", 0)))
        again.pause(True)
        await again.settled()
        assert len(saved.games()) == 1, "games that people only watch are not kept"
        await room.close()
        await again.close()

    asyncio.run(story())


def lengths(saved: SavedGames) -> list[int]:
    return sorted(len(game.record.moves) for game in saved.games())


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_saved_game_belongs_to_one_room(
    catalogue: Catalogue, tmp_path: Path, is_watched: bool
) -> None:
    async def story() -> None:
        saved, lobby = SavedGames(tmp_path), Lobby()
        first, second = (GameRoom(catalogue, saved=saved) for _ in range(2))
        for room in (first, second):
            lobby.enter(room, page)
        first.move("7g7f")
        await first.settled()
        if not is_watched:
            await first.detach(page)
        (game,) = saved.games()
        second.reopen(game, lobby)
        second.move("3c3d")
        await second.settled()
        assert lengths(saved) == ([1, 2] if is_watched else [2]), "left rooms give it up"
        first.attach(page)
        for move in ("8c8d", "2g2f", "8d8e"):
            first.move(move)
        await first.settled()
        assert lengths(saved) == [2, 4]
        await lobby.close()

    run(story())


def test_a_room_does_not_open_its_own_game_twice(catalogue: Catalogue, tmp_path: Path) -> None:
    async def story() -> None:
        saved = SavedGames(tmp_path)
        room = GameRoom(catalogue, saved=saved)
        room.attach(page)
        room.move("7g7f")
        await room.settled()
        session, (game,) = room.session, saved.games()
        room.reopen(game)
        assert room.session is session
        room.begin(GameSetup())
        room.reopen(game)
        assert room.session is session
        await room.close()

    run(story())


def test_a_game_that_is_replaced_while_it_is_saved_keeps_its_file(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    is_saving, go_on = threading.Event(), threading.Event()

    class Slow(SavedGames):
        def save(self, record: GameRecord, *, name: str = "", players: str = "") -> str:
            is_saving.set()
            assert go_on.wait(60)
            return super().save(record, name=name, players=players)

    async def story() -> None:
        saved = Slow(tmp_path)
        room = GameRoom(catalogue, saved=saved)
        room.attach(page)
        for move in ("7g7f", "3c3d"):
            room.move(move)
        await asyncio.to_thread(is_saving.wait)
        room.go_to(1)
        room.play_on()
        go_on.set()
        await room.settled()
        assert lengths(saved) == [1, 2]
        await room.close()

    run(story())


def test_a_saved_game_whose_player_is_gone_can_be_looked_at(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    saved = SavedGames(tmp_path)
    session = GameSession()
    session.push("7g7f")
    for players in ("", "nonsense", GameSetup(white=PlayerChoice("run:gone")).to_json()):
        saved.save(session.record(), players=players)
    room = GameRoom(catalogue)
    for game in saved.games():
        room.reopen(game)
        assert room.reviewing
        assert room.session.length == 1


def test_a_folder_that_cannot_be_written_is_a_problem_and_no_end(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    async def story() -> None:
        (tmp_path / "file").write_text("")
        saved = SavedGames(tmp_path / "file" / "games")
        room = GameRoom(catalogue, saved=saved)
        room.attach(lambda: None)
        room.move("7g7f")
        await room.settled()
        assert "cannot make" in room.save_problem
        room.move("3c3d")
        assert room.session.length == 2
        assert "cannot make" in room.save_problem, "a move does not hide it"
        await room.settled()
        (tmp_path / "file").unlink()
        room.move("2g2f")
        await room.settled()
        assert room.save_problem == "", "it is tried again at every change"
        (game,) = saved.games()
        assert len(game.record.moves) == 3
        await room.close()

    asyncio.run(story())


def test_a_run_named_on_the_command_line_is_listed_once(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.parent)
    for spec in (str(runs / "tiny"), f"{runs.name}/tiny", f"{runs.name}/./tiny:level=3"):
        entries = Catalogue(runs, [spec, BUILTIN]).entries()
        labels = [entry.label for entry in entries]
        assert len(labels) == len(set(labels)), labels
        assert [entry.key for entry in entries[:2]] == [f"named:{spec}", f"named:{BUILTIN}"]


def test_a_level_of_the_command_line_is_where_the_slider_begins(runs: Path) -> None:
    entry = Catalogue(runs, ["builtin:level=2"]).entries()[0]
    assert (entry.label, entry.level().level, len(entry.levels)) == ("Keisei", 2, 10)
    assert entry.player_spec() == "builtin:level=2"


def test_a_wrong_name_gets_a_hint(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs)
    for spec, hint in (("tinny", "tiny"), ("gredy", "greedy"), ("builtn:level=4", "builtin")):
        with pytest.raises(KeiseiError, match=rf"; did you mean {hint}\?"):
            require_existing(spec)


def test_players_are_loaded_while_a_person_thinks(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[str] = []
    monkeypatch.setattr(Opponent, "warm_up", lambda opponent: warmed.append(opponent.name))
    loaded: list[str] = []
    load = Opponent.from_spec

    def note(spec: str, **options: Any) -> Opponent:
        loaded.append(spec)
        return load(spec, **options)

    monkeypatch.setattr(Opponent, "from_spec", note)

    async def story() -> None:
        room = GameRoom(catalogue, GameSetup(white=PlayerChoice("bots", 1)))
        room.attach(lambda: None)
        await room.settled()
        assert (loaded, warmed, room.session.length) == (["greedy"], ["greedy"], 0)
        room.move("7g7f")
        await room.settled()
        assert (loaded, room.session.length) == (["greedy"], 2), "once"
        room.change_player(Color.WHITE, PlayerChoice("bots", 0))
        await room.settled()
        assert loaded == ["greedy", "random"]
        await room.close()

    asyncio.run(story())


def test_a_player_that_cannot_be_loaded_is_reported_at_its_turn(runs: Path, tmp_path: Path) -> None:
    async def story() -> None:
        shutil.copytree(runs / "tiny", tmp_path / "tiny")
        catalogue = Catalogue(tmp_path)
        room = GameRoom(catalogue, GameSetup(white=PlayerChoice("run:tiny")))
        shutil.rmtree(tmp_path / "tiny")
        room.attach(lambda: None)
        await room.settled()
        assert room.problem == ""
        room.move("7g7f")
        await room.settled()
        assert "tiny" in room.problem
        await room.close()

    asyncio.run(story())


def test_players_in_a_file_that_is_nested_too_deeply_are_an_error() -> None:
    with pytest.raises(KeiseiError, match="does not say who plays"):
        GameSetup.from_json("[" * 200_000)
