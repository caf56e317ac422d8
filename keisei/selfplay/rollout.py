"""Self-play in this process: a rollout fills the buffer, one forward pass a ply for all games."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from keisei.config_schema import SelfPlayConfig
from keisei.ppo.buffer import RolloutBuffer
from keisei.ppo.inference import Inference
from keisei.search.judge import draw, padded_width
from keisei.search.mates import MateRule
from keisei.selfplay.pool import OpponentPool
from keisei.selfplay.timing import SectionTimer
from keisei.shogi.actions import MIRRORED_ACTIONS
from keisei.shogi.packed import mirror_packed
from keisei.shogi.rules import Outcome, as_outcome
from keisei.shogi.vector import VectorShogi


@dataclass
class RolloutStats:
    """What happened in a rollout."""

    outcomes: list[tuple[Outcome, int]] = field(default_factory=list)
    """How each game ended, and after how many plies."""

    plies: int = 0
    learned_plies: int = 0
    """Plies that the network chose and learns from."""

    forced_plies: int = 0
    """Plies played by the mate rule."""

    pool_points: float = 0.0
    """What the learner scored in pool games that ended, a draw being half a point."""

    pool_games: int = 0


class Collector:
    """Plays all games with the current network and writes everything down."""

    def __init__(
        self,
        env: VectorShogi,
        inference: Inference,
        pool: OpponentPool,
        settings: SelfPlayConfig,
        random: np.random.Generator,
        *,
        mirror: bool,
    ) -> None:
        self.env = env
        self.inference = inference
        self.pool = pool
        self.settings = settings
        self.random = random
        self.mirror = mirror
        self._mate_rule = MateRule(settings.mate_plies)

    def collect(
        self,
        buffer: RolloutBuffer,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = lambda outcome, plies: None,
    ) -> RolloutStats:
        """Fill `buffer`. Games under way go on in the next rollout."""
        stats = RolloutStats()
        opponent = self.pool.choose_opponent()
        for t in range(buffer.plies):
            self._play_ply(buffer, t, opponent, stats, timer)
            for index in np.flatnonzero(buffer.ends[t]):
                outcome, plies = self._ended_game(int(index))
                stats.outcomes.append((outcome, plies))
                on_game_end(outcome, plies)
        stats.plies = len(buffer)
        stats.learned_plies = int(buffer.learns_policy.sum())
        return stats

    def bootstrap_values(self) -> npt.NDArray[np.float32]:
        """``[N]``: values of the positions that the games have reached."""
        env = self.env
        return self.inference.judge(env.packed, env.legal_actions, env.legal_counts).values

    def _play_ply(
        self,
        buffer: RolloutBuffer,
        t: int,
        opponent: Inference | None,
        stats: RolloutStats,
        timer: SectionTimer,
    ) -> None:
        env = self.env
        packed, legal = buffer.packed[t], env.legal_actions
        with timer.section("env"):
            packed[...] = env.packed
            frozen = self.pool.frozen_moves(env.turns)
            if self.mirror:
                legal = self._mirror(packed, legal)
        with timer.section("inference"):
            log_probs, values = self.inference.judge(packed, legal, env.legal_counts)
            columns = draw(log_probs, self.random)
            if opponent is not None and frozen.any():
                columns[frozen] = self._frozen_columns(opponent, frozen)
        with timer.section("env"):
            games = np.arange(env.num_games)
            mates = self._mate_rule.columns(env, games)
            forced = mates >= 0
            columns[forced] = mates[forced]
            buffer.actions[t] = legal[games, columns]
            buffer.log_probs[t] = log_probs[games, columns]
            buffer.values[t] = values
            buffer.learns_policy[t] = ~(forced | frozen)
            buffer.learns_value[t] = ~frozen
            step = env.step(env.legal_actions[games, columns])
            buffer.rewards[t] = step.rewards
            buffer.ends[t] = step.terminations != 0
            stats.forced_plies += int((forced & ~frozen).sum())
            self._count_pool_games(buffer.ends[t], step.winners, stats)

    def _mirror(
        self, packed: npt.NDArray[np.void], legal: npt.NDArray[np.uint16]
    ) -> npt.NDArray[np.uint16]:
        """Show the network half of the positions mirrored, so that it learns both sides alike.

        This happens while acting, not while learning: what is learned is exactly what was seen.
        """
        chosen = np.flatnonzero(self.random.random(len(packed)) < 0.5)
        images = packed[chosen]
        mirror_packed(images, images)
        packed[chosen] = images
        legal = legal[:, : padded_width(self.env.legal_counts, legal.shape[1])].copy()
        legal[chosen] = MIRRORED_ACTIONS[legal[chosen]]
        return legal

    def _frozen_columns(
        self, opponent: Inference, frozen: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        env = self.env
        where = np.flatnonzero(frozen)
        judgement = opponent.judge(
            env.packed[where], env.legal_actions[where], env.legal_counts[where]
        )
        return draw(judgement.log_probs, self.random)

    def _ended_game(self, index: int) -> tuple[Outcome, int]:
        step = self.env.last_step
        outcome = as_outcome(int(step.terminations[index]), int(step.winners[index]))
        assert outcome is not None
        return outcome, int(step.final_packed[index].ply)

    def _count_pool_games(
        self,
        ended: npt.NDArray[np.bool_],
        winners: npt.NDArray[np.int8],
        stats: RolloutStats,
    ) -> None:
        if not self.pool.is_active:
            return
        number = self.pool.num_pool_games
        over = np.flatnonzero(ended[:number])
        won = winners[over] == self.pool.learner_colors[over]
        drawn = winners[over] < 0
        stats.pool_points += float(won.sum() + drawn.sum() / 2)
        stats.pool_games += len(over)
        self.pool.redraw_colors(ended)
