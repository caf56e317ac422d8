"""Ratings in words: with their interval, or as a bound where they are beyond the scale's ends.

All displays, tables and pages say it in these words. Needs no numpy, so that ``keisei runs``
answers at once.

>>> rating_text(1500.0, 1450.0, 1560.0, "on")
'1500 (95 %: 1450 to 1560)'
>>> rating_text(4300.0, 4100.0, 4600.0, "above")
'above the scale: 4100 or more'
"""

from typing import Final, Literal

Position = Literal["on", "below", "above"]
"""Whether a rating is on the scale, or beyond one of its ends: then only a bound is known."""

_NUMBERS: Final[dict[Position, float]] = {"below": -1.0, "on": 0.0, "above": 1.0}


def position_number(position: Position) -> float:
    """Return a position as a metric: -1 below the scale, 0 on it, 1 above it."""
    return _NUMBERS[position]


def numbered_position(number: float) -> Position:
    """Return the position that a metric stands for; unknown numbers are on the scale.

    >>> numbered_position(position_number("above")), numbered_position(float("nan"))
    ('above', 'on')
    """
    return next((position for position, known in _NUMBERS.items() if known == number), "on")


def bound_text(low: float, high: float, position: Position) -> str:
    """Return the bound of a rating beyond the scale; empty for one on the scale."""
    if position == "below":
        return f"below the scale: {high:.0f} or less"
    if position == "above":
        return f"above the scale: {low:.0f} or more"
    return ""


def rating_text(elo: float, low: float, high: float, position: Position) -> str:
    """Return a rating with its interval, or its bound."""
    return bound_text(low, high, position) or f"{elo:.0f} (95 %: {low:.0f} to {high:.0f})"
