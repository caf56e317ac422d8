"""Which source of games the settings ask for: the learner itself, or workers beside it."""

from dataclasses import replace

import torch

from keisei.config_schema import AppConfig
from keisei.network.towers.device import Compute, choose_compute, choose_device
from keisei.network.towers.torch_predictor import TorchPredictor
from keisei.ppo.distributed import Ranks
from keisei.selfplay.source import GameSource, SelfPlay
from keisei.selfplay.workers.parallel import ParallelSelfPlay
from keisei.selfplay.workers.ray_pool import RaySelfPlay
from keisei.selfplay.workers.worker_pool import fair_number
from keisei.system import usable_cpus


def make_source(
    config: AppConfig, inference: TorchPredictor, ranks: Ranks, *, resumed_at: int = 0
) -> GameSource:
    """The games of one learner, all of them new.

    In a run that is resumed at an update, they shall be other ones than at its start.
    """
    if config.parallel.backend == "ray":
        cpus = _cpus_of_workers(inference.compute, ranks)
        return RaySelfPlay(config, local_cpus=cpus, ranks=ranks, rounds=resumed_at)
    if workers := number_of_workers(config, inference.compute, ranks):
        return ParallelSelfPlay(config, workers=workers, ranks=ranks, rounds=resumed_at)
    return SelfPlay(
        config,
        inference,
        games=config.env.num_games,
        first_game=ranks.rank * config.env.num_games,
        threads=config.env.threads or inference.compute.threads,
        resumed_at=resumed_at,
    )


def number_of_workers(config: AppConfig, compute: Compute, ranks: Ranks | None = None) -> int:
    """How many workers the settings ask for: 0 means that the learner plays itself.

    ``auto``: one for each core, but one core is the learner's if it computes on the CPU; fewer if
    the games cannot be shared fairly among so many. Learners on one machine share its cores.
    """
    wanted = config.parallel.num_workers
    if wanted == 0 and config.parallel.backend == "ray":
        wanted = "auto"
    if wanted != "auto":
        return wanted
    threads = config.parallel.worker_threads or 1
    most = max(1, _cpus_of_workers(compute, ranks or Ranks()) // threads)
    return fair_number(most, config.env.num_games)


def learner_device(config: AppConfig, ranks: Ranks) -> torch.device:
    """Where a learner computes: each of several on a machine has its own GPU, unless one is named.

    Raises:
        DeviceError: There are not so many.
    """
    device = choose_device(config.device.device)
    if ranks.size > 1 and device.type == "cuda" and ":" not in config.device.device:
        return choose_device(f"cuda:{ranks.local_rank}")
    return device


def learner_compute(config: AppConfig, ranks: Ranks | None = None) -> Compute:
    """Where and how a learner computes: on a CPU, with the cores that others leave to it.

    What the workers of a cluster leave to it nobody can tell: it may be that none is here.
    """
    ranks = ranks or Ranks()
    own = {
        "device": str(learner_device(config, ranks)),
        "torch_threads": config.device.torch_threads or _own_cores(ranks),
    }
    compute = choose_compute(config.device.model_copy(update=own))
    if config.parallel.ray_address and config.parallel.backend == "ray":
        return compute
    workers = number_of_workers(config, compute, ranks)
    if not workers or config.device.torch_threads or compute.device.type != "cpu":
        return compute
    taken = workers * (config.parallel.worker_threads or 1)
    return replace(compute, threads=max(1, _own_cores(ranks) - taken))


def _cpus_of_workers(compute: Compute, ranks: Ranks) -> int:
    """The cores of this machine that a learner leaves to its workers."""
    return max(1, _own_cores(ranks) - (compute.device.type == "cpu"))


def _own_cores(ranks: Ranks) -> int:
    return max(1, usable_cpus() // ranks.local_size)
