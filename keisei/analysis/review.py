"""What a network thinks of every position of a game, each asked about only once."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.predictor import Predictor
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import PACKED, Positions, pack_game
from keisei.shogi.position import Records
from keisei.shogi.types import Color

SHOWN_CANDIDATES: Final = 5

_ACTIONS = PolicyOutputMapper()


@dataclass(frozen=True)
class Opinion:
    """What a network thinks of a position."""

    black: float
    """What Black can expect of the points, from 0 to 1."""

    candidates: tuple[tuple[str, float], ...] = ()
    """The likeliest moves, as USI, with their probabilities; none where the game is over."""


class _Question(NamedTuple):
    """A position as networks see it."""

    packed: Records
    legal: npt.NDArray[np.uint16]
    turn: Color


class Reviewer:
    """Has an opinion of games. Remembers those of positions it has seen."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._known: dict[bytes, Opinion] = {}

    def review(self, game: ShogiGame) -> list[Opinion]:
        """An opinion of the start and of the position after each move; the new ones in one go."""
        keys: list[bytes] = []
        new: dict[bytes, _Question] = {}
        walk = ShogiGame(game.start, ply_limit=game.ply_limit)
        for action in [*game.actions.tolist(), None]:
            packed = pack_game(walk)
            key = packed.tobytes()
            keys.append(key)
            if key not in self._known:
                new[key] = _Question(packed, walk.legal_actions, walk.turn)
            if action is not None:
                walk.push_action(action)
        self._answer(new)
        opinions = [self._known[key] for key in keys]
        outcome = game.outcome()
        if outcome is not None:  # repetitions are known by the game alone
            opinions[-1] = Opinion(_points(outcome.winner))
        return opinions

    def _answer(self, questions: dict[bytes, _Question]) -> None:
        for key, (_, legal, turn) in questions.items():
            if len(legal) == 0:
                self._known[key] = Opinion(_points(turn.opponent))
        asked = {key: question for key, question in questions.items() if len(question.legal)}
        if not asked:
            return
        legal_actions = np.zeros((len(asked), MAX_LEGAL_MOVES), dtype=np.uint16)
        counts = np.array([len(question.legal) for question in asked.values()], dtype=np.int32)
        packed = np.zeros(len(asked), dtype=PACKED)  # joining arrays would change their layout
        for row, question in enumerate(asked.values()):
            legal_actions[row, : counts[row]] = question.legal
            packed[row] = question.packed[0]
        log_probs, values = self._predictor.predict(Positions(packed, legal_actions, counts))
        for row, (key, question) in enumerate(asked.items()):
            self._known[key] = _opinion(question, log_probs[row, : counts[row]], float(values[row]))


def _opinion(question: _Question, log_probs: npt.NDArray[np.float32], value: float) -> Opinion:
    best = np.argsort(-log_probs, kind="stable")[:SHOWN_CANDIDATES]
    candidates = tuple(
        (
            _ACTIONS.move(int(question.legal[column]), question.turn).usi,
            float(np.exp(log_probs[column])),
        )
        for column in best
    )
    return Opinion((1 + (value if question.turn is Color.BLACK else -value)) / 2, candidates)


def _points(winner: Color | None) -> float:
    return 0.5 if winner is None else 1.0 if winner is Color.BLACK else 0.0
