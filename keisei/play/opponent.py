"""Anybody who has a word in `keisei.players.spec`, as the opponent in one game.

>>> opponent = Opponent(make_player("random"), seed=0)
>>> opponent.name, opponent.predictor is None, opponent.choose(ShogiGame())
('random', True, Move.from_usi('2h6h'))
"""

import math
from threading import Lock
from typing import NamedTuple

import numpy as np

from keisei.constants import MAX_PLY_LIMIT
from keisei.network.predictor import Predictor
from keisei.players.network_players import PolicyPlayer, SearchPlayer
from keisei.players.player import BROKE_RULES, RESIGNS, Player
from keisei.players.spec import make_player
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import Ending
from keisei.shogi.packed import Positions, pack_game
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.types import Move
from keisei.shogi.vector import VectorShogi

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


class Opponent:
    """A player who is asked about one position at a time.

    May be asked from any thread; who asks while it thinks waits.
    """

    def __init__(self, player: Player, *, seed: int | None = None) -> None:
        self._player = player
        self._random = np.random.default_rng(seed)
        self._lock = Lock()

    @classmethod
    def named(
        cls, word: str, *, seed: int | None = None, device: str = "cpu", threads: int = 0
    ) -> "Opponent":
        """The opponent that a word names; raises `KeiseiError` where it names none."""
        return cls(make_player(word, device=device, threads=threads), seed=seed)

    @property
    def name(self) -> str:
        """What people call it."""
        return self._player.name

    @property
    def predictor(self) -> Predictor | None:
        """The network behind it; None for bots and engines."""
        player = self._player
        return player.predictor if isinstance(player, PolicyPlayer | SearchPlayer) else None

    def choose(self, game: ShogiGame) -> Move | Ending:
        """Its move where the game stands, or how the game ends instead; it must not be over.

        It declares a win as soon as it may. `Ending.ERROR`: its program died or kept silent.
        """
        if game.can_declare:
            return Ending.DECLARATION
        with self._lock:
            env = _environment(game)
            (legal_index,) = self._player.choose(env, np.array([0]), self._random)
        if legal_index == RESIGNS:
            return Ending.RESIGNATION
        if legal_index < 0:
            return Ending.ILLEGAL_MOVE if legal_index == BROKE_RULES else Ending.ERROR
        return _ACTIONS.move(int(env.legal_actions[0, legal_index]), game.turn)

    def think(self, game: ShogiGame) -> Thought | None:
        """What its network thinks of the position; None if there is no network."""
        predictor = self.predictor
        if predictor is None:
            return None
        with self._lock:
            return think(predictor, game)

    def close(self) -> None:
        """Let go of what the player holds: an engine's processes end, even if it is thinking."""
        self._player.close()


def think(predictor: Predictor, game: ShogiGame) -> Thought:
    """What a network thinks of the position that a game has reached; it must not be over."""
    legal = game.legal_actions
    log_probs, values = predictor.predict(
        Positions(pack_game(game), legal[None, :], np.array([len(legal)], dtype=np.int32))
    )
    order = np.argsort(-log_probs[0, : len(legal)], kind="stable")
    candidates = [
        Candidate(
            _ACTIONS.move(int(legal[legal_index]), game.turn), float(log_probs[0, legal_index])
        )
        for legal_index in order
    ]
    return Thought(candidates, float(values[0]))


def _environment(game: ShogiGame) -> VectorShogi:
    """The game, with its history, as players see games.

    Nobody is made to declare there: a person may have let the chance pass.
    """
    env = VectorShogi(
        1,
        starts=[game.start],
        ply_limit=min(game.ply_limit, MAX_PLY_LIMIT),
        declaration=DeclarationRule.OFF,
    )
    for action in game.actions.tolist():
        env.step([action])
    return env
