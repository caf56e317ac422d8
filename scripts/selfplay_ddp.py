"""Distributed training on one machine: learners play their own games and average gradients.

    python scripts/selfplay_ddp.py [--learners 2] [--minutes 1] [--set SECTION.FIELD=VALUE ...]

It restarts itself under torchrun, trains the quick-start recipe for a minute, and checks that the
weights of all learners are equal bit by bit. Nothing is saved. For a full run use
``torchrun --nproc-per-node 2 -m keisei train --ddp``, see docs/parallel.md.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from keisei.callbacks import EventBus
from keisei.config import load_config
from keisei.errors import KeiseiError
from keisei.network.predictor import weights_checksum
from keisei.ppo.distributed import process_group
from keisei.ppo.learner import Ranks
from keisei.system import module_environment
from keisei.training.trainer import Trainer

RECIPE: Final = "quickstart"
SMALLER: Final = ("parallel.ddp=true", "env.num_games=32", "selfplay.rollout_plies=16")


def main(
    learners: Annotated[int, typer.Option(min=1, help="Number of learner processes.")] = 2,
    minutes: Annotated[float, typer.Option(help="Training time.")] = 1.0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.FIELD=VALUE")
    ] = None,
) -> None:
    """Train with several learners and compare their weights."""
    if "RANK" in os.environ:
        learn(60.0 * minutes, settings or [])
    else:
        load_config(RECIPE, (*SMALLER, *(settings or [])))  # errors are reported once, here
        raise typer.Exit(launch(learners))


def launch(learners: int) -> int:
    """Start this script under torchrun and return its exit code."""
    command = (
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(learners), *sys.argv),
    )
    return subprocess.run(command, env=module_environment(), check=False).returncode


def learn(seconds: float, settings: list[str]) -> None:
    """Train as one of the learners."""
    config = load_config(RECIPE, (*SMALLER, *settings))
    with process_group(config) as ranks, tempfile.TemporaryDirectory() as directory:
        trainer = Trainer(config, Path(directory), EventBus(), ranks)
        trainer.learner.join_ranks()
        with trainer.selfplay:
            trainer.train_step()  # may compile kernels
            plies_before, start = trainer.timestep, time.perf_counter()
            while not ranks.broadcast(time.perf_counter() - start > seconds):
                trainer.train_step()
        spent = time.perf_counter() - start
        show(ranks, trainer, trainer.timestep - plies_before, spent)


def show(ranks: Ranks, trainer: Trainer, plies: int, seconds: float) -> None:
    """Print the checksums of the weights on the first learner; exit with 1 if they differ."""
    own = (
        str(ranks),
        os.getpid(),
        len(trainer.buffer) * trainer.update,
        weights_checksum(trainer.learner.network.weights()),
    )
    everyone = ranks.all_gather(own)
    are_same = len({checksum for *_, checksum in everyone}) == 1
    if ranks.is_first:
        table = Table("learner", "process", "own plies", "checksum of the weights")
        for name, process, played, checksum in everyone:
            table.add_row(name, str(process), f"{played:,}", f"{checksum:08x}")
        console = Console()
        console.print(table)
        console.print(
            f"{trainer.update} updates, {plies / max(seconds, 1e-9):,.0f} plies/s in total; "
            f"the weights are {'the same' if are_same else 'NOT the same'}"
        )
    if not are_same:
        raise typer.Exit(1)


if __name__ == "__main__":
    try:
        typer.run(main)
    except KeiseiError as error:
        sys.exit(f"error: {error}")
