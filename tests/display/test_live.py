"""The displays: what they show at which size, how often, and that they cannot harm a run."""

import io
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console, Group
from rich.text import Text

from keisei.callbacks import (
    CheckpointSaved,
    EventBus,
    PhaseProgress,
    StepEnd,
    StopRequested,
    TrainingEnd,
    TrainingStart,
)
from keisei.display import live as display_module
from keisei.display.live import LiveDisplay, PlainDisplay, console_level, make_display
from keisei.display.logs import configure_logging
from keisei.display.panels import ASCII, UNICODE, Glyphs, sparkline, stacked_bar
from keisei.display.run_state import RunState
from keisei.display.screen import render_run
from keisei.metric_names import worker_numbers
from keisei.runs.journal import EloEstimate
from keisei.training.trackers import JsonlTracker
from tests.training.fake_run import (
    SECONDS_PER_STEP,
    fake_config,
    fake_evaluation,
    fake_events,
    fake_start,
    fake_step,
    progress_at,
)

UPDATES = 60


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def terminal(width: int = 80, height: int = 24) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, legacy_windows=False
    )


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def state_after(directory: Path, updates: int) -> RunState:
    """What a display knows after some updates."""
    display = PlainDisplay(clock=Clock(), has_timer=False)
    for event in fake_events(directory, updates=UPDATES, last=updates):
        if isinstance(event, TrainingEnd):
            break
        EventBus([display]).emit(event)
    display.state.messages.extend(
        logging.makeLogRecord({"levelno": level, "msg": text})
        for level, text in ((logging.INFO, "all is well"), (logging.WARNING, "is it 寒い?\nmore"))
    )
    return display.state


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> RunState:
    return state_after(tmp_path_factory.mktemp("my-run"), 45)


def render(state: RunState, width: int, height: int, glyphs: Glyphs = UNICODE) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), record=True)
    console.print(render_run(state, width, height, glyphs))
    return console.export_text().rstrip("\n").split("\n")


def cells(line: str) -> int:
    return Text(line.rstrip()).cell_len


# ---- content ----


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize(
    ("width", "height"),
    [(80, 23), (80, 24), (100, 18), (60, 16), (40, 10), (120, 27), (120, 40), (200, 60), (30, 5)],
)
def test_the_picture_fits_every_terminal(
    state: RunState, width: int, height: int, glyphs: Glyphs
) -> None:
    lines = render(state, width, height, glyphs)
    assert len(lines) <= height
    assert max(cells(line) for line in lines) <= width
    assert "75 %" in lines[1]


def test_80_by_24_shows_all_that_matters(state: RunState) -> None:
    text = "\n".join(render(state, 80, 23))
    for part in (
        "Keisei  my-run",
        "update 45, saved 0:30 ago",
        "737,280 / 983,040 plies  4:30, 1:30 left",
        "learning 50 %  0:00",
        "mean 2,731",
        "games          5,850",
        "49 % / 2 % / 49 %",
        "policy loss    -0.0109",
        "value loss",
        "entropy        2.2",
        "KL divergence",
        "learning rate  0.0003",
        "env 8 ▓ inference 39 ▒ learning 48 ╱ waiting 3 ░ other 2",
        "2 workers       2,800 plies/s  1,800 games, waiting 5 %, weights 45, 800 MB",
        "Elo            5000 (95 %: 4950 to 5050)",
        "vs random      100 % ±1 %",
        "vs greedy",
        "Black in hand",
    ):
        assert part in text
    assert "more" not in text


def test_each_worker_has_a_line_where_there_is_room(state: RunState) -> None:
    text = "\n".join(render(state, 80, 24))
    assert "worker 1        1,400 plies/s  900 games, waiting 5 %, weights 45, 400 MB" in text
    assert "Black in hand" in text


def test_one_updater_serves_runs_with_and_without_workers(tmp_path: Path) -> None:
    """The same events, in one run without the metrics of workers, update the same state."""
    states = []
    for has_workers in (True, False):
        display = PlainDisplay(clock=Clock(), has_timer=False)
        bus = EventBus([display])
        for event in fake_events(tmp_path, updates=UPDATES, last=45):
            if isinstance(event, TrainingEnd):
                break
            if not isinstance(event, StepEnd):
                bus.emit(event)
                continue
            step = replace(event, metrics=metrics_of(event, workers=has_workers))
            bus.emit(step)
            assert display.state.metrics == step.metrics
            assert display.state.progress == step.progress
            assert display.state.board is step.board
        states.append(display.state)
    parallel, alone = states
    assert worker_numbers(parallel.metrics) == [0, 1]
    assert worker_numbers(alone.metrics) == []
    for part in ("progress", "trends", "scores", "ratings", "phase", "checkpoint", "seconds_left"):
        assert getattr(parallel, part) == getattr(alone, part), part
    pictures = ["\n".join(render(state, 80, 24)) for state in states]
    assert ["worker 1 " in picture for picture in pictures] == [True, False]
    for part in ("update 45", "1:30 left", "mean 2,731", "policy loss    -0.0109", "vs random"):
        assert all(part in picture for picture in pictures), part


def metrics_of(event: StepEnd, *, workers: bool) -> dict[str, float]:
    """Return the metrics of a step, perhaps without those that only workers have."""
    return {
        name: value
        for name, value in event.metrics.items()
        if workers or not name.startswith("workers/")
    }


def test_a_wide_terminal_has_panels_and_the_score_by_colour(state: RunState) -> None:
    text = "\n".join(render(state, 140, 40))
    for part in (
        "a game in progress",
        "self-play",
        "strength",
        "log",
        "as Black  97 %",
        "812 MB",
    ):
        assert part in text


def test_a_plain_console_gets_plain_characters(state: RunState) -> None:
    for line in render(state, 80, 23, ASCII)[2:]:
        assert line.isascii()
    assert "| a" in "\n".join(render(state, 80, 23, ASCII))


def test_a_run_that_has_just_begun_can_be_shown(tmp_path: Path) -> None:
    state = RunState(clock=Clock())
    state.start(fake_start(tmp_path, fake_config(), 0, UPDATES))
    for size in ((80, 23), (140, 40), (60, 10)):
        text = "\n".join(render(state, *size))
        assert "not saved yet" in text
        assert "- left" in text
    assert "no evaluation yet" in "\n".join(render(state, 140, 40))


def test_skipped_minibatches_stand_out(tmp_path: Path) -> None:
    state = state_after(tmp_path, 1)
    state.metrics = {**state.metrics, "losses/skipped_minibatches": 2.0}
    assert "not finite     2 minibatches" in "\n".join(render(state, 80, 23))


def test_sparklines_and_bars() -> None:
    assert sparkline([], UNICODE, low=0.0, high=1.0) == ""
    assert sparkline([5.0, 5.0], UNICODE, low=5.0, high=5.0) == "▁▁"
    assert sparkline([-9.0, 9.0], ASCII, low=0.0, high=1.0) == "_#"
    assert stacked_bar([0.5, 0.25, 0.25], ["", "", ""], 8, UNICODE).plain == "████▓▓▒▒"
    assert stacked_bar([0.0, 0.0], ["", ""], 8, UNICODE).plain == ""
    thirds = stacked_bar([1 / 3, 1 / 3, 1 / 3], ["", "", ""], 10, ASCII).plain
    assert len(thirds) == 10


# ---- times ----


def test_eta_follows_this_sessions_speed(tmp_path: Path) -> None:
    clock = Clock()
    state = RunState(clock=clock)
    state.start(fake_start(tmp_path, fake_config(), 30, UPDATES))
    assert state.seconds_left != state.seconds_left  # unknown
    state.step(fake_step(40, UPDATES))
    assert state.average_sps == pytest.approx(16_384 / SECONDS_PER_STEP)
    assert state.seconds_left == pytest.approx(20 * SECONDS_PER_STEP)
    assert state.fraction_done == pytest.approx(40 / 60)
    clock.now += 5.0
    assert state.seconds == pytest.approx(40 * SECONDS_PER_STEP + 5.0)
    assert state.seconds_left == pytest.approx(20 * SECONDS_PER_STEP - 5.0)


def test_a_late_evaluation_is_shown_but_does_not_set_the_run_back(tmp_path: Path) -> None:
    state = state_after(tmp_path, 45)
    progress, scores = state.progress, list(state.scores["greedy"])
    late = fake_evaluation(44, UPDATES)
    state.evaluate(late)
    assert state.progress == progress
    assert [result.score for result in state.scores["greedy"]] == [
        *(result.score for result in scores),
        late.scores["greedy"].score,
    ]


def test_a_time_limit_counts_if_it_comes_first(tmp_path: Path) -> None:
    config = fake_config(UPDATES)
    config = config.model_copy(update={"run": config.run.model_copy(update={"max_minutes": 5.0})})
    state = RunState(clock=Clock())
    state.start(fake_start(tmp_path, config, 0, UPDATES))
    assert state.seconds_left == pytest.approx(300.0)
    state.step(fake_step(25, UPDATES, max_minutes=5.0))
    assert state.fraction_done == pytest.approx(0.5)
    assert state.seconds_left == pytest.approx(150.0)


def test_a_resumed_display_remembers_the_past(tmp_path: Path) -> None:
    tracker = JsonlTracker(tmp_path)
    for event in fake_events(tmp_path, updates=UPDATES, last=20):
        EventBus([tracker]).emit(event)
    state = RunState()
    state.start(fake_start(tmp_path, fake_config(), 12, UPDATES))
    assert len(state.scores["greedy"]) == 2
    assert len(state.trend("losses/policy")) == 12
    state.evaluate(fake_evaluation(15, UPDATES))
    assert len(state.scores["greedy"]) == 3


# ---- frames per second ----


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moments at which a picture was made; it takes no time at all."""
    moments: list[float] = []

    def instant(state: RunState, *_: object) -> Group:
        moments.append(state.clock())
        return Group()

    monkeypatch.setattr(display_module, "render_run", instant)
    return moments


def test_at_most_four_pictures_a_second(tmp_path: Path, drawn: list[float]) -> None:
    clock = Clock()
    display = LiveDisplay(terminal(), clock=clock, has_timer=False)
    display.on_training_start(fake_start(tmp_path, fake_config(), 0, UPDATES))
    step = fake_step(1, UPDATES)
    for _ in range(1_000):
        clock.now += 0.01
        display.on_step_end(step)
        display.on_checkpoint(CheckpointSaved(tmp_path, progress_at(1, UPDATES)))
        display.tick()
    display.close()
    assert 35 <= len(drawn) <= 41
    assert min(b - a for a, b in pairwise(drawn)) >= 0.25


def test_slow_drawing_is_done_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    drawn: list[float] = []

    def slow(state: RunState, *_: object) -> Group:
        drawn.append(clock.now)
        clock.now += 0.1
        return Group()

    monkeypatch.setattr(display_module, "render_run", slow)
    display = LiveDisplay(terminal(), clock=clock, cost_clock=clock, has_timer=False)
    display.on_training_start(fake_start(tmp_path, fake_config(), 0, UPDATES))
    for _ in range(1_000):
        clock.now += 0.1
        display.tick()
    display.close()
    assert len(drawn) * 0.1 <= 0.015 * (clock.now - 1_000.0) + 0.1


def test_a_busy_machine_does_not_make_pictures_rarer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a picture that took long because others computed stopped the display for long."""
    clock = Clock()
    drawn: list[float] = []

    def delayed(state: RunState, *_: object) -> Group:
        drawn.append(clock.now)
        clock.now += 0.2  # passes, but without computing
        return Group()

    monkeypatch.setattr(display_module, "render_run", delayed)
    display = LiveDisplay(terminal(), clock=clock, cost_clock=lambda: 0.0, has_timer=False)
    display.on_training_start(fake_start(tmp_path, fake_config(), 0, UPDATES))
    for _ in range(100):
        clock.now += 0.1
        display.tick()
    display.close()
    assert max(b - a for a, b in pairwise(drawn)) < 0.6


def test_an_event_that_draws_nothing_costs_next_to_nothing(tmp_path: Path) -> None:
    display = LiveDisplay(terminal(), clock=Clock(), has_timer=False)
    display.on_training_start(fake_start(tmp_path, fake_config(), 0, UPDATES))
    step = fake_step(30, UPDATES)
    display.on_step_end(step)
    begun = time.process_time()
    for _ in range(1_000):
        display.on_step_end(step)
    assert time.process_time() - begun < 1.0  # a millisecond each; it takes a fiftieth of that
    display.close()


def test_a_picture_is_drawn_while_nothing_happens(tmp_path: Path, drawn: list[float]) -> None:
    display = LiveDisplay(terminal())
    display.on_training_start(fake_start(tmp_path, fake_config(), 0, UPDATES))
    deadline = time.monotonic() + 20.0
    while len(drawn) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)  # a long update: no event
    display.on_training_end(TrainingEnd("finished", progress_at(0, UPDATES)))
    assert len(drawn) >= 3
    number = len(drawn)
    time.sleep(0.6)
    assert len(drawn) == number, "it draws after its end"


class StoppedTerminal(io.StringIO):
    """A terminal that takes nothing until it is released, as after Ctrl-S."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stopped = False
        self.waits, self.released = threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        if self.is_stopped:
            self.waits.set()
            assert self.released.wait(30.0)
        return super().write(text)


def test_a_stopped_terminal_does_not_stop_training(tmp_path: Path) -> None:
    file = StoppedTerminal()
    console = Console(file=file, force_terminal=True, width=80, height=24, legacy_windows=False)
    display = LiveDisplay(console)
    display.on_training_start(fake_start(tmp_path, fake_config(), 0, UPDATES))
    file.is_stopped = True
    assert file.waits.wait(20.0), "the timer draws"

    def train() -> None:
        display.on_phase(PhaseProgress("learning", 1, 2))
        display.on_step_end(fake_step(1, UPDATES))
        display.on_checkpoint(CheckpointSaved(tmp_path, progress_at(1, UPDATES)))

    training = threading.Thread(target=train, daemon=True)
    training.start()
    training.join(5.0)
    has_trained = not training.is_alive()
    file.released.set()
    display.on_training_end(TrainingEnd("finished", progress_at(1, UPDATES)))
    assert has_trained


# ---- what is going on ----


@pytest.mark.parametrize(
    ("phase", "text"),
    [
        (PhaseProgress("starting"), "starting"),
        (PhaseProgress("playing", 400, 1_000), "playing 40 %"),
        (PhaseProgress("learning"), "learning"),
        (PhaseProgress("learning", 2_000, 1_000), "learning 100 %"),
        (PhaseProgress("evaluating", 1_200, 4_000), "evaluating 1,200 of up to 4,000 games"),
        (PhaseProgress("waiting"), "waiting for an evaluation in the background"),
        (PhaseProgress("paused"), "paused"),
    ],
)
@pytest.mark.parametrize("size", [(80, 23), (140, 40), (40, 10)])
def test_the_phase_has_a_line(
    state: RunState, phase: PhaseProgress, text: str, size: tuple[int, int]
) -> None:
    state.enter(phase)
    line = render(state, *size)[2].strip()
    assert line.startswith(text[:30])


def test_the_time_of_a_phase_counts_from_its_begin(tmp_path: Path) -> None:
    clock = Clock()
    state = RunState(clock=clock)
    state.start(fake_start(tmp_path, fake_config(), 0, UPDATES))
    for done in (0, 50, 100):
        state.enter(PhaseProgress("playing", done, 100))
        clock.now += 20.0
    assert state.phase_seconds == 60.0
    state.enter(PhaseProgress("learning"))
    assert state.phase_seconds == 0.0


def test_a_run_that_will_end_says_so(tmp_path: Path) -> None:
    display = PlainDisplay(clock=Clock(), has_timer=False)
    EventBus([display]).emit(fake_start(tmp_path, fake_config(), 0, UPDATES))
    EventBus([display]).emit(StopRequested())
    assert "ends after this update" in render(display.state, 80, 23)[2]


def test_no_time_is_left_to_promise_after_the_last_update(tmp_path: Path) -> None:
    state = state_after(tmp_path, UPDATES)
    state.enter(PhaseProgress("evaluating", 120, 400))
    lines = render(state, 80, 23)
    assert "100 %" in lines[1]
    assert "left" not in lines[1]


# ---- the terminal ----


def test_the_live_display_takes_the_terminal_and_gives_it_back(tmp_path: Path) -> None:
    console = terminal()
    clock = Clock()
    with configure_logging(tmp_path, console):
        display = LiveDisplay(console, clock=clock, has_timer=False)
        for event in fake_events(tmp_path, updates=UPDATES, last=10):
            clock.now += 0.3
            EventBus([display]).emit(event)
            display.tick()
            if isinstance(event, TrainingStart):
                logging.getLogger("keisei.test").warning("the disk is nearly full")
    text = written(console)
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # cursor hidden, shown
    shown_last = Text.from_ansi(text.rpartition("\x1b[?25h")[2]).plain
    assert "warning: the disk is nearly full" in shown_last
    log = (tmp_path / "run.log").read_text("utf-8")
    assert log.count("the disk is nearly full") == 1
    assert "ppo: epochs=1, learn_share=1.0, minibatch_size=2048" in log
    assert "parameters=213504" in log
    assert "update 10 saved" in log
    assert "training ended: finished; 163,840 plies" in log


def test_messages_below_the_picture_leave_out_its_own_lines(tmp_path: Path) -> None:
    console, clock = terminal(), Clock()
    with configure_logging(tmp_path, console):
        display = LiveDisplay(console, clock=clock, has_timer=False)
        display.on_training_start(fake_start(tmp_path, fake_config(), 0, UPDATES))
        clock.now += 60.0
        display.on_step_end(fake_step(1, UPDATES))
        display.close()
    messages = [record.getMessage() for record in display.state.messages]
    assert messages == [f"started in {tmp_path}"]
    assert "plies/s" in (tmp_path / "run.log").read_text("utf-8")


def test_a_display_that_cannot_draw_continues_with_plain_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Group:
        raise ZeroDivisionError("a bug in the picture")

    console, clock = terminal(), Clock()
    with configure_logging(tmp_path, console):
        bus = EventBus([LiveDisplay(console, clock=clock)])
        for event in fake_events(tmp_path, updates=UPDATES, last=10):
            if isinstance(event, StepEnd) and event.progress.update == 5:
                monkeypatch.setattr(display_module, "render_run", broken)
                time.sleep(0.6)  # the timer draws
            clock.now += 11.0
            bus.emit(event)
    assert (tmp_path / "run.log").read_text("utf-8").count("ZeroDivisionError: a bug") == 1
    plain = Text.from_ansi(written(console).rpartition("\x1b[?25h")[2]).plain
    assert "update 9, 15 % of 983,040 plies" in plain
    assert "training ended" in plain


def test_legacy_windows_consoles_get_plain_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Glyphs] = []

    def look(state: RunState, width: int, height: int, glyphs: Glyphs) -> Group:
        seen.append(glyphs)
        return Group()

    monkeypatch.setattr(display_module, "render_run", look)
    old = io.TextIOWrapper(io.BytesIO(), encoding="cp437")
    for console in (
        terminal(),
        Console(file=io.StringIO(), force_terminal=True, legacy_windows=True),
        Console(file=old, force_terminal=True, legacy_windows=False),
    ):
        display = LiveDisplay(console)
        display._draw()
    assert seen == [UNICODE, ASCII, ASCII]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_restores_the_terminal(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.training.fake_run", str(tmp_path)],
        cwd=Path(__file__).parents[2], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
    )  # fmt: skip
    os.close(theirs)
    output = b""
    for part in _parts(ours):
        output += part
        if b"update " in output:
            process.send_signal(signal.SIGINT)
            break
    for part in _parts(ours):
        output += part
    process.wait(30.0)
    os.close(ours)
    assert b"\x1b[?25l" in output
    assert b"\x1b[?25h" in output.rpartition(b"\x1b[?25l")[2]


def _parts(terminal: int) -> Iterator[bytes]:
    """What comes out of a pseudo-terminal, until its other end is closed."""
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # the end, on Linux
            return
        if not part:
            return
        yield part


# ---- without a terminal ----


def test_plain_lines_come_every_few_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock()
    display = PlainDisplay(interval=10.0, clock=clock, has_timer=False)
    for event in fake_events(tmp_path, updates=UPDATES, last=20):
        EventBus([display]).emit(event)
        clock.now += 4.0 if isinstance(event, StepEnd) else 0.0
    messages = [record.getMessage() for record in caplog.records]
    lines = [message for message in messages if re.match(r"update \d+, \d+ %", message)]
    assert [line.split(",")[0] for line in lines] == [
        f"update {n}" for n in (1, 4, 7, 10, 13, 16, 19)
    ]
    for part in (
        "32 % of 983,040 plies",
        "plies/s",
        "left",
        "2,470 games (B/D/W",
        "KL 0.0",
        "clip 1",
        "EV 0.",
        "grad 0.",
        "lr 0.000473",
        "batch 512",
        "entropy 2.8",
    ):
        assert part in lines[-1]
    assert any("score against random" in message for message in messages)


def test_a_long_phase_has_plain_lines_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock()
    display = PlainDisplay(clock=clock, has_timer=False)
    display.on_training_start(fake_start(tmp_path, fake_config(), 0, UPDATES))
    for games in range(100):
        display.on_phase(PhaseProgress("evaluating", games, 400))
        clock.now += 1.0
        display.tick()
    messages = [record.getMessage() for record in caplog.records]
    assert [message for message in messages if message.startswith("evaluating")] == [
        "evaluating 29 of up to 400 games, for 0:30",
        "evaluating 59 of up to 400 games, for 1:00",
        "evaluating 89 of up to 400 games, for 1:30",
    ]


def test_the_settings_choose_the_display() -> None:
    kinds = {
        (wanted, is_terminal): type(
            make_display(
                fake_config(display=wanted),
                terminal() if is_terminal else Console(file=io.StringIO()),
            )
        )
        for wanted in ("auto", "live", "plain", "off")
        for is_terminal in (False, True)
    }
    live = {("auto", True), ("live", True), ("live", False)}
    assert {choice for choice, kind in kinds.items() if kind is LiveDisplay} == live
    assert console_level(fake_config(display="off")) == logging.WARNING
    assert console_level(fake_config(display="auto")) == logging.INFO


def test_a_rating_beyond_the_scale_is_a_bound(state: RunState) -> None:
    beyond = replace(state, ratings=[EloEstimate(4400.0, 4100.0, 4700.0, "above")])
    text = "\n".join(render(beyond, 80, 23))
    assert "Elo            above the scale: 4100 or more" in text
    assert "4400" not in text
