"""The bots are what they say they are."""

import hashlib
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.match import MatchSettings, play_match
from keisei.players.bots import AlphaBetaPlayer, GreedyPlayer, RandomizedPlayer
from keisei.players.player import Player
from keisei.shogi.game import ShogiGame
from keisei.shogi.material import PIECE_POINTS
from keisei.shogi.types import PieceKind
from keisei.shogi.vector import VectorShogi
from tests.positions import random_games


def test_the_greedy_bot_takes_the_most_and_ties_are_random() -> None:
    start = "4k4/9/9/4r4/3pRb3/9/9/9/4K4 b - 1"
    env = VectorShogi(200, starts=[start])
    legal_indices = GreedyPlayer().choose(env, np.arange(200), np.random.default_rng(0))
    moves = {env.game(0).legal_moves[legal_index].usi for legal_index in legal_indices}
    assert moves == {"5e5d"}, "the rook is worth most"
    quiet = VectorShogi(300)
    legal_indices = GreedyPlayer().choose(quiet, np.arange(300), np.random.default_rng(0))
    counts = Counter(legal_indices.tolist())
    assert len(counts) == 30
    assert max(counts.values()) < 30


def test_a_promotion_counts_what_it_gains() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b - 1")
    env = VectorShogi(1, starts=[game.start])
    legal_index = GreedyPlayer().choose(env, np.arange(1), np.random.default_rng(0))[0]
    assert game.legal_moves[legal_index].usi == "5c5b+"
    gain = PIECE_POINTS[PieceKind.PROMOTED_PAWN] - PIECE_POINTS[PieceKind.PAWN]
    assert gain > 0


def test_alpha_beta_plays_the_same_with_any_number_of_threads() -> None:
    env = VectorShogi(30, seed=5, opening_plies=30)
    games = np.arange(3, 28)
    answers = []
    for threads in (1, 2, 3):
        player = AlphaBetaPlayer(2, margin=30, threads=threads)
        answers.append(player.choose(env, games, np.random.default_rng(1)).tolist())
        player.close()
    assert answers[0] == answers[1] == answers[2]
    assert (np.array(answers[0]) < env.legal_counts[games]).all()


def test_a_deeper_look_is_stronger() -> None:
    settings = MatchSettings(games=40, seed=1)
    one, two = AlphaBetaPlayer(1), AlphaBetaPlayer(2)
    assert play_match(two, one, settings).score.score > 0.8


def test_a_careless_player_is_weaker_by_its_share_of_random_moves() -> None:
    env = VectorShogi(400, starts=["4k4/9/9/4r4/3pRb3/9/9/9/4K4 b - 1"])
    best = GreedyPlayer().choose(env, np.arange(1), np.random.default_rng(0))[0]
    games = np.arange(400)
    for share, least, most in ((0.0, 400, 400), (0.5, 180, 265), (1.0, 20, 70)):
        legal_indices = RandomizedPlayer(GreedyPlayer(), share).choose(
            env, games, np.random.default_rng(1)
        )
        assert least <= (legal_indices == best).sum() <= most
        assert (legal_indices < env.legal_counts[games]).all()


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_shares_that_cannot_be_are_refused(share: float) -> None:
    with pytest.raises(KeiseiError, match="from 0 to 1"):
        RandomizedPlayer(GreedyPlayer(), share)


def test_names_say_what_was_set() -> None:
    assert AlphaBetaPlayer(2).name == "alphabeta:2"
    player = AlphaBetaPlayer(3, quiet_plies=4, margin=20)
    assert player.identity == "alphabeta:3,quiet=4,margin=20 v1"
    assert RandomizedPlayer(player, 0.25).name == "alphabeta:3,quiet=4,margin=20,random=0.25"


@pytest.mark.parametrize(
    ("player", "identity", "moves"),
    [
        (GreedyPlayer(), "greedy v1", "9dd43fb143fc"),
        (AlphaBetaPlayer(2), "alphabeta:2 v1", "0c215137a3e8"),
        (AlphaBetaPlayer(1, quiet_plies=4), "alphabeta:1,quiet=4 v1", "87ec36897c34"),
        (AlphaBetaPlayer(2, margin=30), "alphabeta:2,margin=30 v1", "ab0cc6a10ea0"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_who_plays_otherwise_is_somebody_else(player: Player, identity: str, moves: str) -> None:
    """Where it fails, raise the bot's `VERSION` and write down the new sums of moves."""
    chosen: list[str] = []
    for game in islice(random_games(11), 0, 400, 10):
        env = VectorShogi(1, starts=[game.diagram])
        legal_index = player.choose(env, np.arange(1), np.random.default_rng(len(chosen)))[0]
        chosen.append(game.legal_moves[legal_index].usi)
    assert player.identity == identity
    assert hashlib.sha256(" ".join(chosen).encode()).hexdigest()[:12] == moves
