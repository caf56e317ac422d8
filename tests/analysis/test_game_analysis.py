"""The analysis of a whole game is that of each of its positions alone."""

import numpy as np
import pytest

from keisei.analysis.game_analysis import GameAnalysis, analyze_game
from keisei.errors import KeiseiError
from keisei.search.mates import MateSearch
from keisei.search.mcts import TreeSearch
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import STARTPOS, GameRecord
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.packed import Positions, pack_game
from keisei.shogi.rules import DeclarationRule, Termination
from keisei.shogi.types import Color, Diagram
from keisei.shogi.vector import VectorShogi
from tests.analysis.games import short_game
from tests.positions import cycling_games, random_games
from tests.predictors import KnownPredictor, by_place

BACK_AND_FORTH = ["2h3h", "8b7b", "3h2h", "7b8b"]


def analysis_of(record: GameRecord, simulations: int = 0) -> GameAnalysis:
    return analyze_game(record, KnownPredictor(by_place), name="material", simulations=simulations)


def random_record(seed: int, plies: int) -> GameRecord:
    for game in random_games(seed):
        if game.ply == plies:
            return GameRecord.from_game(game)
    raise AssertionError


@pytest.mark.parametrize(
    "record",
    [
        random_record(1, 40),
        GameRecord.from_moves([*BACK_AND_FORTH * 2, "2h1h"]),
        GameRecord.from_moves(
            ["4a3b", "7g7f"],
            start=parse_sfen("lnsgkgsnl/1r7/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 21"),
        ),
    ],
    ids=["random", "repeated", "handicap"],
)
def test_all_positions_in_one_call_as_each_alone(record: GameRecord) -> None:
    predictor = KnownPredictor(by_place)
    game = analyze_game(record, predictor, name="material")
    (batch,) = predictor.batches
    assert len(batch) == len(game.positions) == len(record.moves) + 1
    alone = ShogiGame(record.start, ply_limit=512)
    for index, position in enumerate(game.positions):
        packed = pack_game(alone)
        assert batch[index] == packed[0]  # history included
        actions = alone.legal_actions
        log_probs, values = predictor.predict(
            Positions(packed, actions[None], np.array([len(actions)], dtype=np.int32))
        )
        assert position.turn is alone.turn
        assert [candidate.move for candidate in position.candidates] == alone.legal_moves[::-1]
        assert position.value == values[0]
        assert position.candidates[0].probability == pytest.approx(float(np.exp(log_probs.max())))
        assert sum(candidate.probability for candidate in position.candidates) == pytest.approx(1)
        if index < len(record.moves):
            alone.push(record.main_line[index])


def test_searching_all_together_is_searching_each_alone() -> None:
    record = random_record(2, 12)
    game = analysis_of(record, simulations=12)
    search = TreeSearch(KnownPredictor(by_place), 12)
    env = VectorShogi(1, declaration=DeclarationRule.OFF)
    for index, position in enumerate(game.positions):
        result = search.search(env, np.arange(1), np.random.default_rng(0))
        moves = env.game(0).legal_moves
        assert position.candidates[0].move == moves[int(result.legal_indices[0])]
        assert position.value == pytest.approx(float(result.values[0]), abs=1e-6)
        visits = {c.move: c.visits for c in position.candidates}
        assert [visits[move] for move in moves] == result.visits[0].tolist()
        if index < len(record.moves):
            env.step([env.legal_actions[0, moves.index(record.main_line[index])]])


def test_long_games_have_a_later_limit() -> None:
    predictor = KnownPredictor(by_place)
    start = parse_sfen("4k4/9/4P4/9/9/9/9/9/4K4 b G 600")
    analyze_game(GameRecord.from_moves(["5i5h", "5a6a"], start=start), predictor, name="material")
    assert predictor.batches[0].ply_limit.tolist() == [666] * 3


def test_who_lost_what_and_where() -> None:
    game = analysis_of(short_game(), simulations=64)
    [blunder] = game.turning_points(9, min_loss=0.2)
    assert (blunder.ply, blunder.move.usi, blunder.color) == (3, "8h3c+", Color.BLACK)
    assert not blunder.is_best
    before, after = blunder.before.chances(Color.BLACK), blunder.after.chances(Color.BLACK)
    assert blunder.loss == pytest.approx(before - after)
    assert blunder.after.chances(Color.BLACK) + blunder.after.chances(Color.WHITE) == 1
    assert game.turning_points(9, min_loss=0.99) == []
    some = game.turning_points(2, min_loss=0.0)
    assert len(some) == 2
    assert blunder in some
    assert [move.ply for move in some] == sorted(move.ply for move in some)


def test_the_best_move_costs_nothing() -> None:
    """Whatever the analysis says one ply later."""
    record = short_game()
    game = analysis_of(record)
    moves = record.main_line
    best = game.positions[3].candidates[0].move  # does not take the horse back
    other = analysis_of(GameRecord.from_moves([*moves[:3], best])).moves[3]
    assert other.is_best
    assert other.loss == 0


def test_mates_are_found_and_ends_are_known() -> None:
    start = parse_sfen("4k4/9/4P4/9/9/9/9/9/4K4 b G 1")
    game = analysis_of(GameRecord.from_moves(["G*5b"], start=start))
    before, after = game.positions
    assert (before.value, before.candidates[0].move.usi) == (1.0, "G*5b")
    assert (after.turn, after.value, after.candidates) == (Color.WHITE, -1.0, ())
    missed = analysis_of(GameRecord.from_moves(["5i5h"], start=start)).moves[0]
    assert missed.best.move.usi == "G*5b"
    assert missed.loss > 0.3


@pytest.mark.parametrize("simulations", [0, 2])
def test_a_game_that_goes_on_after_its_end(simulations: int) -> None:
    record = GameRecord.from_moves([*BACK_AND_FORTH * 4, "7g7f"])
    game = analysis_of(record, simulations=simulations)
    assert len(game.positions) == 18
    turns = [position.turn for position in game.positions]
    assert turns == [Color.BLACK, Color.WHITE] * 9
    assert all(position.candidates for position in game.positions)
    ended = analysis_of(GameRecord.from_moves(BACK_AND_FORTH * 3), simulations=simulations)
    assert ended.positions[-1].candidates == ()
    assert ended.positions[-1].value == 0.0


def test_games_in_circles_have_as_many_positions_as_they_should() -> None:
    for game, _ in zip(cycling_games(5), range(6), strict=False):
        if game.moves:
            assert len(analysis_of(GameRecord.from_game(game)).positions) == len(game.moves) + 1


def without_a_king() -> Diagram:
    return parse_sfen("4k4/9/4P4/9/9/9/9/9/9 b G 1")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (GameRecord(STARTPOS), "there is no move in this game"),
        (GameRecord.from_moves(["5c5b"], start=without_a_king()), "lacks a king"),
    ],
)
def test_what_cannot_be_analysed(record: GameRecord, message: str) -> None:
    with pytest.raises(KeiseiError, match=message):
        analysis_of(record)


@pytest.mark.parametrize("simulations", [0, 64])
def test_the_best_line_begins_with_the_best_move_and_can_be_played(simulations: int) -> None:
    record = short_game()
    analysis = analysis_of(record, simulations=simulations)
    lengths = []
    for ply, position in enumerate(analysis.positions):
        moves = [move.usi for move in record.main_line[:ply]]
        game = ShogiGame("startpos moves " + " ".join(moves) if moves else "startpos")
        assert position.best_line[0] == position.candidates[0].move
        for move in position.best_line:
            game.push(move)
        lengths.append(len(position.best_line))
    assert max(lengths) > 1 if simulations else max(lengths) == 1


@pytest.mark.parametrize("simulations", [0, 8])
def test_the_best_line_of_a_mate_ends_with_mate(simulations: int) -> None:
    for game in random_games(seed=3, plies=300):
        if not game.in_check and len(MateSearch(3).line(game)) == 3:
            break
    move = game.legal_moves[0]
    before = analysis_of(
        GameRecord.from_moves([move], start=parse_sfen(game.sfen())), simulations
    ).positions[0]
    assert len(before.best_line) == 3
    for mating in before.best_line:
        game.push(mating)
    outcome = game.outcome()
    assert outcome is not None
    assert outcome.termination is Termination.CHECKMATE
