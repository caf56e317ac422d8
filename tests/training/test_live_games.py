"""``live.json``: its content, how often it is written, and what it costs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keisei.callbacks import (
    Callback,
    GameEnd,
    PhaseProgress,
    StepEnd,
    TrainingEnd,
)
from keisei.run_files import LIVE
from keisei.runs.folder import RunsFolder
from keisei.runs.run_reader import read_live
from keisei.shogi.game import ShogiGame
from keisei.shogi.rules import Outcome, Termination
from keisei.shogi.vector import VectorShogi
from keisei.training.writers import (
    INTERVAL,
    MAX_TIME_SHARE,
    BoardSnapshot,
    LiveGamesWriter,
    boards_of,
    current_boards,
)
from tests.tiny import tiny_trainer
from tests.training.fake_run import progress_at

GAME_END = GameEnd(Outcome(Termination.CHECKMATE, None), 80)


class Clock:
    def __init__(self, cost: float = 0.0) -> None:
        self.now = 100.0
        self.cost = cost

    def __call__(self) -> float:
        self.now += self.cost
        return self.now


def board(moves: int = 1) -> BoardSnapshot:
    game = ShogiGame()
    for usi in ("7g7f", "3c3d", "8h2b+")[:moves]:
        game.push(usi)
    return BoardSnapshot(game.diagram, game.last_move)


def counted(calls: list[float], clock: Clock) -> Callable[[], list[BoardSnapshot]]:
    def boards() -> list[BoardSnapshot]:
        calls.append(clock.now)
        return [board()]

    return boards


def test_what_is_written_is_what_the_dashboard_reads(tmp_path: Path) -> None:
    run = tmp_path / "one"
    run.mkdir()
    live = LiveGamesWriter(run, lambda: [board(3), board(0)])
    live.on_step_end(StepEnd(progress_at(7, 10), {}, None))
    found = read_live(RunsFolder(tmp_path), "one")
    assert found is not None
    assert found.update == 7
    assert [game.last_move for game in found.boards] == ["8h2b+", None]
    assert ShogiGame(found.boards[0].sfen).diagram == board(3).diagram


def test_the_file_stands_for_a_second(tmp_path: Path) -> None:
    clock = Clock()
    calls: list[float] = []
    live = LiveGamesWriter(tmp_path, counted(calls, clock), clock=clock)
    for _ in range(1000):
        live.on_game_end(GAME_END)
    assert len(calls) == 1
    clock.now += INTERVAL
    live.on_game_end(GAME_END)
    live.on_game_end(GAME_END)
    assert len(calls) == 2


def test_a_slow_disk_makes_it_rarer(tmp_path: Path) -> None:
    clock = Clock(cost=0.1)  # each look at the clock takes as long: writing seems to take 0.1 s
    calls: list[float] = []
    live = LiveGamesWriter(tmp_path, counted(calls, clock), clock=clock)
    while len(calls) < 3:
        live.on_game_end(GAME_END)
    assert calls[1] - calls[0] >= 0.1 / MAX_TIME_SHARE


def test_a_failure_is_not_repeated_at_every_game(tmp_path: Path) -> None:
    tries = []

    def failing() -> list[BoardSnapshot]:
        tries.append(0)
        raise RuntimeError("no games")

    live = LiveGamesWriter(tmp_path, failing, clock=Clock())
    with pytest.raises(RuntimeError):
        live.on_game_end(GAME_END)
    live.on_game_end(GAME_END)
    assert len(tries) == 1


def test_a_file_that_cannot_be_written_is_ignored(tmp_path: Path) -> None:
    LiveGamesWriter(tmp_path / "nowhere", lambda: [board()]).on_game_end(GAME_END)
    assert not (tmp_path / "nowhere").exists()


def test_nothing_is_left_when_the_run_ends(tmp_path: Path) -> None:
    live = LiveGamesWriter(tmp_path, lambda: [board()])
    live.on_game_end(GAME_END)
    assert (tmp_path / LIVE).exists()
    live.on_training_end(TrainingEnd("finished", progress_at(1, 1)))
    live.on_game_end(GAME_END)
    assert not (tmp_path / LIVE).exists()


def test_boards_are_those_of_the_environment() -> None:
    env = VectorShogi(6, seed=3)
    assert [found.last_move for found in boards_of(env)] == [None] * 4
    for _ in range(150):
        env.step(env.sample_actions())
        for index, found in enumerate(boards_of(env, 6)):
            game = env.game(index)  # plays all its moves through
            assert found == BoardSnapshot(game.diagram, game.last_move)


def test_a_trainer_shows_its_games_while_it_plays(tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []

    class Reader(Callback):
        def on_phase(self, event: PhaseProgress) -> None:
            seen.append(json.loads((tmp_path / LIVE).read_bytes()))
            clock.now += INTERVAL

    trainer = tiny_trainer(tmp_path)
    clock = Clock()
    trainer.bus.callbacks += [
        LiveGamesWriter(
            tmp_path, lambda: current_boards(trainer.selfplay, trainer.buffer), clock=clock
        ),
        Reader(),
    ]
    for _ in range(4):
        trainer.train_step()
    assert len({json.dumps(file["games"]) for file in seen}) > 1
