"""`VectorShogi`: thousands of games at once; one call plays N moves and returns N positions.

>>> env = VectorShogi(num_games=2, seed=0)
>>> step = env.step(env.sample_actions())
>>> step.legal_counts.shape, step.packed.dtype.itemsize, env.planes().shape
((2,), 112, (2, 46, 9, 9))
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_PLY_LIMIT, NUM_ACTIONS
from keisei.errors import IllegalMoveError, KeiseiError
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.features import FeatureSpec, feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.legality import why_action_is_illegal
from keisei.shogi.mate import MateScratch, find_mates
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.packed import Positions, pack
from keisei.shogi.position import Records, to_diagram
from keisei.shogi.render.html import games_html
from keisei.shogi.rng import game_rng_states
from keisei.shogi.rules import DeclarationRule, Outcome, as_outcome, outcome_of
from keisei.shogi.threads import RangePool
from keisei.shogi.types import Color, Diagram, Move
from keisei.shogi.vector_kernels import (
    BEGIN,
    FORFEIT,
    Games,
    find_illegal,
    new_games,
    require_valid_state,
    sample_actions,
    start_records,
    step_games,
    write_mask,
)

_GOLDEN_RATIO: Final = (5**0.5 - 1) / 2
"""Multiples of it are spread evenly between whole numbers, however many there are."""


class VectorStep(NamedTuple):
    """The result of a step. The arrays are the environment's own: the next step overwrites them.

    `packed`, `legal_actions` and `legal_counts` describe the current positions, which after the
    end of a game are those of the next one. The other fields are about the move just played.
    """

    packed: Records
    """``[N]`` `PACKED`: the positions, each in its mover's view."""

    legal_actions: npt.NDArray[np.uint16]
    """``[N, 593]``: in row `i` the first ``legal_counts[i]`` entries are the legal actions."""

    legal_counts: npt.NDArray[np.int32]
    """``[N]``: the number of legal actions, never 0."""

    rewards: npt.NDArray[np.float32]
    """``[N]``: +1 / -1 where the move just played won / lost the game for its player, else 0."""

    terminations: npt.NDArray[np.uint8]
    """``[N]``: the `Termination` of games that ended with this move, 0 for games that did not."""

    winners: npt.NDArray[np.int8]
    """``[N]``: the `Color` that won, -1 for draws and for games that did not end."""

    final_packed: Records
    """``[N]`` `PACKED`: the last position of games that ended with this move; else stale."""


class VectorShogi:
    """`num_games` games of Shogi in lockstep.

    A game that ends is reset within the same step (`autoreset_mode`): the step returns its outcome
    and its last position together with the first position of the next game.
    """

    autoreset_mode = "same_step"
    """Games that end are reset by the step that ended them."""

    def __init__(
        self,
        num_games: int,
        features: str | FeatureSpec = "core46",
        *,
        seed: int = 0,
        first_game: int = 0,
        starts: Sequence[str | Diagram] = (STARTPOS_SFEN,),
        opening_plies: int = 0,
        ply_limit: int = 512,
        declaration: DeclarationRule = DeclarationRule.POINTS_27,
        illegal: Literal["raise", "lose"] = "raise",
        threads: int = 1,
    ) -> None:
        """Allocate the arrays and start all games.

        Args:
            num_games: number of games that are stepped together.
            features: the feature set of `planes`, by name or spec.
            seed: seed of start positions, opening plies and `sample_actions`.
            first_game: number of the first game, if several environments share a seed: game 7 is
                the same in every environment that plays it.
            starts: SFENs or diagrams; each game starts from one of them, chosen at random.
            opening_plies: number of random legal moves at the start of each game.
            ply_limit: the ply at which a game is a draw.
            declaration: the rule by which a side that may declare a win does so at once.
            illegal: effect of an illegal action: raise an error, or lose the game.
            threads: number of threads that share the work of a step.
        """
        _require_range("num_games", num_games, 1, 1 << 24)
        _require_range("first_game", first_game, 0, 1 << 32)
        _require_range("opening_plies", opening_plies, 0, MAX_PLY_LIMIT)
        _require_range("ply_limit", ply_limit, 1, MAX_PLY_LIMIT)
        self.num_games = num_games
        self.first_game = first_game
        self.features = feature_spec(features) if isinstance(features, str) else features
        self.ply_limit = ply_limit
        self.declaration = DeclarationRule(declaration)
        self.opening_plies = opening_plies
        if illegal not in ("raise", "lose"):
            raise ValueError(f"illegal is {illegal!r}, it must be 'raise' or 'lose'")
        self.illegal = illegal
        self.pool = RangePool(threads)
        """The threads that step the games; other kernels over all games may use them too."""

        self._tokens = ["may step"]
        self._mate_scratch: MateScratch | None = None
        self._games = new_games(
            num_games, start_records(starts, ply_limit, opening_plies, self.declaration), ply_limit
        )
        self._games.settings[:] = (ply_limit, int(self.declaration), opening_plies)
        games = self._games
        self.last_step = VectorStep(
            games.packed,
            games.legal_actions,
            games.legal_counts,
            games.rewards,
            games.terminations,
            games.winners,
            games.final_packed,
        )
        self.reset(seed=seed)

    @classmethod
    def from_games(
        cls,
        games: Sequence[ShogiGame],
        features: str | FeatureSpec = "core46",
        *,
        seed: int = 0,
        ply_limit: int = 512,
        declaration: DeclarationRule = DeclarationRule.POINTS_27,
        threads: int = 1,
    ) -> Self:
        """Make an environment that continues `games`, including their histories.

        The moves, keys and checks of the games are copied, not replayed. A game that ends is reset
        to one of their start positions.

        Args:
            games: at least one; none may be over by the rules of the environment.
            features: the feature set of `planes`, by name or spec.
            seed: seed of the start positions after a reset and of `sample_actions`.
            ply_limit: the ply at which a game is a draw, instead of the games' own.
            declaration: the rule by which wins are declared, instead of the games' own.
            threads: number of threads that share the work of a step.

        Raises:
            KeiseiError: A game is over, or its start is not allowed in an environment.
        """
        starts = list(dict.fromkeys(game.start for game in games))
        env = cls(
            len(games),
            features,
            seed=seed,
            starts=starts,
            ply_limit=ply_limit,
            declaration=declaration,
            threads=threads,
        )
        for index, game in enumerate(games):
            env._set_game(index, game, starts.index(game.start))
        return env

    @property
    def positions(self) -> Records:
        """``[N]`` `POSITION`: the records that kernels work on; do not modify them."""
        return self._games.positions

    @property
    def packed(self) -> Records:
        """``[N]`` `PACKED`: the current positions."""
        return self._games.packed

    @property
    def legal_actions(self) -> npt.NDArray[np.uint16]:
        """``[N, 593]``: the legal actions, in row `i` the first ``legal_counts[i]`` entries."""
        return self._games.legal_actions

    @property
    def legal_counts(self) -> npt.NDArray[np.int32]:
        """``[N]``: the number of legal actions of each game."""
        return self._games.legal_counts

    @property
    def turns(self) -> npt.NDArray[np.uint8]:
        """``[N]``: the side to move in each game."""
        turns: npt.NDArray[np.uint8] = self._games.packed["turn"]
        return turns

    def observe(self, games: npt.NDArray[np.int64] | slice | None = None) -> Positions:
        """Return the current positions of some games, or of all, as the input of a network.

        For all games they are the environment's own arrays, which the next step overwrites.
        """
        return self._games.observe(games)

    def reset(self, *, seed: int | None = None) -> VectorStep:
        """Start new games; with `seed` the same as in a new environment with that seed."""
        with self._stepping():
            if seed is not None:
                self._games.rng_states[:] = game_rng_states(seed, self.num_games, self.first_game)
            self._forget_step()
            beginnings = np.full(self.num_games, BEGIN, dtype=np.int64)
            self.pool.run(step_games, self.num_games, self._games, beginnings)
        return self.last_step

    def pair_games(self) -> VectorStep:
        """Start new games in pairs: games 2k and 2k + 1 have the same start and opening."""
        states = self._games.rng_states
        states[1::2] = states[: len(states) // 2 * 2 : 2]
        return self.reset()

    def stagger(self, plies: int) -> VectorStep:
        """Start each game again and play less than `plies` random moves in it, by its number.

        Games that begin together go through opening, middle game and end together, so that rollouts
        show one phase at a time; staggered ones show all of them from the first rollout on.
        """
        _require_range("plies", plies, 0, MAX_PLY_LIMIT)
        numbers = np.arange(self.first_game, self.first_game + self.num_games)
        begin_at = (numbers * _GOLDEN_RATIO % 1.0 * plies).astype(np.int64)
        for ply in range(plies):
            actions = self.sample_actions()
            actions[begin_at == ply] = BEGIN
            with self._stepping():
                self.pool.run(step_games, self.num_games, self._games, actions)
        self._forget_step()
        return self.last_step

    def step(self, actions: npt.ArrayLike) -> VectorStep:
        """Play ``actions[N]``, one in each game, and reset the games that ended.

        If any action is illegal, `IllegalMoveError` names game and move, and no game changes;
        with ``illegal="lose"`` the game ends there with `Termination.ILLEGAL_MOVE` instead.
        """
        with self._stepping():
            chosen = self._checked(actions)
            self.pool.run(step_games, self.num_games, self._games, chosen)
        return self.last_step

    def sample_actions(self) -> npt.NDArray[np.int64]:
        """Sample a uniformly random legal action for each game, ``[N]``, by the seed."""
        actions = np.empty(self.num_games, dtype=np.int64)
        games = self._games
        sample_actions(games.legal_actions, games.legal_counts, games.rng_states, actions)
        return actions

    def mates_in_one(self) -> npt.NDArray[np.int64]:
        """Return the legal index of a mate in one in each game, ``[N]``; -1 if there is none."""
        legal_indices = np.empty(self.num_games, dtype=np.int64)
        games = self._games
        if self._mate_scratch is None:
            self._mate_scratch = MateScratch.of(self.num_games)
        self.pool.run(
            find_mates,
            self.num_games,
            games.positions,
            games.legal_actions,
            games.legal_counts,
            self._mate_scratch,
            legal_indices,
        )
        return legal_indices

    def planes(
        self, out: npt.NDArray[Any] | None = None, *, dtype: npt.DTypeLike = np.float32
    ) -> npt.NDArray[Any]:
        """Write the observation planes, ``[N, planes, 9, 9]``, into `out` and return it."""
        shape = (self.num_games, *self.features.shape)
        if out is None:
            out = np.empty(shape, dtype=dtype)
        if out.shape != shape:
            raise ValueError(f"the planes need a buffer of shape {shape}, got {out.shape}")
        self.pool.run(self._encode, self.num_games, out)
        return out

    def legal_mask(self, out: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.bool_]:
        """Write the mask of the legal actions, ``bool[N, 13527]``, into `out` and return it."""
        shape = (self.num_games, NUM_ACTIONS)
        if out is None:
            out = np.empty(shape, dtype=np.bool_)
        if out.shape != shape or out.dtype != np.bool_ or not out.flags.c_contiguous:
            raise ValueError(f"the mask needs a contiguous bool buffer of shape {shape}")
        self.pool.run(write_mask, self.num_games, self.legal_actions, self.legal_counts, out)
        return out

    def outcome(self, index: int) -> Outcome | None:
        """Return the outcome of game `index` if the last step ended it, else None."""
        games = self._games
        return as_outcome(int(games.terminations[index]), int(games.winners[index]))

    def game(self, index: int) -> ShogiGame:
        """Return a copy of game `index` with its moves, to look at or to play on by hand."""
        return self._replay(index, int(self._games.buffers[index]), None)

    def last_move(self, index: int) -> Move | None:
        """Return the last move of game `index`, without replaying it; None before the first."""
        games = self._games
        buffer = int(games.buffers[index])
        start = games.starts[games.start_indices[index, buffer]]
        played = int(games.positions[index].ply) - int(start.ply)
        if played == 0:
            return None
        mover = Color(int(games.positions[index].turn)).opponent
        return PolicyOutputMapper().move(int(games.moves[index, buffer, played - 1]), mover)

    def finished_game(self, index: int) -> ShogiGame:
        """Return the game that ended last at `index`, with all its moves."""
        length = int(self._games.final_lengths[index])
        if length < 0:
            raise ValueError(f"no game has ended at index {index} yet")
        return self._replay(index, 1 - int(self._games.buffers[index]), length)

    def branches(self, games: npt.NDArray[np.int64]) -> Games:
        """Copy some games, including their histories, so that a search can try moves in them."""
        own = self._games
        return Games(
            *(
                value if name in ("starts", "settings") else value[games]
                for name, value in own._asdict().items()
            )
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copy everything that changes into plain arrays (safe to store without pickle)."""
        return {name: np.array(value) for name, value in self._games._asdict().items()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore a `state` of this environment, or of another one with the same settings."""
        own = self._games._asdict()
        for name, value in own.items():
            if (
                name not in state
                or state[name].shape != value.shape
                or state[name].dtype != value.dtype
            ):
                raise KeiseiError(
                    f"the saved state belongs to another environment: {name!r} differs"
                )
        for name in ("settings", "starts"):
            if not np.array_equal(state[name], own[name]):
                raise KeiseiError(
                    f"the saved state belongs to another environment: {name!r} differs"
                )
        require_valid_state(state, self.ply_limit)
        for name, value in own.items():
            value[...] = state[name]

    def close(self) -> None:
        """Stop the threads. The environment can't be stepped afterwards."""
        self.pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_games={self.num_games}, features={self.features.name!r})"

    def _repr_html_(self) -> str:
        """Draw the first boards, for notebooks."""
        return games_html(self.num_games, self.game)

    def _forget_step(self) -> None:
        """Clear what the last step said of its moves."""
        self._games.rewards[:] = 0
        self._games.terminations[:] = 0
        self._games.winners[:] = -1

    @contextmanager
    def _stepping(self) -> Iterator[None]:
        """Exclude other threads: kernels run without the GIL and trust validated input."""
        try:
            token = self._tokens.pop()  # atomic, and unlike a lock it can be copied and pickled
        except IndexError:
            raise RuntimeError("this environment is being stepped by another thread") from None
        try:
            yield
        finally:
            self._tokens.append(token)

    def _checked(self, actions: npt.ArrayLike) -> npt.NDArray[np.int64]:
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_games,) or chosen.dtype.kind not in "iu":
            raise ValueError(
                f"step needs {self.num_games} integers, one action for each game; "
                f"got {chosen.dtype} of shape {chosen.shape}"
            )
        chosen = chosen.astype(np.int64)  # a copy: forfeits are marked in it
        games, index = self._games, -1
        while True:
            index = int(find_illegal(games.legal_actions, games.legal_counts, chosen, index + 1))
            if index < 0:
                return chosen
            action = int(chosen[index])
            if self.illegal == "raise" or not 0 <= action < NUM_ACTIONS:
                reason = why_action_is_illegal(games.positions[index], action)
                raise IllegalMoveError(f"game {index}: {reason}")
            chosen[index] = FORFEIT

    def _set_game(self, index: int, game: ShogiGame, start: int) -> None:
        """Replace game `index` by `game`, whose start position has the index `start`."""
        games, legal, actions = self._games, game.legal_actions, game.actions
        keys, checks = game.history
        rules = (game.repetitions, self.ply_limit, int(self.declaration))
        outcome = as_outcome(*outcome_of(game.position, keys, checks, len(legal), *rules))
        if outcome is not None:
            raise KeiseiError(f"game {index} is over: {outcome.termination.words}")
        games.buffers[index] = 0
        games.start_indices[index, 0] = start
        games.positions[index] = game.position
        games.keys[index, : len(keys)] = keys
        games.checks[index, : len(checks)] = checks
        games.moves[index, 0, : len(actions)] = actions
        games.legal_actions[index, : len(legal)] = legal
        games.legal_counts[index] = len(legal)
        packed = games.packed[index]
        pack(game.position, actions, game.repetitions, game.in_check, self.ply_limit, packed)

    def _encode(self, out: npt.NDArray[Any], start: int, stop: int) -> None:
        self.features.encode(self._games.packed[start:stop], out[start:stop])

    def _replay(self, index: int, buffer: int, length: int | None) -> ShogiGame:
        games = self._games
        start = games.starts[games.start_indices[index, buffer]]
        if length is None:
            length = int(games.positions[index].ply) - int(start.ply)
        game = ShogiGame(to_diagram(start), ply_limit=self.ply_limit, declaration=self.declaration)
        for action in games.moves[index, buffer, :length].tolist():
            game.push_action(action)
        return game


def _require_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}, it must be from {low} to {high}")
