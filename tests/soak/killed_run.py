"""A tiny run that kills itself with SIGKILL in a given phase, as a program for `test_kills`.

``python -m tests.soak.killed_run DIRECTORY PHASE DELAY [SETTING ...]`` starts or resumes the run in
DIRECTORY. The kill comes DELAY seconds after the phase begins; with the phase ``none`` it ends.
"""

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from keisei.checkpoints import store
from keisei.run_files import CONFIG
from keisei.system import leave
from keisei.training import run as training_run
from keisei.training import trainer as trainer_module
from keisei.training.run import resume_run, start_run
from tests.tiny import tiny_config

PROCESSES = ".processes"
"""Suffix of the file with the ids of all processes that have trained a run."""

PHASES = ("start-up", "rollout", "learning", "saving", "evaluation", "end")


class Killer:
    """Kills this process a while after its phase has begun, at a random occasion."""

    def __init__(self, phase: str, delay: float) -> None:
        self._phase = phase
        self._delay = delay
        self._occasions = (
            random.randrange(1, 4) if phase in ("rollout", "learning", "saving") else 1
        )

    def enter(self, phase: str) -> None:
        if phase == self._phase:
            self._occasions -= 1
            if self._occasions == 0:
                threading.Thread(target=self._kill, daemon=True).start()

    def _kill(self) -> None:
        time.sleep(self._delay)
        os.kill(os.getpid(), signal.SIGKILL)


def watch(killer: Killer) -> None:
    """Let the phases of a run report to the killer."""

    def reporting(owner: Any, name: str, phase: str) -> None:
        original = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            killer.enter(phase)
            return original(*args, **kwargs)

        setattr(owner, name, call)

    reporting(training_run, "Trainer", "start-up")
    reporting(trainer_module.Trainer, "_of_all_ranks", "learning")
    reporting(trainer_module.Trainer, "train_step", "rollout")
    reporting(store, "_contents", "saving")
    reporting(trainer_module, "measure", "evaluation")
    reporting(trainer_module, "TrainingEnd", "end")


def main() -> None:
    directory, phase, delay, *settings = sys.argv[1:]
    watch(Killer(phase, float(delay)))
    path = Path(directory)
    with path.with_suffix(PROCESSES).open("a") as file:  # the test looks at what they left
        file.write(f"{os.getpid()}\n")
    config = tiny_config(*settings, f"run.root={path.parent}", f"run.name={path.name}")
    named = (config.parallel.ray_address,)
    if (path / CONFIG).exists():
        resume_run(config, path, named=named)
    else:
        start_run(config, named=named)
    if config.parallel.ddp:
        leave(0)  # as the command does


if __name__ == "__main__":
    main()
