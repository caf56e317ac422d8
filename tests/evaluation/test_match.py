"""Matches are fair to both sides, end games as players do, and can be repeated."""

from dataclasses import replace

import numpy as np
import pytest

from keisei.evaluation.match import MatchResult, MatchSettings, play_match
from keisei.evaluation.score import Score
from keisei.players.bots import GreedyPlayer, RandomPlayer
from keisei.players.player import BROKE_RULES, FAILED, RESIGNS, LegalIndices
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import Ending
from keisei.shogi.types import Color
from keisei.shogi.vector import VectorShogi

SETTINGS = MatchSettings(games=101, seed=1, ply_limit=200)


class Quitter:
    """Plays at random, and forfeits at a ply."""

    name = identity = "quitter"

    def __init__(self, code: int, ply: int = 10) -> None:
        self.code, self.ply = code, ply

    def choose(
        self, env: VectorShogi, games: LegalIndices, random: np.random.Generator
    ) -> LegalIndices:
        legal_indices = RandomPlayer().choose(env, games, random)
        return np.where(env.packed.ply[games] >= self.ply, self.code, legal_indices)

    def close(self) -> None:
        pass


def test_all_games_are_counted_and_colours_alternate() -> None:
    score = play_match(RandomPlayer(), RandomPlayer(), SETTINGS).score
    assert score.games == 101
    assert (sum(score.black), sum(score.white)) == (51, 50)
    assert 0.3 < score.score < 0.7


def test_greedy_beats_random_from_either_side() -> None:
    assert play_match(GreedyPlayer(), RandomPlayer(), SETTINGS).score.score > 0.8
    assert play_match(RandomPlayer(), GreedyPlayer(), SETTINGS).score.score < 0.2


def test_a_match_can_be_repeated_exactly() -> None:
    first, second = (play_match(GreedyPlayer(), RandomPlayer(), SETTINGS) for _ in range(2))
    assert first.games == second.games
    other = play_match(GreedyPlayer(), RandomPlayer(), replace(SETTINGS, seed=2))
    assert first.games != other.games


def test_rounds_play_the_same_number_of_games_from_other_openings() -> None:
    settings = replace(SETTINGS, games=20, round_games=6, keep_games=20, ply_limit=60)
    seen: list[int] = []
    result = play_match(
        RandomPlayer(), RandomPlayer(), settings, on_games=lambda r: seen.append(len(r.games))
    )
    assert len(result.games) == len(result.records) == 20
    assert seen == sorted(seen)
    assert seen[-1] == 20, "the last games are reported too"
    openings = {tuple(record.main_line[:4]) for record in result.records}
    assert len(openings) == 10


def test_a_decided_match_ends_after_its_round() -> None:
    settings = replace(SETTINGS, round_games=10)
    result = play_match(
        GreedyPlayer(), RandomPlayer(), settings, is_decided=lambda score: score.games >= 15
    )
    assert len(result.games) == 20


def test_kept_games_are_whole_games_with_the_players_names() -> None:
    settings = MatchSettings(games=6, seed=2, ply_limit=60, keep_games=3)
    result = play_match(GreedyPlayer(), RandomPlayer(), settings)
    assert len(result.records) == 3
    for record in result.records:
        game = ShogiGame(record.start, ply_limit=60)
        for move in record.main_line:
            assert game.outcome() is None
            game.push(move)
        outcome = game.outcome(claim_declaration=True)
        assert outcome is not None
        assert record.winner is outcome.winner
    assert {record.black for record in result.records} == {"greedy", "random"}


def test_openings_can_be_given() -> None:
    opening = "4k4/9/9/9/9/9/4P4/9/4K4 w - 1"
    settings = MatchSettings(games=4, openings=(opening,), opening_plies=0, keep_games=4)
    result = play_match(RandomPlayer(), RandomPlayer(), settings)
    assert {ShogiGame(record.start).sfen() for record in result.records} == {opening}


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (RESIGNS, Ending.RESIGNATION),
        (BROKE_RULES, Ending.ILLEGAL_MOVE),
        (FAILED, Ending.TIME_UP),
    ],
)
def test_a_player_that_gives_up_loses(code: int, ending: Ending) -> None:
    settings = MatchSettings(games=10, seed=3, keep_games=10)
    result = play_match(Quitter(code), RandomPlayer(), settings)
    assert result.score == Score((0, 0, 5), (0, 0, 5))
    assert result.endings == {ending.value: 10}
    for game, record in zip(result.games, result.records, strict=True):
        assert game.plies == len(record.moves) == (10 if game.color is Color.BLACK else 11)
        assert record.winner is game.color.opponent
        assert record.result is not None
        assert record.result.ending is ending


def test_each_opening_is_played_with_both_colours() -> None:
    env = VectorShogi(8, seed=4, opening_plies=6)
    env.pair_games()
    openings = [env.game(index).sfen() for index in range(8)]
    assert openings[::2] == openings[1::2]
    assert len(set(openings)) == 4


def test_a_result_without_games_has_no_score_yet() -> None:
    result = MatchResult("a", "b")
    assert result.score.games == 0
    assert result.plies == []
