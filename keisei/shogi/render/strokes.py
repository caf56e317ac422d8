"""Kanji of pieces and ranks as strokes, drawn for this package: pictures need no installed font.

A glyph is a list of strokes in a square of 100 by 100, from the top left: ``x,y`` points, joined by
lines, or by a curve after ``~``; a stroke with ``>`` gets thinner towards its end, as those that
sweep to the left do.
"""

from functools import cache
from itertools import pairwise
from math import hypot
from typing import Final, NamedTuple

STROKES: Final = {
    "王": "15,16 85,16 / 20,49 80,49 / 50,16 50,87 / 9,87 91,87",
    "玉": "15,16 85,16 / 20,49 80,49 / 50,16 50,87 / 9,87 91,87 / ~65,60 71,65 77,74",
    "歩": "50,4 50,39 / 50,20 79,20 / 26,17 26,39 / 7,40 93,40 / 50,46 50,73 42,68 / "
          "~>31,50 26,58 17,67 / ~68,48 76,54 83,62 / ~>84,60 62,82 16,96",
    "香": "~>73,5 52,11 28,14 / 7,29 93,29 / 50,11 50,55 / ~>47,30 33,44 7,56 / "
          "~53,30 68,44 93,55 / 28,60 28,97 / 28,61 72,61 72,97 / 28,77 72,77 / 28,93 72,93",
    "桂": "4,29 41,29 / 23,5 23,97 / ~>23,31 16,50 4,67 / ~26,40 33,47 39,56 / 49,19 92,19 / "
          "70,5 70,43 / 45,43 96,43 / 50,66 92,66 / 70,50 70,92 / 43,93 97,93",
    "銀": "~>25,4 17,18 3,33 / ~26,8 35,18 46,28 / 13,37 39,37 / 8,55 43,55 / 26,37 26,89 / "
          "~12,64 15,70 17,78 / ~40,62 37,70 33,77 / 4,94 46,88 / 56,12 87,12 87,49 / "
          "56,30 87,30 / 56,49 87,49 / 56,12 56,92 72,82 / ~>92,55 84,64 74,70 / "
          "~68,50 78,78 98,95",
    "金": "~>50,3 34,25 4,45 / ~50,6 67,25 96,43 / 29,44 71,44 / 17,65 83,65 / 50,44 50,93 / "
          "~28,72 32,78 35,86 / ~73,72 69,79 64,86 / 7,94 93,94",
    "角": "~>38,3 29,17 12,29 / 35,15 67,15 54,31 / ~>23,31 22,66 8,97 / "
          "22,32 81,32 81,93 69,90 / 22,52 81,52 / 22,72 81,72 / 51,32 51,92",
    "飛": "14,9 56,9 / ~56,9 59,34 70,42 82,43 83,33 / ~>77,9 70,15 62,19 / ~63,22 70,25 77,31 / "
          "4,54 61,54 / ~61,54 66,84 79,95 93,96 94,82 / ~>90,53 81,61 72,65 / "
          "~73,68 80,72 87,79 / 46,26 46,98 / ~>42,19 27,29 7,34 / ~>24,30 23,72 6,97",
    "と": "~33,6 36,26 42,45 / ~82,24 50,40 27,57 22,75 36,90 60,93 86,90",
    "杏": "7,20 93,20 / 50,4 50,52 / ~>48,22 34,40 6,54 / ~52,22 66,40 94,53 / 26,62 26,97 / "
          "26,63 74,63 74,97 / 26,92 74,92",
    "圭": "19,16 81,16 / 50,4 50,43 / 7,43 93,43 / 19,67 81,67 / 50,51 50,93 / 5,94 95,94",
    "全": "~>50,4 35,27 4,48 / ~50,6 66,27 96,47 / 25,49 75,49 / 23,70 77,70 / 50,49 50,93 / "
          "9,94 91,94",
    "馬": "24,8 24,67 / 24,9 86,9 / 24,28 81,28 / 24,47 81,47 / 53,9 53,66 / "
          "24,66 89,66 86,94 74,91 / ~>16,74 14,83 9,93 / ~31,75 34,81 36,89 / "
          "~48,74 52,80 54,87 / ~64,73 68,78 71,84",
    "龍": "26,3 26,13 / 6,14 46,14 / ~15,19 18,25 19,31 / ~38,19 35,25 32,31 / 3,34 49,34 / "
          "~>12,44 12,78 5,98 / 12,45 42,45 42,96 34,93 / 12,60 42,60 / 12,75 42,75 / 61,3 61,28 / "
          "61,14 92,14 / 56,29 92,29 92,46 / 60,46 92,46 / 60,46 60,84 / "
          "~60,84 62,95 78,96 95,95 97,83 / 69,58 94,58 / 69,70 94,70 / 69,82 94,82",
    "一": "8,50 92,50",
    "二": "20,24 80,24 / 8,80 92,80",
    "三": "16,16 84,16 / 22,50 78,50 / 8,86 92,86",
    "四": "13,16 13,92 / 13,17 87,17 87,92 / 13,86 87,86 / ~>39,17 38,46 23,66 / "
          "~60,17 60,52 66,60 80,60",
    "五": "13,13 87,13 / 47,13 35,90 / 20,49 74,49 70,90 / 6,91 94,91",
    "六": "50,4 50,30 / 6,33 94,33 / ~>36,46 28,72 9,95 / ~62,46 76,68 92,94",
    "七": "6,48 94,39 / 43,6 43,78 / ~43,78 48,91 68,93 88,91 90,74",
    "八": "~>36,18 30,58 5,94 / ~54,12 66,58 95,93",
    "九": "~>44,4 42,58 7,95 / 11,33 70,33 / ~70,33 70,74 78,92 92,90 95,74",
}  # fmt: skip
"""Strokes of a glyph, separated by ``/``."""

_THIN: Final = 7.0
_THICK: Final = 10.5
"""Widths of horizontal and of vertical strokes, as a brush makes them."""

_END: Final = 0.35
"""Width at the end of a stroke that gets thinner, relative to its usual one."""

_CURVE_STEPS: Final = 8


class Dab(NamedTuple):
    """A point of a stroke and the width of the brush there."""

    x: float
    y: float
    width: float


@cache
def glyph(character: str) -> tuple[tuple[Dab, ...], ...]:
    """Return the strokes of a character as points with widths; `KeyError` for other characters."""
    return tuple(_stroke(text.strip()) for text in STROKES[character].split("/"))


def _stroke(text: str) -> tuple[Dab, ...]:
    is_curve, is_tapered = "~" in text, ">" in text
    points = [
        (float(x), float(y)) for x, y in (point.split(",") for point in text.lstrip("~>").split())
    ]
    if is_curve:
        points = _curve(points)
    widths = [_width(first, second) for first, second in pairwise(points)]
    widths.append(widths[-1])
    last = len(points) - 1
    return tuple(
        Dab(x, y, width * (1 - (1 - _END) * (index / last) ** 2 if is_tapered else 1))
        for index, ((x, y), width) in enumerate(zip(points, widths, strict=True))
    )


def _width(first: tuple[float, float], second: tuple[float, float]) -> float:
    run, rise = abs(second[0] - first[0]), abs(second[1] - first[1])
    return _THIN + (_THICK - _THIN) * rise / (hypot(run, rise) or 1)


def _curve(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return points on a smooth curve through `points` (a Catmull-Rom spline)."""
    padded = [points[0], *points, points[-1]]
    found = [points[0]]
    for index in range(len(points) - 1):
        a, b, c, d = padded[index : index + 4]
        for step in range(1, _CURVE_STEPS + 1):
            t = step / _CURVE_STEPS
            x, y = (_spline(a[axis], b[axis], c[axis], d[axis], t) for axis in (0, 1))
            found.append((x, y))
    return found


def _spline(a: float, b: float, c: float, d: float, t: float) -> float:
    return 0.5 * (
        2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3
    )
