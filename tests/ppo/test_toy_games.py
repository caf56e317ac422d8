"""PPO solves games so small that the best moves are known."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from keisei.selfplay.source import SelfPlay
from keisei.shogi.game import ShogiGame
from keisei.shogi.vector import VectorShogi
from keisei.training.trainer import Trainer
from tests.tiny import tiny_trainer

WITH_A_MATE = (
    "l4s1n1/1s1r3bl/npgpNkp1p/5p2g/p1pKp1Pp1/PP1P1P1P1/N1P1P3P/L1GSR3L/2B2SG2 w - 1",
    "l3kg2b/2r1rg3/5s2l/1s1gp2pp/4Pn2P/pp1K1Np2/P1+p4PN/8L/L1NS2B1G w Ps6p 1",
    "1nk4n+B/l5R2/pr1p1ps+Pl/1p1g2p1p/Psp1P4/1PP2PPb1/N1SPG3P/L2K2Sp1/3G3NL b GP 1",
    "s1GG3k1/rg3p2n/1+P3PP2/1p1pS1Lp1/pn4nRl/1+p6+p/N2P2+b1p/L1P1K3P/B2SS3L b Pg3p 1",
    "7n1/1sP1p1sgl/1pnr2p1+B/l2gkg3/p2p1P+BpP/1P2P1PP1/P1NP2G2/L1S3KR1/6SNL b 3P 1",
    "k6g1/lp+S3lg1/2rs1p1nn/3pp4/p1p2sg1l/P1PSPPppp/3RK1N1P/6P1L/1N7 b BGb3p 1",
    "ls4+S1b/1P6l/p5p1n/P5gP1/1ppkpp3/6G1P/N1Gl+n1s1R/1SGpPP1p1/2R1K2NL w BP3p 1",
    "l4lsn1/4gk2P/1PsGp1p+B1/pp2BN1P1/P1P1PNP1l/LGSG1P1n1/2KP4+p/2p3+r1R/3s5 b 3P 1",
)
"""Positions of random play in which the mover can mate at once."""

UNDER_THREAT = (
    "l4s1n1/1sr4bl/npgpNkp1p/5p2g/p1pKp1Pp1/PP1P1P1P1/N1P1P3P/L1GSR3L/2B2SG2 b - 1",
    "1nk4n+B/lR7/pr1p1ps+Pl/1p1g2p1p/Psp1P4/1PP2PPb1/N1SPG3P/L2K2Sp1/3G3NL w GP 1",
    "ls3s1nb/5+Br1l/pP4pgp/P1p1kS3/1pg1pp1P1/2PP2G1P/L3+n1P1R/2Gp1P1p1/1NS1K2NL w P 1",
    "4k4/+N+R1g2nb1/2p+B1ln1l/P1s1g2pp/s1LPp4/1G2P1p1P/1PP4P1/p4SKRN/4S1G1L w 5P 1",
    "pnG6/3k1+B1s1/3pp2pl/l+Sp4Np/l4p3/2P2P3/PPSPP2PP/Lr+nR1S2+b/1N1GKG3 w G3P 1",
    "6b1p/p1p1+B3l/1PG5n/1+RPGk1p1N/4gPP2/3PP1sNP/+l3K2PL/1+p4R2/+pN+p2G+p+s1 w 2P2sl 1",
    "l2k2+N2/1r2r2ll/p+NsP5/1pP3Pgp/GP1n+B3L/P1+sbKP1S1/4P1g1P/3G1p1S1/1+p1N3P1 b 4P 1",
    "2p3b2/ls1gk3l/1rn2p2p/1PPp3pP/pN1Pps1ng/P2G5/L3PP2+b/1S4S1L/6PKR b Pgn2p 1",
)
"""Positions in which most moves allow a mate in one, and some don't."""

UPDATES = 40
LEARNER = (
    "env.num_games=64",
    "model.tower_width=32",
    "model.policy_width=16",
    "model.value_width=16",
    "model.accumulators=32",
    "model.hidden=16",
    "model.context=16",
    "ppo.minibatch_size=128",
    "ppo.epochs=3",
    "ppo.learning_rate=0.002",
    "ppo.learning_rate_schedule=constant",
    # Enough curiosity to come across the one good move of a hundred before settling.
    "ppo.entropy=0.06",
    "ppo.entropy_end=0.06",
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


MATE = (WITH_A_MATE, winning_moves, 1, 0)
ESCAPE = (UNDER_THREAT, safe_moves, 2, 1)


@pytest.mark.parametrize(
    ("family", "sfens", "good_moves", "plies", "mate_plies"),
    [
        pytest.param("model.type=resnet", *MATE, id="resnet, mate in one", marks=pytest.mark.soak),
        pytest.param("model.type=resnet", *ESCAPE, id="resnet, escape from a mate in one"),
        pytest.param("model.type=sparse", *MATE, id="sparse, mate in one"),
        pytest.param("model.type=sparse", *ESCAPE, id="sparse, escape from a mate in one"),
    ],
)
def test_ppo_solves_a_set_of_positions(
    tmp_path: Path,
    family: str,
    sfens: tuple[str, ...],
    good_moves: Callable[[ShogiGame], list[int]],
    plies: int,
    mate_plies: int,
) -> None:
    """From the outcome of games of one ply, or of two, where the blame falls on the loser."""
    wanted = [good_moves(ShogiGame(sfen)) for sfen in sfens]
    trainer = tiny_trainer(tmp_path, family, *LEARNER, f"selfplay.mate_plies={mate_plies}")
    assert _share_solved(trainer, sfens, wanted) < 0.7, "not by chance"
    assert isinstance(trainer.selfplay, SelfPlay)
    trainer.selfplay.env = trainer.selfplay.collector.env = VectorShogi(
        64, starts=sfens, ply_limit=plies
    )
    for _ in range(UPDATES):
        trainer.train_step()
    assert _share_solved(trainer, sfens, wanted) == 1.0


def _share_solved(trainer: Trainer, sfens: tuple[str, ...], wanted: list[list[int]]) -> float:
    """In how many of the positions the likeliest move is a good one."""
    solved = []
    for sfen, good in zip(sfens, wanted, strict=True):
        env = VectorShogi(1, starts=[sfen])
        prediction = trainer.learner.network.predict(env.observe())
        chosen = int(env.legal_actions[0, np.argmax(prediction.log_probs[0])])
        solved.append(chosen in good)
    return float(np.mean(solved))
