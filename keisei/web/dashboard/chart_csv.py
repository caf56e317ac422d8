"""The points of a chart as CSV: the values themselves, however smoothly they are drawn."""

import csv
import io
import re
from typing import Final

from keisei.web.dashboard.charts import EXACT, X_NAME, Options

_COLUMNS: Final = ("value", "low", "high", "games")
_FORMULA: Final = re.compile(r"[=+@\t\r]|-(?![\d.])")
"""How a text begins that a spreadsheet would run."""

_EXTRA: Final = re.compile(r"(low|high)-.*|raw")
"""Ids of series that only draw what others have."""


def csv_text(options: Options) -> str:
    """Return the points of a chart's lines as rows: series, x, value, low, high, games."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["series", options[X_NAME], *_COLUMNS])
    for series in options["series"]:
        if series["type"] == "custom" or _EXTRA.fullmatch(series.get("id", "")):
            continue
        for point in series.get(EXACT, series["data"]):
            name, values = series.get("name", ""), point
            if isinstance(point, dict):
                name, values = point.get("name", name), point["value"]
            missing = len(_COLUMNS) + 1 - len(values)
            writer.writerow([_harmless(name), *values, *[""] * missing])
    return text.getvalue()


def csv_name(title: str) -> str:
    """Return the name of the file for a chart with a title."""
    words = re.sub(r"[\W_]+", "-", title).strip("-")
    return f"{words or 'plot'}.csv"


def _harmless(name: str) -> str:
    return f"'{name}" if _FORMULA.match(name) else name
