"""How many workers one learner can feed on, from what is measured on this machine.

    python benchmarks/capacity.py [--config F] [--set SECTION.FIELD=VALUE] [--shares K] [--nodes N]

Measures one worker with its share of the games and one learner, one after the other, and plans from
that (`keisei.benchmark.capacity`; ``docs/cluster.md`` has the formulas). With ``--check N`` it also
trains with N workers by Ray on this machine, and shows what was planned and what came out.
"""

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from keisei.benchmark.capacity import Capacity, simulated_update_seconds
from keisei.benchmark.harness import new_table, print_header, this_machine
from keisei.config import load_config
from keisei.config_schema import AppConfig
from keisei.ppo.buffer import Experience
from keisei.selfplay.workers.model_sync import pack_weights, unpack_weights
from keisei.selfplay.workers.worker import SelfPlayWorker
from keisei.selfplay.workers.worker_pool import GameShares
from keisei.timing import SectionTimer
from keisei.training.callbacks import Callback, EventBus, StepEnd
from keisei.training.trainer import Trainer
from tests.tiny import agent_of

TURNS = 5
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128)


def worker_rate(config: AppConfig, trainer: Trainer, shares: int) -> float:
    """Plies per second of a worker with a share of the games, the best of some turns."""
    plan = GameShares(config, shares=shares, rank=0).plan(0)
    worker = SelfPlayWorker(plan)
    worker.load_weights(agent_of(trainer).model.state_dict(), 0)
    experience = Experience(config.selfplay.rollout_plies, plan.games)
    best = float("inf")
    for _ in range(TURNS):
        start = time.perf_counter()
        worker.play(experience, SectionTimer())
        best = min(best, time.perf_counter() - start)
    return len(experience) / best


class Steps(Callback):
    """Keeps the metrics of each step."""

    def __init__(self) -> None:
        self.metrics: list[dict[str, float]] = []

    def on_step_end(self, event: StepEnd) -> None:
        """Keep what was measured in the step."""
        self.metrics.append(dict(event.metrics))


def trained(config: AppConfig, steps: int) -> tuple[Trainer, list[dict[str, float]], float]:
    """A trainer after some steps, their metrics, and the seconds of all steps but the first."""
    recorder = Steps()
    with tempfile.TemporaryDirectory() as directory:
        trainer = Trainer(config, Path(directory), EventBus([recorder]))
        with trainer.selfplay:
            trainer.train_step()  # it waits for workers to come up, and warms up
            start = time.perf_counter()
            for _ in range(steps):
                trainer.train_step()
            seconds = time.perf_counter() - start
    return trainer, recorder.metrics[1:], seconds


def main(
    config: Annotated[str, typer.Option(help="A file or a recipe.")] = "quickstart",
    set_: Annotated[list[str] | None, typer.Option("--set", help="section.field=value.")] = None,
    shares: Annotated[int, typer.Option(help="WorkItems of an update.")] = 8,
    nodes: Annotated[int, typer.Option(help="Nodes that get the weights.")] = 4,
    check: Annotated[int, typer.Option(help="Train with so many Ray workers.")] = 0,
) -> None:
    """Measure, plan, print."""
    console = Console()
    print_header(console, this_machine(("numba", "numpy", "torch")))
    settings = [*(set_ or ()), "device.torch_threads=1", "env.threads=1", "evaluation.interval=0"]
    plain = load_config(config, settings)
    trainer, steps, _ = trained(plain, TURNS)
    weights = agent_of(trainer).model.state_dict()
    start = time.perf_counter()
    messages = pack_weights(weights, compress=False)
    unpack_weights(messages)
    packing = time.perf_counter() - start
    shares = check or shares
    plan = Capacity(
        games=plain.env.num_games,
        rollout_plies=plain.selfplay.rollout_plies,
        shares=shares,
        max_lag=plain.parallel.max_lag,
        learner_rate=len(trainer.buffer) / min(step["time/learning"] for step in steps),
        worker_rate=worker_rate(plain, trainer, shares),
        weights_bytes=sum(len(message["data"]) for message in messages.values()),
        update_overhead=packing,
    )
    console.print(
        f"learner {plan.learner_rate:,.0f} plies/s, a worker {plan.worker_rate:,.0f} plies/s with "
        f"{plan.games // shares} games; {plan.bytes_per_ply:.0f} bytes a ply, weights "
        f"{plan.weights_bytes / 1e6:.2f} MB; {plan.enough_workers} workers are enough"
    )
    table = new_table(f"{plan.shares} work_items an update, lag {plan.max_lag}, {nodes} nodes")
    for heading in ("workers", "plies/s", "simulated", "in MB/s", "out MB/s"):
        table.add_column(heading, justify="right")
    for workers in WORKERS:
        into, out = plan.learner_traffic(workers, nodes)
        table.add_row(
            str(workers),
            f"{plan.plies_per_second(workers):,.0f}",
            f"{plan.plies / simulated_update_seconds(plan, workers):,.0f}",
            f"{into / 1e6:.2f}",
            f"{out / 1e6:.2f}",
        )
    console.print(table)
    if check:
        ray = load_config(
            config, [*settings, "parallel.backend=ray", f"parallel.num_workers={check}"]
        )
        _, steps, seconds = trained(ray, TURNS * 2)
        found = plan.plies * len(steps) / seconds
        console.print(
            f"{check} workers by Ray: {found:,.0f} plies/s, planned "
            f"{plan.plies_per_second(check):,.0f}"
        )


if __name__ == "__main__":
    typer.run(main)
