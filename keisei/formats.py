"""Formatting of numbers for people: durations, counts, percentages."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.table import Table

NOTHING: Final = "-"
"""Placeholder for a missing or non-finite number."""


CENTIPAWN_SCALE: Final = 600.0
"""Shogi engines usually assume a win rate of 1 / (1 + exp(-cp / 600))."""

MAX_CENTIPAWNS: Final = 9_999


def duration(seconds: float) -> str:
    """Format a time as hours, minutes and seconds.

    >>> duration(75), duration(3_675), duration(100_000)
    ('1:15', '1:01:15', '1d 3:46:40')
    """
    if not math.isfinite(seconds):
        return NOTHING
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def count(number: float) -> str:
    """Format a whole number with thousands separators.

    >>> count(1234567.2)
    '1,234,567'
    """
    return f"{number:,.0f}" if math.isfinite(number) else NOTHING


def short_count(number: float) -> str:
    """Format a large number with three significant digits.

    >>> short_count(213_504), short_count(1_250_000), short_count(64)
    ('214 k', '1.25 M', '64')
    """
    if not math.isfinite(number):
        return NOTHING
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= unit * 0.9995:
            return f"{number / unit:#.3g}".rstrip(".") + name
    return f"{number:.0f}"


def network_name(model: Mapping[str, Any]) -> str:
    """Format the type and size of a network, given the settings of the section ``model``.

    >>> network_name({"type": "resnet", "tower_depth": 2, "tower_width": 64})
    'resnet 2x64'
    >>> network_name({"type": "sparse", "accumulators": 128, "hidden": 32, "context": 32})
    'sparse 128-32-32'
    """
    if model.get("type") == "sparse":
        sizes = "-".join(str(model.get(name)) for name in ("accumulators", "hidden", "context"))
    else:
        sizes = f"{model.get('tower_depth')}x{model.get('tower_width')}"
    return f"{model.get('type')} {sizes}"


def percent(share: float, digits: int = 0) -> str:
    """Format a share between 0 and 1 as a percentage.

    >>> percent(0.123), percent(0.0213, 1)
    ('12 %', '2.1 %')
    """
    return f"{100 * share:.{digits}f} %" if math.isfinite(share) else NOTHING


def small(number: float) -> str:
    """Format a number around 1 or far below it, with three significant digits.

    >>> small(0.01234), small(2.5), small(0.0006), small(-0.5)
    ('0.0123', '2.5', '0.0006', '-0.5')
    """
    return f"{number:.3g}" if math.isfinite(number) else NOTHING


def new_table(title: str) -> "Table":
    """Return an empty table in the common style, narrow enough for 80 columns of a terminal."""
    from rich import box
    from rich.table import Table

    return Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )


def centipawns(value: float) -> int:
    """Return a value from -1 to 1 in centipawns.

    >>> centipawns(0.0), centipawns(0.5), centipawns(-1.0)
    (0, 659, -9999)
    """
    if abs(value) >= 1.0:
        return int(math.copysign(MAX_CENTIPAWNS, value))
    score = CENTIPAWN_SCALE * math.log((1.0 + value) / (1.0 - value))
    return round(max(-MAX_CENTIPAWNS, min(MAX_CENTIPAWNS, score)))
