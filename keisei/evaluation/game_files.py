"""Games of a match written down as KIF and CSA, for people to play through."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from keisei.shogi.notation import headers as header
from keisei.shogi.notation.files import save_game
from keisei.shogi.notation.record import GameRecord

SUFFIXES: Final = (".kif", ".csa")


def write_games(
    records: Iterable[GameRecord], directory: Path, *, prefix: str, event: str
) -> list[Path]:
    """Write each game as ``<prefix>-<black>-vs-<white>.kif`` and ``.csa``; returns the KIF files.

    `event` is what all of them were played for.
    """
    taken: set[str] = set()
    paths = []
    for record in records:
        title = f"{record.black} vs {record.white}"
        directory.mkdir(parents=True, exist_ok=True)
        stem = _free_name(f"{prefix}-{file_name(title)}", taken)
        titled = replace(record, headers=record.headers | {header.EVENT: f"{event}: {title}"})
        for suffix in SUFFIXES:
            save_game(titled, directory / (stem + suffix))
        paths.append(directory / (stem + SUFFIXES[0]))
    return paths


def file_name(title: str) -> str:
    """A title in characters that every file system takes.

    >>> file_name("network vs usi:/opt/engine (2)")
    'network-vs-usi-opt-engine-2'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "game"


def _free_name(name: str, taken: set[str]) -> str:
    """The name, with a number where it was used before."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free
