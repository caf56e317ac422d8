"""Starts and resumes runs: their directories, callbacks, summaries, and consent to programs."""

import json
import logging
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import platformdirs
from filelock import FileLock, Timeout
from rich.console import Console

from keisei.callbacks import Callback, EventBus, StepEnd, TrainingEnd, TrainingStart, load_plugin
from keisei.checkpoints.rotation import remove_leftovers
from keisei.checkpoints.store import Checkpoint, load_newest
from keisei.config import ConfigError, load_saved_config, save_config
from keisei.config_schema import AppConfig
from keisei.display.live import console_level, make_display
from keisei.display.logs import configure_logging, lasting_console, show_errors
from keisei.errors import KeiseiError, torch_needed_by
from keisei.evaluation.measure import manner_of_play
from keisei.evaluation.placing import Placement
from keisei.evaluation.score import Score
from keisei.network.loading import read_network
from keisei.players.spec import is_engine, make_player
from keisei.ppo.buffer import experience_bytes
from keisei.ppo.learner import Ranks, UpdateProfiler, learner_maker, require_launched
from keisei.run_files import CHECKPOINTS, CONFIG, LOCK, MILESTONES, REPORT, require_own_files
from keisei.system import InterruptFlag, physical_memory, read_bytes, remove_temporaries
from keisei.training.resume import Changes, changed_settings, changes_since, require_changeable
from keisei.training.trackers import make_trackers, require_trackers
from keisei.training.trainer import Trainer
from keisei.training.writers import (
    HeartbeatWriter,
    LiveGamesWriter,
    ReportWriter,
    SampleGamesWriter,
    current_boards,
)

logger = logging.getLogger(__name__)

PROFILE: Final = "profile"
"""The directory of a run that the traces go to."""

_GIGABYTE: Final = 10**9


class Profiler(Callback):
    """Starts, steps and stops a profiler with the updates of a run."""

    def __init__(self, profiler: UpdateProfiler) -> None:
        self._profiler = profiler
        self._is_running = False

    def on_training_start(self, event: TrainingStart) -> None:
        """Start before the first update."""
        self._profiler.start()
        self._is_running = True

    def on_step_end(self, event: StepEnd) -> None:
        """Count an update."""
        if self._is_running:
            self._profiler.step()

    def on_training_end(self, event: TrainingEnd) -> None:
        """Stop, whether anything was recorded or not."""
        if self._is_running:
            self._profiler.stop()
            self._is_running = False


@dataclass(frozen=True)
class RunSummary:
    """Result of a run."""

    run_directory: Path
    reason: str
    timestep: int
    games: int
    seconds: float
    scores: dict[str, Score]
    placement: Placement | None
    manner: str
    """Way the network chose its moves in the evaluation: see `manner_of_play`."""

    is_first: bool = True
    """Whether this is the first learner, which prints the summary for all."""

    def as_dict(self) -> dict[str, Any]:
        """Return what ``keisei train --json`` prints."""
        return {
            "run": str(self.run_directory),
            "reason": self.reason,
            "timestep": self.timestep,
            "games": self.games,
            "seconds": self.seconds,
            "scores": {name: score.score for name, score in self.scores.items()},
            "rating": None if self.placement is None else self.placement.as_dict(),
        }

    def __str__(self) -> str:
        lines = [
            f"{self.reason}: {self.timestep:,} plies, {self.games:,} games, "
            f"{self.seconds / 60:.1f} minutes",
            *([] if self.placement is None else [f"  Elo {self.placement}"]),
            *(f"  against {name}: {score}" for name, score in self.scores.items()),
            *([f"  playing {self.manner}"] if self.scores else []),
            f"report: {self.run_directory / REPORT}",
            f"play it: keisei play {self.run_directory}",
            f"continue training: keisei train --resume {self.run_directory}",
        ]
        return "\n".join(lines)


def start_run(
    config: AppConfig, *, named: Collection[str] = (), profile: bool = False
) -> RunSummary:
    """Create the directory of a new run and train in it.

    Raises:
        ProgramNotAllowedError: The settings name an engine that is not among the `named` ones.
    """
    require_allowed(config, named)
    _require_set_up(config)
    with _joined(config) as ranks:
        name = ranks.broadcast(config.run.name or f"{datetime.now():%Y%m%d-%H%M%S}")
        run_directory = Path(config.run.root) / name
        problem = ranks.broadcast(_new_directory(run_directory) if ranks.is_first else None)
        if problem is not None:
            raise KeiseiError(problem)
        return _train(config, run_directory, ranks, profile=profile, is_resumed=False)


def _new_directory(run_directory: Path) -> str | None:
    """Create the directory of a new run; returns the problem if that fails."""
    if (run_directory / CONFIG).exists():
        return (
            f"there is a run in {run_directory} already; continue it with --resume "
            f"{run_directory}, or choose another --name"
        )
    try:
        run_directory.mkdir(parents=True, exist_ok=True)
        if any(run_directory.iterdir()):
            require_own_files(run_directory)
    except OSError as error:
        return f"cannot create {run_directory}: {error.strerror or error}"
    except KeiseiError as error:
        return str(error)
    return None


def resume_run(
    config: AppConfig,
    run_directory: Path,
    *,
    named: Collection[str] = (),
    profile: bool = False,
) -> RunSummary:
    """Continue a run from its newest valid checkpoint, perhaps with other settings.

    Raises:
        ConfigError: A setting has changed that cannot be; see `keisei.training.resume`.
        ProgramNotAllowedError: The settings name an engine that is not among the `named` ones.
        KeiseiError: Files of the run lead out of it; see `require_own_files`.
    """
    require_own_files(run_directory)
    require_allowed(config, named)
    require_changeable(
        {
            path: change
            for path, change in _changes_of_record(config, run_directory).items()
            if path in ("run.name", "run.root")  # the rest depends on the checkpoint
        }
    )
    _require_set_up(config)
    with _joined(config) as ranks:
        return _train(config, run_directory, ranks, profile=profile, is_resumed=True)


def _changes_of_record(config: AppConfig, run_directory: Path) -> Changes:
    """Return the settings that differ from the ``config.json`` of a run."""
    return changed_settings(load_saved_config(run_directory / CONFIG), config)


@contextmanager
def _joined(config: AppConfig) -> Iterator[Ranks]:
    """Join the process group of all learners; a single one unless torchrun started several."""
    if not config.parallel.ddp:
        require_launched(ddp=False)
        yield Ranks()
        return
    with torch_needed_by("training with several learners (--ddp)"):
        from keisei.ppo.distributed import process_group
    require_launched(ddp=True)
    with process_group(config) as ranks:
        yield ranks


@contextmanager
def _locked(run_directory: Path, ranks: Ranks) -> Iterator[None]:
    """Keep other processes from training the run; the system unlocks it if this one is killed.

    Raises:
        KeiseiError: Another process trains it: to resume it would remove what that one is writing.
    """
    lock = FileLock(run_directory / LOCK, timeout=0)
    problem = None
    if ranks.is_first:
        try:
            lock.acquire()
        except Timeout:
            problem = f"another process trains {run_directory}: wait for its end, or stop it"
        except (OSError, NotImplementedError) as error:  # some network file systems have no locks
            logger.warning("cannot lock %s, so train it only once: %s", run_directory, error)
    try:
        if (problem := ranks.broadcast(problem)) is not None:
            raise KeiseiError(problem)
        yield
    finally:
        lock.release()


def _train(
    config: AppConfig, run_directory: Path, ranks: Ranks, *, profile: bool, is_resumed: bool
) -> RunSummary:
    console = lasting_console()
    with (
        _locked(run_directory, ranks),
        configure_logging(run_directory, console, console_level=console_level(config))
        if ranks.is_first
        else show_errors(str(ranks)),
    ):
        if ranks.size > 1:
            logger.info("%d learners, %d of them on this machine", ranks.size, ranks.local_size)
        checkpoint = _newest_checkpoint(config, run_directory, ranks) if is_resumed else None
        callbacks = _callbacks(config, run_directory, console) if ranks.is_first else []
        trainer = Trainer(config, run_directory, EventBus(callbacks), ranks)
        if ranks.is_first:
            trainer.bus.callbacks.append(
                LiveGamesWriter(
                    run_directory, lambda: current_boards(trainer.selfplay, trainer.buffer)
                )
            )
        if profile and ranks.is_first:
            profiler = trainer.learner.profiler(run_directory / PROFILE)
            trainer.bus.callbacks.append(Profiler(profiler))
        if ranks.is_first:
            # The last one: it takes a while at the end, and may be interrupted.
            trainer.bus.callbacks.append(ReportWriter(run_directory))
        if checkpoint is not None:
            trainer.restore(checkpoint)
        elif config.run.start_from:
            trainer.learner.start_from(read_network(Path(config.run.start_from)))
        if ranks.is_first:
            save_config(config, run_directory / CONFIG)
        with InterruptFlag() as interrupt:
            reason = trainer.run(interrupt)
    progress = trainer.progress
    return RunSummary(
        run_directory,
        reason,
        progress.timestep,
        progress.games,
        progress.seconds,
        trainer.scores,
        trainer.placement,
        manner_of_play(config.evaluation.temperature, config.evaluation.mate_plies),
        ranks.is_first,
    )


def _newest_checkpoint(config: AppConfig, run_directory: Path, ranks: Ranks) -> Checkpoint | None:
    """Load the checkpoint to resume from, and check that the settings fit it; None: there is none.

    Raises:
        KeiseiError: They do not, or the learners see different checkpoints.
    """
    directory = run_directory / CHECKPOINTS
    if ranks.is_first:
        for saved in (directory, run_directory / MILESTONES):
            remove_leftovers(saved)
        remove_temporaries(run_directory)
    checkpoint = load_newest(directory)
    if not ranks.is_same(checkpoint.update if checkpoint is not None else -1):
        raise KeiseiError(
            f"the learners see different checkpoints in {directory}; "
            "it has to be on a file system that all machines share"
        )
    if checkpoint is None:
        logger.warning("no checkpoint in %s yet: the run starts from scratch", run_directory)
    else:
        changes_since(checkpoint, config)
    return checkpoint


def _require_set_up(config: AppConfig) -> None:
    """Raise a `KeiseiError` now, before anything is written, if these settings cannot be used."""
    learner_maker(config)  # fails if its packages are missing
    _require_opponents(config)
    require_trackers(config)
    _require_effect(config)
    _require_memory(config)


def _require_opponents(config: AppConfig) -> None:
    """Fail now, not at the first evaluation, if an opponent cannot be set up."""
    for spec in config.evaluation.opponents:
        make_player(spec, threads=1).close()


def _require_effect(config: AppConfig) -> None:
    """Raise `ConfigError` for settings of workers that would have no effect.

    Not a part of the schema: earlier versions took them, and their runs can still be read.
    """
    parallel = config.parallel
    if parallel.backend == "ray":
        return
    problems = []
    if parallel.compression != "off":
        problems.append(
            "parallel.compression needs parallel.backend=ray: worker processes read the weights "
            "where they are, in shared memory"
        )
    if parallel.inference == "server" and parallel.num_workers == 0:
        problems.append(
            "parallel.inference=server needs workers: set parallel.num_workers, for example to auto"
        )
    if problems:
        raise ConfigError(problems)


def _require_memory(config: AppConfig) -> None:
    """Raise `ConfigError` if this machine cannot hold the experience of an update."""
    plies, games = config.selfplay.rollout_plies, config.env.num_games
    needed = experience_bytes(plies, games, config.selfplay.num_targets)
    if needed > (memory := physical_memory()):
        raise ConfigError(
            [
                f"env.num_games ({games:,}) times selfplay.rollout_plies ({plies:,}) is experience "
                f"of {needed / _GIGABYTE:,.1f} GB for an update, and this machine has "
                f"{memory / _GIGABYTE:,.1f} GB of memory: make one of them smaller"
            ]
        )


def _callbacks(config: AppConfig, run_directory: Path, console: Console) -> list[Callback]:
    return [
        *make_trackers(config, run_directory),
        HeartbeatWriter(run_directory),
        SampleGamesWriter(run_directory, config.logging.sample_games),
        *(load_plugin(name) for name in config.logging.plugins),
        make_display(config, console),
    ]


# ---- programs that settings name ----
#
# Settings travel: a stranger's YAML file, the `config.json` of a copied run, the file of a sweep. A
# USI engine among their opponents is a command that would run, and a foreign Ray cluster sends
# objects whose unpickling runs code. Both need the consent of the user who starts the training.

ALLOWED_PROGRAMS: Final = "allowed-programs.txt"
"""Name of the user's list: a player spec or ``ray HOST:PORT`` per line; ``#`` begins a comment."""

_LOCAL_RAY: Final = ("", "auto")
"""Addresses of Ray that are on this machine."""


class ProgramNotAllowedError(KeiseiError):
    """Settings name a program that the user has not named; the message says how to allow it."""


def allowed_file() -> Path:
    """Return the path of the user's list, which may not exist."""
    return platformdirs.user_config_path("keisei", appauthor=False) / ALLOWED_PROGRAMS


def require_allowed(config: AppConfig, named: Collection[str] = ()) -> None:
    """Raise `ProgramNotAllowedError` unless the user knows the programs that settings name.

    Args:
        config: the settings.
        named: texts that stand on the command line: engines and addresses among them are allowed.
    """
    missing = [
        (program, override)
        for program, text, override in _programs(config)
        if text not in named and program not in _listed()
    ]
    if missing:
        program, override = missing[0]
        raise ProgramNotAllowedError(
            f"the settings name a program that you have not named: {program}. If you trust it, "
            f"name it on the command line too, --set '{override}', or write it as a line into "
            f"{allowed_file()}"
        )


def _programs(config: AppConfig) -> Iterator[tuple[str, str, str]]:
    """Yield each program as a line of the list, its text in the settings, and the override."""
    opponents = config.evaluation.opponents
    for spec in opponents:
        if is_engine(spec):
            texts = json.dumps(opponents, ensure_ascii=False)
            yield spec, spec, f"evaluation.opponents={texts}"
    address = config.parallel.ray_address
    if config.parallel.backend == "ray" and address not in _LOCAL_RAY:
        yield f"ray {address}", address, f"parallel.ray_address={address}"


def _listed() -> frozenset[str]:
    """Return the lines of the user's list; raises `KeiseiError` if others can write to it."""
    path = allowed_file()
    if not path.is_file():
        return frozenset()
    if hasattr(os, "getuid"):
        status = path.stat()
        if status.st_uid not in (os.getuid(), 0) or status.st_mode & 0o022:
            raise ProgramNotAllowedError(
                f"{path} allows programs, so only you may write to it: chmod go-w, and own it"
            )
    lines = read_bytes(path).decode("utf-8-sig", "replace").splitlines()
    return frozenset(line.strip() for line in lines if line.strip() and line[0] != "#")
