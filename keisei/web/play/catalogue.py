"""The players that can be chosen in the browser, and the setup of a game between them.

A page names players by the keys of a `Catalogue`, never by paths or commands: whatever it sends,
only runs below one directory and the players named on the command line can be loaded.
"""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from keisei import run_files
from keisei.checkpoints.rotation import list_checkpoints
from keisei.constants import BUILTIN
from keisei.errors import KeiseiError, did_you_mean
from keisei.levels import DEFAULT_LEVEL, LEVELS
from keisei.play.session import BOTH_SIDES, GameSession
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.types import Color
from keisei.web.languages import mark


class StrengthStop(NamedTuple):
    """A stop of the strength slider."""

    label: str
    spec: str
    """Suffix of the player's spec; for bots the whole spec."""

    level: int = 0
    """Number of a network's level; 0 for bots."""


BOTS: Final = (
    StrengthStop(mark("random moves"), "random"),
    StrengthStop(mark("captures what it can"), "greedy"),
    StrengthStop(mark("1 ply ahead"), "alphabeta:1"),
    StrengthStop(mark("2 plies ahead"), "alphabeta:2"),
    StrengthStop(mark("3 plies ahead"), "alphabeta:3"),
    StrengthStop(mark("4 plies ahead"), "alphabeta:4"),
)
NETWORK_LEVELS: Final = tuple(StrengthStop(f"level {n}", f":level={n}", n) for n in LEVELS)
_DEFAULT_NETWORK_LEVEL: Final = DEFAULT_LEVEL - 1
_DEFAULT_BOT_LEVEL: Final = 1
_MODE: Final = re.compile(r":(policy|(search|level)=[^:]*)$")
_LEVEL: Final = re.compile(rf":level=([1-9]|{len(LEVELS)})$")
_BOT_KINDS: Final = ("random", "greedy", "alphabeta", "frozen", "usi")


class PlayerChoice(NamedTuple):
    """The player of one side."""

    key: str | None = None
    """Key of the player's `CatalogueEntry`; None: a person."""

    level: int | None = None
    """Stop of the strength slider; None: the default one."""


PERSON: Final = PlayerChoice()


@dataclass(frozen=True)
class GameSetup:
    """The players, the starting position and the clock of a game."""

    black: PlayerChoice = PERSON
    white: PlayerChoice = PERSON
    start: str = STARTPOS_SFEN
    limit: TimeLimit | None = None

    @classmethod
    def from_json(cls, text: str) -> "GameSetup":
        """Return the setup that `to_json` wrote; raises `KeiseiError` if it did not."""
        try:
            saved = json.loads(text)
            black, white = PlayerChoice(*saved["black"]), PlayerChoice(*saved["white"])
            limit = TimeLimit(*saved["limit"]) if saved["limit"] else None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise KeiseiError("the file does not say who plays") from error
        return cls(black, white, start=str(saved.get("start", STARTPOS_SFEN)), limit=limit)

    def to_json(self) -> str:
        """Return the setup as text, for a file."""
        return json.dumps(
            {"black": self.black, "white": self.white, "start": self.start, "limit": self.limit}
        )

    def starting_at(self, position: str) -> "GameSetup":
        """Return the setup with another start: an SFEN; unchanged if it is not a position."""
        try:
            GameSession(position)
        except KeiseiError:
            return self
        return replace(self, start=position)

    def swapped(self) -> "GameSetup":
        """Return the setup with the players' sides exchanged."""
        return replace(self, black=self.white, white=self.black)

    @cached_property
    def players(self) -> Mapping[Color, PlayerChoice]:
        """The players by colour."""
        return {Color.BLACK: self.black, Color.WHITE: self.white}

    @property
    def people(self) -> frozenset[Color]:
        """The sides that people play."""
        return frozenset(color for color in BOTH_SIDES if self.players[color].key is None)


@dataclass(frozen=True)
class CatalogueEntry:
    """A player that can be chosen, with its levels of strength."""

    key: str
    """Name by which pages refer to the player."""

    label: str
    """Name that the page shows."""

    spec: str
    """Spec for `keisei.players.spec`, to which the spec of a level is appended."""

    levels: tuple[StrengthStop, ...] = ()
    """Weakest first; empty if the strength is fixed."""

    default_level: int = 0
    is_network: bool = False
    plies: int | None = None
    """Age of an older checkpoint, whose `label` says it too; None for other players."""

    def player_spec(self, level: int | None = None) -> str:
        """Return the player's spec at a level of strength."""
        return self.spec + self.level(level).spec if self.levels else self.spec

    def player_name(self, level: int | None = None) -> str:
        """Return the name of the player at a level of strength, as records of games have it."""
        if not self.levels:
            return self.label
        chosen = self.level(level)
        return f"{self.label} ({chosen.label})" if self.spec else chosen.spec

    def level(self, number: int | None = None) -> StrengthStop:
        """Return the stop of the slider nearest to a number; the default one for None."""
        number = self.default_level if number is None else number
        return self.levels[max(0, min(number, len(self.levels) - 1))]


BUILTIN_ENTRY: Final = CatalogueEntry(
    BUILTIN, "Keisei", BUILTIN, NETWORK_LEVELS, _DEFAULT_NETWORK_LEVEL, is_network=True
)
"""The player in the package."""


class Catalogue:
    """All players that can be chosen: those of the command line, the runs, the bots."""

    def __init__(self, runs: Path, named: Iterable[str] = ()) -> None:
        """Make a catalogue.

        Args:
            runs: the directory that holds the runs; it may be missing.
            named: specs of further players, from the command line.
        """
        self._runs = runs
        self._named = tuple(_named_entry(spec) for spec in dict.fromkeys(named))

    def entries(self) -> list[CatalogueEntry]:
        """Return the players as of now.

        Those of the command line, the one in the package, runs (newest first), bots.
        """
        bots = CatalogueEntry("bots", mark("Bots"), "", BOTS, _DEFAULT_BOT_LEVEL)
        named = {place for entry in self._named for place in _places(entry)}
        others = [BUILTIN_ENTRY, *self._run_entries()]
        return [*self._named, *(entry for entry in others if not named & _places(entry)), bots]

    def find(self, key: str) -> CatalogueEntry:
        """Return the player with a key.

        Raises:
            KeiseiError: No player has this key.
        """
        for entry in self.entries():
            if entry.key == key:
                return entry
        raise KeiseiError(f"there is no player {key!r} to choose")

    def _run_entries(self) -> list[CatalogueEntry]:
        """Return the entries of all runs, newest run first.

        Runs that cannot be read, or are being removed, are skipped.
        """
        try:
            root = self._runs.resolve()
            paths = list(self._runs.iterdir())
        except OSError:
            return []
        found: list[tuple[float, list[CatalogueEntry]]] = []
        for run in paths:
            with suppress(KeiseiError, OSError):
                found.append((run.stat().st_mtime, _entries_of(run, root)))
        found.sort(key=itemgetter(0), reverse=True)
        return [entry for _, entries in found for entry in entries]


def require_existing(spec: str) -> None:
    """Check that the run or checkpoint of a player spec exists, without loading anything.

    Raises:
        KeiseiError: It does not exist.
    """
    head = spec.partition(",")[0]
    if head.partition(":")[0] in (*_BOT_KINDS, BUILTIN):
        return
    path = network_path(spec)
    if not any(place.exists() for place in run_files.run_places(path)):
        kinds = "builtin, random, greedy, alphabeta:DEPTH or usi:COMMAND"
        remedy = (
            did_you_mean(head.partition(":")[0], (*_BOT_KINDS, BUILTIN))
            or run_files.similar_run(path)
            or f", and it is not one of the other players: {kinds}"
        )
        raise KeiseiError(f"there is no run or checkpoint {path}{remedy}")


def network_path(spec: str) -> Path:
    """Return where the network of a player spec is, without how it plays."""
    return Path(_MODE.sub("", spec.partition(",")[0]))


def _named_entry(spec: str) -> CatalogueEntry:
    """Make the entry of a player from the command line; a spec with settings has no levels."""
    key = f"named:{spec}"
    head = spec.partition(",")[0]
    if head.partition(":")[0] in _BOT_KINDS:
        return CatalogueEntry(key, spec, spec)
    which, level = _LEVEL.sub("", spec), _LEVEL.search(spec)
    if "," in which or _MODE.search(which) is not None:
        return CatalogueEntry(key, spec, spec, is_network=True)
    if which == BUILTIN:
        entry = replace(BUILTIN_ENTRY, key=key)
    else:
        entry = _network_entry(key, Path(which).name or which, which)
    return entry if level is None else replace(entry, default_level=int(level[1]) - 1)


def _entries_of(run: Path, root: Path) -> list[CatalogueEntry]:
    """Make the entries of a run (its newest checkpoint) and of its older checkpoints.

    Runs and checkpoints that are links to places outside `root` are left out.
    """
    if not (run / run_files.CONFIG).is_file() or not run.resolve().is_relative_to(root):
        return []
    found = [
        path
        for path in list_checkpoints(run / run_files.CHECKPOINTS)
        if path.resolve().is_relative_to(root)
    ]
    if not found or "," in str(run) or ":" in run.name:  # separators within a spec
        return []
    older = [_older_entry(run, path) for path in reversed(found[:-1])]
    return [_network_entry(f"run:{run.name}", run.name, str(run)), *older]


def _network_entry(key: str, label: str, spec: str) -> CatalogueEntry:
    return CatalogueEntry(key, label, spec, NETWORK_LEVELS, _DEFAULT_NETWORK_LEVEL, is_network=True)


def _older_entry(run: Path, checkpoint: Path) -> CatalogueEntry:
    number = checkpoint.name.rpartition("-")[2]
    plies = int(number) if number.isdecimal() else None
    age = checkpoint.name if plies is None else f"{plies:,} plies"
    entry = _network_entry(
        f"run:{run.name}/{checkpoint.name}", f"{run.name}, {age}", str(checkpoint)
    )
    return replace(entry, plies=plies)


def _places(entry: CatalogueEntry) -> set[str]:
    """Return the player's spec, and where its run is: a run can be named in several ways."""
    if not entry.is_network or entry.spec == BUILTIN:
        return {entry.spec}
    runs = [path for path in run_files.run_places(Path(entry.spec)) if path.exists()]
    return {entry.spec, *(str(path.resolve()) for path in runs[:1])}
