"""The analysis of a position: its value and candidate moves, by a network or by a search.

>>> analyze_position(game, predictor).candidates[0].move  # doctest: +SKIP
Move.from_usi('7g7f')
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.predictor import Predictor
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import PACKED, Positions, pack_game
from keisei.shogi.types import Color, Move

SHOWN_CANDIDATES: Final = 5
"""Candidates that are shown to people where nothing else is said."""

_ACTIONS: Final = PolicyOutputMapper()


class Candidate(NamedTuple):
    """A legal move with its probability and visits."""

    move: Move
    probability: float
    """Probability by the network's policy."""

    visits: int = 0
    """Simulations of the move; 0 without a search."""


@dataclass(frozen=True)
class PositionAnalysis:
    """The value of a position and its candidate moves."""

    turn: Color
    value: float
    """From -1, the mover loses, to 1, the mover wins."""

    candidates: tuple[Candidate, ...] = ()
    """Legal moves, the best first; none where the game is over."""

    best_line: tuple[Move, ...] = ()
    """The best move and the play expected after it, as far as it was searched."""

    def chances(self, color: Color) -> float:
        """Return the expected score of a side, from 0 to 1."""
        return (1.0 + (self.value if color is self.turn else -self.value)) / 2.0


def analyze_position(game: ShogiGame, predictor: Predictor) -> PositionAnalysis:
    """Analyse the position that a game has reached by the network alone; it must not be over."""
    [analysis] = analyses_of(_observe([_Observed.of(game)]), predictor)
    return analysis


def analysis_of_end(game: ShogiGame) -> PositionAnalysis:
    """Return the analysis of a position in which the game is over: its result."""
    outcome = game.outcome()
    winner = None if outcome is None else outcome.winner
    return PositionAnalysis(game.turn, _result(winner, game.turn))


def analyses_of(
    positions: Positions,
    predictor: Predictor,
    *,
    max_candidates: int | None = None,
) -> list[PositionAnalysis]:
    """Analyse ``B`` positions by one call of the network."""
    log_probs, values = predictor.predict(positions)
    analyses = []
    for row, best in enumerate(np.argmax(log_probs, axis=1).tolist()):
        candidates = ranked_candidates(
            positions, row, log_probs[row], best=best, most=max_candidates
        )
        value, line = float(values[row]), (candidates[0].move,)
        analyses.append(PositionAnalysis(_turn(positions, row), value, candidates, line))
    return analyses


def ranked_candidates(
    positions: Positions,
    row: int,
    log_probs: npt.NDArray[np.float32],
    *,
    best: int,
    visits: npt.NDArray[np.int64] | None = None,
    most: int | None = None,
) -> tuple[Candidate, ...]:
    """Return the legal moves of a position: the best, then by visits, then by probability.

    Args:
        positions: the position is one of them.
        row: which one.
        log_probs: ``[M]``, of its legal moves.
        best: legal index of the best move.
        visits: ``[M]``, of its legal moves; None without a search.
        most: number of moves that are returned; None: all.
    """
    count, turn = int(positions.legal_counts[row]), _turn(positions, row)
    if visits is None:
        visits = np.zeros(count, dtype=np.int64)
    order = np.lexsort((-log_probs[:count], -visits[:count], np.arange(count) != best))
    return tuple(
        Candidate(
            _ACTIONS.move(int(positions.legal_actions[row, legal_index]), turn),
            float(np.exp(log_probs[legal_index])),
            int(visits[legal_index]),
        )
        for legal_index in order[:most]
    )


class Reviewer:
    """Analyses all positions of a game by a network, each position only once.

    For games that grow while they are watched: what was analysed before is remembered.
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._known: dict[bytes, PositionAnalysis] = {}

    def review(self, game: ShogiGame) -> list[PositionAnalysis]:
        """Return the analysis of the start and of the position after each move.

        The network is called once, for all positions that are new.
        """
        keys: list[bytes] = []
        new: dict[bytes, _Observed] = {}
        replay = ShogiGame(game.start, ply_limit=game.ply_limit)
        for action in [*game.actions.tolist(), None]:
            observed = _Observed.of(replay)
            key = observed.packed.tobytes()
            keys.append(key)
            if key not in self._known:
                new[key] = observed
            if action is not None:
                replay.push_action(action)
        self._analyze(new)
        analyses = [self._known[key] for key in keys]
        if game.outcome() is not None:  # repetitions are not seen in the position alone
            analyses[-1] = analysis_of_end(game)
        return analyses

    def _analyze(self, new: "dict[bytes, _Observed]") -> None:
        """Analyse positions and remember the results; without a legal move, the mover has lost."""
        open_positions = {key: observed for key, observed in new.items() if len(observed.legal)}
        for key in new.keys() - open_positions.keys():
            turn = Color(int(new[key].packed["turn"][0]))
            self._known[key] = PositionAnalysis(turn, _result(turn.opponent, turn))
        if open_positions:
            analyses = analyses_of(
                _observe(list(open_positions.values())),
                self._predictor,
                max_candidates=SHOWN_CANDIDATES,
            )
            self._known.update(zip(open_positions, analyses, strict=True))


class _Observed(NamedTuple):
    """A position as networks see it."""

    packed: npt.NDArray[np.void]
    legal: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, game: ShogiGame) -> "_Observed":
        return cls(pack_game(game), game.legal_actions)


def _observe(observed: Sequence[_Observed]) -> Positions:
    """Return positions as one batch ``[B]``."""
    packed = np.zeros(len(observed), dtype=PACKED)  # joining arrays would change their layout
    counts = np.array([len(position.legal) for position in observed], dtype=np.int32)
    legal_actions = np.zeros((len(observed), MAX_LEGAL_MOVES), dtype=np.uint16)
    for row, position in enumerate(observed):
        packed[row] = position.packed[0]
        legal_actions[row, : counts[row]] = position.legal
    return Positions(packed.view(np.recarray), legal_actions, counts)


def _turn(positions: Positions, row: int) -> Color:
    return Color(int(positions.packed["turn"][row]))


def _result(winner: Color | None, turn: Color) -> float:
    """Return the value of a finished game for the side to move."""
    return 0.0 if winner is None else 1.0 if winner is turn else -1.0
