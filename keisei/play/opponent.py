"""A player as the opponent in a single game.

>>> opponent = Opponent.from_spec("random", seed=0)
>>> opponent.name, opponent.predictor is None, opponent.choose(ShogiGame())
('random', True, Move.from_usi('2h6h'))
"""

from threading import Lock

import numpy as np

from keisei.analysis import PositionAnalysis, analyze_position
from keisei.constants import MAX_PLY_LIMIT
from keisei.network.predictor import Predictor
from keisei.players import BROKE_RULES, RESIGNS, Player, make_player
from keisei.players.network import PolicyPlayer, SearchPlayer
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import Ending
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.types import Move
from keisei.shogi.vector import VectorShogi

_ACTIONS = PolicyOutputMapper()


class Opponent:
    """A player that chooses a move for one position at a time.

    Thread-safe: a call waits until those of other threads have returned.
    """

    def __init__(self, player: Player, *, seed: int | None = None) -> None:
        self._player = player
        self._random = np.random.default_rng(seed)
        self._lock = Lock()

    @classmethod
    def from_spec(
        cls, spec: str, *, seed: int | None = None, device: str = "cpu", threads: int = 0
    ) -> "Opponent":
        """Make the opponent of a player spec; raises `KeiseiError` if there is no such player."""
        return cls(make_player(spec, device=device, threads=threads), seed=seed)

    @property
    def name(self) -> str:
        """The name shown to people."""
        return self._player.name

    @property
    def predictor(self) -> Predictor | None:
        """The network behind it; None for bots and engines."""
        player = self._player
        return player.predictor if isinstance(player, PolicyPlayer | SearchPlayer) else None

    def choose(self, game: ShogiGame) -> Move | Ending:
        """Return its move in the position of a game that is not over, or how it ends the game.

        It declares a win as soon as it may. `Ending.ERROR`: its program died, or timed out.
        """
        if game.can_declare:
            return Ending.DECLARATION
        # Declarations are off in there: a person may have let the chance pass.
        ply_limit, no_declarations = min(game.ply_limit, MAX_PLY_LIMIT), DeclarationRule.OFF
        env = VectorShogi.from_games([game], ply_limit=ply_limit, declaration=no_declarations)
        with self._lock:
            (legal_index,) = self._player.choose(env, np.array([0]), self._random)
        if legal_index == RESIGNS:
            return Ending.RESIGNATION
        if legal_index < 0:
            return Ending.ILLEGAL_MOVE if legal_index == BROKE_RULES else Ending.ERROR
        return _ACTIONS.move(int(env.legal_actions[0, legal_index]), game.turn)

    def warm_up(self) -> None:
        """Let a network choose a move that is not played: its kernels are compiled and loaded."""
        if self.predictor is None:
            return
        env = VectorShogi.from_games([ShogiGame()], declaration=DeclarationRule.OFF)
        with self._lock:
            self._player.choose(env, np.array([0]), np.random.default_rng(0))

    def analyze(self, game: ShogiGame) -> PositionAnalysis | None:
        """Return its network's analysis of the position; None if it has no network."""
        predictor = self.predictor
        if predictor is None:
            return None
        with self._lock:
            return analyze_position(game, predictor)

    def close(self) -> None:
        """Close the player: the processes of an engine end, even during a search."""
        self._player.close()
