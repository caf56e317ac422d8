"""What a sweep leaves: the best trial as a recipe, and the scores as a picture."""

import time
from collections.abc import Mapping, Sequence
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from keisei.formats import NOTHING, percent
from keisei.sweep.runner import SweepProgress
from keisei.sweep.space import Value
from keisei.sweep.study import TrialRecord

STATE_STYLES: Final = {"running": "cyan", "complete": "green", "pruned": "yellow", "failed": "red"}

_OTHER_LINES: Final = 8
"""Lines of the terminal that are no trials."""

_REFRESH_SECONDS: Final = 1.0


class SweepDisplay:
    """Shows a sweep while it goes on; a context, and called with each `SweepProgress`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._told: set[int] = set()
        self._last = -_REFRESH_SECONDS
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
        """Show how the sweep stands."""
        if self._live is None:
            self._tell(progress)
        elif time.monotonic() - self._last >= _REFRESH_SECONDS:
            self._last = time.monotonic()
            most = max(3, self._console.height - _OTHER_LINES)
            table = trial_table(progress.trials, progress.done, most=most)
            self._live.update(Group(table, Text(_standing(progress), style="dim")), refresh=True)

    def _tell(self, progress: SweepProgress) -> None:
        ended = {record.number for record in progress.trials if record.state != "running"}
        if self._is_first:  # what earlier sessions did is known
            self._is_first = False
            self._told |= ended - set(progress.done)
        for record in progress.trials:
            if record.number in ended - self._told:
                self._told.add(record.number)
                said = record.reason or ", ".join(
                    f"{path}={_value(value)}" for path, value in record.parameters.items()
                )
                score = NOTHING if record.score is None else percent(record.score, 1)
                self._console.print(
                    f"trial {record.number} {record.state}: {score}; {said}",
                    markup=False, highlight=False, soft_wrap=True,
                )  # fmt: skip


def _standing(progress: SweepProgress) -> str:
    states = [record.state for record in progress.trials]
    finished = states.count("complete") + states.count("pruned")
    hint = "Ctrl-C ends it, the same command goes on"
    if progress.is_ending:
        hint = "ending: the trials save their last checkpoint; Ctrl-C again does not wait for them"
    return f"{finished} of {progress.wanted} trials; {hint}"


def trial_table(
    trials: Sequence[TrialRecord], done: Mapping[int, float], *, most: int | None = None
) -> Table:
    """The trials with state, score and parameters, the best in bold; of too many the last."""
    complete = [record for record in trials if record.state == "complete"]
    best = max(complete, key=lambda record: record.score or 0.0, default=None)
    paths = list(dict.fromkeys(path for record in trials for path in record.parameters))
    table = Table(title="trials", title_justify="left")
    table.add_column("trial", justify="right")
    table.add_column("state")
    table.add_column("score", justify="right")
    for path in paths:
        table.add_column(Text(path.replace(".", "\n", 1)), justify="right")
    for record in trials[-most:] if most else trials:
        state = Text(record.state, style=STATE_STYLES[record.state])
        if record.number in done:
            state.append(f" {percent(done[record.number])}")
        elif record.state == "running":  # by an earlier session, which has not come to its end
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
