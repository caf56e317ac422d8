"""The display of a run: redrawn in place on a terminal, plain log lines elsewhere.

Both are callbacks, so a display that fails cannot stop training. A thread redraws the live display
four times a second, or less often if drawing would take more than 1 % of the time; so it shows that
the run is alive, and in which phase, during long updates and evaluations too.
"""

import atexit
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from rich.console import Console
from rich.live import Live

from keisei import metric_names as names
from keisei.callbacks import (
    Callback,
    CheckpointSaved,
    EvaluationEnd,
    PhaseProgress,
    StepEnd,
    StopRequested,
    TrainingEnd,
    TrainingStart,
)
from keisei.config_schema import AppConfig
from keisei.display.logs import diverted, show_again
from keisei.display.panels import ASCII, UNICODE
from keisei.display.run_state import RunState
from keisei.display.screen import render_run
from keisei.formats import (
    count,
    duration,
    percent,
    small,
)

logger = logging.getLogger(__name__)

LINE_INTERVAL: Final = 10.0
"""Seconds between two lines of progress."""

PHASE_INTERVAL: Final = 30.0
"""Seconds without a line after which the plain display logs the phase of the run."""

FRAME_INTERVAL: Final = 0.25
"""Minimum number of seconds between two frames of the live display."""

END_TIMEOUT: Final = 1.0
"""Seconds at the end of a run for a frame that is being drawn."""

MAX_TIME_SHARE: Final = 0.01
"""Maximum share of the time that drawing may take."""

MAX_WARNINGS: Final = 20
"""Maximum number of warnings repeated on the terminal at the end; ``run.log`` has them all."""

_LOG_ONLY: Final = {"is_log_only": True}
"""Marks log records that the live display leaves out, since it shows their content itself."""


class PlainDisplay(Callback):
    """Logs the settings at the start, a line of progress every few seconds, and long phases."""

    def __init__(
        self,
        *,
        interval: float = LINE_INTERVAL,
        clock: Callable[[], float] = time.monotonic,
        has_timer: bool = True,
    ) -> None:
        """Make a display.

        Args:
            interval: seconds between two lines of progress.
            clock: returns the time in seconds.
            has_timer: whether a thread calls `tick`; tests call it themselves.
        """
        self.state = RunState(clock=clock)
        self._interval = interval
        self._clock = clock
        self._next_line = 0.0
        self._last_line = 0.0
        self._lock = threading.RLock()
        """Held while the state changes or a frame is made of it. Not while it is written, which a
        terminal may stop (Ctrl-S), nor while a message is taken, which may happen in any thread
        that logs, and in a signal handler."""

        self._ended = threading.Event()
        self._timer: threading.Thread | None = None
        if has_timer:
            self._timer = threading.Thread(target=self._run_timer, name="display", daemon=True)

    def on_training_start(self, event: TrainingStart) -> None:
        """Log all settings and facts."""
        with self._lock:
            self.state.start(event)
        is_resumed = event.progress.update > 0
        logger.info("%s in %s", "resumed" if is_resumed else "started", event.run_directory)
        for section, settings in event.config.model_dump().items():
            logger.info("%s: %s", section, _pairs(settings), extra=_LOG_ONLY)
        logger.info("facts: %s", _pairs(dict(event.facts)), extra=_LOG_ONLY)
        self._next_line = self._last_line = self._clock()
        if self._timer is not None:
            self._timer.start()

    def on_phase(self, event: PhaseProgress) -> None:
        """Take over the phase; without the lock, since this is called for every ply."""
        self.state.enter(event)

    def on_stop_requested(self, event: StopRequested) -> None:
        """Take over that the run ends soon."""
        self.state.is_stopping = True

    def on_step_end(self, event: StepEnd) -> None:
        """Log a line of progress if it is time."""
        with self._lock:
            self.state.step(event)
        if self._clock() >= self._next_line:
            self._next_line = self._clock() + self._interval
            self._last_line = self._clock()
            logger.info("%s", progress_line(self.state), extra=_LOG_ONLY)

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Log the scores."""
        with self._lock:
            self.state.evaluate(event)
        scores = ", ".join(
            f"{opponent} {percent(results[-1].score, 1)} +- {percent(results[-1].margin, 1)}"
            for opponent, results in self.state.scores.items()
            if opponent in event.scores
        )
        rating = "" if event.placement is None else f"Elo {event.placement}, "
        self._last_line = self._clock()
        logger.info(
            "update %d, %sscore against %s",
            event.progress.update,
            rating,
            scores or "no opponent",
        )

    def on_checkpoint(self, event: CheckpointSaved) -> None:
        """Log the name of the checkpoint."""
        with self._lock:
            self.state.save(event)
        logger.info("update %d saved: %s", event.progress.update, event.path.name)

    def on_training_end(self, event: TrainingEnd) -> None:
        """Log the reason and the totals."""
        self._end_timer()
        with self._lock:
            self.state.end(event)
        progress = event.progress
        logger.info(
            "training ended: %s; %s plies, %s games, %s updates in %s",
            event.reason,
            count(progress.timestep),
            count(progress.games),
            count(progress.update),
            duration(progress.seconds),
        )

    def tick(self) -> None:
        """Log the phase if there was no line for a while."""
        now = self._clock()
        if now - self._last_line >= PHASE_INTERVAL:
            self._last_line = now
            with self._lock:
                phase, seconds = self.state.phase, self.state.phase_seconds
            logger.info("%s, for %s", phase, duration(seconds), extra=_LOG_ONLY)

    def _run_timer(self) -> None:
        while not self._ended.wait(FRAME_INTERVAL):
            try:
                self.tick()
            except Exception:  # as in events: a display that fails cannot stop training
                logger.exception("the display failed")

    def _end_timer(self) -> None:
        self._ended.set()
        timer = self._timer
        if timer is not None and timer.is_alive() and timer is not threading.current_thread():
            timer.join(END_TIMEOUT)  # it waits if the terminal takes nothing


def _pairs(settings: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "none"


def progress_line(state: RunState) -> str:
    """Return the most important metrics of the last step in one line."""
    progress, metric = state.progress, state.metric
    wins = "/".join(
        percent(metric(name)) for name in (names.BLACK_WINS, names.DRAWS, names.WHITE_WINS)
    )
    parts = [
        f"update {progress.update}",
        f"{percent(state.fraction_done)} of {count(progress.total_timesteps)} plies",
        f"{count(metric(names.SPS))} plies/s",
        f"{duration(state.seconds_left)} left",
        f"{count(progress.games)} games (B/D/W {wins}, {count(metric(names.MEAN_PLIES))} plies)",
        f"loss {small(metric(names.POLICY_LOSS))} {small(metric(names.VALUE_LOSS))}",
        f"entropy {small(metric(names.ENTROPY))}",
        f"KL {small(metric(names.APPROX_KL))}",
        f"clip {percent(metric(names.CLIP_FRACTION))}",
        f"EV {small(metric(names.EXPLAINED_VARIANCE))}",
        f"grad {small(metric(names.GRAD_NORM))}",
        f"lr {small(metric(names.LEARNING_RATE))}",
        f"batch {count(metric(names.MINIBATCH_SIZE))}",
    ]
    return ", ".join(parts)


class LiveDisplay(PlainDisplay):
    """Shows the run on a terminal, redrawn in place; the plain lines go to ``run.log`` only."""

    def __init__(
        self,
        console: Console,
        *,
        clock: Callable[[], float] = time.monotonic,
        cost_clock: Callable[[], float] = time.thread_time,
        has_timer: bool = True,
    ) -> None:
        """Make a display.

        Args:
            console: the terminal.
            clock: returns the time in seconds.
            cost_clock: returns the processor time of the drawing thread. Not the time that passes:
                on a busy machine drawing waits, which costs nothing, and would become ever rarer.
            has_timer: whether a thread calls `tick`; tests call it themselves.
        """
        super().__init__(clock=clock, has_timer=has_timer)
        self._console = console
        self._cost_clock = cost_clock
        self._last_cost = 0.0
        """Processor time of the last frame."""

        # Legacy Windows consoles and other encodings than UTF-8 have no block characters.
        is_plain = console.legacy_windows or console.options.ascii_only
        self._glyphs = ASCII if is_plain else UNICODE
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._owned = ExitStack()
        """Undoes the changes to the terminal and to logging."""
        self._next_frame = math.inf
        self._warnings: deque[logging.LogRecord] = deque(maxlen=MAX_WARNINGS)

    def on_training_start(self, event: TrainingStart) -> None:
        """Take over the terminal."""
        atexit.register(self.close)  # restores the cursor however the program ends
        with self._lock:  # the timer that starts here draws after the first frame
            self._live.start()
            self._owned.callback(self._live.stop)
            self._owned.enter_context(diverted(self._take_message))
            super().on_training_start(event)
            self._next_frame = self._clock()
            self._draw()

    def on_training_end(self, event: TrainingEnd) -> None:
        """Draw a last time and restore the terminal."""
        try:
            super().on_training_end(event)
            is_drawing = self._timer is not None and self._timer.is_alive()
            if math.isfinite(self._next_frame) and not is_drawing:
                self._draw()
        finally:
            self.close()

    def tick(self) -> None:
        """Redraw if it is time."""
        super().tick()
        with self._lock:
            is_due = self._clock() >= self._next_frame
        if is_due:
            self._draw()

    def close(self) -> None:
        """Restore the terminal, and repeat the warnings that scrolled out of the display."""
        with self._lock:
            self._next_frame = math.inf
            self._owned.close()
            atexit.unregister(self.close)
            show_again(self._warnings)
            self._warnings.clear()

    def _take_message(self, record: logging.LogRecord) -> None:
        if not _LOG_ONLY.keys() <= vars(record).keys():
            self.state.messages.append(record)
            if record.levelno >= logging.WARNING:
                self._warnings.append(record)

    def _draw(self) -> None:
        started = self._cost_clock()
        try:
            width, height = self._console.size
            with self._lock:
                # The last line stays free: a display as high as the terminal would make it scroll.
                frame = render_run(self.state, width, height - 1, self._glyphs)
            self._live.update(frame, refresh=True)
        except Exception:
            self.close()  # it would fail every time: continue with plain lines
            raise
        # The lower of two: a single frame may be slow because something is imported for it.
        last, self._last_cost = self._last_cost, self._cost_clock() - started
        cost = min(last, self._last_cost)
        with self._lock:
            if math.isfinite(self._next_frame):  # else it was closed meanwhile
                self._next_frame = self._clock() + max(FRAME_INTERVAL, cost / MAX_TIME_SHARE)


def console_level(config: AppConfig) -> int:
    """Return the level from which messages go to the terminal: with ``off``, warnings."""
    return logging.WARNING if config.logging.display == "off" else logging.INFO


def make_display(config: AppConfig, console: Console) -> Callback:
    """Return the display that the settings ask for; ``auto`` is live on a terminal, else plain.

    With ``off`` the lines go to ``run.log`` alone, since `console_level` silences the terminal.
    """
    wanted = config.logging.display
    if wanted == "live" or (wanted == "auto" and console.is_terminal):
        return LiveDisplay(console)
    return PlainDisplay()
