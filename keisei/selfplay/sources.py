"""Which source of games the settings ask for: the learner itself, or workers beside it."""

from dataclasses import replace

from keisei.config_schema import AppConfig
from keisei.doctor import usable_cpus
from keisei.models.compute import Compute, choose_compute
from keisei.ppo.inference import Inference
from keisei.ppo.ranks import Ranks
from keisei.selfplay.parallel import ParallelSelfPlay
from keisei.selfplay.source import GameSource, SelfPlay


def make_source(config: AppConfig, inference: Inference, ranks: Ranks) -> GameSource:
    """The games of a learner, which may be one of several."""
    if workers := number_of_workers(config, inference.compute):
        return ParallelSelfPlay(config, workers=workers, ranks=ranks)
    return SelfPlay(
        config,
        inference,
        games=config.env.num_games,
        first_game=ranks.rank * config.env.num_games,
        threads=config.env.threads or inference.compute.threads,
    )


def number_of_workers(config: AppConfig, compute: Compute) -> int:
    """How many workers the settings ask for: 0 means that the learner plays itself.

    ``auto``: one for each core, but one core is the learner's if it computes on the CPU; fewer if
    the games cannot be shared fairly among so many.
    """
    wanted = config.parallel.num_workers
    if wanted != "auto":
        return wanted
    threads = config.parallel.worker_threads or 1
    most = max(1, (usable_cpus() - (compute.device.type == "cpu")) // threads)
    return next(number for number in range(most, 0, -1) if config.env.num_games % number == 0)


def learner_compute(config: AppConfig) -> Compute:
    """Where and how the learner computes: on a CPU, with the cores that workers leave to it."""
    compute = choose_compute(config.device)
    workers = number_of_workers(config, compute)
    if not workers or config.device.torch_threads or compute.device.type != "cpu":
        return compute
    taken = workers * (config.parallel.worker_threads or 1)
    return replace(compute, threads=max(1, usable_cpus() - taken))
