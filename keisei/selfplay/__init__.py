"""Self-play: the games that a learner learns from.

`make_source` returns a `GameSource` that plays them in this process (`SelfPlay`) or in workers
(`keisei.selfplay.workers`). Nothing here needs torch.
"""

from keisei.selfplay.rollout import Collector, OpponentPool, RolloutStats, WorkerStats
from keisei.selfplay.source import (
    GameSource,
    PauseFile,
    RunSeeds,
    SelfPlay,
    WorkersFailedError,
    make_source,
)

__all__ = [
    "Collector",
    "GameSource",
    "OpponentPool",
    "PauseFile",
    "RolloutStats",
    "RunSeeds",
    "SelfPlay",
    "WorkerStats",
    "WorkersFailedError",
    "make_source",
]
