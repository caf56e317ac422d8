"""What the user sees of a run: a live picture on a terminal, tidy lines elsewhere.

Both are callbacks; a display that fails cannot stop the training. The live one draws only when an
event comes, at most four times a second, and never takes more than 1 % of the time.
"""

import atexit
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from rich.console import Console
from rich.live import Live

from keisei import metric_names as names
from keisei.config_schema import AppConfig
from keisei.display.layout import picture
from keisei.display.logs import diverted, show_again
from keisei.display.run_state import RunState
from keisei.display.sparklines import ASCII, UNICODE
from keisei.formats import (
    count,
    duration,
    percent,
    small,
)
from keisei.training.callbacks import (
    Callback,
    CheckpointSaved,
    EpochEnd,
    EvaluationEnd,
    GameEnd,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)

logger = logging.getLogger(__name__)

LINE_INTERVAL: Final = 10.0
"""Seconds between the lines that tell of progress."""

FRAME_INTERVAL: Final = 0.25
"""Seconds that the live picture stands at least."""

MOST_OF_THE_TIME: Final = 0.01
"""The share of the time that drawing may take."""

MOST_WARNINGS: Final = 20
"""Warnings that are repeated on the terminal at the end; ``run.log`` has them all."""

_NOT_IN_PICTURE: Final = {"is_not_in_picture": True}
"""Marks the log records that the live picture leaves out: it shows what they say in its own way."""


class PlainDisplay(Callback):
    """Logs what happens: the settings at the start, and a line every few seconds."""

    def __init__(
        self, *, interval: float = LINE_INTERVAL, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.state = RunState(clock=clock)
        self._interval = interval
        self._clock = clock
        self._next_line = 0.0

    def on_training_start(self, event: TrainingStart) -> None:
        """Log every setting, and what is worth knowing besides."""
        self.state.start(event)
        begun = event.progress.update > 0
        logger.info("%s in %s", "resumed" if begun else "started", event.run_directory)
        for section, settings in event.config.model_dump().items():
            logger.info("%s: %s", section, _pairs(settings), extra=_NOT_IN_PICTURE)
        logger.info("facts: %s", _pairs(dict(event.facts)), extra=_NOT_IN_PICTURE)
        self._next_line = self._clock()

    def on_step_end(self, event: StepEnd) -> None:
        """Log a line if it is time."""
        self.state.step(event)
        if self._clock() >= self._next_line:
            self._next_line = self._clock() + self._interval
            logger.info("%s", progress_line(self.state), extra=_NOT_IN_PICTURE)

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Log the scores."""
        self.state.evaluate(event)
        scores = ", ".join(
            f"{opponent} {percent(results[-1].score, 1)} +- {percent(results[-1].margin, 1)}"
            for opponent, results in self.state.scores.items()
            if opponent in event.scores
        )
        logger.info("update %d, score against %s", event.progress.update, scores or "nobody")

    def on_checkpoint(self, event: CheckpointSaved) -> None:
        """Log where the run was saved."""
        self.state.save(event)
        logger.info("update %d saved: %s", event.progress.update, event.path.name)

    def on_training_end(self, event: TrainingEnd) -> None:
        """Log why the run ends and what was done."""
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


def _pairs(settings: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "none"


def progress_line(state: RunState) -> str:
    """All that matters of a step, in a line."""
    progress, metric = state.progress, state.metric
    wins = "/".join(
        percent(metric(name)) for name in (names.BLACK_WINS, names.DRAWS, names.WHITE_WINS)
    )
    parts = [
        f"update {progress.update}",
        f"{percent(state.fraction)} of {count(progress.total_timesteps)} plies",
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
    """A picture of the run that is redrawn in place. The plain lines go to ``run.log`` only."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock=clock)
        self._console = console
        # Legacy Windows consoles and other encodings than UTF-8 have no block characters.
        is_plain = console.legacy_windows or console.options.ascii_only
        self._glyphs = ASCII if is_plain else UNICODE
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._owned = ExitStack()
        """What has to be undone when the terminal is given back."""
        self._next_frame = math.inf
        self._warnings: deque[logging.LogRecord] = deque(maxlen=MOST_WARNINGS)

    def on_training_start(self, event: TrainingStart) -> None:
        """Take over the terminal."""
        atexit.register(self.close)  # however the program ends, the cursor comes back
        self._live.start()
        self._owned.callback(self._live.stop)
        self._owned.enter_context(diverted(self._take_message))
        super().on_training_start(event)
        self._draw()

    def on_game_end(self, event: GameEnd) -> None:
        """A chance to let the clock tick while a rollout goes on."""
        self._draw_if_due()

    def on_epoch_end(self, event: EpochEnd) -> None:
        """A chance to let the clock tick while the network learns."""
        self._draw_if_due()

    def on_step_end(self, event: StepEnd) -> None:
        """Show the step if it is time."""
        super().on_step_end(event)
        self._draw_if_due()

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Show the scores if it is time."""
        super().on_evaluation(event)
        self._draw_if_due()

    def on_checkpoint(self, event: CheckpointSaved) -> None:
        """Show that the run is safe if it is time."""
        super().on_checkpoint(event)
        self._draw_if_due()

    def on_training_end(self, event: TrainingEnd) -> None:
        """Draw a last time and give the terminal back."""
        try:
            super().on_training_end(event)
            if math.isfinite(self._next_frame):
                self._draw()
        finally:
            self.close()

    def close(self) -> None:
        """Give the terminal back, and repeat the warnings that scrolled out of the picture."""
        self._next_frame = math.inf
        self._owned.close()
        atexit.unregister(self.close)
        show_again(self._warnings)
        self._warnings.clear()

    def _take_message(self, record: logging.LogRecord) -> None:
        if not _NOT_IN_PICTURE.keys() <= vars(record).keys():
            self.state.messages.append(record)
            if record.levelno >= logging.WARNING:
                self._warnings.append(record)

    def _draw_if_due(self) -> None:
        if self._clock() >= self._next_frame:
            self._draw()

    def _draw(self) -> None:
        begun = self._clock()
        try:
            width, height = self._console.size
            # The last line stays free: a picture as high as the terminal would make it scroll.
            self._live.update(picture(self.state, width, height - 1, self._glyphs), refresh=True)
        except Exception:
            self.close()  # it would fail at every event: from here on there are plain lines
            raise
        done = self._clock()
        self._next_frame = done + max(FRAME_INTERVAL, (done - begun) / MOST_OF_THE_TIME)


def console_level(config: AppConfig) -> int:
    """From which level on messages are for the terminal: with ``off``, only warnings are."""
    return logging.WARNING if config.logging.display == "off" else logging.INFO


def make_display(config: AppConfig, console: Console) -> Callback:
    """The display that the settings ask for; ``auto`` is live on a terminal, else plain lines.

    With ``off`` the lines go to ``run.log`` alone, as `console_level` keeps the terminal quiet.
    """
    wanted = config.logging.display
    if wanted == "live" or (wanted == "auto" and console.is_terminal):
        return LiveDisplay(console)
    return PlainDisplay()
