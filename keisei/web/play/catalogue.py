"""Choosing who plays, and how strongly."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from nicegui import ui

from keisei import run_files
from keisei.checkpoints.rotation import list_checkpoints
from keisei.errors import KeiseiError
from keisei.web.play.game_setup import Seat


class Level(NamedTuple):
    """A stop of the slider for strength."""

    label: str
    word: str
    """What is added to the player's word; for bots, the word."""


BOTS: Final = (
    Level("random moves", "random"),
    Level("takes what it can", "greedy"),
    Level("1 ply ahead", "alphabeta:1"),
    Level("2 plies ahead", "alphabeta:2"),
    Level("3 plies ahead", "alphabeta:3"),
    Level("4 plies ahead", "alphabeta:4"),
)
NETWORK_LEVELS: Final = (
    Level("temperature 1", ":policy,temperature=1"),
    Level("temperature 0.5", ":policy,temperature=0.5"),
    Level("temperature 0.25", ":policy,temperature=0.25"),
    Level("as its run measures it", ""),
    *(Level(f"{n} simulations", f":search={n}") for n in (16, 32, 64, 128, 256, 512, 1024)),
)
_USUAL_NETWORK_LEVEL: Final = 3
_USUAL_BOT_LEVEL: Final = 1
_HOW: Final = re.compile(r":(policy|search=[^:]*)$")
_BOT_WORDS: Final = ("random", "greedy", "alphabeta", "usi")


@dataclass(frozen=True)
class Entry:
    """Somebody to play."""

    key: str
    """What a page calls it."""

    label: str
    """What people call it."""

    word: str
    """What `keisei.players.spec` calls it; the levels of a slider are added to it."""

    levels: tuple[Level, ...] = ()
    """Weakest first; empty where there is nothing to choose."""

    usual_level: int = 0
    is_network: bool = False

    def player(self, level: int | None = None) -> str:
        """The word of the player at a level of strength."""
        return self.word + self.level(level).word if self.levels else self.word

    def level(self, number: int | None = None) -> Level:
        """A stop of the slider, the nearest there is; the usual one if no number is given."""
        number = self.usual_level if number is None else number
        return self.levels[max(0, min(number, len(self.levels) - 1))]


class Catalogue:
    """All who can be played."""

    def __init__(self, runs: Path, named: Iterable[str] = ()) -> None:
        """Make a catalogue.

        Args:
            runs: the directory with the runs; it may be missing.
            named: words of further players, from the command line.
        """
        self._runs = runs
        self._named = tuple(_named(word) for word in dict.fromkeys(named))

    def entries(self) -> list[Entry]:
        """Everybody, as the directory is now: those named, runs with the newest first, bots."""
        bots = Entry("bots", "Bots", "", BOTS, _USUAL_BOT_LEVEL)
        named_words = {entry.word for entry in self._named}
        runs = [entry for entry in self._run_entries() if entry.word not in named_words]
        return [*self._named, *runs, bots]

    def find(self, key: str) -> Entry:
        """Who has a key; `KeiseiError` if nobody has."""
        for entry in self.entries():
            if entry.key == key:
                return entry
        raise KeiseiError(f"there is no player {key!r} to choose")

    def _run_entries(self) -> list[Entry]:
        """Those of all runs, the newest first.

        A run that can't be read, or was removed a moment ago, has none: others can be played.
        """
        try:
            root = self._runs.resolve()
            paths = list(self._runs.iterdir())
        except OSError:
            return []
        found: list[tuple[float, list[Entry]]] = []
        for run in paths:
            with suppress(KeiseiError, OSError):
                found.append((run.stat().st_mtime, _entries_of(run, root)))
        found.sort(key=itemgetter(0), reverse=True)
        return [entry for _, entries in found for entry in entries]


def require_existing(word: str) -> None:
    """Refuse a word that means a run or checkpoint which is not there, without loading anything."""
    head = word.partition(",")[0]
    if head.partition(":")[0] in _BOT_WORDS:
        return
    path = Path(_HOW.sub("", head))
    if not any(place.exists() for place in run_files.run_places(path)):
        raise KeiseiError(
            f"there is no run or checkpoint {path}, nor another player of this name: random, "
            "greedy, alphabeta:DEPTH or usi:COMMAND"
        )


def _named(word: str) -> Entry:
    """A player of the command line; one that says how it plays keeps to it."""
    key = f"named:{word}"
    head = word.partition(",")[0]
    is_bot = head.partition(":")[0] in _BOT_WORDS
    says_how = head != word or _HOW.search(head) is not None
    if is_bot:
        return Entry(key, word, word)
    if says_how:
        return Entry(key, word, word, is_network=True)
    return _network(key, Path(word).name or word, word)


def _entries_of(run: Path, root: Path) -> list[Entry]:
    """The run, for its newest checkpoint, and its older checkpoints; nothing outside the `root`."""
    if not (run / run_files.CONFIG).is_file() or not run.resolve().is_relative_to(root):
        return []
    found = [
        path
        for path in list_checkpoints(run / run_files.CHECKPOINTS)
        if path.resolve().is_relative_to(root)
    ]
    if not found or "," in str(run) or ":" in run.name:  # signs that words are made of
        return []
    older = [
        _network(f"run:{run.name}/{path.name}", f"{run.name}, {_plies(path)}", str(path))
        for path in reversed(found[:-1])
    ]
    return [_network(f"run:{run.name}", run.name, str(run)), *older]


def _network(key: str, label: str, word: str) -> Entry:
    return Entry(key, label, word, NETWORK_LEVELS, _USUAL_NETWORK_LEVEL, is_network=True)


def _plies(checkpoint: Path) -> str:
    number = checkpoint.name.rpartition("-")[2]
    return f"{int(number):,} plies" if number.isdecimal() else checkpoint.name


def strength_slider(
    entry: Entry, level: int | None, on_change: Callable[[int], None], *, title: str = ""
) -> None:
    """A slider over the levels of somebody's strength; nothing to slide where there is one."""
    name = f"{title}: {entry.label}" if title else ""
    if not entry.levels:
        if name:
            ui.label(name).classes("k-soft")
        return
    number = entry.usual_level if level is None else level
    label = ui.label()

    def show(stop: int) -> None:
        text = entry.level(stop).label
        label.text = f"{name} – {text}" if name else text

    show(number)
    slider = ui.slider(min=0, max=len(entry.levels) - 1, step=1, value=number)
    slider.props('snap markers aria-label="Strength"')
    slider.on_value_change(lambda event: show(int(event.value)))
    # Told when the hand lets go: a strong player is not made for every stop on the way.
    slider.on("change", lambda: on_change(int(slider.value)))


class SeatPicker:
    """A choice of player and strength."""

    def __init__(self, catalogue: Catalogue, seat: Seat, *, label: str) -> None:
        self._entries = {entry.key: entry for entry in catalogue.entries()}
        first = next(iter(self._entries))
        self._key = seat.key if seat.key in self._entries else first
        self._level = seat.level
        self._select = ui.select(
            {key: entry.label for key, entry in self._entries.items()},
            value=self._key,
            label=label,
            on_change=lambda event: self._choose(str(event.value)),
        )
        self._select.props("outlined dense options-dense").style("width: 100%")
        self._place = ui.element("div").style("width: 100%; padding: 0 8px")
        self._draw()

    @property
    def seat(self) -> Seat:
        """What was chosen."""
        return Seat(self._key, self._level)

    def _choose(self, key: str) -> None:
        self._key, self._level = key, None
        self._draw()

    def _draw(self) -> None:
        self._place.clear()
        with self._place:
            strength_slider(self._entries[self._key], self._level, self._set_level)

    def _set_level(self, level: int) -> None:
        self._level = level
