"""Events, callbacks and the bus between them."""

import errno
import logging
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import get_args

import pytest

from keisei import callbacks as events
from keisei.callbacks import (
    Callback,
    Event,
    EventBus,
    Progress,
    TrainingEnd,
    load_plugin,
)
from keisei.errors import KeiseiError
from tests.training.fake_run import fake_events, progress_at


class Listener(Callback):
    """Records the events that it receives."""

    def __init__(self) -> None:
        self.received: list[str] = []

    def __getattribute__(self, name: str) -> object:
        if name.startswith("on_"):
            self.received.append(name)
        return super().__getattribute__(name)


class Faulty(Callback):
    def on_training_end(self, event: TrainingEnd) -> None:
        raise ZeroDivisionError("a bug in a plug-in")


END = TrainingEnd("finished", progress_at(1, 1))


def test_every_event_has_a_method_of_its_own(tmp_path: Path) -> None:
    listener = Listener()
    bus = EventBus([listener])
    emitted = [*fake_events(tmp_path, updates=10), events.StopRequested()]
    assert {type(event) for event in emitted} == set(get_args(Event))
    for event in emitted:
        bus.emit(event)
    methods = {name for name in vars(Callback) if name.startswith("on_")}
    assert set(listener.received) == methods
    promised = ("training_start", "step_end", "epoch_end", "game_end", "checkpoint", "training_end")
    assert {f"on_{name}" for name in promised} <= methods
    assert len(listener.received) == len(emitted)


def test_callbacks_are_called_in_order() -> None:
    order = []

    @dataclass
    class Numbered(Callback):
        number: int

        def on_training_end(self, event: TrainingEnd) -> None:
            order.append(self.number)

    EventBus([Numbered(number) for number in (3, 1, 2)]).emit(END)
    assert order == [3, 1, 2]


def test_a_failing_callback_is_logged_and_the_others_are_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener = Listener()
    EventBus([Faulty(), listener]).emit(END)
    assert listener.received == ["on_training_end"]
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "Faulty failed in on_training_end" in record.getMessage()
    assert "a bug in a plug-in" in caplog.text
    assert "Traceback" in caplog.text


def test_a_full_disk_is_one_line_once(caplog: pytest.LogCaptureFixture) -> None:
    class Writer(Callback):
        def on_training_end(self, event: TrainingEnd) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    bus = EventBus([Writer()])
    for _ in range(3):
        bus.emit(END)
    assert [record.getMessage() for record in caplog.records] == [
        f"Writer: [Errno {errno.ENOSPC}] No space left on device"
    ]
    assert "Traceback" not in caplog.text


def test_an_interrupt_is_not_swallowed() -> None:
    class Interrupted(Callback):
        def on_training_end(self, event: TrainingEnd) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        EventBus([Interrupted()]).emit(END)


READY = Listener()
NOTHING_OF_THE_KIND = 3


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three packages have registered something."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    names = {"listener": "Listener", "ready": "READY", "wrong": "NOTHING_OF_THE_KIND"}
    found = [
        EntryPoint(name, f"{__name__}:{attribute}", events.PLUGIN_GROUP)
        for name, attribute in names.items()
    ]
    monkeypatch.setattr(events, "entry_points", lambda group: found)


@pytest.mark.usefixtures("plugins")
def test_plugins_are_classes_or_ready_made() -> None:
    assert type(load_plugin("listener")).__name__ == "Listener"
    assert type(load_plugin("ready")).__name__ == "Listener"


@pytest.mark.usefixtures("plugins")
def test_plugins_that_cannot_be_used_are_explained() -> None:
    with pytest.raises(KeiseiError, match=r"unknown .* 'missing'; installed: listener, ready"):
        load_plugin("missing")
    with pytest.raises(KeiseiError, match=r"'wrong' is not a keisei\.callbacks\.Callback"):
        load_plugin("wrong")


def test_an_unknown_plugin_without_any_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "entry_points", lambda group: [])
    with pytest.raises(KeiseiError, match="installed: none"):
        load_plugin("anything")


@pytest.mark.parametrize(
    ("plies", "seconds", "max_minutes", "fraction"),
    [
        (25, 30.0, 0.0, 0.25),
        (25, 30.0, 1.0, 0.5),
        (25, 300.0, 1.0, 1.0),
        (75, 30.0, 1.0, 0.75),
        (120, 30.0, 0.0, 1.0),
    ],
)
def test_a_run_is_done_by_plies_or_by_time(
    plies: int, seconds: float, max_minutes: float, fraction: float
) -> None:
    progress = Progress(plies, 100, 1, 1, seconds, max_minutes)
    assert progress.fraction_done == fraction
