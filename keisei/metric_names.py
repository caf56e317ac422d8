"""Names of all metrics of a training run, and what each means.

The names are those that other trainers use (``charts/SPS``, ``losses/approx_kl``), so that curves
of different programs can be compared. ``docs/metrics.md`` explains them at length.

This module imports nothing of Keisei, so that every package can use the names.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

SPS: Final = "charts/SPS"
NETWORK_SHARE: Final = "charts/network_share"
LEARNING_RATE: Final = "charts/learning_rate"
ENTROPY_WEIGHT: Final = "charts/entropy_weight"
MINIBATCH_SIZE: Final = "charts/minibatch_size"
EPOCHS_DONE: Final = "charts/epochs_done"

TOTAL_LOSS: Final = "losses/total"
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

TIME_PREFIX: Final = "time/"
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
"""Last parts of the names of each worker's metrics."""

MEMORY: Final = "memory/rss_mb"
VIDEO_MEMORY: Final = "memory/vram_mb"

CPU_SHARE: Final = "system/cpu"
MEMORY_SHARE: Final = "system/memory"
GPU_SHARE: Final = "system/gpu"

EVALUATION_PREFIX: Final = "eval/"
ELO: Final = "eval/elo"
ELO_LOW: Final = "eval/elo_low"
ELO_HIGH: Final = "eval/elo_high"
ELO_POSITION: Final = "eval/elo_position"
VALUE_LOG_LOSS: Final = "eval/value_log_loss"

OUTCOMES: Final = (BLACK_WINS, DRAWS, WHITE_WINS)
"""Shares of games by outcome; they add up to 1."""

TIMES: Final = (TIME_ENV, TIME_INFERENCE, TIME_LEARNING, TIME_WAITING, TIME_OTHER)
"""Seconds of a step by activity; they add up to the whole step."""

MEANINGS: Final[dict[str, str]] = {
    SPS: "Plies per second in this step, everything included.",
    NETWORK_SHARE: "Share of this step's time in which the network computed.",
    LEARNING_RATE: "Learning rate of this update, as the schedule gave it.",
    ENTROPY_WEIGHT: "Weight of the entropy bonus in this update.",
    MINIBATCH_SIZE: "Samples of a minibatch.",
    EPOCHS_DONE: "Passes over the rollout before the update ended, early or not.",
    TOTAL_LOSS: "Weighted sum of all loss terms, which is what the optimizer minimizes.",
    POLICY_LOSS: "Clipped surrogate loss.",
    VALUE_LOSS: "Loss of the value head.",
    ENTROPY: "Entropy of the policy over legal moves, in nats.",
    APPROX_KL: "KL divergence of the new policy from the one that played.",
    CLIP_FRACTION: "Share of samples whose probability ratio left the clip range.",
    EXPLAINED_VARIANCE: "Share of the returns' variance that the value head predicted.",
    GRAD_NORM: "Norm of the gradient before clipping.",
    EMA_KL: "KL divergence of the policy from that of the averaged weights.",
    SKIPPED_MINIBATCHES: "Minibatches skipped because their loss or gradient was not finite.",
    GAMES_FINISHED: "Games that ended in this rollout.",
    BLACK_WINS: "Share of these games that Black won.",
    WHITE_WINS: "Share of these games that White won.",
    DRAWS: "Share of these games that were drawn.",
    PLY_LIMIT_RATE: "Share of these games that ended at the ply limit.",
    MEAN_PLIES: "Mean length of these games in plies.",
    FORCED_MOVES: "Share of plies played by the mate rule.",
    POOL_SHARE: "Share of games played against earlier versions of the network.",
    POOL_SCORE: "Score against earlier versions in the games that ended; a draw counts 1/2.",
    TERMINATION_PREFIX + "<name>": "Share of games by ending: checkmate, repetition ...",
    TIME_ENV: "Seconds of this step spent playing moves and generating legal ones.",
    TIME_INFERENCE: "Seconds of this step spent choosing moves by network, planes included.",
    TIME_LEARNING: "Seconds of this step spent updating the network.",
    TIME_WAITING: "Seconds of this step spent waiting for workers, or for slower learners.",
    TIME_OTHER: "Seconds of this step spent on everything else.",
    POLICY_LAG: "Updates by which the oldest weights that played this rollout were behind.",
    ABANDONED_GAMES: "Games abandoned so far: their worker failed, or new ones were begun.",
    FAILURES: "Workers that have failed and were replaced so far.",
    WORKER_PREFIX + "<number>/SPS": "Plies per second of a worker while it plays.",
    WORKER_PREFIX + "<number>/waiting": "Share of a worker's time spent waiting.",
    WORKER_PREFIX + "<number>/games": "Games that a worker has finished.",
    WORKER_PREFIX + "<number>/version": "Update number of the weights that a worker plays with.",
    WORKER_PREFIX + "<number>/rss_mb": "Resident memory of a worker's process, in MB.",
    MEMORY: "Resident memory of the training process, in MB.",
    VIDEO_MEMORY: "Peak memory of tensors on the GPU, in MB; absent without a GPU.",
    CPU_SHARE: "Processor time of the run's processes on this machine, of what they may use.",
    MEMORY_SHARE: "Share of this machine's memory that is in use, by any program.",
    GPU_SHARE: "Share of the time in which the GPU was busy; absent where that is not known.",
    ELO: "Rating on the Elo scale.",
    ELO_LOW: "Lower end of the rating's 95 % interval.",
    ELO_HIGH: "Upper end of the rating's 95 % interval.",
    ELO_POSITION: "0 on the scale; -1 below or 1 above, where only a bound is known.",
    VALUE_LOG_LOSS: "Log-loss of the network's expected scores in new games, in nats.",
    EVALUATION_PREFIX + "<opponent>/score": "Points per game; a draw counts 1/2.",
    EVALUATION_PREFIX + "<opponent>/low": "Lower end of the score's 95 % interval.",
    EVALUATION_PREFIX + "<opponent>/high": "Upper end of the score's 95 % interval.",
    EVALUATION_PREFIX + "<opponent>/as_black": "Points per game with Black.",
    EVALUATION_PREFIX + "<opponent>/as_white": "Points per game with White.",
    EVALUATION_PREFIX + "<opponent>/wins": "Games won.",
    EVALUATION_PREFIX + "<opponent>/draws": "Games drawn.",
    EVALUATION_PREFIX + "<opponent>/losses": "Games lost.",
}
"""One-line meaning of each metric; parts in angle brackets stand for names."""


def worker_metric(number: int, figure: str) -> str:
    """Return the name of a worker's metric, one of `WORKER_FIGURES`.

    >>> worker_metric(0, "SPS")
    'workers/0/SPS'
    """
    return f"{WORKER_PREFIX}{number}/{figure}"


def worker_numbers(metrics: Mapping[str, float]) -> list[int]:
    """Return the numbers of the workers that have metrics among `metrics`, sorted."""
    suffix = f"/{WORKER_FIGURES[0]}"
    return sorted(
        int(name.removeprefix(WORKER_PREFIX).removesuffix(suffix))
        for name in metrics
        if name.startswith(WORKER_PREFIX) and name.endswith(suffix)
    )


def evaluation_metric(opponent: str, figure: str) -> str:
    """Return the name of an evaluation's metric.

    >>> evaluation_metric("greedy", "score")
    'eval/greedy/score'
    """
    return f"{EVALUATION_PREFIX}{opponent}/{figure}"


def shares(metrics: Mapping[str, float], names: Sequence[str]) -> list[float]:
    """Return the share of each of the `names` in their sum; all 0 where the sum is 0."""
    values = [max(0.0, finite(metrics.get(name, 0.0))) for name in names]
    total = sum(values)
    return [value / total if total > 0.0 else 0.0 for value in values]


def finite(value: float) -> float:
    """Return `value`, or 0 if it is NaN or infinite."""
    return value if math.isfinite(value) else 0.0
