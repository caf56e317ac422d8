"""Draw the badge of the README that says how many lines the tests reach.

    coverage report --format=total | python scripts/coverage_badge.py docs/images/coverage.svg

``make cover`` does it. Without a number on stdin the badge says that nothing was measured. Its
title, which browsers show beside the pointer, says on which day and at which commit it was.

With ``--check`` nothing is drawn: the exit code is 1 if the badge is more than a point off.
"""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

GATE: Final = 90
"""Percentage below which ``make cover`` fails, as in pyproject.toml."""

TOLERANCE: Final = 1.0
"""Points by which a badge may be off: machines differ in the tests that they skip."""

GOOD, BAD, UNKNOWN = "#3a7d44", "#b3261e", "#6b6b6b"

BADGE: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20"
     role="img" aria-label="coverage: {value}">
  <title>coverage: {value}{measured}</title>
  <clipPath id="round"><rect width="{width}" height="20" rx="3"/></clipPath>
  <g clip-path="url(#round)">
    <rect width="62" height="20" fill="#444"/>
    <rect x="62" width="{right}" height="20" fill="{colour}"/>
  </g>
  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
    <text x="31" y="14">coverage</text>
    <text x="{middle}" y="14">{value}</text>
  </g>
</svg>
"""


def badge(percentage: int | None, measured: str = "") -> str:
    """Return the badge as SVG.

    Args:
        percentage: what was measured; None: nothing was.
        measured: when and at which commit, if that is known.
    """
    value = "not measured" if percentage is None else f"{percentage} %"
    right = 12 + 7 * len(value)
    colour = UNKNOWN if percentage is None else GOOD if percentage >= GATE else BAD
    return BADGE.format(
        width=62 + right,
        right=right,
        middle=62 + right / 2,
        colour=colour,
        value=value,
        measured=f", measured {measured}" if measured else "",
    )


def shown_by(drawn: str) -> int | None:
    """Return the percentage that a badge shows; None: nothing was measured."""
    found = re.search(r"<title>coverage: (\d+) %", drawn)
    return None if found is None else int(found[1])


def is_near(drawn: str, percentage: float) -> bool:
    """Return whether a badge shows what was measured, or at most `TOLERANCE` more or less."""
    value = shown_by(drawn)
    return value is not None and abs(value - percentage) <= TOLERANCE


def day_and_commit() -> str:
    """Return today's date and the commit that is checked out, as far as git knows one."""
    day = datetime.now(UTC).date().isoformat()
    try:
        found = subprocess.run(
            ("git", "rev-parse", "--short", "HEAD"), capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return day
    return f"{day} at {found.stdout.strip()}"


def main(
    file: Annotated[Path, typer.Argument(help="The SVG file to write, or to check.")],
    check: Annotated[bool, typer.Option("--check", help="Compare the file, draw nothing.")] = False,
) -> None:
    """Write the badge of the percentage on stdin."""
    text = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    if check:
        drawn = file.read_text(encoding="utf-8")
        if not text or not is_near(drawn, float(text)):
            typer.echo(
                f"{file} shows {shown_by(drawn)} %, but {text or 'nothing'} was measured: "
                "run `make cover` and commit the badge",
                err=True,
            )
            raise typer.Exit(1)
        return
    drawn = badge(round(float(text)), day_and_commit()) if text else badge(None)
    file.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
