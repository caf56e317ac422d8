"""The analysis of a whole game: all its positions by one call of the network, or one search.

>>> analyze_game(record, predictor, name="mine", simulations=64).moves[2].loss  # doctest: +SKIP
0.41
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from keisei.analysis.position_analysis import (
    Candidate,
    PositionAnalysis,
    analysis_of_end,
    ranked_candidates,
)
from keisei.constants import MAX_PLY_LIMIT
from keisei.errors import KeiseiError
from keisei.network.predictor import Predictor
from keisei.search.mates import MateSearch
from keisei.search.mcts import TreeSearch
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.types import Color, Move
from keisei.shogi.vector import VectorShogi

MATE_PLIES: Final = 3
"""Longest mate that is found whatever the policy prefers, in plies."""

_SEARCHED_PLIES: Final = 64
"""Plies beyond the end of the game that a search may look before it meets a ply limit."""

_ACTIONS: Final = PolicyOutputMapper()


@dataclass(frozen=True)
class MoveAnalysis:
    """A move of the game with the analyses of the positions before and after it."""

    ply: int
    """Counted from 1 in this record, as in KIF files."""

    move: Move
    before: PositionAnalysis
    after: PositionAnalysis

    @property
    def color(self) -> Color:
        """The side that played it."""
        return self.before.turn

    @property
    def best(self) -> Candidate:
        """The best move by the analysis."""
        return self.before.candidates[0]

    @property
    def is_best(self) -> bool:
        """Whether the best move was played."""
        return self.move == self.best.move

    @property
    def loss(self) -> float:
        """Expected score that the move cost its side, from 0 to 1; 0 for the best move.

        If the expected score falls after the best move, the analysis has only seen further by then.
        """
        if self.is_best:
            return 0.0
        return max(0.0, self.before.chances(self.color) - self.after.chances(self.color))


@dataclass(frozen=True)
class GameAnalysis:
    """A game with the analysis of each of its positions."""

    record: GameRecord
    network: str
    """Name of the network."""

    simulations: int
    """Simulations per position; 0: the network alone."""

    positions: tuple[PositionAnalysis, ...]
    """Analyses before the first move and after each move: one more than there are moves."""

    @cached_property
    def moves(self) -> tuple[MoveAnalysis, ...]:
        """The moves of the main line."""
        return tuple(
            MoveAnalysis(index + 1, move, self.positions[index], self.positions[index + 1])
            for index, move in enumerate(self.record.main_line)
        )

    def turning_points(self, most: int, *, min_loss: float) -> list[MoveAnalysis]:
        """Return the moves with the largest losses, in game order: up to `most` of them."""
        lost = [move for move in self.moves if not move.is_best and move.loss >= min_loss]
        return sorted(sorted(lost, key=lambda move: -move.loss)[:most], key=lambda move: move.ply)


def analyze_game(
    record: GameRecord,
    predictor: Predictor,
    *,
    name: str,
    simulations: int = 0,
    ply_limit: int = 512,
    should_stop: Callable[[], bool] | None = None,
) -> GameAnalysis:
    """Analyse every position of the main line.

    Args:
        record: the game.
        predictor: the network.
        name: of the network.
        simulations: of a tree search of each position, all positions together; 0: no search.
        ply_limit: the ply at which the network's games are drawn, as it sees how far that is; a
            longer game has a later one.
        should_stop: asked about once a second whether the analysis is no longer wanted.

    Raises:
        KeiseiError: The game has no moves.
        SearchStoppedError: `should_stop` has returned True.
    """
    if not record.moves:
        raise KeiseiError("there is no move in this game, so there is nothing to analyse")
    positions = tuple(_analyses(record, predictor, simulations, ply_limit, should_stop))
    return GameAnalysis(record, name, simulations, positions)


def _analyses(
    record: GameRecord,
    predictor: Predictor,
    simulations: int,
    ply_limit: int,
    should_stop: Callable[[], bool] | None,
) -> Iterator[PositionAnalysis]:
    """Analyse the positions in order, the last one included.

    Where a record continues although the rules had ended the game, by a repetition, the rest is
    analysed as a new game from there, without what came before.
    """
    start, moves = record.start, record.main_line
    while True:
        longest = min(start.move_number + len(moves) + _SEARCHED_PLIES, MAX_PLY_LIMIT)
        game = ShogiGame(start, ply_limit=max(ply_limit, longest), declaration=DeclarationRule.OFF)
        games = [game.copy()]
        for move in moves:
            game.push(move)
            if game.outcome() is not None:
                break
            games.append(game.copy())
        yield from _analyze_games(games, predictor, simulations, should_stop)
        moves = moves[len(game.moves) :]
        if game.outcome() is None:
            return
        if not moves:
            yield analysis_of_end(game)
            return
        start = game.diagram


def _analyze_games(
    games: Sequence[ShogiGame],
    predictor: Predictor,
    simulations: int,
    should_stop: Callable[[], bool] | None,
) -> Iterator[PositionAnalysis]:
    """Analyse the positions that some games, all of the same rules, have reached."""
    env = VectorShogi.from_games(
        games, ply_limit=games[0].ply_limit, declaration=games[0].declaration
    )
    positions = env.observe()
    log_probs, values = predictor.predict(positions)
    mate_search = MateSearch(MATE_PLIES)
    if simulations:
        search = TreeSearch(predictor, simulations, mate_plies=MATE_PLIES)
        result = search.search(env, np.arange(len(games)), should_stop=should_stop)
        best, visits = result.legal_indices, result.visits
        values = result.values.astype(np.float32)
        lines = result.lines
    else:
        mates = mate_search.find(env.positions, positions.legal_actions, positions.legal_counts)
        best = np.where(mates >= 0, mates, np.argmax(log_probs, axis=1))
        visits = np.zeros(log_probs.shape, dtype=np.int64)
        values = np.where(mates >= 0, 1.0, values)
        lines = [(int(actions[k]),) for actions, k in zip(env.legal_actions, best, strict=True)]
    for row, game in enumerate(games):
        candidates = ranked_candidates(
            positions, row, log_probs[row], best=int(best[row]), visits=visits[row]
        )
        line = tuple(mate_search.line(game)) or moves_of(lines[row], game.turn)
        yield PositionAnalysis(game.turn, float(values[row]), candidates, line)


def moves_of(actions: Iterable[int], turn: Color) -> tuple[Move, ...]:
    """Return a line of policy indices, the first played by `turn`, as moves."""
    return tuple(
        _ACTIONS.move(action, Color(turn ^ index & 1)) for index, action in enumerate(actions)
    )
