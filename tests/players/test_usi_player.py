"""Engines as players of many games: shared out, restarted, and gone in the end."""

import logging
import signal
import time
from dataclasses import replace
from threading import Timer, main_thread

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.players.player import BROKE_RULES, FAILED, RESIGNS
from keisei.players.usi_player import UsiPlayer
from keisei.shogi.rules import DeclarationRule, Termination
from keisei.shogi.vector import VectorShogi
from keisei.usi.client import Limit, UsiEngineError, UsiSettings
from tests.usi.test_client import (
    FAIRY_STOCKFISH,
    Processes,
    needs_fairy_stockfish,
    posix_only,
    processes,
    stub,
)

__all__ = ["processes"]  # the fixture that finds processes which are left

RANDOM = np.random.default_rng(0)


def chosen(player: UsiPlayer, env: VectorShogi) -> list[str | int]:
    """The moves it chooses in all games, codes as they are."""
    legal_indices = player.choose(env, np.arange(env.num_games), RANDOM)
    return [
        int(legal_index) if legal_index < 0 else env.game(index).legal_moves[legal_index].usi
        for index, legal_index in enumerate(legal_indices)
    ]


def after(*moves: str, num_games: int = 1) -> VectorShogi:
    """Games in which `moves` have been played."""
    env = VectorShogi(num_games)
    for move in moves:
        game = env.game(0)
        game.push(move)
        env.step(np.full(num_games, game.actions[-1]))
    return env


def test_games_are_shared_among_processes(processes: Processes) -> None:
    with UsiPlayer(stub(), processes=3) as player:
        assert len(processes) == 1
        assert chosen(player, VectorShogi(2)) == ["7g7f", "7g7f"]
        assert len(processes) == 2, "no more processes than games"
        assert chosen(player, after("7g7f", num_games=7)) == ["3c3d"] * 7
        assert len(processes) == 3


def test_only_the_games_that_are_named_are_played() -> None:
    with UsiPlayer(stub(), processes=2) as player:
        env = VectorShogi(5)
        legal_indices = player.choose(env, np.array([4, 1]), RANDOM)
        assert legal_indices.shape == (2,)
        assert legal_indices.dtype == np.int64
        assert player.choose(env, np.array([], dtype=np.int64), RANDOM).shape == (0,)


def test_an_engine_is_told_of_new_games_only(caplog: pytest.LogCaptureFixture) -> None:
    """This stub answers with all it was told, which is no move and therefore logged."""
    with UsiPlayer(stub("tells-all"), processes=1) as player:
        for moves in [(), ("7g7f",), ("7g7f", "3c3d")]:
            assert chosen(player, after(*moves)) == [BROKE_RULES]
    told = [record.getMessage() for record in caplog.records]
    assert [("usinewgame" in message) for message in told] == [True, True, False]
    assert "position_startpos_moves_7g7f_3c3d,go_depth_1" in told[2]
    assert told[0].startswith("game 0: Stub 1.0 broke the rules: ")


def test_random_openings_do_not_hide_the_beginning(caplog: pytest.LogCaptureFixture) -> None:
    start = "lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"
    with UsiPlayer(stub("tells-all"), processes=1) as player:
        chosen(player, VectorShogi(1, starts=[start], opening_plies=3))
    (told,) = (record.getMessage() for record in caplog.records)
    assert "usinewgame" in told
    assert f"position_sfen_{start.replace(' ', '_')}_moves_" in told


def test_names_and_identities() -> None:
    with UsiPlayer(stub("", ("Skill Level", "3"), ("OwnBook", "false")), processes=1) as player:
        assert player.name == "Stub 1.0"
        assert player.identity == "Stub 1.0 Skill Level=3 OwnBook=false depth 1"
        assert "1 processes" in repr(player)
    with UsiPlayer(stub(), name="usi:stub", processes=1) as player:
        assert player.name == "usi:stub"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("plays-resign", RESIGNS),
        ("plays-win", BROKE_RULES),
        ("plays-7g7e", BROKE_RULES),
        ("plays-P*5e", BROKE_RULES),
        ("plays-7g7f=", BROKE_RULES),
        ("plays-(none)", BROKE_RULES),
        ("no-word", BROKE_RULES),
        ("garbage", BROKE_RULES),
    ],
)
def test_answers_that_are_no_moves(fault: str, code: int, caplog: pytest.LogCaptureFixture) -> None:
    with UsiPlayer(stub(fault), processes=1) as player:
        assert chosen(player, VectorShogi(2, declaration=DeclarationRule.OFF)) == [code, code]
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == (0 if code == RESIGNS else 2)


@posix_only
def test_an_engine_that_dies_loses_that_game_and_is_replaced(
    caplog: pytest.LogCaptureFixture, processes: Processes
) -> None:
    with UsiPlayer(stub("dies-in-mid-game"), processes=1) as player:
        assert chosen(player, VectorShogi(2)) == ["7g7f", "7g7f"]
        assert chosen(player, after("7g7f", "3c3d")) == [FAILED]
        assert chosen(player, VectorShogi(1)) == ["7g7f"]
    assert len(processes) == 2
    (warning,) = caplog.records
    assert "game 0: Stub 1.0: it was ended by SIGKILL" in warning.getMessage()


def test_an_engine_that_hangs_loses_that_game(processes: Processes) -> None:
    settings = stub("hangs-at-go", move_timeout=0.2)
    with UsiPlayer(settings, processes=2) as player:
        assert chosen(player, VectorShogi(4)) == [FAILED] * 4
        with pytest.raises(UsiEngineError, match="given up after 3 processes that failed"):
            chosen(player, VectorShogi(1))
    assert len(processes) == 5


def test_failures_are_counted_in_a_row() -> None:
    with UsiPlayer(stub("hangs-as-black", move_timeout=0.5), processes=1) as player:
        for _ in range(2):
            assert chosen(player, VectorShogi(2)) == [FAILED, FAILED]
            assert chosen(player, after("7g7f")) == ["3c3d"]


def test_mistakes_show_when_the_player_is_made() -> None:
    with pytest.raises(UsiEngineError, match="it has no option 'Depth'"):
        UsiPlayer(stub("", ("Depth", "1")))
    with pytest.raises(UsiEngineError, match="program no-such-engine not found"):
        UsiPlayer(replace(stub(), command=("no-such-engine",)))
    with pytest.raises(KeiseiError, match="at least 1 process, not 0"):
        UsiPlayer(stub(), processes=0)


def test_a_closed_player_does_not_play() -> None:
    player = UsiPlayer(stub(), processes=2)
    player.close()
    player.close()
    with pytest.raises(UsiEngineError, match="the engine was closed"):
        chosen(player, VectorShogi(2))


def test_a_player_that_is_forgotten_ends(processes: Processes) -> None:
    player = UsiPlayer(stub(), processes=2)
    chosen(player, VectorShogi(2))
    del player
    assert len(processes) == 2, "the fixture sees whether they have ended"


@posix_only
def test_ctrl_c_ends_all_at_once() -> None:
    player = UsiPlayer(stub("hangs-at-go"), processes=2)
    env = VectorShogi(6)
    assert main_thread().ident is not None
    timer = Timer(0.5, signal.pthread_kill, (main_thread().ident, signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        chosen(player, env)
    assert time.monotonic() - started < 5.0
    timer.join()


# ---- a real one ----


@needs_fairy_stockfish
def test_fairy_stockfish_beats_a_random_player() -> None:
    assert FAIRY_STOCKFISH is not None
    settings = UsiSettings(command=(FAIRY_STOCKFISH,), limit=Limit(nodes=1000))
    env = VectorShogi(2, seed=1, ply_limit=200, opening_plies=2)
    random = np.random.default_rng(1)
    endings: dict[int, tuple[int, int]] = {}
    with UsiPlayer(settings, processes=2) as player:
        while len(endings) < 2:
            legal_indices = random.integers(env.legal_counts)
            games = np.flatnonzero(env.turns == np.arange(2))
            legal_indices[games] = player.choose(env, games, random)
            assert (legal_indices >= 0).all()
            step = env.step(env.legal_actions[np.arange(2), legal_indices])
            for index in np.flatnonzero(step.terminations).tolist():
                ending = (int(step.terminations[index]), int(step.winners[index]))
                endings.setdefault(index, ending)
    assert endings == {color: (Termination.CHECKMATE, color) for color in (0, 1)}
