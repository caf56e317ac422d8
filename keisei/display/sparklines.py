"""Pictures made of characters: sparklines and bars, in Unicode or plain ASCII."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from rich.text import Text

from keisei.shogi.render.glyphs import Lettering


class Glyphs(NamedTuple):
    """The characters that pictures are made of."""

    levels: str
    """From low to high, for sparklines."""

    shades: str
    """For the parts of a bar; distinct, so that it reads well also without colours."""

    plus_minus: str
    lettering: Lettering
    """How the board is written."""


UNICODE: Final = Glyphs("▁▂▃▄▅▆▇█", "█▓▒╱░", "±", "kanji")
ASCII: Final = Glyphs("_.-=+*#", "#=-/.", "+-", "letters")
"""For consoles whose encoding or font has nothing better, as the old ones of Windows."""


def fit(line: Text, width: int, glyphs: Glyphs) -> Text:
    """The same line, cut where it is too long."""
    line.no_wrap = True
    line.truncate(width, overflow="ellipsis" if glyphs is UNICODE else "crop")
    return line


def foreign(text: str, glyphs: Glyphs) -> str:
    """Text that comes from elsewhere, in characters that the console can write."""
    return text if glyphs is UNICODE else text.encode("ascii", "replace").decode()


def sparkline(values: Sequence[float], glyphs: Glyphs, *, low: float, high: float) -> str:
    """Values as a row of bars between `low` and `high`.

    >>> sparkline([0.0, 0.5, 1.0], UNICODE, low=0.0, high=1.0)
    '▁▅█'
    """
    top = len(glyphs.levels) - 1
    scale = top / (high - low) if high > low else 0.0
    heights = (round((value - low) * scale) for value in values)
    return "".join(glyphs.levels[min(top, max(0, height))] for height in heights)


def stacked_bar(shares: Sequence[float], styles: Sequence[str], width: int, glyphs: Glyphs) -> Text:
    """How a whole is divided, in `width` characters."""
    ends = [0, *(round(width * sum(shares[: end + 1])) for end in range(len(shares)))]
    bar = Text(no_wrap=True)
    for (begin, end), style, shade in zip(pairwise(ends), styles, glyphs.shades, strict=False):
        bar.append(shade * (end - begin), style)
    return bar
