"""The parts of the live display: from a `RunState` to text that rich can draw.

Each part is a list of lines, none wider than requested, so that the whole fits the terminal.
"""

import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from keisei import metric_names as names
from keisei.display.logs import clock_time
from keisei.display.run_state import RunState
from keisei.formats import (
    count,
    duration,
    network_name,
    percent,
    short_count,
    small,
)
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.render.text import board_rich

LABEL_WIDTH: Final = 14
VALUE_WIDTH: Final = 9
MIN_BAR_WIDTH: Final = 6
WIDE: Final = 100
"""Minimum width of the terminal for details."""

_TIME_LABELS: Final = ("env", "inference", "learning", "waiting", "other")
_TIME_STYLES: Final = ("green", "cyan", "magenta", "yellow", "bright_black")
_OUTCOME_STYLES: Final = ("bold", "yellow", "cyan")
"""Colours of Black's wins, draws and White's wins, as those of the pieces on the board."""


class Glyphs(NamedTuple):
    """Characters that the display is drawn with."""

    levels: str
    """Levels of a sparkline, from low to high."""

    shades: str
    """Fillings of the parts of a bar, distinct even without colours."""

    plus_minus: str
    lettering: Lettering
    """Style of the pieces on the board."""


UNICODE: Final = Glyphs("▁▂▃▄▅▆▇█", "█▓▒╱░", "±", "kanji")
ASCII: Final = Glyphs("_.-=+*#", "#=-/.", "+-", "letters")
"""Glyphs for consoles with other encodings, such as the old ones of Windows."""


def fit(line: Text, width: int, glyphs: Glyphs) -> Text:
    """Truncate a line to `width` columns, and return it."""
    line.no_wrap = True
    line.truncate(width, overflow="ellipsis" if glyphs is UNICODE else "crop")
    return line


def displayable(text: str, glyphs: Glyphs) -> str:
    """Return text from outside the display in characters that the console can show."""
    return text if glyphs is UNICODE else text.encode("ascii", "replace").decode()


def sparkline(values: Sequence[float], glyphs: Glyphs, *, low: float, high: float) -> str:
    """Return values as a row of bars between `low` and `high`.

    >>> sparkline([0.0, 0.5, 1.0], UNICODE, low=0.0, high=1.0)
    '▁▅█'
    """
    top = len(glyphs.levels) - 1
    scale = top / (high - low) if high > low else 0.0
    heights = (round((value - low) * scale) for value in values)
    return "".join(glyphs.levels[min(top, max(0, height))] for height in heights)


def stacked_bar(shares: Sequence[float], styles: Sequence[str], width: int, glyphs: Glyphs) -> Text:
    """Return `shares` of a whole as a bar of `width` characters."""
    ends = [0, *(round(width * sum(shares[: end + 1])) for end in range(len(shares)))]
    bar = Text(no_wrap=True)
    for (begin, end), style, shade in zip(pairwise(ends), styles, glyphs.shades, strict=False):
        bar.append(shade * (end - begin), style)
    return bar


class Readout(NamedTuple):
    """A labelled value, with its trend where that is worth seeing."""

    label: str
    value: str
    trend: Sequence[float] = ()
    style: str = ""


def labelled(label: str) -> Text:
    """Return the beginning of a line: a label of fixed width."""
    return Text().append(f"{label:<{LABEL_WIDTH}.{LABEL_WIDTH}} ", "dim")


def header(state: RunState, width: int, glyphs: Glyphs) -> list[RenderableType]:
    """Return the three lines at the top: name and network, progress and time, the phase."""
    progress = state.progress
    title = Text.assemble(
        ("Keisei  ", "bold red"),
        (displayable(state.run_directory.name, glyphs), "bold"),
        ("  " + displayable(", ".join(_about(state)), glyphs), "dim"),
    )
    update = f"  update {count(progress.update)}, {_saved(state)}"
    title = fit(title, max(0, width - len(update)), glyphs)
    title.pad_right(max(0, width - len(update) - title.cell_len))
    title.append(update, "dim")
    plies = f"{count(progress.timestep)} / {count(progress.total_timesteps)} plies"
    times = duration(state.seconds)
    if state.fraction_done < 1.0:  # what comes after the last update takes an unknown time
        times += f", {duration(state.seconds_left)} left"
    numbers = f" {percent(state.fraction_done)}  {plies}  {times}"
    if len(numbers) > width * 3 // 4:
        numbers = f" {percent(state.fraction_done)}  {times}"
    room = max(1, width - len(numbers))
    line = Table.grid()
    line.add_column(width=room)
    line.add_column(no_wrap=True, overflow="crop")
    bar = ProgressBar(total=1.0, completed=state.fraction_done, width=room, complete_style="red")
    line.add_row(bar, Text(numbers))
    return [fit(title, width, glyphs), line, fit(phase_line(state), width, glyphs)]


def phase_line(state: RunState) -> Text:
    """Return the phase of the run, and how long it has taken so far."""
    line = Text().append(f"{state.phase}", "cyan")
    line.append(f"  {duration(state.phase_seconds)}", "dim")
    if state.is_stopping:
        line.append("  ends after this update; Ctrl-C again stops at once", "yellow")
    return line


def _saved(state: RunState) -> str:
    if state.checkpoint is None:
        return "not saved yet"
    return f"saved {duration(state.seconds - state.checkpoint.seconds)} ago"


def _about(state: RunState) -> list[str]:
    about = [network_name(state.config.model.model_dump())]
    if parameters := state.facts.get("parameters"):
        about.append(f"{short_count(float(parameters))} parameters")
    about.append(state.config.env.input_features)
    about.extend(str(state.facts[name]) for name in ("device", "precision") if name in state.facts)
    return about


def game_readouts(state: RunState) -> list[Readout]:
    """Return speed, games and their outcomes."""
    speed = f"{count(state.metric(names.SPS))}, mean {count(state.average_sps)}"
    games = f"{count(state.progress.games)}, {count(state.metric(names.MEAN_PLIES))} plies"
    outcomes = " / ".join(percent(state.metric(name)) for name in names.OUTCOMES)
    limit = percent(state.metric(names.PLY_LIMIT_RATE))
    forced = percent(state.metric(names.FORCED_MOVES), 1)
    readouts = [
        Readout("plies/s", speed),
        Readout("games", games),
        Readout("B / draw / W", outcomes),
        Readout("at ply limit", f"{limit}, forced {forced}"),
    ]
    if state.metrics.get(names.POOL_SHARE, 0.0) > 0.0:
        share, score = state.metric(names.POOL_SHARE), state.metric(names.POOL_SCORE)
        readouts.append(Readout("vs earlier", f"{percent(share)}, score {percent(score)}"))
    return readouts


def learning_readouts(state: RunState) -> list[Readout]:
    """Return losses and other measures of healthy learning."""

    def readout(label: str, name: str) -> Readout:
        return Readout(label, small(state.metric(name)), state.trend(name))

    readouts = [
        readout("policy loss", names.POLICY_LOSS),
        readout("value loss", names.VALUE_LOSS),
        readout("entropy", names.ENTROPY),
        readout("KL divergence", names.APPROX_KL),
        readout("clipped", names.CLIP_FRACTION),
        readout("explained var.", names.EXPLAINED_VARIANCE),
        readout("gradient norm", names.GRAD_NORM),
    ]
    if skipped := state.metrics.get(names.SKIPPED_MINIBATCHES, 0.0):
        readouts.insert(0, Readout("not finite", f"{count(skipped)} minibatches", style="bold red"))
    if names.EMA_KL in state.metrics:
        readouts.append(Readout("KL to average", small(state.metric(names.EMA_KL))))
    return readouts


def schedule_readouts(state: RunState) -> list[Readout]:
    """Return scheduled settings and memory."""
    epochs = small(state.metric(names.EPOCHS_DONE))
    return [
        Readout("learning rate", small(state.metric(names.LEARNING_RATE))),
        Readout("minibatch", f"{count(state.metric(names.MINIBATCH_SIZE))}, epochs {epochs}"),
        Readout("entropy weight", small(state.metric(names.ENTROPY_WEIGHT))),
        Readout("memory", f"{count(state.metric(names.MEMORY))} MB"),
    ]


def readout_lines(readouts: Sequence[Readout], width: int, glyphs: Glyphs) -> list[Text]:
    """Return one line per readout, with a sparkline of its trend if there is room."""
    room = width - LABEL_WIDTH - VALUE_WIDTH - 2
    lines = []
    for label, value, trend, style in readouts:
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
    """Return the games of the last rollout as a bar: Black's wins, draws, White's wins."""
    shares = names.shares(state.metrics, names.OUTCOMES)
    return stacked_bar(shares, _OUTCOME_STYLES, width, glyphs)


def time_line(state: RunState, width: int, glyphs: Glyphs) -> Text:
    """Return the shares of the last step's time in one line."""
    shares = names.shares(state.metrics, names.TIMES)
    legend = Text()
    for label, share, style, shade in zip(
        _TIME_LABELS, shares, _TIME_STYLES, glyphs.shades, strict=True
    ):
        if share > 0.0:
            legend.append(f" {shade} ", style).append(f"{label} {100 * share:.0f}", "dim")
    line = labelled("time in %")
    room = width - line.cell_len - legend.cell_len
    if room >= MIN_BAR_WIDTH:
        line.append_text(stacked_bar(shares, _TIME_STYLES, room, glyphs))
    return fit(line.append_text(legend), width, glyphs)


def time_lines(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the shares of the last step's time as a bar, with a line for each below it."""
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


def worker_lines(state: RunState, width: int, limit: int, glyphs: Glyphs) -> list[Text]:
    """Return a line for each worker, or one for all of them if they are more than `limit`."""
    figures = [
        [state.metric(names.worker_metric(number, figure)) for figure in names.WORKER_FIGURES]
        for number in names.worker_numbers(state.metrics)
    ]
    labels = [f"worker {number}" for number in names.worker_numbers(state.metrics)]
    if len(figures) > limit:
        rates, waits, counts, versions, sizes = zip(*figures, strict=True)
        share = sum(waits) / len(waits)
        labels = [f"{len(figures)} workers"]
        figures = [[sum(rates), share, sum(counts), min(versions), sum(sizes)]]
    lines = []
    for label, (rate, waiting, games, version, memory) in zip(labels, figures, strict=True):
        line = labelled(label).append(f"{count(rate):>6} plies/s")
        line.append(f"  {count(games)} games, waiting {percent(waiting)}", "dim")
        line.append(f", weights {version:.0f}, {count(memory)} MB", "dim")
        lines.append(fit(line, width, glyphs))
    return lines


def strength_lines(state: RunState, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the rating, then the score against each opponent, with those of all evaluations."""
    lines = []
    if state.ratings:
        rating = state.ratings[-1]
        line = labelled("Elo").append(str(rating), "bold")
        room = max(1, width - line.cell_len - 1)
        ratings = [found.elo for found in state.ratings[-room:]]
        trend = sparkline(ratings, glyphs, low=min(ratings), high=max(ratings))
        line.append(f" {trend}", "green")
        lines.append(fit(line, width, glyphs))
    for opponent, results in state.scores.items():
        last = results[-1]
        line = labelled("vs " + displayable(opponent, glyphs))
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
    """Return the last `number` log messages, one line each."""
    lines = []
    for record in list(state.messages)[-number:] if number > 0 else []:
        style = "yellow" if record.levelno >= logging.WARNING else ""
        style = "bold red" if record.levelno >= logging.ERROR else style
        line = Text().append(f"{clock_time(record)} ", "dim")
        message = record.getMessage().partition("\n")[0]
        line.append(displayable(message, glyphs), style)
        lines.append(fit(line, width, glyphs))
    return lines


def board(state: RunState, glyphs: Glyphs) -> Text:
    """Return the board of a game in progress."""
    if state.board is None:
        return Text()
    return board_rich(state.board.diagram, style=glyphs.lettering, last_move=state.board.last_move)
