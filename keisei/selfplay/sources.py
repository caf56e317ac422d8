"""Which source of games the settings ask for: the learner itself, or workers beside it."""

from dataclasses import replace

from keisei.config_schema import AppConfig
from keisei.doctor import usable_cpus
from keisei.models.compute import Compute, choose_compute
from keisei.ppo.inference import Inference
from keisei.selfplay.parallel import ParallelSelfPlay
from keisei.selfplay.ray_workers import RaySelfPlay
from keisei.selfplay.source import GameSource, SelfPlay


def make_source(config: AppConfig, inference: Inference, rank: int) -> GameSource:
    """The games of a learner, which is `rank` of several."""
    if config.parallel.backend == "ray":
        return RaySelfPlay(config, local_cpus=_cpus_of_workers(inference.compute), rank=rank)
    if workers := number_of_workers(config, inference.compute):
        return ParallelSelfPlay(config, workers=workers, rank=rank)
    return SelfPlay(
        config,
        inference,
        games=config.env.num_games,
        first_game=rank * config.env.num_games,
        threads=config.env.threads or inference.compute.threads,
    )


def number_of_workers(config: AppConfig, compute: Compute) -> int:
    """How many workers the settings ask for: 0 means that the learner plays itself.

    ``auto``: one for each core, but one core is the learner's if it computes on the CPU; fewer if
    the games cannot be shared fairly among so many.
    """
    wanted = config.parallel.num_workers
    if wanted == 0 and config.parallel.backend == "ray":
        wanted = "auto"
    if wanted != "auto":
        return wanted
    threads = config.parallel.worker_threads or 1
    most = max(1, _cpus_of_workers(compute) // threads)
    return next(number for number in range(most, 0, -1) if config.env.num_games % number == 0)


def learner_compute(config: AppConfig) -> Compute:
    """Where and how the learner computes: on a CPU, with the cores that workers leave to it.

    What the workers of a cluster leave to it nobody can tell: it may be that none is here.
    """
    compute = choose_compute(config.device)
    if config.parallel.ray_address and config.parallel.backend == "ray":
        return compute
    workers = number_of_workers(config, compute)
    if not workers or config.device.torch_threads or compute.device.type != "cpu":
        return compute
    taken = workers * (config.parallel.worker_threads or 1)
    return replace(compute, threads=max(1, usable_cpus() - taken))


def _cpus_of_workers(compute: Compute) -> int:
    """The cores of this machine that the learner leaves to workers."""
    return max(1, usable_cpus() - (compute.device.type == "cpu"))
