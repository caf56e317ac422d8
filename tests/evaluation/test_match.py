"""Matches: fair to both sides, and the bots as strong as they should be."""

from collections import Counter

import numpy as np
import pytest

from keisei.evaluation.bots import UnknownOpponentError, find_bot, greedy_bot, random_bot
from keisei.evaluation.match import MatchSettings, play_match
from keisei.evaluation.score import Score
from keisei.shogi.game import ShogiGame
from keisei.shogi.material import PIECE_POINTS
from keisei.shogi.pieces import Color, PieceKind
from keisei.shogi.vector import VectorShogi

SETTINGS = MatchSettings(games=101, seed=1, ply_limit=200)


def test_all_games_are_counted_and_colours_alternate() -> None:
    score = play_match(random_bot, random_bot, SETTINGS).score
    assert score.games == 101
    assert (sum(score.black), sum(score.white)) == (51, 50)
    assert 0.3 < score.score < 0.7


def test_greedy_beats_random() -> None:
    score = play_match(greedy_bot, random_bot, SETTINGS).score
    assert score.score > 0.8
    assert play_match(random_bot, greedy_bot, SETTINGS).score.score < 0.2


def test_a_match_can_be_repeated_exactly() -> None:
    first, second = (play_match(greedy_bot, random_bot, SETTINGS) for _ in range(2))
    assert first.score == second.score


def test_sample_games_are_whole_games() -> None:
    settings = MatchSettings(games=6, seed=2, ply_limit=60, sample_games=3)
    result = play_match(greedy_bot, random_bot, settings)
    assert len(result.samples) == 3
    for sample in result.samples:
        assert sample.game.outcome(claim_declaration=True) == sample.outcome
        assert len(sample.game.moves) == sample.game.ply
    assert {sample.player_color for sample in result.samples} == {Color.BLACK, Color.WHITE}


def test_each_opening_is_played_with_both_colours() -> None:
    env = VectorShogi(8, seed=4, opening_plies=6)
    env.pair_games()
    openings = [env.game(index).sfen() for index in range(8)]
    assert openings[::2] == openings[1::2]
    assert len(set(openings)) == 4


def test_the_greedy_bot_takes_the_most_and_ties_are_random() -> None:
    start = "4k4/9/9/4r4/3pRb3/9/9/9/4K4 b - 1"
    env = VectorShogi(200, starts=[start])
    columns = greedy_bot(env, np.arange(200), np.random.default_rng(0))
    moves = {env.game(0).legal_moves[column].usi for column in columns}
    assert moves == {"5e5d"}, "the rook is worth most"
    quiet = VectorShogi(300)
    columns = greedy_bot(quiet, np.arange(300), np.random.default_rng(0))
    counts = Counter(columns.tolist())
    assert len(counts) == 30
    assert max(counts.values()) < 30


def test_a_promotion_counts_what_it_gains() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b - 1")
    env = VectorShogi(1, starts=[game.start])
    column = greedy_bot(env, np.arange(1), np.random.default_rng(0))[0]
    assert game.legal_moves[column].usi == "5c5b+"
    gain = PIECE_POINTS[PieceKind.PROMOTED_PAWN] - PIECE_POINTS[PieceKind.PAWN]
    assert gain > 0


def test_unknown_opponents_are_explained() -> None:
    assert find_bot("random") is random_bot
    with pytest.raises(UnknownOpponentError, match="there are random, greedy"):
        find_bot("kasparov")


def test_scores_have_an_interval_and_a_text() -> None:
    score = Score((40, 2, 8), (30, 0, 20))
    assert score.games == 100
    assert score.score == pytest.approx(0.71)
    low, high = score.interval
    assert low < 0.71 < high
    assert (low, high) == pytest.approx((0.615, 0.79), abs=0.005)
    assert str(score).startswith("71.0% (70-2-28, 95 % 61.")
    perfect = Score((10, 0, 0), (10, 0, 0))
    assert perfect.interval[1] == 1.0
    assert perfect.interval[0] < 0.9
