"""Collects what the soak tests found, and prints it as the table of ``docs/reliability.md``.

``make soak`` sets ``KEISEI_SOAK_SUMMARY`` to a file, to which each test adds what it found and how
it ended, as lines of JSON, and ends with ``python -m tests.soak.summary FILE``.
"""

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any


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
    _write(row)


def note_outcome(test: str, outcome: str, seconds: float) -> None:
    """Add how a test ended, by its name without parameters; `note` says what it found."""
    _write({"test": test, "outcome": outcome, "minutes": seconds / 60})


def _write(row: dict[str, Any]) -> None:
    if path := os.environ.get("KEISEI_SOAK_SUMMARY"):
        # In one call: several processes write.
        with Path(path).open("ab") as file:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def table(path: Path) -> str:
    """What was found as Markdown, and how many tests ended how; the later of two rows counts."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    entries = [json.loads(line) for line in lines]
    rows = {
        entry["what"]: f"| {entry['what']} | {entry['scale']} | {entry['result']} "
        f"| {entry['minutes']} |"
        for entry in entries
        if "what" in entry
    }
    outcomes: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        if "test" in entry:
            outcomes.setdefault(entry["test"], []).append(entry)
    for test, ended in sorted(outcomes.items()):
        counts = Counter(entry["outcome"] for entry in ended)
        result = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
        minutes = sum(entry["minutes"] for entry in ended)
        rows[test] = f"| `{test}` | {len(ended)} | {result} | {minutes:.1f} |"
    return "\n".join(["| what | scale | result | minutes |", "|---|---|---|---|", *rows.values()])


if __name__ == "__main__":
    sys.stdout.write(table(Path(sys.argv[1])) + "\n")
