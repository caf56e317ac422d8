"""Where experience comes from: `GameSource`, and the plain one, `SelfPlay` in this process.

The learner has one of these, or its workers each have one for a part of the games.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from keisei.config_schema import AppConfig
from keisei.network.predictor import Network, Predictor
from keisei.ppo.buffer import Experience
from keisei.selfplay.opponent_pool import OpponentPool
from keisei.selfplay.rollout import Collector, RolloutStats
from keisei.shogi.game import ShogiGame
from keisei.shogi.rules import DeclarationRule, Outcome
from keisei.shogi.vector import VectorShogi
from keisei.shogi.vector_kernels import random_states
from keisei.timing import SectionTimer

_MASK = (1 << 63) - 1


class RunSeeds(NamedTuple):
    """The seeds of a run, by what they decide."""

    env: int
    """Start positions and opening plies."""

    weights: int
    """The network's first weights."""

    acting: int
    """Which moves are drawn."""

    learning: int
    """The order of samples."""

    pool: int
    """Which earlier selves are met, and with which colour."""

    @classmethod
    def of(cls, seed: int, resumed_at: int = 0) -> "RunSeeds":
        """The seeds that follow from ``run.seed``, and from the update at which it goes on."""
        entropy = [seed, resumed_at] if resumed_at else seed
        children = np.random.SeedSequence(entropy).spawn(len(cls._fields))
        return cls(*(int(child.generate_state(1, np.uint64)[0]) & _MASK for child in children))


class GameSource(Protocol):
    """Plays the games that a learner learns from. Used as a context, it leaves nothing behind."""

    def take_weights(self, network: Network, version: int) -> None:
        """Play with the network as it is now, after `version` updates."""
        ...

    def collect(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = ...,
    ) -> RolloutStats:
        """Fill `experience`. Games under way go on in the next rollout."""
        ...

    @property
    def board(self) -> ShogiGame | None:
        """A position of a game under way, to look at."""
        ...

    def state(self) -> dict[str, Any]:
        """What a resumed run needs of it."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned, as far as that can be."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def without_pool(state: Mapping[str, Any]) -> dict[str, Any]:
    """A source's state without the earlier selves, which all learners have alike."""
    if "pool" not in state:
        return dict(state)
    return {**state, "pool": {**state["pool"], "snapshots": []}}


def with_pool_of(state: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A state that was kept without them, with the earlier selves of another one."""
    if "pool" not in state or "pool" not in other:
        return dict(state)
    return {**state, "pool": {**state["pool"], "snapshots": other["pool"]["snapshots"]}}


class SelfPlay:
    """Games `first_game`, `first_game` + 1 ... of a run."""

    def __init__(
        self,
        config: AppConfig,
        network: Network,
        *,
        games: int,
        first_game: int = 0,
        threads: int,
        predictor: Predictor | None = None,
        resumed_at: int = 0,
    ) -> None:
        """Begin the games.

        Args:
            config: the settings of the run.
            network: the network that plays.
            games: how many are played here.
            first_game: the number of the first of them.
            threads: that step them.
            predictor: asked instead of the network here, which then plays for earlier selves only.
            resumed_at: the update at which the run goes on, if games begin anew in mid-run.
        """
        seeds = RunSeeds.of(config.run.seed, resumed_at)
        self.env = VectorShogi(
            games,
            network.spec,
            seed=seeds.env,
            first_game=first_game,
            opening_plies=config.env.opening_plies,
            ply_limit=config.env.ply_limit,
            declaration=DeclarationRule.named(config.env.declaration),
            threads=threads,
        )
        self.pool_random = np.random.default_rng([seeds.pool, first_game])
        self.pool = OpponentPool(config.selfplay, games, network, self.pool_random)
        self.collector = Collector(
            self.env,
            predictor or network,
            self.pool,
            config.selfplay,
            random_states(seeds.acting, games, first_game),
            mirror=config.ppo.mirror,
        )
        self._pool_interval = config.selfplay.pool_interval

    def collect(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = lambda outcome, plies: None,
        on_ply: Callable[[], None] = lambda: None,
    ) -> RolloutStats:
        """Fill `experience`. Games under way go on in the next rollout."""
        return self.collector.collect(experience, timer, on_game_end, on_ply)

    def take_weights(self, network: Network, version: int) -> None:
        """The network is the one that plays already; if it is time for it, it joins the pool."""
        if version % self._pool_interval == 0:
            self.pool.add(network.weights())

    @property
    def board(self) -> ShogiGame:
        """A game under way, to look at."""
        return self.env.game(0)

    def state(self) -> dict[str, Any]:
        """Everything that the games to come depend on."""
        return {
            "env": self.env.state(),
            "pool": self.pool.state(),
            "pool_random": self.pool_random.bit_generator.state,
            "rng_states": self.collector.rng_states.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        self.env.restore(state["env"])
        self.pool.restore(state["pool"])
        self.pool_random.bit_generator.state = state["pool_random"]
        self.collector.rng_states[:] = state["rng_states"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held that other processes would miss."""
