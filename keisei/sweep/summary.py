"""Results of a sweep: the table of trials, the best recipe, the plot of the scores."""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from keisei.config_schema import AppConfig
from keisei.formats import NOTHING, count, percent
from keisei.sweep.space import Sweep, Value
from keisei.sweep.study import BEST, PLOT, TrialRecord
from keisei.system import write_atomically

STATE_STYLES: Final = {"running": "cyan", "complete": "green", "pruned": "yellow", "failed": "red"}

REFRESH_INTERVAL: Final = 1.0
"""Seconds between two versions of the live table."""

_OTHER_LINES: Final = 8
"""Lines of the terminal that are not rows of trials."""

_PLAIN: Final = re.compile(r"(?!none$|null$)[a-z][a-z0-9_+]*")
"""Texts that need no quotes in YAML."""


@dataclass(frozen=True)
class SweepProgress:
    """State of a sweep while it runs."""

    wanted: int
    trials: list[TrialRecord]
    fractions_done: Mapping[int, float]
    """Fraction of each running trial that is over, 0 to 1, by its number."""

    is_ending: bool = False
    """Whether the sweep is stopping: the running trials save their last checkpoint."""


@dataclass(frozen=True)
class SweepSummary:
    """Result of a session of a sweep."""

    directory: Path
    wanted: int
    trials: list[TrialRecord]
    best: TrialRecord | None
    importances: Mapping[str, float]
    is_interrupted: bool

    def as_dict(self) -> dict[str, Any]:
        """Return what ``keisei sweep --json`` prints."""
        return {
            "sweep": str(self.directory),
            "reason": "interrupted" if self.is_interrupted else "finished",
            "wanted": self.wanted,
            "trials": [trial.as_dict() for trial in self.trials],
            "best": self.best.as_dict() if self.best else None,
            "recipe": str(self.directory / BEST) if self.best else None,
            "importances": dict(self.importances),
        }


class SweepDisplay:
    """Shows a sweep while it runs: use it as a context, and call it with each `SweepProgress`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._printed: set[int] = set()
        self._last = -REFRESH_INTERVAL
        self._is_first = True

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: SweepProgress) -> None:
        """Show the present state."""
        if self._live is None:
            self._print_new(progress)
        elif time.monotonic() - self._last >= REFRESH_INTERVAL:
            self._last = time.monotonic()
            max_rows = max(3, self._console.height - _OTHER_LINES)
            table = trial_table(progress.trials, progress.fractions_done, max_rows=max_rows)
            self._live.update(Group(table, Text(_status_line(progress), style="dim")), refresh=True)

    def _print_new(self, progress: SweepProgress) -> None:
        ended = {record.number for record in progress.trials if record.state != "running"}
        if self._is_first:  # trials of earlier sessions are not printed
            self._is_first = False
            self._printed |= ended - set(progress.fractions_done)
        for record in progress.trials:
            if record.number in ended - self._printed:
                self._printed.add(record.number)
                details = record.reason or ", ".join(
                    f"{path}={_value(value)}" for path, value in record.parameters.items()
                )
                score = NOTHING if record.score is None else percent(record.score, 1)
                self._console.print(
                    f"trial {record.number} {record.state}: {score}; {details}",
                    markup=False, highlight=False, soft_wrap=True,
                )  # fmt: skip


def _status_line(progress: SweepProgress) -> str:
    states = [record.state for record in progress.trials]
    finished = states.count("complete") + states.count("pruned")
    hint = "Ctrl-C stops the sweep, the same command resumes it"
    if progress.is_ending:
        hint = "stopping: the trials save their last checkpoint; Ctrl-C again does not wait for it"
    return f"{finished} of {progress.wanted} trials; {hint}"


def trial_table(
    trials: Sequence[TrialRecord],
    fractions_done: Mapping[int, float],
    *,
    max_rows: int | None = None,
) -> Table:
    """Return a table of the last trials with state, score and parameters, the best in bold."""
    complete = [record for record in trials if record.state == "complete"]
    best = max(complete, key=lambda record: record.score or 0.0, default=None)
    paths = list(dict.fromkeys(path for record in trials for path in record.parameters))
    table = Table(title="trials", title_justify="left")
    table.add_column("trial", justify="right")
    table.add_column("state")
    table.add_column("score", justify="right")
    for path in paths:
        table.add_column(Text(path.replace(".", "\n", 1)), justify="right")
    for record in trials[-max_rows:] if max_rows else trials:
        state = Text(record.state, style=STATE_STYLES[record.state])
        if record.number in fractions_done:
            state.append(f" {percent(fractions_done[record.number])}")
        elif record.state == "running":  # left over by an earlier session
            state = Text("interrupted", style="magenta")
        table.add_row(
            str(record.number),
            state,
            NOTHING if record.score is None else percent(record.score, 1),
            *(Text(_value(record.parameters.get(path, NOTHING))) for path in paths),
            style="bold" if record is best else "",
        )
    return table


def _value(value: Value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def write_best(sweep: Sweep, best: TrialRecord, trials: int, directory: Path) -> None:
    """Write the best trial as a recipe for ``keisei train --config``."""
    write_atomically(directory / BEST, best_recipe(sweep, best, trials, directory).encode())


def best_recipe(sweep: Sweep, best: TrialRecord, trials: int, directory: Path) -> str:
    """Return the settings of a trial as YAML, the searched ones marked.

    Contains everything that differs from the defaults, since a recipe cannot refer to another.
    """
    opponents = " and ".join(sweep.objective.against)
    score = percent(best.score if best.score is not None else float("nan"), 1)
    heading = [
        f"# Trial {best.number} of the sweep {directory.name}, the best of {trials}: "
        f"{score} against {opponents} in {count(best.games)} games.",
        "# The score of the best of many is a little too high: part of it is chance.",
        f"# It started from {sweep.base or 'the defaults'}; all that differs from the defaults:",
    ]
    return "\n".join((*heading, *_lines(sweep, best), ""))


def _lines(sweep: Sweep, best: TrialRecord) -> Iterator[str]:
    chosen = sweep.config(best.parameters).model_dump(mode="json")
    usual = AppConfig().model_dump(mode="json")
    for section, fields in chosen.items():
        differing = {
            field: value
            for field, value in fields.items()
            if value != usual[section][field] or f"{section}.{field}" in best.parameters
        }
        if differing:
            yield f"{section}:"
        for field, value in differing.items():
            mark = "  # found" if f"{section}.{field}" in best.parameters else ""
            yield f"  {field}: {_yaml(value)}{mark}"


def _yaml(value: object) -> str:
    """Return a value in the YAML that `keisei.config` parses."""
    match value:
        case None:
            return "none"
        case list():
            return f"[{', '.join(_yaml(item) for item in value)}]"
        case str():
            is_plain = _PLAIN.fullmatch(value) is not None
            return value if is_plain else json.dumps(value, ensure_ascii=False)
        case _:
            return json.dumps(value)


def write_plot(records: Sequence[TrialRecord], against: Sequence[str], directory: Path) -> None:
    """Plot the score of each trial that has ended, and the best so far."""
    # Takes a second to import, which `keisei sweep --check` is spared.
    from matplotlib.ticker import MaxNLocator

    from keisei.plotting import (
        COLORS,
        INK,
        new_figure,
        png,
    )

    figure, (axes,) = new_figure()
    looks = {"complete": ("o", COLORS[0]), "pruned": ("v", COLORS[4]), "failed": ("x", COLORS[1])}
    for state, (marker, color) in looks.items():
        shown = [record for record in records if record.state == state]
        if shown:
            axes.scatter(
                [record.number for record in shown],
                [0.0 if record.score is None else 100.0 * record.score for record in shown],
                marker=marker, s=34, color=color, label=state, zorder=3, clip_on=False,
            )  # fmt: skip
    complete = [record for record in records if record.state == "complete"]
    if complete:
        bests = list(accumulate((100.0 * (record.score or 0.0) for record in complete), max))
        axes.step(
            [*(record.number for record in complete), records[-1].number], [*bests, bests[-1]],
            where="post", color=INK, linewidth=1.0, label="best so far",
        )  # fmt: skip
    axes.set_ylim(0.0, 1.05 * max(10.0, axes.get_ylim()[1]))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("trial", fontsize=9, color=INK)
    axes.set_ylabel(f"score against {' and '.join(against)} (%)", fontsize=9, color=INK)
    axes.legend(frameon=False, fontsize=8.5, ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    write_atomically(directory / PLOT, png(figure))
