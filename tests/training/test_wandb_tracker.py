"""Weights & Biases, played by a fake: what it receives, and what its failures do to a run."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from keisei.callbacks import (
    CheckpointSaved,
    EventBus,
    StepEnd,
    TrainingEnd,
)
from keisei.errors import KeiseiError
from keisei.training.run import start_run
from keisei.training.trackers import require_trackers
from keisei.training.wandb_tracker import UPLOAD_ATTEMPTS, NewestUpload, WandbTracker
from tests.tiny import tiny_config
from tests.training.fake_run import fake_config, fake_events, fake_start, progress_at


class FakeArtifact:
    def __init__(self, name: str, type: str) -> None:
        self.name = name
        self.type = type
        self.files: list[str] = []
        self.waited = False

    def add_file(self, path: str, name: str) -> None:
        assert Path(path).is_file()
        self.files.append(name)

    def wait(self) -> None:
        self.waited = True


class FakeWandb:
    """Package and run in one."""

    Artifact = FakeArtifact
    url = "https://example.org/run"

    def __init__(self, directory: Path, *, failures: int = 0) -> None:
        self.dir = str(directory / "wandb" / "run" / "files")
        self.failures = failures
        self.options: dict[str, Any] = {}
        self.metrics: list[str] = []
        self.logged: list[dict[str, float]] = []
        self.artifacts: list[FakeArtifact] = []
        self.exit_code: int | None = None

    def init(self, **options: Any) -> "FakeWandb":
        self.options = options
        return self

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.metrics.append(name)

    def log(self, values: dict[str, float]) -> None:
        self.logged.append(values)

    def log_artifact(self, artifact: FakeArtifact) -> FakeArtifact:
        if self.failures > 0:
            self.failures -= 1
            raise ConnectionError("the line is down")
        self.artifacts.append(artifact)
        return artifact

    def finish(self, exit_code: int) -> None:
        self.exit_code = exit_code


def make_tracker(
    wandb: FakeWandb,
    directory: Path,
    *,
    mode: Literal["offline", "online"] = "online",
    timeout: float = 10.0,
    sleep: Callable[[float], None] = lambda _: None,
) -> WandbTracker:
    return WandbTracker(
        wandb, directory, project="keisei", mode=mode, finish_timeout=timeout, sleep=sleep
    )


def checkpoint(directory: Path, update: int) -> CheckpointSaved:
    path = directory / "checkpoints" / f"update-{update:06}"
    (path / "inner").mkdir(parents=True)
    (path / "weights.safetensors").write_bytes(b"weights")
    (path / "inner" / "manifest.json").write_bytes(b"{}")
    return CheckpointSaved(path, progress_at(update, 10))


def test_a_run_is_sent_in_full(tmp_path: Path) -> None:
    wandb = FakeWandb(tmp_path)
    bus = EventBus([make_tracker(wandb, tmp_path)])
    for event in fake_events(tmp_path, updates=10, last=5):
        if isinstance(event, TrainingEnd):
            bus.emit(checkpoint(tmp_path, 5))
        bus.emit(event)
    assert wandb.options["mode"] == "online"
    assert wandb.options["config"]["env"]["input_features"] == "core46"
    assert wandb.options["config"]["facts"]["planes"] == 46
    assert [step["timestep"] for step in wandb.logged[:2]] == [16_384, 32_768]
    assert "eval/greedy/score" in wandb.logged[-1]
    (artifact,) = wandb.artifacts
    assert artifact.type == "model"
    assert artifact.waited
    assert artifact.files == [
        "update-000005/inner/manifest.json",
        "update-000005/weights.safetensors",
    ]
    assert wandb.exit_code == 0


def test_a_resumed_run_keeps_its_id(tmp_path: Path) -> None:
    ids = []
    for first in (0, 5):
        wandb = FakeWandb(tmp_path)
        tracker = make_tracker(wandb, tmp_path, mode="offline")
        tracker.on_training_start(fake_start(tmp_path, fake_config(), first, 10))
        ids.append(wandb.options["id"])
    assert ids[0] == ids[1] != ""


def test_a_run_is_kept_offline_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`keisei train` with `logging.wandb=offline` asks for nothing and waits for nobody."""
    wandb = FakeWandb(tmp_path)  # it has no `login`
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    settings = ("model.type=sparse", "run.name=mine", f"run.root={tmp_path}")
    start_run(tiny_config(*settings, "logging.wandb=offline"))
    assert wandb.options["mode"] == "offline"
    assert wandb.options["dir"] == str(tmp_path / "mine")
    assert [step["timestep"] for step in wandb.logged[:3]] == [64, 128, 192]
    assert wandb.artifacts, "checkpoints are kept for `wandb sync`"
    assert not any(artifact.waited for artifact in wandb.artifacts)
    assert wandb.exit_code == 0


def test_values_that_are_not_finite_are_not_sent(tmp_path: Path) -> None:
    wandb = FakeWandb(tmp_path)
    tracker = make_tracker(wandb, tmp_path)
    tracker.on_training_start(fake_start(tmp_path, fake_config(), 0, 10))
    tracker.on_step_end(StepEnd(progress_at(1, 10), {"a": float("nan"), "b": 1.0}, None))
    assert wandb.logged == [{"b": 1.0, "timestep": 16_384, "update": 1}]


def test_uploads_are_tried_again_after_growing_delays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    delays: list[float] = []
    wandb = FakeWandb(tmp_path, failures=3)
    tracker = make_tracker(wandb, tmp_path, mode="offline", sleep=delays.append)
    tracker.on_training_start(fake_start(tmp_path, fake_config(), 0, 10))
    tracker.on_checkpoint(checkpoint(tmp_path, 1))
    tracker.on_training_end(TrainingEnd("finished", progress_at(1, 10)))
    assert delays == [1.0, 2.0, 4.0]
    assert len(wandb.artifacts) == 1
    assert not wandb.artifacts[0].waited  # offline there is nothing to wait for
    assert "attempt 3 of 5): the line is down" in caplog.text


def test_an_upload_is_given_up_in_the_end(tmp_path: Path) -> None:
    wandb = FakeWandb(tmp_path, failures=99)
    tracker = make_tracker(wandb, tmp_path)
    tracker.on_training_start(fake_start(tmp_path, fake_config(), 0, 10))
    tracker.on_checkpoint(checkpoint(tmp_path, 1))
    tracker.on_training_end(TrainingEnd("the loss is not a number", progress_at(1, 10)))
    assert wandb.failures == 99 - UPLOAD_ATTEMPTS
    assert wandb.exit_code == 1


@pytest.mark.parametrize(
    ("is_urgent", "problem"),
    [
        (False, "did not finish within the timeout of 0.05 s;"),
        (True, "Weights & Biases was not waited for;"),
    ],
)
def test_the_end_waits_no_longer_than_the_time_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_urgent: bool, problem: str
) -> None:
    never = threading.Event()

    class Hanging(FakeWandb):
        def finish(self, exit_code: int) -> None:
            never.wait(30.0)

    tracker = make_tracker(Hanging(tmp_path), tmp_path, timeout=0.05)
    tracker.on_training_start(fake_start(tmp_path, fake_config(), 0, 10))
    begun = time.monotonic()
    tracker.on_training_end(TrainingEnd("finished", progress_at(1, 10), is_urgent))
    assert time.monotonic() - begun < 5.0
    assert problem in caplog.text
    assert f"wandb sync {tmp_path / 'wandb' / 'run'}" in caplog.text
    never.set()


def test_a_run_that_could_not_begin_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Refusing(FakeWandb):
        def init(self, **options: Any) -> "FakeWandb":
            raise ConnectionError("no such project")

    bus = EventBus([make_tracker(Refusing(tmp_path), tmp_path)])
    for event in fake_events(tmp_path, updates=10):
        bus.emit(event)
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1


def test_only_the_newest_upload_waits() -> None:
    begun, go_on = threading.Event(), threading.Event()
    uploaded: list[str] = []

    def upload(path: Path) -> None:
        begun.set()
        go_on.wait(10.0)
        uploaded.append(path.name)

    uploads = NewestUpload(upload, time.sleep)
    uploads.submit(Path("1"))
    assert begun.wait(10.0)
    for number in ("2", "3", "4"):
        uploads.submit(Path(number))
    go_on.set()
    uploads.finish()
    assert uploaded == ["1", "4"]


@pytest.mark.soak
def test_the_real_package_takes_it_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    wandb = pytest.importorskip("wandb")
    tracker = WandbTracker(wandb, tmp_path, project="keisei", mode="offline", finish_timeout=60.0)
    bus = EventBus([tracker])
    for event in fake_events(tmp_path, updates=10, last=5):
        if isinstance(event, TrainingEnd):
            bus.emit(checkpoint(tmp_path, 5))
        bus.emit(event)
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


def old_wandb(key: str | None) -> SimpleNamespace:
    """A release whose `login` always asks for a key that is missing."""

    def login(key: str | None = None) -> bool:
        raise AssertionError("it would ask")

    return SimpleNamespace(api=SimpleNamespace(api_key=key), login=login)


def new_wandb(key: str | None) -> SimpleNamespace:
    """A release that warns, in lines of its own, of whatever uses ``wandb.api``."""

    def login(key: str | None = key, verify: bool = True, prompt: bool = True) -> bool:
        assert not prompt, "it would ask"
        assert not verify, "it would wait for the server"
        return bool(key)

    return SimpleNamespace(login=login)


@pytest.mark.parametrize("release", [old_wandb, new_wandb])
@pytest.mark.parametrize("key", [None, "", "0123456789"])
@pytest.mark.parametrize("mode", ["online", "offline"])
def test_a_missing_key_is_found_before_anything_is_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    release: Callable[[str | None], SimpleNamespace],
    key: str | None,
    mode: str,
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", release(key))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    config = tiny_config(f"run.root={tmp_path}", f"logging.wandb={mode}")
    if key or mode == "offline":
        require_trackers(config)
        return
    with pytest.raises(KeiseiError, match="needs an API key: run `wandb login`"):
        start_run(config)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("WANDB_API_KEY", "0123456789")
    require_trackers(config)


def test_a_missing_package_is_found_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(KeiseiError, match="package wandb, which is not installed"):
        start_run(tiny_config(f"run.root={tmp_path}", "logging.wandb=offline"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rank", ["", "0", "1"])
def test_only_the_first_learner_needs_the_package(
    monkeypatch: pytest.MonkeyPatch, rank: str
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.delenv("RANK", raising=False)
    if rank:
        monkeypatch.setenv("RANK", rank)
    config = tiny_config("logging.wandb=offline", "parallel.ddp=true")
    if rank == "1":
        require_trackers(config)
        return
    with pytest.raises(KeiseiError, match="package wandb"):
        require_trackers(config)
