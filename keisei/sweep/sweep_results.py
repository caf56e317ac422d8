"""The results of a sweep: the best trial as a recipe, the scores as a plot."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

from keisei.config_schema import AppConfig
from keisei.formats import count, percent
from keisei.sweep.space import Sweep
from keisei.sweep.study import BEST, PLOT, TrialRecord
from keisei.system import write_atomically

_PLAIN: Final = re.compile(r"(?!none$|null$)[a-z][a-z0-9_+]*")
"""Texts that need no quotes in YAML."""


def write_best(sweep: Sweep, best: TrialRecord, trials: int, directory: Path) -> None:
    """Write the best trial as a recipe that ``keisei train --config`` takes."""
    write_atomically(directory / BEST, best_recipe(sweep, best, trials, directory).encode())


def best_recipe(sweep: Sweep, best: TrialRecord, trials: int, directory: Path) -> str:
    """The settings of a trial as YAML: all that differs from the defaults, the found ones marked.

    A recipe knows no other, so what the base says stands here too.
    """
    opponents = " and ".join(sweep.objective.against)
    score = percent(best.score if best.score is not None else float("nan"), 1)
    heading = [
        f"# Trial {best.number} of the sweep {directory.name}, the best of {trials}: "
        f"{score} against {opponents} in {count(best.games)} games.",
        "# The score of the best of many is a little too high: rng_states is among what is chosen.",
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
    """A value as `keisei.config` reads it back."""
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
    """Draw the score of each trial that has ended, and the best so far."""
    # Matplotlib takes a second to import; a sweep has time, `keisei sweep --check` has not.
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
