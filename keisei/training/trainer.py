"""The training loop: collect, learn, evaluate, save.

`Trainer` owns the state of a run: only it writes the timestep, the number of updates and of games.
All of it goes into a checkpoint, so a run that was killed resumes exactly from its last checkpoint.
"""

import logging
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter

from keisei.callbacks import (
    CheckpointSaved,
    EpochEnd,
    EvaluationEnd,
    EventBus,
    GameEnd,
    Phase,
    PhaseProgress,
    Progress,
    StepEnd,
    StopRequested,
    TrainingEnd,
    TrainingStart,
)
from keisei.checkpoints.store import Checkpoint, save_checkpoint
from keisei.config_schema import AppConfig
from keisei.errors import CheckpointError, KeiseiError
from keisei.evaluation.measure import measure
from keisei.evaluation.placing import Placement
from keisei.evaluation.score import Score
from keisei.network.predictor import Weights
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import (
    RankLostError,
    Ranks,
    finish_rollout,
    learn_settings,
    make_learner,
    schedule_fraction,
)
from keisei.run_files import CHECKPOINTS, MILESTONES, PAUSE, RESET
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.source import (
    PAUSE_INTERVAL,
    PauseFile,
    ResetFile,
    RunSeeds,
    WorkersFailedError,
    make_source,
    play_in_learner,
    warn_of_fallback,
    with_snapshots_of,
    without_snapshots,
)
from keisei.shogi.rules import Outcome
from keisei.system import InterruptFlag
from keisei.timing import SectionTimer
from keisei.training.background import BackgroundEvaluation, is_in_background
from keisei.training.generators import (
    generator_state,
    restore_generator,
    restore_rng,
    rng_state,
)
from keisei.training.resume import (
    Changes,
    changes_since,
    needs_final_evaluation,
    needs_new_games,
)
from keisei.training.step_metrics import UsageMeter, run_facts, step_metrics

logger = logging.getLogger(__name__)


class Trainer:
    """The training loop of one run, and the state that a checkpoint holds."""

    def __init__(
        self, config: AppConfig, run_directory: Path, bus: EventBus, ranks: Ranks | None = None
    ) -> None:
        self.config = config
        self.ranks = ranks or Ranks()
        """All learners; the first of them writes, evaluates and decides when the run ends."""

        self.run_directory = run_directory
        self.bus = bus
        seeds = RunSeeds.of(config.run.seed)
        self.learner = make_learner(
            config,
            seed=seeds.weights,
            random=np.random.default_rng([seeds.learning, self.ranks.rank]),
            ranks=self.ranks,
        )
        self.selfplay = make_source(config, self.learner.network, self.ranks)
        self.buffer = ExperienceBuffer(
            config.selfplay.rollout_plies,
            config.env.num_games,
            targets=config.selfplay.num_targets,
        )
        self.learner.prepare(self.buffer)
        self.background = BackgroundEvaluation(config, run_directory)
        self.timer = SectionTimer()
        self._usage = UsageMeter()
        self._pause = PauseFile(run_directory / PAUSE)
        self._reset = ResetFile(run_directory / RESET)
        self._interrupt = InterruptFlag()
        self.timestep = self.update = self.games = 0
        self.scores: dict[str, Score] = {}
        self.placement: Placement | None = None
        self.changes: Changes = {}
        """Settings that were changed when the run was resumed."""

        self._is_measured = False
        """Whether the newest weights have had the final, long evaluation."""

        self._earlier_seconds = 0.0
        self._milestones_until = 0.0
        """Seconds of training up to which milestones have been kept."""

        self._session_start = time.perf_counter()

    def run(self, interrupt: InterruptFlag | None = None) -> str:
        """Train until the run ends; return the reason."""
        interrupt = self._interrupt = interrupt or InterruptFlag()
        self._session_start = time.perf_counter()
        self.timer.take()
        self.learner.join_ranks()
        facts = run_facts(self.config, self.learner, self.buffer)
        if self.changes:
            changes = (f"{path}: {change}" for path, change in self.changes.items())
            facts["changed_settings"] = ", ".join(changes)
        self.bus.emit(TrainingStart(self.config, self.run_directory, self.progress, facts))
        interrupt.on_set = lambda: self.bus.emit(StopRequested())
        reason, is_urgent = "an error", False
        try:
            with self.background if self.ranks.is_first else nullcontext(), self.selfplay:
                reason = self._train(interrupt)
        except KeyboardInterrupt:
            reason, is_urgent = "interrupted", True
            raise
        except (WorkersFailedError, RankLostError) as error:
            reason = str(error)
            if self.ranks.is_first:
                self.save()  # the weights are good
            raise
        except Exception as error:
            reason = str(error)
            raise
        finally:
            self.bus.emit(TrainingEnd(reason, self.progress, is_urgent))
        return reason

    def _train(self, interrupt: InterruptFlag) -> str:
        """Run the main loop until the run ends; return the reason."""
        while (end := self._end(interrupt)) is None:
            self.train_step()
            if self.ranks.is_first:
                self._save_milestone()
                self._take_evaluation(self.background.poll())
                if _is_due(self.update, self.config.evaluation.interval):
                    self._evaluate_on_the_way(interrupt)
            if _is_due(self.update, self.config.checkpoint.interval):
                states = self._states_of_others()
                if self.ranks.is_first:
                    self.save(states)
        states = self._states_of_others()
        self.ranks.leave()
        if self._is_measured or not self.ranks.is_first:
            return end  # a finished run was resumed, or the first rank does the rest
        if end != "interrupted":
            if not _is_due(self.update, self.config.checkpoint.interval):
                self.save(states)  # evaluation takes a while, and may be interrupted
            self._set_phase("waiting")
            self._take_evaluation(self.background.finish(interrupt))
            final = self.config.evaluation
            self._is_measured = self.evaluate(final.final_games, final.final_within)
            if not self._is_measured:
                return "interrupted"
        self.save(states)
        return end

    @property
    def progress(self) -> Progress:
        """Progress of the run so far."""
        session = time.perf_counter() - self._session_start - self._pause.seconds
        seconds = self._earlier_seconds + session
        run = self.config.run
        return Progress(
            self.timestep, run.total_timesteps, self.update, self.games, seconds, run.max_minutes
        )

    def train_step(self) -> None:
        """Play a rollout, learn from it, and emit what happened."""
        config = self.config
        self._wait_while_ranks_paused()
        done = self.ranks.broadcast(self._done)
        try:
            stats = self._collect()
        except WorkersFailedError as error:
            if config.parallel.fallback == "stop":
                raise
            self._play_without_workers(error)
            stats = self._collect()
        stats = self._of_all_ranks(stats)
        self._set_phase("learning")
        with self.timer.section("learning"):
            finish_rollout(self.buffer, config, done)
            update = self.learner.learn(
                self.buffer,
                learn_settings(config, done),
                on_epoch=lambda epoch: self.bus.emit(EpochEnd(epoch, self.progress)),
                on_samples=lambda done, total: self._set_phase("learning", done, total),
            )
        self.timestep += stats.plies
        self.games += len(stats.outcomes)
        self.update += 1
        self._is_measured = False
        metrics = step_metrics(
            stats,
            update,
            self.timer.take(),
            self.learner.stopwatch.take(),
            self._usage.shares(),
        )
        self.bus.emit(StepEnd(self.progress, metrics, self.selfplay.board))

    def _collect(self) -> RolloutStats:
        """Play a rollout with the newest weights."""
        self.selfplay.sync_weights(self.learner.network, self.update)
        total = len(self.buffer)
        self._set_phase("playing", 0, total)
        return self.selfplay.collect(
            self.buffer,
            self.timer,
            self._emit_game,
            self._is_paused,
            lambda plies: self._set_phase("playing", plies, total),
        )

    def _play_without_workers(self, error: WorkersFailedError) -> None:
        """Let the learner play from here on; the games of the workers are abandoned."""
        warn_of_fallback(error)
        with self.selfplay as workers:  # ends those that there are
            state = workers.state()
        self.selfplay = play_in_learner(
            self.config, self.learner.network, self.ranks, resumed_at=self.update
        )
        self.selfplay.begin_new_games(state)

    def _is_paused(self) -> bool:
        """Return whether to pause in the middle of a rollout; several ranks pause between them."""
        if self.ranks.size > 1:
            return False
        if self._reset.take():
            self.selfplay.reset()
        is_paused = self._pause.is_set() and not self._interrupt.is_set
        if is_paused:
            self._set_phase("paused")
        return is_paused

    def _wait_while_ranks_paused(self) -> None:
        """Wait while the first of several ranks sees the pause file; reset if it is asked to.

        They keep exchanging messages meanwhile, so that no rank takes another for lost.
        """
        if self.ranks.size == 1:
            return
        with self.timer.section("waiting"):
            self._reset_ranks()
            while self.ranks.broadcast(self._pause.is_set()):
                self._set_phase("paused")
                if self.ranks.any(self._interrupt.is_set):
                    return
                time.sleep(PAUSE_INTERVAL)
                self._reset_ranks()

    def _reset_ranks(self) -> None:
        """Reset the games of all ranks if the first one is asked to."""
        if self.ranks.broadcast(self.ranks.is_first and self._reset.take()):
            self.selfplay.reset()

    def _of_all_ranks(self, own: RolloutStats) -> RolloutStats:
        """Add up the rollouts of all learners, once the slowest has finished its own."""
        if self.ranks.size == 1:
            return own
        with self.timer.section("waiting"):
            parts = self.ranks.all_gather(own)
        for rank, part in enumerate(parts):
            for outcome, plies in part.outcomes if rank != self.ranks.rank else ():
                self._emit_game(outcome, plies)
        total, *others = parts
        for part in others:
            total.add(part)
        return total

    def evaluate(self, games: int, within: float) -> bool:
        """Rate the network, by its averaged weights if any, and play the configured opponents.

        Returns:
            Whether it was measured: not if the run is interrupted meanwhile.
        """

        def on_games(games: int, at_most: int) -> None:
            self._set_phase("evaluating", games, at_most)
            if self._interrupt.is_set:
                raise _EvaluationInterruptedError

        self._set_phase("evaluating")
        try:
            result = measure(
                self.learner.evaluation_network,
                self.config,
                games=games,
                within=within,
                seed=self.config.run.seed + self.update,
                sample_games=self.config.logging.sample_games,
                on_games=on_games,
            )
        except _EvaluationInterruptedError:
            return False
        self._take_evaluation(EvaluationEnd.of(self.progress, result))
        self.timer.take()  # the next step's times are its own
        return True

    def save(self, others: Sequence[Mapping[str, Any]] = ()) -> Path:
        """Write a checkpoint; `others` are the states of the other ranks, if there are any."""
        self._set_phase("saving")
        path = save_checkpoint(
            self.run_directory / CHECKPOINTS,
            timestep=self.timestep,
            update=self.update,
            state={**self.state(), "others": list(others)},
            config_json=self.config.model_dump_json(indent=2),
            keep=self.config.checkpoint.keep,
        )
        self.bus.emit(CheckpointSaved(path, self.progress))
        return path

    def _save_milestone(self) -> None:
        """Keep the network for good if one of ``checkpoint.milestones`` has passed."""
        before, seconds = self._milestones_until, self.progress.seconds
        self._milestones_until = seconds
        marks = self.config.checkpoint.milestones
        if not any(before < 60.0 * minutes <= seconds for minutes in marks):
            return
        learned = self.learner.state()
        save_checkpoint(
            self.run_directory / MILESTONES,
            timestep=self.timestep,
            update=self.update,
            state={name: learned[name] for name in ("model", "ema") if name in learned}
            | {"seconds": seconds},
            config_json=self.config.model_dump_json(indent=2),
            keep=sys.maxsize,
        )

    def state(self) -> dict[str, Any]:
        """Return everything that the rest of the run depends on."""
        return {
            **self.learner.state(),
            **self._own_state(),
            "global_randoms": rng_state(),
            "games": self.games,
            "seconds": self.progress.seconds,
            "scores": {name: [*score.black, *score.white] for name, score in self.scores.items()},
            "placement": None if self.placement is None else asdict(self.placement),
            "is_measured": self._is_measured,
        }

    def _own_state(self) -> dict[str, Any]:
        """Return the state that differs between ranks."""
        return {
            "selfplay": self.selfplay.state(),
            "learning_random": generator_state(self.learner.random),
        }

    def _states_of_others(self) -> list[dict[str, Any]]:
        """Gather the states of the other ranks for a checkpoint; all ranks have to call it."""
        self.learner.stay_together()
        own: dict[str, Any] = {}
        if not self.ranks.is_first:
            own = self._own_state()
            own["selfplay"] = without_snapshots(own["selfplay"])
        return self.ranks.all_gather(own)[1:]

    def restore(self, checkpoint: Checkpoint) -> None:
        """Resume from a checkpoint of this run, perhaps with other settings.

        Raises:
            ConfigError: A setting has changed that cannot be; see `keisei.training.resume`.
            CheckpointError: Something in it is missing or wrong: its sums say only that it is
                whole, and a stranger's may be.
        """
        try:
            self._restore(checkpoint)
        except KeiseiError:
            raise
        except _WRONG_CONTENT as error:
            raise CheckpointError(
                f"{checkpoint.path} is whole but cannot be resumed: an entry of its state is "
                f"missing or wrong ({type(error).__name__}: {error})"
            ) from error

    def _restore(self, checkpoint: Checkpoint) -> None:
        state: Mapping[str, Any] = checkpoint.state
        if "selfplay" not in state:
            raise KeiseiError(
                "this checkpoint holds only a network, so it cannot be resumed; start a new run "
                "with run.start_from set to it"
            )
        self.changes = changes_since(checkpoint, self.config)
        self.learner.restore(state)
        _require_snapshots(state["selfplay"], self.learner.network.weights())
        self.timestep, self.update = checkpoint.timestep, checkpoint.update
        self._restore_own(state)
        restore_rng(state["global_randoms"])
        self.games = int(state["games"])
        self._earlier_seconds = self._milestones_until = float(state["seconds"])
        self.scores = {str(name): _score(tally) for name, tally in state["scores"].items()}
        placed = state.get("placement")
        self.placement = None if placed is None else _PLACEMENT.validate_python(placed)
        self._is_measured = bool(state["is_measured"]) and not needs_final_evaluation(self.changes)
        for path, change in self.changes.items():
            logger.info("changed setting: %s: %s", path, change)

    def _restore_own(self, state: Mapping[str, Any]) -> None:
        """Restore this rank's games, or start new ones where the checkpoint holds none for it."""
        saved = [state, *state.get("others", ())]
        own = saved[self.ranks.rank] if self.ranks.rank < len(saved) else None
        if own is not None:
            games = with_snapshots_of(own["selfplay"], state["selfplay"])
            if self.selfplay.can_continue(games) and not needs_new_games(self.changes):
                self.selfplay.restore(games)
                restore_generator(self.learner.random, own["learning_random"])
                return
        else:  # the run had fewer learners
            games = {"pool": state["selfplay"]["pool"]}
        with self.selfplay:  # closes it: it has not started to play, and is not needed
            pass
        self.selfplay = make_source(
            self.config, self.learner.network, self.ranks, resumed_at=self.update
        )
        self.selfplay.begin_new_games(games)
        learning = RunSeeds.of(self.config.run.seed, self.update).learning
        self.learner.random = np.random.default_rng([learning, self.ranks.rank])

    def _evaluate_on_the_way(self, interrupt: InterruptFlag) -> None:
        network = self.learner.evaluation_network
        if not is_in_background(self.config.evaluation, network, self.ranks.local_size):
            self.evaluate(self.config.evaluation.games, self.config.evaluation.within)
        elif self._own_end(interrupt) is None:  # else the final one measures the same network
            self.background.submit(network, self.progress)

    def _take_evaluation(self, event: EvaluationEnd | None) -> None:
        """Keep the scores of an evaluation, if one has ended, and emit it."""
        if event is not None:
            self.scores, self.placement = dict(event.scores), event.placement
            self.bus.emit(event)

    def _set_phase(self, phase: Phase, done: int = 0, total: int = 0) -> None:
        self.bus.emit(PhaseProgress(phase, done, total))

    def _emit_game(self, outcome: Outcome, plies: int) -> None:
        self.bus.emit(GameEnd(outcome, plies))

    @property
    def _done(self) -> float:
        """The fraction of the run that is done, from 0 to 1, which schedules follow."""
        progress = self.progress
        return schedule_fraction(progress.ply_fraction, progress.time_fraction)

    def _end(self, interrupt: InterruptFlag) -> str | None:
        """Return why the run ends, None if it does not; the same in all ranks."""
        if self.ranks.any(interrupt.is_set):
            return "interrupted"
        return self.ranks.broadcast(self._own_end(interrupt))

    def _own_end(self, interrupt: InterruptFlag) -> str | None:
        if interrupt.is_set:
            return "interrupted"
        if self.timestep >= self.config.run.total_timesteps:
            return "finished"
        limit = self.config.run.max_minutes
        if limit > 0.0 and self.progress.seconds >= 60.0 * limit:
            return "time limit"
        return None


_WRONG_CONTENT: Final = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    RuntimeError,  # of torch, whose optimizers check little
)
"""What a state with a missing or wrong entry raises while it is restored."""

_PLACEMENT: Final = TypeAdapter(Placement)


def _score(tally: Sequence[int]) -> Score:
    wins, draws, losses, *as_white = (int(number) for number in tally)
    white_wins, white_draws, white_losses = as_white
    return Score((wins, draws, losses), (white_wins, white_draws, white_losses))


def _require_snapshots(state: Mapping[str, Any], weights: Weights) -> None:
    """Raise `CheckpointError` unless the snapshots of a pool are weights of this network.

    They are loaded in the middle of a rollout, some updates later.
    """
    kinds = {name: (np.shape(array), np.asarray(array).dtype) for name, array in weights.items()}
    for snapshot in state["pool"]["snapshots"]:
        if {name: (array.shape, array.dtype) for name, array in snapshot.items()} != kinds:
            raise CheckpointError("a snapshot in the pool of the checkpoint is of another network")


class _EvaluationInterruptedError(Exception):
    """The run is to end: an evaluation may take longer than anyone waits."""


def _is_due(update: int, interval: int) -> bool:
    """Return whether something that happens every `interval` updates is due after this one."""
    return interval > 0 and update % interval == 0
