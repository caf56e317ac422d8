"""A network as the opponent in one game."""

import math
from typing import NamedTuple

import numpy as np

from keisei.evaluation.judges import NamedJudge
from keisei.search.judge import draw
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.moves import Move
from keisei.shogi.packed import pack_game

_ACTIONS = PolicyOutputMapper()


class Candidate(NamedTuple):
    """A move that the network considers."""

    move: Move
    log_prob: float

    @property
    def probability(self) -> float:
        """How likely the network is to play it."""
        return math.exp(self.log_prob)


class Thought(NamedTuple):
    """What the network thinks of a position."""

    candidates: list[Candidate]
    """All legal moves, the likeliest first."""

    value: float
    """From -1, the mover loses, to 1, the mover wins."""


class NetworkOpponent:
    """Answers one position at a time, by its policy."""

    def __init__(self, network: NamedJudge) -> None:
        self.name = network.name
        self._judge = network.judge

    def think(self, game: ShogiGame) -> Thought:
        """Judge the position that the game has reached; it must not be over."""
        legal = game.legal_actions
        log_probs, values = self._judge.judge(
            pack_game(game), legal[None, :], np.array([len(legal)], dtype=np.int32)
        )
        order = np.argsort(-log_probs[0, : len(legal)], kind="stable")
        candidates = [
            Candidate(_ACTIONS.move(int(legal[column]), game.turn), float(log_probs[0, column]))
            for column in order
        ]
        return Thought(candidates, float(values[0]))

    def choose(
        self, game: ShogiGame, *, temperature: float, random: np.random.Generator
    ) -> tuple[Move, Thought]:
        """A move, a mate in one if there is one; temperature 0: the likeliest."""
        thought = self.think(game)
        if (mate := game.mate_in_one()) is not None:
            return mate, thought
        if temperature == 0.0:
            return thought.candidates[0].move, thought
        log_probs = np.array([[c.log_prob for c in thought.candidates]], dtype=np.float32)
        chosen = draw(log_probs / np.float32(temperature), random)[0]
        return thought.candidates[int(chosen)].move, thought
