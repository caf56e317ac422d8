"""Collects what the soak tests found, and prints it as the table of ``docs/reliability.md``.

``make soak`` sets ``KEISEI_SOAK_SUMMARY`` to a file, to which each test adds a line of JSON, and
ends with ``python -m tests.soak.summary FILE``.
"""

import json
import os
import sys
import time
from pathlib import Path


def setting(name: str, default: float) -> float:
    """A number from the environment variable ``KEISEI_SOAK_<name>``."""
    return float(os.environ.get(f"KEISEI_SOAK_{name}", default))


def note(what: str, scale: str, result: str, *, since: float) -> None:
    """Add a row; `since` is when the test began, by `time.monotonic`."""
    row = {
        "what": what,
        "scale": scale,
        "result": result,
        "minutes": round((time.monotonic() - since) / 60, 1),
    }
    sys.stderr.write(f"\n{what}, {scale}: {result} ({row['minutes']} minutes)\n")
    if path := os.environ.get("KEISEI_SOAK_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def table(path: Path) -> str:
    """The rows of a file as Markdown; of two about the same thing the later one counts."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = {}
    for line in lines:
        row = json.loads(line)
        rows[row["what"]] = (
            f"| {row['what']} | {row['scale']} | {row['result']} | {row['minutes']} |"
        )
    return "\n".join(["| what | scale | result | minutes |", "|---|---|---|---|", *rows.values()])


if __name__ == "__main__":
    sys.stdout.write(table(Path(sys.argv[1])) + "\n")
