"""A run is resumed with other settings: each is taken and recorded, or is refused by its name.

That those which are taken also have an effect is shown by the weights after an update, for most
settings of games and learning, and by a run beside one without the change, for those of `EFFECTS`.
Of the rest (programs, packages, processes, time limits of minutes) it is shown where they are used.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from keisei.callbacks import (
    Callback,
    CheckpointSaved,
    EvaluationEnd,
    EventBus,
    StepEnd,
    TrainingStart,
)
from keisei.checkpoints.store import Checkpoint, load_newest
from keisei.cli import app
from keisei.config import ConfigError, load_config, load_saved_config, save_config, sections
from keisei.config_schema import AppConfig
from keisei.display.live import console_level
from keisei.metric_names import EPOCHS_DONE, worker_numbers
from keisei.network.predictor import Weights
from keisei.network.towers.device import Compute, Probe
from keisei.run_files import CHECKPOINTS, CONFIG, MILESTONES
from keisei.selfplay.source import SelfPlay
from keisei.selfplay.workers.process_pool import ParallelSelfPlay
from keisei.selfplay.workers.worker import PoolSnapshots
from keisei.system import FileAccessError
from keisei.training import run as run_module
from keisei.training.resume import AtResume, at_resume, changed_settings
from keisei.training.run import resume_run
from keisei.training.trackers import TensorBoardTracker
from keisei.training.trainer import Trainer
from keisei.training.writers import SampleGamesWriter
from tests.tiny import TINY, agent_of, tiny_config, tiny_trainer

OTHERS = {
    "run.name": "another",
    "run.root": "elsewhere",
    "run.seed": 7,
    "run.start_from": "another",
    "run.total_timesteps": 256,
    "run.max_minutes": 9,
    "env.input_features": "core46+check",
    "env.num_games": 4,
    "env.ply_limit": 24,
    "env.opening_plies": 2,
    "env.stagger_plies": 9,
    "env.declaration": "24",
    "env.threads": 2,
    "model.type": "transformer",
    "model.accumulators": 24,
    "model.hidden": 16,
    "model.context": 16,
    "model.position_rows": "all-threats",
    "model.move_rows": "all-exchange",
    "model.tower_depth": 2,
    "model.tower_width": 16,
    "model.se_ratio": 0.5,
    "model.activation": "silu",
    "model.policy_head": "flat",
    "model.policy_width": 8,
    "model.value_head": "wdl",
    "model.value_width": 16,
    "selfplay.rollout_plies": 4,
    "selfplay.mate_plies": 0,
    "selfplay.learn_mates": True,
    "selfplay.simulations": 2,
    "selfplay.search_temperature": 1.0,
    "selfplay.pool_share": 0.5,
    "selfplay.pool_size": 1,
    "selfplay.pool_interval": 1,
    "selfplay.shaping": 0.1,
    "selfplay.shaping_end": 0.9,
    "ppo.epochs": 2,
    "ppo.learn_share": 0.5,
    "ppo.minibatch_size": 16,
    "ppo.learning_rate": 1e-3,
    "ppo.learning_rate_end": 1e-3,
    "ppo.learning_rate_schedule": "cosine",
    "ppo.warmup": 0.5,
    "ppo.entropy": 0.02,
    "ppo.entropy_end": 0.01,
    "ppo.entropy_schedule": "cosine",
    "ppo.position_rate": 0.5,
    "ppo.move_rate": 0.25,
    "ppo.clip_range": 1e-4,
    "ppo.dual_clip": 1.0001,
    "ppo.advantage_clip": 0.1,
    "ppo.value_weight": 1.0,
    "ppo.gamma": 0.98,
    "ppo.gae_lambda": 0.7,
    "ppo.gae_lambda_end": 0.8,
    "ppo.value_lambda": 0.5,
    "ppo.normalize_advantages": False,
    "ppo.max_grad_norm": 1e-3,
    "ppo.target_kl": 1e-9,
    "ppo.beta2": 0.95,
    "ppo.weight_decay": 0.1,
    "ppo.mirror": True,
    "ppo.ema_decay": 0.9,
    "ppo.ema_kl": 0.1,
    "ppo.nan_limit": 3,
    "parallel.ddp": True,
    "parallel.backend": "ray",
    "parallel.num_workers": 2,
    "parallel.inference": "workers",
    "parallel.worker_threads": 2,
    "parallel.max_lag": 2,
    "parallel.max_failures": 1,
    "parallel.fallback": "learner",
    "parallel.hang_seconds": 60,
    "parallel.ray_address": "auto",
    "parallel.compression": "gzip",
    "device.device": "auto",
    "device.mixed_precision": "auto",
    "device.compile": "auto",
    "device.threads": 2,
    "device.deterministic": False,
    "evaluation.interval": 5,
    "evaluation.background": "auto",
    "evaluation.games": 2,
    "evaluation.final_games": 2,
    "evaluation.opponents": "[random]",
    "evaluation.within": 900,
    "evaluation.final_within": 900,
    "evaluation.max_games": 8,
    "evaluation.ply_limit": 30,
    "evaluation.opening_plies": 2,
    "evaluation.temperature": 1.0,
    "evaluation.mate_plies": 0,
    "checkpoint.interval": 2,
    "checkpoint.keep": 1,
    "checkpoint.milestones": "[1]",
    "logging.display": "plain",
    "logging.tensorboard": False,
    "logging.sample_games": 1,
    "logging.wandb": "offline",
    "logging.wandb_project": "another",
    "logging.wandb_timeout": 5,
    "logging.plugins": "[another]",
}
"""Another value for every field than that of the tiny runs, which shows at once where one can."""

TOGETHER = {
    "selfplay.search_temperature": ("selfplay.simulations=2",),
    "selfplay.shaping": ("selfplay.shaping_end=1.0",),
    "selfplay.shaping_end": ("selfplay.shaping=0.1",),
    "ppo.ema_kl": ("ppo.ema_decay=0.9",),
    "parallel.compression": ("parallel.backend=ray",),
    "parallel.ray_address": ("parallel.backend=ray",),
    "parallel.inference": ("parallel.num_workers=2",),
}
"""Settings that are valid, or have an effect, only together with others."""

IN_WORKERS = {
    *("parallel.backend", "parallel.num_workers", "parallel.inference"),
    *("parallel.compression", "parallel.ray_address"),
}
"""Settings that need workers, whose start takes seconds; see the test of workers."""

NOT_IN_THE_WEIGHTS = {
    "env.threads": "the same games, faster",
    "selfplay.mate_plies": "no mate occurs in these games",
    "selfplay.learn_mates": "no mate occurs in these games",
    "selfplay.search_temperature": "the simulations that it needs change the weights too",
    "selfplay.pool_share": "the pool is empty so far; see the test of its share",
    "selfplay.pool_size": "needs a pool",
    "selfplay.pool_interval": "needs a pool",
    "ppo.ema_decay": "changes the averaged weights only; see their test",
    "ppo.target_kl": "behind the second minibatch there is nothing to leave out",
    "ppo.nan_limit": "no loss is NaN",
}
"""Settings of games and learning whose effect the weights do not show after one update."""

OF_SPARSE_NETWORKS = ("ppo.position_rate", "ppo.move_rate")


def test_there_is_another_value_for_every_field() -> None:
    fields = [
        f"{name}.{field}" for name, schema in sections().items() for field in schema.model_fields
    ]
    assert sorted(OTHERS) == sorted(fields), "a new field needs another value in OTHERS"
    for path, value in OTHERS.items():
        together = TOGETHER.get(path, ())
        config = tiny_config(*together, f"{path}={value}")
        assert path in changed_settings(tiny_config(*together), config), path


@pytest.fixture(scope="module", params=["resnet", "sparse"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A checkpoint after two updates, of a run of each family."""
    directory = tmp_path_factory.mktemp("saved")
    trainer = tiny_trainer(directory, f"model.type={request.param}")
    trainer.train_step()
    trainer.train_step()
    trainer.save()
    return newest(directory)


def newest(directory: Path) -> Checkpoint:
    checkpoint = load_newest(directory / CHECKPOINTS)
    assert checkpoint is not None
    return checkpoint


def settings_of(checkpoint: Checkpoint, *overrides: str) -> AppConfig:
    """The settings of a checkpoint, some of them changed."""
    family = AppConfig.model_validate_json(checkpoint.config_json).model.type
    return tiny_config(f"model.type={family}", *overrides)


def resumed(directory: Path, checkpoint: Checkpoint, *overrides: str) -> Trainer:
    trainer = Trainer(settings_of(checkpoint, *overrides), directory, EventBus([]))
    trainer.restore(checkpoint)
    return trainer


@pytest.fixture(scope="module")
def unchanged(saved: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Weights:
    """The weights after another update without any changes."""
    trainer = resumed(tmp_path_factory.mktemp("unchanged"), saved)
    trainer.train_step()
    return copied(trainer.learner.network.weights())


def copied(weights: Weights) -> Weights:
    return {name: np.array(array) for name, array in weights.items()}


def is_seen_in_weights(path: str, family: str) -> bool:
    """Return whether an update must have another result with another value of a setting."""
    if path in NOT_IN_THE_WEIGHTS or (path in OF_SPARSE_NETWORKS and family != "sparse"):
        return False
    learning = ("env.", "selfplay.", "ppo.", "run.seed", "run.total_timesteps")
    return path.startswith(learning)


@pytest.mark.parametrize("path", [path for path in OTHERS if path not in IN_WORKERS])
def test_every_setting_is_accepted_and_recorded_or_refused_by_its_name(
    path: str,
    saved: Checkpoint,
    unchanged: Weights,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The weights show the effect of those of games and learning; see `EFFECTS` for others."""
    monkeypatch.setattr(
        "keisei.network.towers.device.probe_precision", lambda *_: Probe(0.0, "not tried")
    )
    overrides = (*TOGETHER.get(path, ()), f"{path}={OTHERS[path]}")
    rule = at_resume(path)
    if rule is AtResume.FIXED:
        with pytest.raises(ConfigError, match=rf"^{path} cannot change when a run is resumed \("):
            resumed(tmp_path, saved, *overrides)
        return
    trainer = resumed(tmp_path, saved, *overrides)
    assert path in trainer.changes
    assert trainer.timestep == 128, "the run continues"
    abandoned = 8 if rule is AtResume.NEW_GAMES else 0
    assert isinstance(trainer.selfplay, SelfPlay)
    assert trainer.selfplay.abandoned_games == abandoned
    trainer.train_step()
    if is_seen_in_weights(path, trainer.config.model.type):
        weights = trainer.learner.network.weights()
        assert any(not np.array_equal(weights[name], unchanged[name]) for name in unchanged)
    trainer.save()
    again = resumed(tmp_path, newest(tmp_path), *overrides)
    assert again.changes == {}, "the new settings are those of the run now"
    again.train_step()
    assert again.update == 4


class ResumedRun(Callback):
    """A resumed run to its end, with what it left behind."""

    trainer: Trainer
    reason: str

    def __init__(self, directory: Path, checkpoint: Checkpoint, *overrides: str) -> None:
        self.directory = directory
        self.steps: list[StepEnd] = []
        self.evaluations: list[EvaluationEnd] = []
        self.saved_at: list[int] = []
        config = settings_of(checkpoint, *SIDE_BY_SIDE, *overrides)
        self.trainer = Trainer(config, directory, EventBus([self]))
        self.trainer.restore(checkpoint)
        self.reason = self.trainer.run()

    def on_step_end(self, event: StepEnd) -> None:
        self.steps.append(event)

    def on_evaluation(self, event: EvaluationEnd) -> None:
        self.evaluations.append(event)

    def on_checkpoint(self, event: CheckpointSaved) -> None:
        self.saved_at.append(event.progress.update)

    @property
    def games(self) -> SelfPlay:
        assert isinstance(self.trainer.selfplay, SelfPlay)
        return self.trainer.selfplay

    @property
    def compute(self) -> Compute:
        return agent_of(self.trainer).compute

    def folders(self, name: str) -> int:
        return len([*(self.directory / name).glob("*")])

    def callbacks(self) -> list[Callback]:
        """The callbacks that ``keisei train`` gives a run with these settings."""
        return run_module._callbacks(self.trainer.config, self.directory, Console())


SIDE_BY_SIDE = (
    "run.total_timesteps=320",
    "ppo.epochs=2",
    "selfplay.pool_share=0.5",
    "selfplay.pool_interval=1",
    "evaluation.opponents=[random]",
)
"""Settings of runs that are compared: three updates more, with two epochs and a pool each."""

EFFECTS: dict[str, tuple[object, Callable[[ResumedRun], bool]]] = {
    "run.max_minutes": (1e-6, lambda run: run.reason == "time limit"),
    "env.threads": (2, lambda run: run.games.env.pool.threads == 2),
    "selfplay.pool_size": (1, lambda run: len(run.games.pool.snapshots) == 1),
    "selfplay.pool_interval": (2, lambda run: len(run.games.pool.snapshots) == 2),
    "ppo.target_kl": (1e-9, lambda run: run.steps[0].metrics[EPOCHS_DONE] == 1),
    "device.threads": (2, lambda run: run.compute.threads == 2),
    "device.deterministic": (False, lambda run: not run.compute.deterministic),
    "device.mixed_precision": ("auto", lambda run: run.compute.autocast_dtype is torch.bfloat16),
    "device.compile": ("auto", lambda run: run.compute.compile == "auto"),
    "evaluation.interval": (4, lambda run: [e.progress.update for e in run.evaluations] == [4, 5]),
    "evaluation.final_games": (2, lambda run: run.trainer.scores["random"].games == 2),
    "evaluation.opponents": ("[greedy]", lambda run: list(run.trainer.scores) == ["greedy"]),
    "evaluation.ply_limit": (
        24,
        lambda run: max(len(game.main_line) for game in run.evaluations[-1].games) == 24,
    ),
    "checkpoint.interval": (2, lambda run: set(run.saved_at) == {4, 5}),
    "checkpoint.keep": (1, lambda run: run.folders(CHECKPOINTS) == 1),
    "checkpoint.milestones": ("[{soon}]", lambda run: run.folders(MILESTONES) == 1),
    "logging.display": ("plain", lambda run: console_level(run.trainer.config) == logging.INFO),
    "logging.tensorboard": (
        False,
        lambda run: not any(isinstance(one, TensorBoardTracker) for one in run.callbacks()),
    ),
    "logging.sample_games": (
        1,
        lambda run: [o.number for o in run.callbacks() if isinstance(o, SampleGamesWriter)] == [1],
    ),
}
"""Another value of settings whose effect the weights do not show, and what shows it instead."""


@pytest.fixture(scope="module")
def plain_run(saved: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> ResumedRun:
    """The run without any of these changes."""
    return ResumedRun(tmp_path_factory.mktemp("plain"), saved)


@pytest.mark.parametrize("saved", ["resnet"], indirect=True)
@pytest.mark.parametrize("path", EFFECTS)
def test_settings_that_the_weights_do_not_show_have_their_effect(
    path: str,
    saved: Checkpoint,
    plain_run: ResumedRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("keisei.network.towers.device.probe_precision", lambda *_: Probe(2.0, ""))
    monkeypatch.setattr(Compute, "autocast", lambda self: nullcontext())
    monkeypatch.setattr(Compute, "compiled", lambda self, model: model)
    assert at_resume(path) is AtResume.APPLIES
    value, has_effect = EFFECTS[path]
    assert not has_effect(plain_run), "else this would show nothing"
    soon = saved.state["seconds"] / 60 + 1e-6
    assert has_effect(ResumedRun(tmp_path, saved, f"{path}={value}".format(soon=soon)))


def test_workers_of_a_resumed_run_have_the_new_settings(saved: Checkpoint, tmp_path: Path) -> None:
    """As far as it shows before they are started."""
    settings = ("parallel.num_workers=2", "parallel.max_lag=2", "parallel.worker_threads=2")
    play = resumed(tmp_path, saved, *settings).selfplay
    assert isinstance(play, ParallelSelfPlay)
    assert play._slots == 3
    assert play._shares.next_plan(PoolSnapshots((), 0)).threads == 2


def test_the_cluster_is_that_of_the_new_settings(
    saved: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: list[str] = []

    def cluster(config: AppConfig, **_: object) -> ParallelSelfPlay:
        addresses.append(config.parallel.ray_address)
        return ParallelSelfPlay(config, workers=2)

    monkeypatch.setattr("keisei.selfplay.workers.ray_pool.RaySelfPlay", cluster)
    resumed(tmp_path, saved, "parallel.backend=ray", "parallel.ray_address=first-machine:6379")
    assert set(addresses) == {"first-machine:6379"}


def test_a_fixed_setting_names_the_way_out(saved: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run\.start_from set to this one"):
        resumed(tmp_path, saved, "model.tower_depth=3")
    with pytest.raises(ConfigError, match="rename that instead"):
        resumed(tmp_path, saved, "run.name=other")


def test_minibatch_size_and_weight_decay_are_those_of_the_new_settings(
    saved: Checkpoint, tmp_path: Path
) -> None:
    steps: list[StepEnd] = []

    class Steps(Callback):
        def on_step_end(self, event: StepEnd) -> None:
            steps.append(event)

    config = settings_of(saved, "ppo.minibatch_size=16", "ppo.weight_decay=0.25", "ppo.beta2=0.9")
    trainer = Trainer(config, tmp_path, EventBus([Steps()]))
    trainer.restore(saved)
    trainer.train_step()
    assert steps[0].metrics["charts/minibatch_size"] == 16
    if config.model.type == "resnet":
        (group,) = agent_of(trainer).optimizer.param_groups
        assert (group["weight_decay"], group["betas"]) == (0.25, (0.9, 0.9))


def test_weight_decay_moves_the_weights_of_a_resumed_run(saved: Checkpoint, tmp_path: Path) -> None:
    plain, decayed = (
        resumed(tmp_path, saved, f"ppo.weight_decay={decay}") for decay in (0.0, 100.0)
    )
    plain.train_step()
    decayed.train_step()
    sizes = [
        {name: float(np.abs(array).sum()) for name, array in one.learner.network.weights().items()}
        for one in (plain, decayed)
    ]
    assert any(sizes[1][name] < 0.9 * size for name, size in sizes[0].items())


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.5), (0.5, 1.0), (0.5, 0.25), (0.5, 0.0)])
def test_the_share_of_pool_games_may_change(
    tmp_path: Path, family: str, before: float, after: float
) -> None:
    pool = (family, "selfplay.pool_interval=1", "run.total_timesteps=1_000")
    trainer = tiny_trainer(tmp_path, *pool, f"selfplay.pool_share={before}")
    trainer.train_step()
    trainer.save()
    checkpoint = newest(tmp_path)
    trainer = resumed(tmp_path, checkpoint, *pool, f"selfplay.pool_share={after}")
    for _ in range(3):  # crashed at once, or with the next snapshot
        trainer.train_step()
    assert isinstance(trainer.selfplay, SelfPlay)
    assert len(trainer.selfplay.pool.learner_colors) == round(8 * after)
    trainer.save()
    resumed(tmp_path, newest(tmp_path), *pool, f"selfplay.pool_share={after}").train_step()


def test_a_moving_average_may_begin_and_end(saved: Checkpoint, tmp_path: Path) -> None:
    trainer = resumed(tmp_path, saved, "ppo.ema_decay=0.5")
    average, network = trainer.learner.evaluation_network, trainer.learner.network
    assert all(
        np.array_equal(array, network.weights()[name]) for name, array in average.weights().items()
    )
    trainer.train_step()
    trainer.save()
    resumed(tmp_path, newest(tmp_path)).train_step()


def test_float16_may_begin_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only the gradients are scaled here: not every CPU survives float16.
    monkeypatch.setattr(Compute, "autocast", lambda self: nullcontext())
    monkeypatch.setattr("keisei.network.towers.device.probe_precision", lambda *_: Probe(1.0, ""))
    trainer = tiny_trainer(tmp_path)
    trainer.train_step()
    trainer.save()
    trainer = resumed(tmp_path, newest(tmp_path), "device.mixed_precision=fp16")
    assert agent_of(trainer).scaler.is_enabled()
    trainer.train_step()
    trainer.save()
    again = resumed(tmp_path, newest(tmp_path), "device.mixed_precision=fp16")
    scales = [agent_of(one).scaler.state_dict() for one in (trainer, again)]
    assert scales[0] == scales[1]
    trainer = resumed(tmp_path, newest(tmp_path))
    assert not agent_of(trainer).scaler.is_enabled()
    trainer.train_step()


def test_new_games_are_other_games_and_counted(saved: Checkpoint, tmp_path: Path) -> None:
    same, other = (resumed(tmp_path, saved, *extra) for extra in ((), ("env.opening_plies=3",)))
    assert isinstance(same.selfplay, SelfPlay)
    assert isinstance(other.selfplay, SelfPlay)
    assert not np.array_equal(same.selfplay.env.packed, other.selfplay.env.packed)
    steps: list[StepEnd] = []

    class Steps(Callback):
        def on_step_end(self, event: StepEnd) -> None:
            steps.append(event)

    other.bus.callbacks.append(Steps())
    other.train_step()
    assert steps[0].metrics["workers/abandoned_games"] == 8


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        ("parallel.num_workers=2",),
        ("parallel.num_workers=2", "parallel.inference=server"),
        ("parallel.num_workers=2", "parallel.backend=ray", "parallel.compression=gzip"),
    ],
    ids=["workers", "server", "ray"],
)
def test_workers_take_over(tmp_path: Path, changes: tuple[str, ...]) -> None:
    if "parallel.backend=ray" in changes:
        pytest.importorskip("ray")
    sparse = "model.type=sparse"
    trainer = tiny_trainer(tmp_path, sparse)
    trainer.train_step()
    trainer.save()
    steps: list[StepEnd] = []

    class Steps(Callback):
        def on_step_end(self, event: StepEnd) -> None:
            steps.append(event)

    trainer = tiny_trainer(tmp_path, sparse, *changes, callbacks=[Steps()])
    trainer.restore(newest(tmp_path))
    assert set(trainer.changes) == {change.partition("=")[0] for change in changes}
    assert trainer.run() == "finished"
    assert trainer.timestep == 192
    for step in steps:
        assert worker_numbers(step.metrics), "at least one: Ray has a core less than this machine"
        assert step.metrics["workers/abandoned_games"] >= 8


def test_workers_begin_behind_the_games_of_the_checkpoint(
    saved: Checkpoint, tmp_path: Path
) -> None:
    trainer = resumed(tmp_path, saved, "parallel.num_workers=2", "env.num_games=4")
    assert trainer.selfplay.state()["abandoned_games"] == 8 + 4, "those of before, and its own"


def test_changes_are_recorded(tmp_path: Path, family: str) -> None:
    starts: list[TrainingStart] = []

    class Starts(Callback):
        def on_training_start(self, event: TrainingStart) -> None:
            starts.append(event)

    trainer = tiny_trainer(tmp_path, family)
    trainer.run()
    config = tiny_config(family, "run.total_timesteps=256", "ppo.minibatch_size=16")
    trainer = Trainer(config, tmp_path, EventBus([Starts()]))
    trainer.restore(newest(tmp_path))
    trainer.run()
    changes = "run.total_timesteps: 192 -> 256, ppo.minibatch_size: 32 -> 16"
    assert starts[0].facts["changed_settings"] == changes


def test_a_finished_run_is_measured_again_if_its_evaluation_changed(tmp_path: Path) -> None:
    tiny_trainer(tmp_path).run()
    trainer = resumed(tmp_path, newest(tmp_path), "evaluation.final_games=2")
    trainer.run()
    assert trainer.scores["random"].games == 2


# ---- the command ----


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished run."""
    root = tmp_path_factory.mktemp("root")
    directory = root / "run"
    trainer = tiny_trainer(directory, "run.name=run", f"run.root={root}", "model.type=sparse")
    directory.mkdir()
    save_config(trainer.config, directory / CONFIG)
    trainer.run()
    yield directory
    assert load_saved_config(directory / CONFIG).run.name == "run"


def resume(run: Path, *arguments: str) -> None:
    CliRunner().invoke(app, ["train", "--resume", str(run), *arguments], catch_exceptions=False)


def test_a_file_overrides_the_saved_settings(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "changes.yaml"
    file.write_text("ppo:\n  epochs: 2\nevaluation:\n  interval: 3\n")
    resume(run, "--config", str(file), "--set", "evaluation.interval=4")
    config = load_saved_config(run / CONFIG)
    assert (config.ppo.epochs, config.evaluation.interval) == (2, 4)
    assert config.env.num_games == 8, "what the file does not name stays"


def test_a_file_that_does_not_exist_is_an_error(run: Path, tmp_path: Path) -> None:
    with pytest.raises(FileAccessError, match=r"missing\.yaml"):
        resume(run, "--config", str(tmp_path / "missing.yaml"))


@pytest.mark.parametrize(("flag", "message"), [("--name", "run.name"), ("--model", "model.type")])
def test_flags_that_cannot_change_are_refused(run: Path, flag: str, message: str) -> None:
    before = (run / CONFIG).read_bytes()
    with pytest.raises(ConfigError, match=f"^{message} cannot change when a run is resumed"):
        resume(run, flag, "resnet")
    assert (run / CONFIG).read_bytes() == before


def test_a_run_killed_before_its_first_checkpoint_keeps_start_from(
    run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "killed"
    directory.mkdir()
    settings = (*TINY, "model.type=sparse", "run.name=killed", f"run.root={tmp_path}")
    config = load_config(None, (*settings, f"run.start_from={run}"))
    save_config(config, directory / CONFIG)
    with caplog.at_level("INFO"):
        resume_run(config, directory)
    assert f"starting with the weights of {run}" in caplog.text
