"""Division of the cores of a machine among learners and their workers."""

from keisei.config_schema import AppConfig
from keisei.doctor import usable_cpus
from keisei.ppo.learner import Ranks


def fair_number(limit: int, games: int) -> int:
    """Largest number of workers, at most `limit`, that divides the games evenly.

    >>> fair_number(7, 256)
    4
    """
    return next(number for number in range(limit, 0, -1) if games % number == 0)


def learner_cores(ranks: Ranks) -> int:
    """Cores of this machine for one learner and its workers; learners share them evenly."""
    return max(1, usable_cpus() // ranks.local_size)


def worker_cores(ranks: Ranks, *, on_cpu: bool) -> int:
    """Cores of a learner's workers: all of its cores, except one if it computes on the CPU."""
    return max(1, learner_cores(ranks) - on_cpu)


def number_of_workers(config: AppConfig, ranks: Ranks, *, on_cpu: bool) -> int:
    """Number of workers according to the settings; 0: the learner plays the games itself.

    ``auto``: one for each core that the learner leaves to them, fewer if the games do not divide
    evenly.
    """
    wanted = config.parallel.num_workers
    if wanted == 0 and config.parallel.backend == "ray":
        wanted = "auto"
    if wanted != "auto":
        return wanted
    threads = config.parallel.worker_threads or 1
    limit = max(1, worker_cores(ranks, on_cpu=on_cpu) // threads)
    return fair_number(limit, config.env.num_games)


def learner_threads(config: AppConfig, ranks: Ranks, *, on_cpu: bool) -> int:
    """Threads of the learner's network: the cores that its workers do not use.

    Workers of a cluster may all be on other machines, so none are reserved for them.
    """
    if config.device.torch_threads:
        return config.device.torch_threads
    cores = learner_cores(ranks)
    is_cluster = config.parallel.backend == "ray" and bool(config.parallel.ray_address)
    if is_cluster or not on_cpu:
        return cores
    workers = number_of_workers(config, ranks, on_cpu=on_cpu)
    return max(1, cores - workers * (config.parallel.worker_threads or 1))
