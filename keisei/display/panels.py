"""The parts of the live display: from a `RunState` to text that rich can draw.

Every part is a list of lines, none wider than asked for, so that the whole fits the terminal.
"""

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from keisei import metric_names as names
from keisei.display.logs import clock_time
from keisei.display.run_state import RunState
from keisei.display.sparklines import Glyphs, fit, foreign, sparkline, stacked_bar
from keisei.formats import (
    count,
    duration,
    percent,
    short_count,
    small,
)
from keisei.shogi.render.text import board_rich

LABEL_WIDTH: Final = 14
VALUE_WIDTH: Final = 9
WIDE: Final = 100
"""Columns from which on there is room for details."""

_TIME_LABELS: Final = ("env", "inference", "learning", "waiting", "other")
_TIME_STYLES: Final = ("green", "cyan", "magenta", "yellow", "bright_black")
_OUTCOMES: Final = (names.BLACK_WINS, names.DRAWS, names.WHITE_WINS)
_OUTCOME_STYLES: Final = ("bold", "yellow", "cyan")
"""The colours that Black's and White's pieces have on the board."""


class Figure(NamedTuple):
    """A number with its name, and its past where that is worth seeing."""

    label: str
    value: str
    trend: Sequence[float] = ()
    style: str = ""


def labelled(label: str) -> Text:
    """The beginning of a line: a label, as wide as all the others."""
    return Text().append(f"{label:<{LABEL_WIDTH}.{LABEL_WIDTH}} ", "dim")


def header(state: RunState, width: int, glyphs: Glyphs) -> list[RenderableType]:
    """Whose run it is, how far it has come, when it will be done: two lines."""
    progress = state.progress
    title = Text.assemble(
        ("Keisei  ", "bold red"),
        (foreign(state.run_directory.name, glyphs), "bold"),
        ("  " + foreign(", ".join(_about(state)), glyphs), "dim"),
    )
    update = f"  update {count(progress.update)}, {_saved(state)}"
    title = fit(title, max(0, width - len(update)), glyphs)
    title.pad_right(max(0, width - len(update) - title.cell_len))
    title.append(update, "dim")
    plies = f"{count(progress.timestep)} / {count(progress.total_timesteps)} plies"
    times = f"{duration(state.seconds)}, {duration(state.seconds_left)} left"
    numbers = f" {percent(state.fraction)}  {plies}  {times}"
    if len(numbers) > width * 3 // 4:
        numbers = f" {percent(state.fraction)}  {times}"
    room = max(1, width - len(numbers))
    line = Table.grid()
    line.add_column(width=room)
    line.add_column(no_wrap=True, overflow="crop")
    bar = ProgressBar(total=1.0, completed=state.fraction, width=room, complete_style="red")
    line.add_row(bar, Text(numbers))
    return [fit(title, width, glyphs), line]


def _saved(state: RunState) -> str:
    if state.checkpoint is None:
        return "not saved yet"
    return f"saved {duration(state.seconds - state.checkpoint.seconds)} ago"


def _about(state: RunState) -> list[str]:
    model = state.config.model
    about = [f"{model.type} {model.tower_depth}x{model.tower_width}"]
    if parameters := state.facts.get("parameters"):
        about.append(f"{short_count(float(parameters))} parameters")
    about.append(state.config.env.input_features)
    about.extend(str(state.facts[name]) for name in ("device", "precision") if name in state.facts)
    return about


def game_figures(state: RunState) -> list[Figure]:
    """Speed, games and how they end."""
    speed = f"{count(state.metric(names.SPS))}, mean {count(state.average_sps)}"
    games = f"{count(state.progress.games)}, {count(state.metric(names.MEAN_PLIES))} plies"
    outcomes = " / ".join(percent(state.metric(name)) for name in _OUTCOMES)
    limit = percent(state.metric(names.PLY_LIMIT_RATE))
    forced = percent(state.metric(names.FORCED_MOVES), 1)
    figures = [
        Figure("plies/s", speed),
        Figure("games", games),
        Figure("B / draw / W", outcomes),
        Figure("at ply limit", f"{limit}, forced {forced}"),
    ]
    if state.metrics.get(names.POOL_SHARE, 0.0) > 0.0:
        share, score = state.metric(names.POOL_SHARE), state.metric(names.POOL_SCORE)
        figures.append(Figure("earlier selves", f"{percent(share)}, score {percent(score)}"))
    return figures


def learning_figures(state: RunState) -> list[Figure]:
    """Losses and what else tells whether learning is healthy."""

    def figure(label: str, name: str) -> Figure:
        return Figure(label, small(state.metric(name)), state.trend(name))

    figures = [
        figure("policy loss", names.POLICY_LOSS),
        figure("value loss", names.VALUE_LOSS),
        figure("entropy", names.ENTROPY),
        figure("KL divergence", names.APPROX_KL),
        figure("clipped", names.CLIP_FRACTION),
        figure("explained var.", names.EXPLAINED_VARIANCE),
        figure("gradient norm", names.GRAD_NORM),
    ]
    if skipped := state.metrics.get(names.SKIPPED_MINIBATCHES, 0.0):
        figures.insert(0, Figure("not finite", f"{count(skipped)} minibatches", style="bold red"))
    if names.EMA_KL in state.metrics:
        figures.append(Figure("KL to average", small(state.metric(names.EMA_KL))))
    return figures


def schedule_figures(state: RunState) -> list[Figure]:
    """What changes by schedule, and the memory that is used."""
    epochs = small(state.metric(names.EPOCHS_DONE))
    return [
        Figure("learning rate", small(state.metric(names.LEARNING_RATE))),
        Figure("minibatch", f"{count(state.metric(names.MINIBATCH_SIZE))}, epochs {epochs}"),
        Figure("entropy weight", small(state.metric(names.ENTROPY_WEIGHT))),
        Figure("memory", f"{count(state.metric(names.MEMORY))} MB"),
    ]


def figure_lines(figures: Sequence[Figure], width: int, glyphs: Glyphs) -> list[Text]:
    """Figures one below the other, with a sparkline where there is a past."""
    room = width - LABEL_WIDTH - VALUE_WIDTH - 2
    lines = []
    for label, value, trend, style in figures:
        line = labelled(label)
        line.append(value, style)
        if trend and room > 3:
            shown = list(trend)[-room:]
            bars = sparkline(shown, glyphs, low=min(shown), high=max(shown))
            line.pad_right(LABEL_WIDTH + VALUE_WIDTH + 2 - line.cell_len)
            line.append(bars, "blue")
        lines.append(fit(line, width, glyphs))
    return lines


def outcome_line(state: RunState, width: int, glyphs: Glyphs) -> Text:
    """The games of the last rollout as a bar: Black's wins, draws, White's wins."""
    shares = names.shares(state.metrics, _OUTCOMES)
    return stacked_bar(shares, _OUTCOME_STYLES, width, glyphs)


def time_line(state: RunState, width: int, glyphs: Glyphs) -> Text:
    """Where the time of the last step went, in a line."""
    shares = names.shares(state.metrics, names.TIMES)
    legend = Text()
    for label, share, style, shade in zip(
        _TIME_LABELS, shares, _TIME_STYLES, glyphs.shades, strict=True
    ):
        if share > 0.0:
            legend.append(f" {shade} ", style).append(f"{label} {100 * share:.0f}", "dim")
    line = labelled("time in %")
    room = width - line.cell_len - legend.cell_len
    if room > 5:
        line.append_text(stacked_bar(shares, _TIME_STYLES, room, glyphs))
    return fit(line.append_text(legend), width, glyphs)


def time_lines(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """The same in a column: a bar, and each part below it."""
    shares = names.shares(state.metrics, names.TIMES)
    lines = [stacked_bar(shares, _TIME_STYLES, width, glyphs)]
    for label, name, share, style, shade in zip(
        _TIME_LABELS, names.TIMES, shares, _TIME_STYLES, glyphs.shades, strict=True
    ):
        if share > 0.0:
            line = Text().append(f"{shade} ", style).append(f"{label:<{LABEL_WIDTH - 2}} ", "dim")
            line.append(f"{percent(share):>5}, {small(state.metric(name))} s")
            lines.append(fit(line, width, glyphs))
    return lines


def worker_lines(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """How each worker is doing, by its own word; no line without workers."""
    lines = []
    for number in names.workers(state.metrics):
        rate, waiting, games, version, memory = (
            state.metric(names.worker_metric(number, figure)) for figure in names.WORKER_FIGURES
        )
        line = labelled(f"worker {number}").append(f"{count(rate):>6} plies/s")
        line.append(f"  {count(games)} games, waiting {percent(waiting)}", "dim")
        line.append(f", weights {version:.0f}, {count(memory)} MB", "dim")
        lines.append(fit(line, width, glyphs))
    return lines


def strength_lines(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """The score against each opponent, from the first evaluation to the last."""
    lines = []
    for opponent, results in state.scores.items():
        last = results[-1]
        line = labelled("vs " + foreign(opponent, glyphs))
        line.append(f"{percent(last.score):>5}", "bold")
        line.append(f" {glyphs.plus_minus}{percent(last.margin):<5}")
        if width >= WIDE:
            by_color = (
                f"as Black {percent(last.as_black):>5}, as White {percent(last.as_white):>5} "
            )
            line.append(by_color, "dim")
        room = max(1, width - line.cell_len - 1)
        scores = [result.score for result in results[-room:]]
        line.append(" " + sparkline(scores, glyphs, low=0.0, high=1.0), "green")
        lines.append(fit(line, width, glyphs))
    return lines


def message_lines(state: RunState, width: int, number: int, glyphs: Glyphs) -> list[Text]:
    """The last log messages."""
    lines = []
    for record in list(state.messages)[-number:] if number > 0 else []:
        style = "yellow" if record.levelno >= logging.WARNING else ""
        style = "bold red" if record.levelno >= logging.ERROR else style
        line = Text().append(f"{clock_time(record)} ", "dim")
        message = record.getMessage().partition("\n")[0]
        line.append(foreign(message, glyphs), style)
        lines.append(fit(line, width, glyphs))
    return lines


def board(state: RunState, glyphs: Glyphs) -> Text:
    """The game of the moment."""
    if state.board is None:
        return Text()
    return board_rich(state.board.diagram, style=glyphs.lettering, last_move=state.board.last_move)
