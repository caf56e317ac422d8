"""Which source of games the settings ask for: the learner itself, or workers beside it."""

from keisei.config_schema import AppConfig
from keisei.network.predictor import Network
from keisei.ppo.learner import Ranks
from keisei.ppo.resources import number_of_workers, worker_cores
from keisei.selfplay.source import GameSource, SelfPlay


def make_source(
    config: AppConfig, network: Network, ranks: Ranks, *, resumed_at: int = 0
) -> GameSource:
    """The games of one learner, all of them new.

    Args:
        config: the settings of the run.
        network: the network that plays, if the learner plays itself.
        ranks: all learners, of which this is one.
        resumed_at: the update at which a run is resumed: its games differ from those at its start.
    """
    on_cpu = network.device == "cpu"
    if config.parallel.backend == "ray":
        from keisei.selfplay.workers.ray_pool import RaySelfPlay

        cpus = worker_cores(ranks, on_cpu=on_cpu)
        return RaySelfPlay(config, local_cpus=cpus, ranks=ranks, rounds=resumed_at)
    if workers := number_of_workers(config, ranks, on_cpu=on_cpu):
        from keisei.selfplay.workers.parallel import ParallelSelfPlay

        return ParallelSelfPlay(config, workers=workers, ranks=ranks, rounds=resumed_at)
    return SelfPlay(
        config,
        network,
        games=config.env.num_games,
        first_game=ranks.rank * config.env.num_games,
        threads=config.env.threads or network.threads,
        resumed_at=resumed_at,
    )
