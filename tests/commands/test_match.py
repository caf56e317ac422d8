"""``keisei match``, as a user runs it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from keisei.commands.match import match
from keisei.errors import KeiseiError
from keisei.evaluation import match_report
from keisei.evaluation.results import Conditions, ResultStore
from keisei.evaluation.score import SPRT_ROUND_GAMES
from keisei.players.bots import GreedyPlayer, RandomPlayer
from keisei.players.player import LegalIndices
from keisei.shogi.notation.files import load_game
from keisei.shogi.vector import VectorShogi
from tests.commands.invoke import invoke

SHORT = ("--ply-limit", "60", "--threads", "1")


def keisei_match(*arguments: str) -> Result:
    return invoke(match, *SHORT, *arguments)


def test_a_match_is_shown_in_numbers() -> None:
    text = keisei_match("greedy", "random", "--games", "10", "--ply-limit", "300").stdout
    for part in ("greedy against random: 10 games", "as Black", "as White", "together", "score",
                 "95 %: ", "Elo difference +", "median length ", "ended by ",
                 "4 opening plies from startpos, ply limit 300", "seed 0"):  # fmt: skip
        assert part in text, part
    assert "SPRT" not in text


def test_machines_get_json() -> None:
    arguments = ("greedy", "random", "--games", "7", "--seed", "3", "--declaration", "off")
    result = json.loads(keisei_match(*arguments, "--json").stdout)
    assert (result["player"], result["opponent"]) == ("greedy", "random")
    assert (result["games"], result["seed"], result["interrupted"]) == (7, 3, False)
    assert sum(result["black"].values()) == 4
    assert sum(result["white"].values()) == 3
    assert result["score_interval"][0] <= result["score"] <= result["score_interval"][1]
    assert sum(result["endings"].values()) == 7
    assert result["plies"]["min"] <= result["plies"]["median"] <= result["plies"]["max"] <= 60
    assert result["conditions"] == {
        "opening_plies": 4, "ply_limit": 60, "declaration": "off", "openings": "startpos",
    }  # fmt: skip
    assert result["sprt"] is None
    assert result == json.loads(keisei_match(*arguments, "--json").stdout), "it can be repeated"


def test_a_clean_sweep_is_valid_json() -> None:
    class Loses(RandomPlayer):
        def choose(
            self, env: VectorShogi, games: LegalIndices, random: np.random.Generator
        ) -> LegalIndices:
            return np.full(len(games), -1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keisei.players.spec.RandomPlayer", Loses)
        text = keisei_match("greedy", "random", "--games", "6", "--json").stdout
        assert "Elo difference +∞" in keisei_match("greedy", "random", "--games", "6").stdout
    assert "Infinity" not in text
    result = json.loads(text)
    assert (result["score"], result["elo"], result["elo_interval"][1]) == (1.0, None, None)
    assert result["elo_interval"][0] > 0


def test_games_are_written_down(tmp_path: Path) -> None:
    directory = tmp_path / "games"
    arguments = ("greedy", "random", "--games", "6", "--games-dir", str(directory), "--keep", "3")
    text = keisei_match(*arguments).stdout
    assert f"games written: 3, in {directory}" in text
    files = sorted(directory.glob("*.kif"))
    assert len(files) == len(list(directory.glob("*.csa"))) == 3
    assert {load_game(file).black for file in files} <= {"greedy", "random"}


def test_a_directory_that_cannot_be_made_fails_before_the_match(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(KeiseiError, match="cannot make "):
        keisei_match("random", "random", "--games-dir", str(tmp_path / "file"), "--games", "999999")


def test_openings_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "openings.txt"
    file.write_text("4k4/9/9/9/9/9/4P4/9/4K4 b - 1 # a pawn up\n")
    directory = tmp_path / "games"
    arguments = ("random", "greedy", "--games", "2", "--opening-plies", "0")
    text = keisei_match(*arguments, "--openings", str(file), "--games-dir", str(directory)).stdout
    assert "0 opening plies from 1 positions #" in text
    (game, _) = (load_game(path) for path in sorted(directory.glob("*.kif")))
    assert game.start.board.count(None) == 78
    file.write_text("startpos\nbad\n")
    with pytest.raises(KeiseiError, match=r"openings\.txt, line 2: "):
        keisei_match(*arguments, "--openings", str(file))


def test_a_sequential_test_ends_the_match_early() -> None:
    arguments = ("greedy", "random", "--games", "1000", "--ply-limit", "400", "--sprt", "-50", "50")
    result = json.loads(keisei_match(*arguments, "--json").stdout)
    assert result["games"] == SPRT_ROUND_GAMES
    assert result["sprt"]["verdict"] == "H1"
    assert result["sprt"]["log_likelihood_ratio"] > 3
    text = keisei_match("random", "random", "--games", "4", "--sprt", "0", "5").stdout
    assert "SPRT of 0 against 5 Elo: undecided (log-likelihood ratio" in text
    with pytest.raises(KeiseiError, match="the lower one first"):
        keisei_match("random", "random", "--sprt", "5", "0")


def test_results_are_stored_for_the_ladder(tmp_path: Path) -> None:
    path = tmp_path / "ladder.sqlite3"
    arguments = ("greedy", "random", "--games", "6", "--store", str(path))
    assert f"games stored: 6, in {path}" in keisei_match(*arguments).stdout
    assert "seed 1" in keisei_match(*arguments).stdout, "other games than before"
    with ResultStore(path) as store:
        conditions = Conditions(ply_limit=60)
        assert store.games_between(GreedyPlayer(), RandomPlayer(), conditions) == 12
        assert store.seeds(GreedyPlayer(), RandomPlayer()) == {0, 1}
    with pytest.raises(
        KeiseiError, match="holds games of these two with seed 1; the next unused seed is 2"
    ):
        keisei_match(*arguments, "--seed", "1")
    with pytest.raises(KeiseiError, match="greedy against itself"):
        keisei_match("greedy", "greedy", "--store", str(path))


class InterruptedPlayer(RandomPlayer):
    """Raises KeyboardInterrupt, or something worse, after a number of plies."""

    plies = 0
    interrupt: type[BaseException] = KeyboardInterrupt

    def choose(
        self, env: VectorShogi, games: LegalIndices, random: np.random.Generator
    ) -> LegalIndices:
        self.plies -= 1
        if self.plies == 0:
            raise self.interrupt
        return super().choose(env, games, random)


def interrupted_after(
    plies: int, *arguments: str, by: type[BaseException] = KeyboardInterrupt
) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        player = InterruptedPlayer()
        player.plies, player.interrupt = plies, by
        patch.setattr("keisei.players.spec.RandomPlayer", lambda: player)
        return keisei_match("greedy", "random", *arguments)


def test_ctrl_c_shows_what_was_played() -> None:
    result = interrupted_after(150, "--games", "20", "--ply-limit", "400")
    assert result.exit_code == 130
    assert "Interrupted: the games that end first are not representative" in result.stdout
    assert "greedy against random: " in result.stdout


def test_ctrl_c_before_any_game_has_ended() -> None:
    result = interrupted_after(1, "--games", "20")
    assert (result.exit_code, result.stdout) == (130, "No game has ended.\n")
    result = interrupted_after(1, "--games", "20", "--json")
    plain = json.loads(result.stdout)
    assert (plain["games"], plain["plies"], plain["interrupted"]) == (0, None, True)


@pytest.mark.parametrize(("plies", "stored"), [(20, 0), (70, SPRT_ROUND_GAMES)])
def test_after_ctrl_c_only_whole_rounds_are_stored(tmp_path: Path, plies: int, stored: int) -> None:
    """A round takes 56 plies at most."""
    path = tmp_path / "ladder.sqlite3"
    arguments = ("--games", "96", "--sprt", "-1", "1", "--store", str(path), "--json")
    result = interrupted_after(plies, *arguments)
    assert result.exit_code == 130
    assert json.loads(result.stdout)["stored"] == stored
    with ResultStore(path) as store:
        assert sum(games for _, games in store.conditions()) == stored


def test_a_match_that_breaks_down_keeps_its_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round takes 56 plies at most. The next match plays other games."""
    path = tmp_path / "ladder.sqlite3"
    monkeypatch.setattr(match_report, "CHUNK_GAMES", 4)
    arguments = ("--games", "10", "--store", str(path))
    with pytest.raises(MemoryError):
        interrupted_after(70, *arguments, by=MemoryError)
    with ResultStore(path) as store:
        assert sum(games for _, games in store.conditions()) == 4
        keisei_match("greedy", "random", *arguments)
        assert sum(games for _, games in store.conditions()) == 4 + 10
        assert store.seeds(GreedyPlayer(), RandomPlayer()) == {0, 1}


HANDLES_CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from keisei.cli import main
main()
"""
"""Without this, processes of tests that run in the background would ignore Ctrl-C."""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_ctrl_c_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "ladder.sqlite3"
    process = subprocess.Popen(
        [sys.executable, "-c", HANDLES_CTRL_C, "match", "greedy", "random", "--games", "100000",
         "--threads", "1", "--store", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        # It plays: an interrupt while kernels are loaded would be lost in one of Numba's callbacks.
        while process.poll() is None and not has_games(path):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, error
    assert "Traceback" not in error


def has_games(path: Path) -> bool:
    try:
        with ResultStore(path) as store:
            return bool(store.players())
    except KeiseiError:  # the process is creating it
        return False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody", "random"), "there is no run or checkpoint nobody"),
        (("random", "alphabeta"), "the depth is missing"),
        (("random", "random", "--openings", "missing.txt"), "cannot read missing.txt"),
        (("random", "random", "--opening-plies", "60"), "leaves nothing below the ply limit"),
    ],
)
def test_mistakes_are_explained(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(KeiseiError, match=message):
        keisei_match(*arguments)


@pytest.mark.parametrize(
    "arguments", [("random",), ("a", "b", "--games", "0"), ("a", "b", "--sprt", "1")]
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert keisei_match(*arguments).exit_code == 2


USUAL = ("--threads", "1")
"""The scale's conditions: its ratings can be read from the games."""


def test_a_match_against_a_reference_gives_a_rating() -> None:
    bot = "alphabeta:1,margin=50"
    result = json.loads(invoke(match, bot, "greedy", "--games", "20", *USUAL, "--json").stdout)
    rated = result["rated"]
    assert (rated["name"], rated["games"], rated["position"]) == (bot, 20, "on")
    assert rated["low"] < rated["elo"] < rated["high"]
    assert result["placed"] == []
    text = invoke(match, "greedy", bot, "--games", "20", *USUAL).stdout
    assert f"{bot} on scale 1: " in text


@pytest.mark.parametrize(
    "arguments",
    [("greedy", "random"), ("alphabeta:1,margin=50", "alphabeta:1,margin=60"),
     ("alphabeta:1,margin=50", "greedy", "--ply-limit", "300")],
    ids=["two references", "no reference", "other conditions"],
)  # fmt: skip
def test_other_matches_give_none(arguments: tuple[str, ...]) -> None:
    result = json.loads(invoke(match, *arguments, "--games", "2", *USUAL, "--json").stdout)
    assert result["rated"] is None


PLACED = ("--games", "4", "--within", "20", "--max-games", "24", *USUAL)


def test_both_players_can_be_placed_on_the_scale(tmp_path: Path) -> None:
    path = tmp_path / "ladder.sqlite3"
    bots = ("alphabeta:1,margin=50", "greedy,random=0.15")
    arguments = (*bots, *PLACED, "--store", str(path))
    placed = json.loads(invoke(match, *arguments, "--json").stdout)["placed"]
    assert [player["name"] for player in placed] == list(bots)
    assert {player["games"] for player in placed} == {24}
    assert placed[0]["elo"] > placed[1]["elo"]
    with ResultStore(path) as store:
        assert sum(games for _, games in store.conditions()) == 4 + 2 * 24
        text = invoke(match, *arguments).stdout
        assert sum(games for _, games in store.conditions()) == 2 * 4 + 2 * 24
    for bot in bots:
        assert f"{bot} on scale 1: " in text
    assert text.count(", 24 games") == 2


def test_references_are_not_placed_and_games_against_them_count() -> None:
    arguments = ("alphabeta:1,margin=50", "greedy", *PLACED, "--json")
    result = json.loads(invoke(match, *arguments).stdout)
    (placed,) = result["placed"]
    assert (placed["name"], placed["games"]) == ("alphabeta:1,margin=50", 24)
    enough = json.loads(invoke(match, *arguments, "--games", "24").stdout)
    assert enough["placed"] == [enough["rated"]], "24 games are all that is allowed"


def test_ctrl_c_while_placing_keeps_the_match(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(match_report, "place_player", interrupt)
    result = invoke(match, "alphabeta:1,margin=50", "greedy", *PLACED, "--json")
    assert result.exit_code == 130
    plain = json.loads(result.stdout)
    assert (plain["games"], plain["interrupted"], plain["placed"]) == (4, True, [])
