"""Every position of a game, judged by a network: all in one call, or searched all together."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_PLY_LIMIT
from keisei.errors import KeiseiError
from keisei.evaluation import DEFAULT_PLY_LIMIT
from keisei.network.predictor import Predictor
from keisei.search.gumbel import TreeSearch
from keisei.search.mates import MateSearch
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.packed import Positions
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.types import Color, Diagram, Move
from keisei.shogi.vector import VectorShogi

MATE_PLIES: Final = 3
"""Mates of up to so many plies are found, whatever the network thinks."""

_ROOM: Final = 64
"""Plies that a search may look beyond the end of the game before it meets a ply limit."""

_ACTIONS: Final = PolicyOutputMapper()


@dataclass(frozen=True)
class Candidate:
    """A legal move, and what is thought of it."""

    move: Move
    probability: float
    """By the network's policy."""

    visits: int
    """Simulations that began with it; 0 without a search."""


@dataclass(frozen=True)
class PositionAnalysis:
    """A position of the game, and what is thought of it."""

    turn: Color
    value: float
    """From -1, the mover loses, to 1, the mover wins."""

    candidates: tuple[Candidate, ...]
    """All legal moves, the best first; none where the game is over."""

    def chances(self, color: Color) -> float:
        """The share of the point that a side can expect, from 0 to 1."""
        return (1.0 + (self.value if color is self.turn else -self.value)) / 2.0


@dataclass(frozen=True)
class MoveAnalysis:
    """A move of the game between what was thought before and after it."""

    ply: int
    """Counted from 1 in this record, as in KIF files."""

    move: Move
    before: PositionAnalysis
    after: PositionAnalysis

    @property
    def color(self) -> Color:
        """Who played it."""
        return self.before.turn

    @property
    def best(self) -> Candidate:
        """What the judge would have played."""
        return self.before.candidates[0]

    @property
    def is_best(self) -> bool:
        """Whether it is that."""
        return self.move == self.best.move

    @property
    def loss(self) -> float:
        """By how much the chances of who played it fell, from 0 to 1; 0 for the best move.

        If those of the best move fall, the judge has seen further by then: it is nobody's mistake.
        """
        if self.is_best:
            return 0.0
        return max(0.0, self.before.chances(self.color) - self.after.chances(self.color))


@dataclass(frozen=True)
class GameAnalysis:
    """A game with what is thought of each of its positions."""

    record: GameRecord
    predictor: str
    """Name of the network."""

    simulations: int
    """Of the search at each position; 0: the network alone."""

    positions: tuple[PositionAnalysis, ...]
    """One more than there are moves: before the first, and after each."""

    @cached_property
    def moves(self) -> tuple[MoveAnalysis, ...]:
        """The moves of the main line."""
        return tuple(
            MoveAnalysis(index + 1, move, self.positions[index], self.positions[index + 1])
            for index, move in enumerate(self.record.main_line)
        )

    def turning_points(self, most: int, *, least: float) -> list[MoveAnalysis]:
        """The moves that lost most, at most so many and each of them at `least` so much."""
        lost = [move for move in self.moves if not move.is_best and move.loss >= least]
        return sorted(sorted(lost, key=lambda move: -move.loss)[:most], key=lambda move: move.ply)


def analyze_game(
    record: GameRecord,
    predictor: Predictor,
    *,
    name: str,
    simulations: int = 0,
    ply_limit: int = DEFAULT_PLY_LIMIT,
) -> GameAnalysis:
    """Analyse every position of the main line.

    Args:
        record: the game.
        predictor: the network.
        name: what people call it.
        simulations: of a tree search at each position, all positions together; 0: no search.
        ply_limit: at which its games are drawn, for networks see how far that is; a longer game
            has a later one.
    """
    if not record.moves:
        raise KeiseiError("there is no move in this game, so there is nothing to judge")
    positions = tuple(_judged(record, predictor, simulations, ply_limit))
    return GameAnalysis(record, name, simulations, positions)


def _judged(
    record: GameRecord, predictor: Predictor, simulations: int, ply_limit: int
) -> Iterator[PositionAnalysis]:
    """The positions in order, the last one included."""
    moves, game = record.main_line, ShogiGame(record.start, declaration=DeclarationRule.OFF)
    while True:
        env, played = _positions_of(game.diagram, moves, ply_limit)
        with env:
            yield from _judge_all(env, predictor, simulations)
        if env.num_games > played:  # the last position is not the end of the game
            return
        for move in moves[:played]:
            game.push(move)
        moves = moves[played:]
        if not moves:
            yield _judged_by_rule(game)
            return
        # The record goes on where the rules had ended the game, by a repetition: as from a new
        # start, without what came before.


def _positions_of(start: Diagram, moves: list[Move], ply_limit: int) -> tuple[VectorShogi, int]:
    """(the positions from a start as games of an environment, how many moves could be played).

    Each game has its own history, so that planes and search know of repetitions. Where a move ends
    the game, the position after it is left out.
    """
    longest = min(start.move_number + len(moves) + _ROOM, MAX_PLY_LIMIT)
    settings = {
        "starts": [start],
        "ply_limit": max(ply_limit, longest),
        "declaration": DeclarationRule.OFF,  # players declare, positions don't
    }
    with VectorShogi(1, **settings) as line:  # type: ignore[arg-type]
        states = [line.state()]
        played = 0
        for move in moves:
            step = line.step([_ACTIONS.index(move, Color(int(line.turns[0])))])
            played += 1
            if step.terminations[0]:
                break
            states.append(line.state())
    env = VectorShogi(len(states), **settings)  # type: ignore[arg-type]
    together = env.state()
    for index, state in enumerate(states):
        for name in together.keys() - {"starts", "settings"}:
            together[name][index] = state[name][0]
    env.restore(together)
    return env, played


def _judge_all(
    env: VectorShogi, predictor: Predictor, simulations: int
) -> Iterator[PositionAnalysis]:
    legal, counts = env.legal_actions, env.legal_counts
    log_probs, values = predictor.predict(Positions(env.packed, legal, counts))
    visits: npt.NDArray[np.int64] = np.zeros(log_probs.shape, dtype=np.int64)
    best = np.argmax(log_probs, axis=1)
    if simulations:
        search = TreeSearch(predictor, simulations, mate_plies=MATE_PLIES)
        best, searched_values, visits = search.search(
            env, np.arange(env.num_games), np.random.default_rng(0)
        )
        values = searched_values.astype(np.float32)
    else:
        mates = MateSearch(MATE_PLIES).find(env.positions, legal, counts)
        best, values = np.where(mates >= 0, mates, best), np.where(mates >= 0, 1.0, values)
    for index in range(env.num_games):
        number, turn = int(counts[index]), Color(int(env.turns[index]))
        order = np.lexsort(
            (-log_probs[index, :number], -visits[index, :number], np.arange(number) != best[index])
        )
        yield PositionAnalysis(
            turn,
            float(values[index]),
            tuple(
                Candidate(
                    _ACTIONS.move(int(legal[index, legal_index]), turn),
                    float(np.exp(log_probs[index, legal_index])),
                    int(visits[index, legal_index]),
                )
                for legal_index in order
            ),
        )


def _judged_by_rule(game: ShogiGame) -> PositionAnalysis:
    """The position after the end: who has won is known."""
    outcome = game.outcome()
    winner = None if outcome is None else outcome.winner
    value = 0.0 if winner is None else 1.0 if winner is game.turn else -1.0
    return PositionAnalysis(game.turn, value, ())
