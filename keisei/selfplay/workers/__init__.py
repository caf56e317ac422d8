"""Self-play by workers: processes on this machine, or actors on a Ray cluster."""

from keisei.selfplay.workers.messages import WorkerCommunicator
from keisei.selfplay.workers.model_sync import ModelSynchronizer
from keisei.selfplay.workers.process_pool import ParallelSelfPlay
from keisei.selfplay.workers.ray_pool import RaySelfPlay
from keisei.selfplay.workers.worker import SelfPlayWorker

__all__ = [
    "ModelSynchronizer",
    "ParallelSelfPlay",
    "RaySelfPlay",
    "SelfPlayWorker",
    "WorkerCommunicator",
]
