"""PPO solves games so small that the best moves are known."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from keisei.shogi.game import ShogiGame
from keisei.shogi.vector import VectorShogi
from keisei.training.trainer import Trainer
from tests.positions import random_games
from tests.tiny import tiny_trainer

POSITIONS = 12
UPDATES = 40
LEARNER = (
    "env.num_games=64",
    "model.tower_width=32",
    "model.policy_width=16",
    "model.value_width=16",
    "ppo.minibatch_size=128",
    "ppo.learning_rate=0.002",
    "ppo.learning_rate_schedule=constant",
    "ppo.gamma=1",
)


def winning_moves(game: ShogiGame) -> list[int]:
    """The actions that leave the opponent without a move."""
    return [move for move, after in _moves(game) if not len(after.legal_actions)]


def safe_moves(game: ShogiGame) -> list[int]:
    """The actions after which the opponent has no mate in one."""
    return [move for move, after in _moves(game) if not winning_moves(after)]


def _moves(game: ShogiGame) -> Iterator[tuple[int, ShogiGame]]:
    for action in game.legal_actions.tolist():
        game.push_action(action)
        yield action, game
        game.pop()


def with_a_mate(game: ShogiGame) -> bool:
    return bool(winning_moves(game))


def with_a_threat(game: ShogiGame) -> bool:
    """Whether few moves, but some, keep the opponent from mating."""
    if len(game.legal_actions) > 40:
        return False
    return 0.0 < len(safe_moves(game)) / len(game.legal_actions) < 0.4


@pytest.mark.parametrize(
    ("is_wanted", "good_moves", "plies", "mate_in_one"),
    [
        pytest.param(with_a_mate, winning_moves, 1, "false", id="mate in one"),
        pytest.param(with_a_threat, safe_moves, 2, "true", id="escape from a mate in one"),
    ],
)
def test_ppo_solves_a_set_of_positions(
    tmp_path: Path,
    is_wanted: Callable[[ShogiGame], bool],
    good_moves: Callable[[ShogiGame], list[int]],
    plies: int,
    mate_in_one: str,
) -> None:
    """From the outcome of games of one ply, or of two, where the blame falls on the loser."""
    games = (game for game in random_games(seed=3) if game.ply > 20 and is_wanted(game))
    sfens = [_from_ply_one(game) for game in islice(games, POSITIONS)]
    trainer = tiny_trainer(tmp_path, *LEARNER, f"selfplay.mate_in_one={mate_in_one}")
    assert _share_solved(trainer, sfens, good_moves) < 0.7  # not by chance
    trainer.env = trainer.collector.env = VectorShogi(64, starts=sfens, ply_limit=plies)
    for _ in range(UPDATES):
        trainer.train_step()
    assert _share_solved(trainer, sfens, good_moves) == 1.0


def _from_ply_one(game: ShogiGame) -> str:
    board, turn, hands, _ = game.sfen().split()
    return f"{board} {turn} {hands} 1"


def _share_solved(
    trainer: Trainer, sfens: list[str], good_moves: Callable[[ShogiGame], list[int]]
) -> float:
    """In how many of the positions the likeliest move is a good one."""
    solved = []
    for sfen in sfens:
        env = VectorShogi(1, starts=[sfen])
        judgement = trainer.agent.inference.judge(env.packed, env.legal_actions, env.legal_counts)
        chosen = int(env.legal_actions[0, np.argmax(judgement.log_probs[0])])
        solved.append(chosen in good_moves(ShogiGame(sfen)))
    return float(np.mean(solved))
