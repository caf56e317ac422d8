"""The training loop: counting, saving, resuming exactly, ending properly."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from keisei.callbacks import (
    Callback,
    CheckpointSaved,
    EpochEnd,
    EvaluationEnd,
    GameEnd,
    PhaseProgress,
    StepEnd,
    StopRequested,
    TrainingEnd,
    TrainingStart,
)
from keisei.checkpoints.manifest import TENSORS, WEIGHTS
from keisei.checkpoints.store import list_checkpoints, load_newest
from keisei.network.predictor import Weights
from keisei.run_files import METRICS, REPORT
from keisei.system import InterruptFlag
from keisei.training.step_metrics import UsageMeter
from keisei.training.trackers import JsonlTracker
from keisei.training.trainer import Trainer
from keisei.training.writers import ReportWriter
from tests.tiny import tiny_trainer


class Witness(Callback):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def on_training_start(self, event: TrainingStart) -> None:
        self.events.append(event)

    on_game_end = on_epoch_end = on_step_end = on_evaluation = on_training_start  # type: ignore[assignment]
    on_checkpoint = on_training_end = on_training_start  # type: ignore[assignment]
    on_phase = on_stop_requested = on_training_start  # type: ignore[assignment]

    def of(self, kind: type) -> list[object]:
        return [event for event in self.events if type(event) is kind]


def weights(trainer: Trainer) -> Weights:
    return {name: array.copy() for name, array in trainer.learner.network.weights().items()}


def test_a_run_from_start_to_end(tmp_path: Path, family: str) -> None:
    witness = Witness()
    trainer = tiny_trainer(tmp_path, family, "evaluation.interval=2", callbacks=[witness])
    assert trainer.run() == "finished"
    assert (trainer.timestep, trainer.update) == (192, 3)
    assert len(witness.of(StepEnd)) == len(witness.of(EpochEnd)) == 3, "each rollout is learned"
    assert len(witness.of(EvaluationEnd)) == 2, "after update 2 and at the end"
    assert len(witness.of(CheckpointSaved)) == 4
    assert len(witness.of(GameEnd)) == trainer.games > 0, "each game is counted once"
    assert isinstance(witness.events[0], TrainingStart)
    end = witness.events[-1]
    assert isinstance(end, TrainingEnd)
    assert (end.reason, end.progress.timestep) == ("finished", 192)


def test_each_phase_is_announced_with_its_progress(tmp_path: Path, family: str) -> None:
    witness = Witness()
    trainer = tiny_trainer(tmp_path, family, "evaluation.interval=2", callbacks=[witness])
    trainer.run()
    events = [event for event in witness.events if isinstance(event, PhaseProgress)]
    order = [phase for phase, _ in groupby(event.phase for event in events)]
    step = ["playing", "learning"]
    assert order == [
        *step, "saving", *step, "evaluating", "saving", *step, "saving", "waiting", "evaluating",
        "saving",
    ]  # fmt: skip
    for phase in ("playing", "learning", "evaluating"):
        fractions = [event.fraction for event in events if event.phase == phase and event.total]
        assert len(set(fractions)) >= 2, f"no progress of {phase}"
        assert 0.0 <= min(fractions) <= max(fractions) <= 1.0
    played = [event.done for event in events if event.phase == "playing"]
    assert played[:9] == [0, *range(0, 64, 8)], "told before each ply of the first rollout"


def test_metrics_add_up(tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UsageMeter, "MIN_INTERVAL", 0.0)
    witness = Witness()
    tiny_trainer(tmp_path, family, "selfplay.rollout_plies=48", callbacks=[witness]).run()
    step = witness.of(StepEnd)[0]
    assert isinstance(step, StepEnd)
    metrics = step.metrics
    rates = [metrics[f"games/{name}"] for name in ("black_wins", "white_wins", "draws")]
    assert sum(rates) == pytest.approx(1.0)
    seconds = sum(metrics[f"time/{name}"] for name in ("env", "inference", "learning", "other"))
    assert metrics["charts/SPS"] == pytest.approx(8 * 48 / seconds)
    assert metrics["memory/rss_mb"] > 0
    assert 0.0 <= metrics["system/cpu"] <= 1.0
    assert 0.0 < metrics["system/memory"] <= 1.0
    assert 0.0 < metrics["charts/network_share"] < 1.0
    # Games that reached the limit of 20 plies are draws, and told apart from other draws.
    lengths = [event.plies for event in witness.of(GameEnd)[: int(metrics["games/finished"])]]  # type: ignore[attr-defined]
    assert metrics["games/ply_limit_rate"] == pytest.approx(lengths.count(20) / len(lengths))
    assert metrics["games/ply_limit_rate"] <= metrics["games/draws"]


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("selfplay.pool_share=0.5", "selfplay.pool_interval=1", "ppo.ema_decay=0.9"),
        ("ppo.epochs=2", "selfplay.shaping=0.5", "model.value_head=wdl", "ppo.ema_decay=0.5"),
        ("ppo.mirror=true", "ppo.ema_decay=0.9", "ppo.ema_kl=0.1"),
        ("evaluation.interval=1",),
        ("selfplay.simulations=4", "selfplay.pool_share=0.5", "ppo.mirror=true"),
    ],
    ids=[
        "plain",
        "pool and average",
        "epochs and shaping",
        "mirror and KL",
        "with evaluations",
        "expert iteration",
    ],
)
def test_a_resumed_run_is_the_same_bit_by_bit(
    tmp_path: Path, family: str, overrides: tuple[str, ...]
) -> None:
    overrides = (family, *overrides)
    if family == "model.type=sparse":  # whose threads add up sums of their own
        overrides += ("device.threads=2",)
    whole = tiny_trainer(tmp_path / "whole", *overrides)
    whole.run()
    first = tiny_trainer(tmp_path / "parts", *overrides)
    first.train_step()
    first.save()
    first.train_step()  # lost: after the checkpoint
    checkpoint = load_newest(tmp_path / "parts" / "checkpoints")
    assert checkpoint is not None
    second = tiny_trainer(tmp_path / "parts", *overrides)
    second.restore(checkpoint)
    assert second.run() == "finished"
    assert (second.timestep, second.update, second.games) == (192, 3, whole.games)
    for name, value in weights(whole).items():
        assert np.array_equal(value, weights(second)[name]), name


def test_pool_games_are_learned_from_one_side_only(tmp_path: Path, family: str) -> None:
    trainer = tiny_trainer(tmp_path, family, "selfplay.pool_share=0.5", "selfplay.mate_plies=0")
    trainer.train_step()
    learns = trainer.buffer.learns_policy
    turns = trainer.buffer.packed["turn"]
    assert learns[:, 4:].all(), "games against itself"
    pool = learns[:, :4]
    assert 0.3 < pool.mean() < 0.7
    assert {int(turn) for turn in turns[:, :4][pool]} == {0, 1}, "the learner plays both colours"
    assert (trainer.buffer.learns_value[:, :4] == pool).all()


def test_forced_mates_are_played_and_not_learned_by_the_policy(tmp_path: Path) -> None:
    trainer = tiny_trainer(
        tmp_path, "env.ply_limit=200", "selfplay.rollout_plies=150", "env.num_games=32"
    )
    stats = trainer.selfplay.collect(trainer.buffer, trainer.timer)
    forced = ~trainer.buffer.learns_policy
    assert stats.forced_plies == forced.sum() > 0
    assert (trainer.buffer.rewards[forced] == 1.0).all()
    assert trainer.buffer.ends[forced].all()
    assert trainer.buffer.learns_value.all()


def test_forced_mates_can_be_learned_except_those_of_the_pool(tmp_path: Path, family: str) -> None:
    settings = (
        family, "selfplay.pool_share=0.5", "env.ply_limit=200", "selfplay.rollout_plies=150",
        "env.num_games=32",
    )  # fmt: skip
    experience = []
    for learned in ("false", "true"):
        setting = f"selfplay.learn_mates={learned}"
        trainer = tiny_trainer(tmp_path / learned, *settings, setting)
        trainer.selfplay.sync_weights(trainer.learner.network, 0)  # a snapshot for the pool
        stats = trainer.selfplay.collect(trainer.buffer, trainer.timer)
        buffer = trainer.buffer
        assert stats.learned_plies == buffer.learns_policy.sum()
        experience.append((stats.forced_plies, buffer.actions, buffer.learns_policy))
    (forced, moves, usual), (again, same_moves, all_learned) = experience
    assert forced == again > 0
    assert (moves == same_moves).all(), "the games are the same"
    own = trainer.buffer.learns_value
    assert 0 < own[:, :16].sum() < own[:, :16].size
    assert (all_learned == own).all(), "nothing of the pool's moves is learned"
    assert (own & ~usual).sum() == forced


def test_the_time_limit_ends_a_run(tmp_path: Path) -> None:
    trainer = tiny_trainer(tmp_path, "run.max_minutes=1e-9")
    assert trainer.run() == "time limit"
    assert load_newest(tmp_path / "checkpoints") is not None


def test_schedules_end_with_the_run_however_slow_the_machine(
    tmp_path: Path,
) -> None:
    trainer = tiny_trainer(tmp_path, "run.max_minutes=10", "run.total_timesteps=640")
    trainer.timestep = 64
    trainer._earlier_seconds = 360.0
    assert trainer._done == pytest.approx(0.5, abs=0.05)
    trainer._earlier_seconds = 3_000.0
    assert trainer._done == 1.0


def test_a_time_limit_that_is_kept_leaves_no_trace_in_the_weights(tmp_path: Path) -> None:
    trainers = [
        tiny_trainer(tmp_path / name, f"run.max_minutes={minutes}")
        for name, minutes in (("unlimited", 0), ("limited", 1_000), ("slow start", 1_000))
    ]
    trainers[2]._earlier_seconds = 9_000.0
    for trainer in trainers:
        trainer.run()
    expected, *others = (weights(trainer) for trainer in trainers)
    for other in others:
        assert all(np.array_equal(expected[name], other[name]) for name in expected)


def test_what_was_learned_is_saved_before_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = tiny_trainer(tmp_path, "checkpoint.interval=1000")

    def give_up(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "evaluate", give_up)
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    checkpoint = load_newest(tmp_path / "checkpoints")
    assert checkpoint is not None
    assert checkpoint.timestep == trainer.timestep


def test_a_final_evaluation_that_is_repeated_is_in_the_journal_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is killed behind the evaluation, before the checkpoint that knows of it."""
    trainer = tiny_trainer(tmp_path, callbacks=[JsonlTracker(tmp_path)])
    monkeypatch.setattr(JsonlTracker, "on_training_end", lambda *_: None)
    saves: list[Path] = []

    def killed_at_the_last(others: object = ()) -> Path:
        if trainer.scores:
            raise KeyboardInterrupt
        saves.append(Trainer.save(trainer))
        return saves[-1]

    monkeypatch.setattr(trainer, "save", killed_at_the_last)
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    resumed = tiny_trainer(tmp_path, callbacks=[JsonlTracker(tmp_path)])
    checkpoint = load_newest(tmp_path / "checkpoints")
    assert checkpoint is not None
    resumed.restore(checkpoint)
    resumed.run()
    events = [json.loads(line)["event"] for line in (tmp_path / METRICS).read_text().splitlines()]
    assert events[-4:] == ["checkpoint", "start", "evaluation", "checkpoint"]
    assert events.count("evaluation") == 1


def test_equal_runs_have_equal_files(tmp_path: Path, family: str) -> None:
    """But for the times: also the bytes between the fields of packed positions."""
    states = []
    for name in ("one", "two"):
        blocks = [np.full(size, 0xAA, np.uint8) for size in range(64, 4096, 16)]
        trainer = tiny_trainer(tmp_path / name, family)
        del blocks  # what is allocated next finds other bytes
        trainer.train_step()
        path = trainer.save()
        states.append([(path / name).read_bytes() for name in (WEIGHTS["model"], TENSORS)])
    assert states[0] == states[1]


def test_whoever_presses_ctrl_c_twice_does_not_wait_for_the_report(tmp_path: Path) -> None:
    seen = []

    class Presses(Callback):
        def on_step_end(self, event: StepEnd) -> None:
            raise KeyboardInterrupt

        def on_training_end(self, event: TrainingEnd) -> None:
            seen.append((event.reason, event.is_urgent))

    trainer = tiny_trainer(tmp_path, callbacks=[Presses(), ReportWriter(tmp_path)])
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert seen == [("interrupted", True)]
    assert not (tmp_path / REPORT).exists()


def test_an_interrupt_saves_and_ends(tmp_path: Path) -> None:
    flag = InterruptFlag()

    class Presses(Callback):
        def on_step_end(self, event: StepEnd) -> None:
            signal.raise_signal(signal.SIGINT)

    witness = Witness()
    trainer = tiny_trainer(tmp_path, "checkpoint.interval=0", callbacks=[Presses(), witness])
    with flag:
        assert trainer.run(flag) == "interrupted"
    assert len(witness.of(StopRequested)) == 1, "displays say that it ends soon"
    checkpoint = load_newest(tmp_path / "checkpoints")
    assert checkpoint is not None
    assert checkpoint.update == 1
    with flag, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_breaks_off_an_evaluation_which_a_resumed_run_makes(tmp_path: Path) -> None:
    class Presses(Callback):
        def on_phase(self, event: PhaseProgress) -> None:
            if event.phase == "evaluating" and not flag.is_set:
                signal.raise_signal(signal.SIGTERM)

    witness = Witness()
    flag = InterruptFlag()
    settings = ("evaluation.interval=0", "evaluation.final_games=1000")
    with flag:
        trainer = tiny_trainer(tmp_path, *settings, callbacks=[Presses(), witness])
        assert trainer.run(flag) == "interrupted"
    assert witness.of(EvaluationEnd) == []
    checkpoint = load_newest(tmp_path / "checkpoints")
    assert checkpoint is not None
    assert checkpoint.timestep == trainer.config.run.total_timesteps
    again = Witness()
    trainer = tiny_trainer(tmp_path, "evaluation.interval=0", callbacks=[again])
    trainer.restore(checkpoint)
    assert trainer.run() == "finished"
    assert len(again.of(EvaluationEnd)) == 1


def test_a_failing_callback_is_logged_and_training_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(Callback):
        def on_step_end(self, event: StepEnd) -> None:
            raise ZeroDivisionError("a plug-in's mistake")

    assert tiny_trainer(tmp_path, callbacks=[Fails()]).run() == "finished"
    assert "callback Fails failed in on_step_end" in caplog.text
    assert "a plug-in's mistake" in caplog.text


KILLED = """
import sys
import time
from pathlib import Path
from tests.tiny import tiny_trainer
from keisei.checkpoints.store import list_checkpoints, load_newest
directory = Path(sys.argv[1])
trainer = tiny_trainer(directory, *sys.argv[2:])
checkpoint = load_newest(directory / "checkpoints")
if checkpoint is not None:
    trainer.restore(checkpoint)
trainer.run()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_weights(
    tmp_path: Path, family: str
) -> None:
    overrides = (family, "run.total_timesteps=640", "checkpoint.keep=2")
    whole = tiny_trainer(tmp_path / "whole", *overrides)
    whole.run()
    directory = tmp_path / "killed"
    directory.mkdir()
    command = [sys.executable, "-c", KILLED, str(directory), *overrides]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    for moment in (0.05, 0.4):  # seconds after the first checkpoint of each attempt
        saved = len(list_checkpoints(directory / "checkpoints"))
        process = subprocess.Popen(command, cwd=root, env=environment)
        while process.poll() is None and (
            len(list_checkpoints(directory / "checkpoints")) <= min(saved, 1)
        ):
            time.sleep(0.02)
        time.sleep(moment)
        process.kill()
        process.wait()
    subprocess.run(command, cwd=root, env=environment, check=True)
    checkpoint = load_newest(directory / "checkpoints")
    assert checkpoint is not None
    assert checkpoint.timestep == 640
    for name, value in weights(whole).items():
        assert np.array_equal(value, checkpoint.state["model"][name]), name


LEARNS = """
import sys
from pathlib import Path
from tests.tiny import tiny_trainer
trainer = tiny_trainer(Path(sys.argv[1]), "model.type=sparse")
for _ in range(3):
    trainer.train_step()
print(trainer.learner.fingerprint)
"""


@pytest.mark.soak
def test_a_run_that_compiled_its_kernels_can_be_resumed_bit_by_bit_too(tmp_path: Path) -> None:
    """The first process compiles the kernels, the second one loads them."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "KEISEI_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", LEARNS, str(tmp_path / "run")]
    compiled, loaded = (
        subprocess.check_output(command, cwd=root, env=environment, text=True) for _ in range(2)
    )
    assert compiled == loaded
