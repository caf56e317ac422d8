"""The names of what is measured during a run, and what each means.

The names are those that other trainers use (``charts/SPS``, ``losses/approx_kl``), so that curves
can be laid side by side. ``docs/metrics.md`` explains them at length.
"""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from keisei.evaluation.score import Score

SPS: Final = "charts/SPS"
NETWORK_SHARE: Final = "charts/network_share"
LEARNING_RATE: Final = "charts/learning_rate"
ENTROPY_WEIGHT: Final = "charts/entropy_weight"
MINIBATCH_SIZE: Final = "charts/minibatch_size"
EPOCHS_DONE: Final = "charts/epochs_done"

POLICY_LOSS: Final = "losses/policy"
VALUE_LOSS: Final = "losses/value"
ENTROPY: Final = "losses/entropy"
APPROX_KL: Final = "losses/approx_kl"
CLIP_FRACTION: Final = "losses/clip_fraction"
EXPLAINED_VARIANCE: Final = "losses/explained_variance"
GRAD_NORM: Final = "losses/grad_norm"
EMA_KL: Final = "losses/ema_kl"
SKIPPED_MINIBATCHES: Final = "losses/skipped_minibatches"

GAMES_FINISHED: Final = "games/finished"
BLACK_WINS: Final = "games/black_wins"
WHITE_WINS: Final = "games/white_wins"
DRAWS: Final = "games/draws"
PLY_LIMIT_RATE: Final = "games/ply_limit_rate"
MEAN_PLIES: Final = "games/mean_plies"
FORCED_MOVES: Final = "games/forced_moves"
POOL_SHARE: Final = "games/pool_share"
POOL_SCORE: Final = "games/pool_score"
TERMINATION_PREFIX: Final = "games/termination/"

TIME_ENV: Final = "time/env"
TIME_INFERENCE: Final = "time/inference"
TIME_LEARNING: Final = "time/learning"
TIME_WAITING: Final = "time/waiting"
TIME_OTHER: Final = "time/other"

POLICY_LAG: Final = "workers/policy_lag"
ABANDONED_GAMES: Final = "workers/abandoned_games"
FAILURES: Final = "workers/failures"
WORKER_PREFIX: Final = "workers/"
WORKER_FIGURES: Final = ("SPS", "waiting", "games", "version", "rss_mb")

MEMORY: Final = "memory/rss_mb"
VIDEO_MEMORY: Final = "memory/vram_mb"

EVALUATION_PREFIX: Final = "eval/"

TIMES: Final = (TIME_ENV, TIME_INFERENCE, TIME_LEARNING, TIME_WAITING, TIME_OTHER)
"""Where the seconds of a step go; together they are the whole step."""

MEANINGS: Final[dict[str, str]] = {
    SPS: "Plies per second in this step, from the first to the last line of the loop.",
    NETWORK_SHARE: "Share of this step's time in which the network computed.",
    LEARNING_RATE: "Learning rate of this update, as the schedule gave it.",
    ENTROPY_WEIGHT: "Weight of the entropy bonus in this update.",
    MINIBATCH_SIZE: "Samples of a minibatch.",
    EPOCHS_DONE: "Passes over the rollout before the update ended, early or not.",
    POLICY_LOSS: "Clipped surrogate loss.",
    VALUE_LOSS: "Loss of the value head.",
    ENTROPY: "Entropy of the policy over legal moves, in nats.",
    APPROX_KL: "KL divergence of the new policy from the one that played.",
    CLIP_FRACTION: "Share of samples whose probability ratio left the clip range.",
    EXPLAINED_VARIANCE: "Share of the returns' variance that the value head foresaw.",
    GRAD_NORM: "Norm of the gradient before clipping.",
    EMA_KL: "KL divergence of the policy from that of the averaged weights.",
    SKIPPED_MINIBATCHES: "Minibatches left out because their loss was not a finite number.",
    GAMES_FINISHED: "Games that ended in this rollout.",
    BLACK_WINS: "Share of them that Black won.",
    WHITE_WINS: "Share of them that White won.",
    DRAWS: "Share of them that nobody won.",
    PLY_LIMIT_RATE: "Share of them that ended at the ply limit.",
    MEAN_PLIES: "Their mean length in plies.",
    FORCED_MOVES: "Share of plies played by the mate rule.",
    POOL_SHARE: "Share of games played against earlier selves.",
    POOL_SCORE: "Score of the present self in those games that ended, a draw being half a point.",
    TERMINATION_PREFIX + "<name>": "Share of games that ended so: checkmate, repetition ...",
    TIME_ENV: "Seconds of this step spent playing moves and finding the legal ones.",
    TIME_INFERENCE: "Seconds of this step in which the network chose moves, planes included.",
    TIME_LEARNING: "Seconds of this step in which the network learned.",
    TIME_WAITING: "Seconds of this step spent waiting for workers, or for slower learners.",
    TIME_OTHER: "Seconds of this step spent on everything else.",
    POLICY_LAG: "Updates by which the oldest weights that played this rollout were behind.",
    ABANDONED_GAMES: "Games that were abandoned because their worker failed, so far.",
    FAILURES: "Workers that failed and were replaced, so far.",
    WORKER_PREFIX + "<number>/SPS": "Plies per second of a worker while it plays.",
    WORKER_PREFIX + "<number>/waiting": "Share of a worker's time in which it waits.",
    WORKER_PREFIX + "<number>/games": "Games that a worker has finished.",
    WORKER_PREFIX + "<number>/version": "Updates of the weights that a worker plays with.",
    WORKER_PREFIX + "<number>/rss_mb": "Memory of a worker's process, in MB.",
    MEMORY: "Memory of the process, in MB.",
    VIDEO_MEMORY: "The most that tensors took on the GPU so far, in MB; absent without one.",
    EVALUATION_PREFIX + "<opponent>/score": "Points per game, a draw being half a point.",
    EVALUATION_PREFIX + "<opponent>/low": "Lower end of the score's 95 % interval.",
    EVALUATION_PREFIX + "<opponent>/high": "Upper end of the score's 95 % interval.",
    EVALUATION_PREFIX + "<opponent>/as_black": "Points per game with Black.",
    EVALUATION_PREFIX + "<opponent>/as_white": "Points per game with White.",
    EVALUATION_PREFIX + "<opponent>/wins": "Games won.",
    EVALUATION_PREFIX + "<opponent>/draws": "Games drawn.",
    EVALUATION_PREFIX + "<opponent>/losses": "Games lost.",
}
"""What each metric means, in a line. Parts in angle brackets stand for names."""


def termination_metric(name: str) -> str:
    """The metric of a way to end: ``termination_metric("CHECKMATE")`` is in lower case."""
    return TERMINATION_PREFIX + name.lower()


def worker_metric(number: int, figure: str) -> str:
    """The metric of a worker: ``worker_metric(0, "SPS")``."""
    return f"{WORKER_PREFIX}{number}/{figure}"


def workers(metrics: Mapping[str, float]) -> list[int]:
    """The numbers of the workers that some metrics tell of."""
    suffix = f"/{WORKER_FIGURES[0]}"
    return sorted(
        int(name.removeprefix(WORKER_PREFIX).removesuffix(suffix))
        for name in metrics
        if name.startswith(WORKER_PREFIX) and name.endswith(suffix)
    )


def evaluation_metrics(scores: Mapping[str, Score]) -> dict[str, float]:
    """The results of an evaluation, by name; opponents that were not played are left out."""
    metrics: dict[str, float] = {}
    for opponent, score in scores.items():
        if score.games == 0:
            continue
        low, high = score.interval
        wins, draws, losses = score.total
        values = {"score": score.score, "low": low, "high": high}
        for name, by_color in (("as_black", score.as_black), ("as_white", score.as_white)):
            if by_color is not None:
                values[name] = by_color
        values |= {"wins": wins, "draws": draws, "losses": losses}
        metrics |= {f"{EVALUATION_PREFIX}{opponent}/{key}": x for key, x in values.items()}
    return metrics


class Strength(NamedTuple):
    """A score against an opponent with its 95 % interval."""

    score: float
    low: float
    high: float
    as_black: float
    as_white: float
    games: int

    @property
    def margin(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def strengths(metrics: Mapping[str, float]) -> dict[str, Strength]:
    """Read the results of an evaluation back from its metrics, by opponent."""
    found = {}
    for name, score in metrics.items():
        opponent, _, last = name.removeprefix(EVALUATION_PREFIX).rpartition("/")
        if not name.startswith(EVALUATION_PREFIX) or last != "score":
            continue
        stem = f"{EVALUATION_PREFIX}{opponent}/"
        games = sum(metrics.get(stem + kind, 0.0) for kind in ("wins", "draws", "losses"))
        low, high, as_black, as_white = (
            metrics.get(stem + kind, math.nan) for kind in ("low", "high", "as_black", "as_white")
        )
        found[opponent] = Strength(score, low, high, as_black, as_white, round(finite(games)))
    return found


def shares(metrics: Mapping[str, float], names: tuple[str, ...]) -> list[float]:
    """How some metrics divide their sum; all zero where there is nothing to divide."""
    values = [max(0.0, finite(metrics.get(name, 0.0))) for name in names]
    total = sum(values)
    return [value / total if total > 0.0 else 0.0 for value in values]


def finite(value: float) -> float:
    """The number, or 0 where it is none."""
    return value if math.isfinite(value) else 0.0
