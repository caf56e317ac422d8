"""Division of a machine's cores between learners and their workers."""

from keisei.config_schema import AppConfig
from keisei.ppo.learner import Ranks
from keisei.system import usable_cpus


def largest_divisor(number: int, *, limit: int) -> int:
    """Return the largest divisor of `number` that is at most `limit`.

    >>> largest_divisor(256, limit=7)
    4
    """
    return next(divisor for divisor in range(limit, 0, -1) if number % divisor == 0)


def learner_cores(ranks: Ranks) -> int:
    """Return the cores for one learner and its workers: learners on a machine share them evenly."""
    return max(1, usable_cpus() // ranks.local_size)


def worker_cores(ranks: Ranks, *, on_cpu: bool) -> int:
    """Return the cores for a learner's workers: all but one if the learner is on the CPU itself."""
    return max(1, learner_cores(ranks) - on_cpu)


def number_of_workers(config: AppConfig, ranks: Ranks, *, on_cpu: bool) -> int:
    """Return the number of workers; 0: the learner plays the games itself.

    ``auto`` is one worker for each core that the learner leaves to them, or fewer if the games
    cannot be divided evenly.
    """
    wanted = config.parallel.num_workers
    if wanted == 0 and config.parallel.backend == "ray":
        wanted = "auto"
    if wanted != "auto":
        return wanted
    threads = config.parallel.worker_threads or 1
    limit = max(1, worker_cores(ranks, on_cpu=on_cpu) // threads)
    return largest_divisor(config.env.num_games, limit=limit)


def learner_threads(config: AppConfig, ranks: Ranks, *, on_cpu: bool) -> int:
    """Return the threads of the learner's network: one for each core that no worker takes.

    Workers on a Ray cluster may all be on other machines, so they take none.
    """
    if config.device.torch_threads:
        return config.device.torch_threads
    cores = learner_cores(ranks)
    is_cluster = config.parallel.backend == "ray" and bool(config.parallel.ray_address)
    if is_cluster or not on_cpu:
        return cores
    workers = number_of_workers(config, ranks, on_cpu=on_cpu)
    return max(1, cores - workers * (config.parallel.worker_threads or 1))
