"""Trackers: what they write, and that it survives kills and resumes."""

import json
import math
import sys
from io import FileIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

from keisei.callbacks import Callback, EventBus, StepEnd
from keisei.errors import KeiseiError
from keisei.runs.history import History
from keisei.system import FileAccessError
from keisei.training.trackers import (
    JsonlTracker,
    NullTracker,
    TensorBoardTracker,
    make_trackers,
)
from keisei.training.wandb_tracker import WandbTracker
from tests.training.fake_run import (
    PLIES_PER_STEP,
    fake_config,
    fake_evaluation,
    fake_events,
    fake_metrics,
    progress_at,
)


def run_session(
    callback: Callback, directory: Path, *, first: int = 0, last: int = 20, stop_before: int = 0
) -> None:
    """Emit the events of a session; with `stop_before`, without that many at its end."""
    events = list(fake_events(directory, updates=20, first=first, last=last))
    for event in events[: len(events) - stop_before]:
        EventBus([callback]).emit(event)


def lines(directory: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


def test_jsonl_has_a_line_for_everything_that_counts(tmp_path: Path) -> None:
    run_session(JsonlTracker(tmp_path), tmp_path, last=10)
    events = [line["event"] for line in lines(tmp_path)]
    assert events == ["start", *["step"] * 5, "evaluation", *["step"] * 5, "evaluation",
                      "checkpoint", "end"]  # fmt: skip
    start, *_, checkpoint, end = lines(tmp_path)
    assert start["facts"] == {"parameters": 213_504, "planes": 46, "device": "cpu",
                              "precision": "fp32"}  # fmt: skip
    assert checkpoint["path"] == "checkpoints/update-000010"
    assert (end["reason"], end["update"], end["seconds"]) == ("finished", 10, 60.0)
    step = History.read(tmp_path).steps[2]
    assert step.metrics == fake_metrics(3, 20)
    assert step.timestep == 3 * PLIES_PER_STEP


def test_jsonl_line_is_on_disk_at_once(tmp_path: Path) -> None:
    tracker = JsonlTracker(tmp_path)
    run_session(tracker, tmp_path, last=3, stop_before=1)  # never closed
    assert [step.update for step in History.read(tmp_path).steps] == [1, 2, 3]


def test_jsonl_continues_at_the_checkpoint(tmp_path: Path) -> None:
    run_session(JsonlTracker(tmp_path), tmp_path, last=14, stop_before=1)
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"event":"step","update":15,"ti')  # kill -9 in the middle of a line
    run_session(JsonlTracker(tmp_path), tmp_path, first=10)
    history = History.read(tmp_path)
    assert history.broken_lines == 0
    assert [step.update for step in history.steps] == list(range(1, 21))
    assert len(lines(tmp_path)) == len(history.entries)
    assert [entry.update for entry in history.starts] == [0, 10]
    assert history.end is not None


def test_jsonl_of_a_run_that_was_never_saved_starts_again(tmp_path: Path) -> None:
    run_session(JsonlTracker(tmp_path), tmp_path, last=4, stop_before=1)
    run_session(JsonlTracker(tmp_path), tmp_path, last=2)
    assert [step.update for step in History.read(tmp_path).steps] == [1, 2]


def test_jsonl_has_null_for_values_that_are_not_finite(tmp_path: Path) -> None:
    tracker = JsonlTracker(tmp_path)
    run_session(tracker, tmp_path, last=1, stop_before=1)
    tracker.on_step_end(StepEnd(progress_at(2, 20), {"losses/policy": math.nan}, None))
    assert lines(tmp_path)[-1]["metrics"] == {"losses/policy": None}


def test_jsonl_recovers_from_a_line_that_was_cut_by_a_full_disk(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullDisk(FileIO):
        def write(self, data: Any, /) -> int:
            return super().write(data[:20])

    tracker = JsonlTracker(tmp_path)
    run_session(tracker, tmp_path, last=1, stop_before=1)
    for update in (2, 3, 4):
        with monkeypatch.context() as patch:
            if update == 2:
                patch.setattr(Path, "open", lambda path, mode, buffering: FullDisk(path, "a"))
            EventBus([tracker]).emit(StepEnd(progress_at(update, 20), {}, None))
    assert "only part of a line" in caplog.text
    history = History.read(tmp_path)
    assert [step.update for step in history.steps] == [1, 3, 4]
    assert history.broken_lines == 1


def test_jsonl_that_cannot_be_brought_in_order_is_not_written_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_session(JsonlTracker(tmp_path), tmp_path, last=2)
    before = (tmp_path / "metrics.jsonl").read_bytes()

    def disk_full(path: Path, data: bytes) -> None:
        raise FileAccessError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr("keisei.runs.journal.write_atomically", disk_full)
    run_session(JsonlTracker(tmp_path), tmp_path, first=1)
    assert caplog.text.count("JsonlTracker: cannot write") == 1
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def scalars(directory: Path, name: str) -> list[tuple[int, float]]:
    accumulator = EventAccumulator(str(directory / "tensorboard"))
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars(name)]


def test_tensorboard_has_scalars_and_settings(tmp_path: Path) -> None:
    run_session(TensorBoardTracker(tmp_path), tmp_path, last=5)
    assert [step for step, _ in scalars(tmp_path, "losses/policy")] == [
        update * PLIES_PER_STEP for update in range(1, 6)
    ]
    ((step, score),) = scalars(tmp_path, "eval/greedy/score")
    assert step == 5 * PLIES_PER_STEP
    assert 0.0 < score < 1.0
    accumulator = EventAccumulator(str(tmp_path / "tensorboard"))
    accumulator.Reload()
    (text,) = accumulator.Tensors("config/text_summary")
    assert b"total_timesteps" in text.tensor_proto.string_val[0]


def test_tensorboard_shows_a_resumed_run_without_a_fold(tmp_path: Path) -> None:
    killed = TensorBoardTracker(tmp_path)
    run_session(killed, tmp_path, last=14, stop_before=1)
    assert killed._writer is not None
    killed._writer.flush()
    run_session(TensorBoardTracker(tmp_path), tmp_path, first=10)
    steps = [step // PLIES_PER_STEP for step, _ in scalars(tmp_path, "charts/SPS")]
    assert steps == list(range(1, 21))
    killed._writer.close()


def test_tensorboard_has_late_evaluations_at_their_place(tmp_path: Path) -> None:
    tracker = TensorBoardTracker(tmp_path)
    late = [fake_evaluation(update, 20) for update in (3, 7)]
    for event in fake_events(tmp_path, updates=20, last=9, evaluation_interval=0):
        if isinstance(event, StepEnd) and event.progress.update in (6, 9):
            tracker.on_evaluation(late.pop(0))
        EventBus([tracker]).emit(event)
    steps = [step // PLIES_PER_STEP for step, _ in scalars(tmp_path, "eval/greedy/score")]
    assert steps == [3, 7]
    steps = [step // PLIES_PER_STEP for step, _ in scalars(tmp_path, "charts/SPS")]
    assert steps == list(range(1, 10)), "nothing is purged"


def test_trackers_follow_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [type(tracker) for tracker in make_trackers(fake_config(), tmp_path)]
    assert kinds == [JsonlTracker, TensorBoardTracker, NullTracker]
    kinds = [type(one) for one in make_trackers(fake_config(tensorboard=False), tmp_path)]
    assert kinds == [JsonlTracker, NullTracker, NullTracker]
    monkeypatch.setitem(sys.modules, "wandb", object())
    kinds = [type(one) for one in make_trackers(fake_config(wandb="offline"), tmp_path)]
    assert kinds == [JsonlTracker, TensorBoardTracker, WandbTracker]


def test_a_folder_that_wandb_has_left_is_not_taken_for_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", ModuleType("wandb"))
    with pytest.raises(KeiseiError, match=r'pip install "keisei\[wandb\]"'):
        make_trackers(fake_config(wandb="online"), tmp_path)


def test_a_missing_wandb_is_explained_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(KeiseiError, match=r'pip install "keisei\[wandb\]"'):
        make_trackers(fake_config(wandb="online"), tmp_path)


def test_trackers_that_are_off_do_nothing(tmp_path: Path) -> None:
    run_session(NullTracker(), tmp_path, last=2)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
