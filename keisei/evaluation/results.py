"""Past results in an SQLite file: who played whom, how the games went, and under which conditions.

A ladder grows over the years and is never played anew, so what is written stays: the games of a
match are added in one transaction, which is there as a whole or not at all, also after a power cut.
Several processes may use the file at the same time. It is one file, without companions that would
be forgotten when it is copied, hence SQLite's ordinary journal and not its write-ahead log.
"""

import hashlib
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from keisei import __version__
from keisei.errors import KeiseiError
from keisei.evaluation import standards
from keisei.evaluation.match import MatchSettings, PlayedGame
from keisei.evaluation.ratings import PairResult
from keisei.players.player import Player
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.types import Color
from keisei.system import make_directory

FORMAT_VERSION: Final = 1
"""Raised by each change that older readers can't cope with; it is the file's ``user_version``."""

APPLICATION_ID: Final = 0x4B534C44
"""Marks the file as one of these (``KSLD``)."""

BUSY_SECONDS: Final = 30.0
"""How long another process is waited for. Its transactions take milliseconds."""

_SCHEMA: Final = """
    CREATE TABLE players (
        id INTEGER PRIMARY KEY,
        identity TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL
    );
    CREATE TABLE matches (
        id INTEGER PRIMARY KEY,
        player INTEGER NOT NULL REFERENCES players,
        opponent INTEGER NOT NULL REFERENCES players,
        opening_plies INTEGER NOT NULL,
        ply_limit INTEGER NOT NULL,
        declaration TEXT NOT NULL,
        openings TEXT NOT NULL,
        seed INTEGER NOT NULL,
        played_at TEXT NOT NULL,
        keisei TEXT NOT NULL,
        CHECK (player < opponent),
        UNIQUE (player, opponent, seed, opening_plies, ply_limit, declaration, openings)
    );
    CREATE TABLE games (
        match INTEGER NOT NULL REFERENCES matches,
        black INTEGER NOT NULL REFERENCES players,
        winner TEXT CHECK (winner IN ('black', 'white')),
        ending TEXT NOT NULL,
        plies INTEGER NOT NULL
    );
    CREATE INDEX games_of_match ON games (match);
"""
_KEY: Final = "player, opponent, seed, opening_plies, ply_limit, declaration, openings"
_SAME_CONDITIONS: Final = "opening_plies = ? AND ply_limit = ? AND declaration = ? AND openings = ?"


class StoreError(KeiseiError):
    """A file of results that cannot be used; the message names it and the reason."""


@dataclass(frozen=True, order=True)
class Conditions:
    """How games were played. Only games under the same conditions can be rated together."""

    opening_plies: int = standards.OPENING_PLIES
    ply_limit: int = standards.PLY_LIMIT
    declaration: str = "points 27"
    openings: str = "startpos"
    """``startpos``, or how many positions, with a sum of them."""

    @classmethod
    def of(cls, settings: MatchSettings) -> Self:
        """The conditions of a match."""
        openings = sorted(set(settings.openings))
        digest = hashlib.sha256("\n".join(openings).encode()).hexdigest()[:12]
        return cls(
            settings.opening_plies,
            settings.ply_limit,
            settings.declaration.name.lower().replace("_", " "),
            "startpos" if openings == [STARTPOS_SFEN] else f"{len(openings)} positions #{digest}",
        )

    def __str__(self) -> str:
        return (
            f"{self.opening_plies} opening plies from {self.openings}, "
            f"ply limit {self.ply_limit}, declaration {self.declaration}"
        )


@dataclass(frozen=True)
class StoredPlayer:
    """A player of whom games are stored."""

    identity: str
    name: str
    games: int


class ResultStore:
    """A file of results. Close it, or use it in a ``with`` block."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open a file.

        Args:
            path: the file.
            create: make it, and the directory it is in, where there is none; it must be writable.

        Raises:
            KeiseiError: There is no such file, it is something else, or it cannot be written.
        """
        self.path = path
        if create:
            make_directory(path.parent)
        elif not path.is_file():
            raise StoreError(f"there are no results in {path}: there is no such file")
        with _explained(path):
            # Transactions are begun and ended here, not by Python's guess.
            self._database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            self._ask("PRAGMA foreign_keys = ON")
            self._prepare(create=create)
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what is written ----

    def add(
        self,
        player: Player,
        opponent: Player,
        games: Sequence[PlayedGame],
        *,
        conditions: Conditions,
        seed: int,
        after: int = 0,
    ) -> bool:
        """Add games of a match, all or none of them.

        Args:
            player: whose colours and wins the games tell.
            opponent: the other one.
            games: how they went.
            conditions: under which they were played.
            seed: that of the match.
            after: how many games of the match were stored before: these are the next ones.

        Returns:
            False where the store holds another number of games of that match, that is of these two
            under these conditions with this seed: somebody else has played the same ones, and
            nothing is added.

        Raises:
            StoreError: It cannot be written, or somebody played himself.
        """
        if player.identity == opponent.identity:
            raise StoreError(f"{player.name} played itself: that says nothing about its strength")
        with self._writing():
            ids = {Color.BLACK: self._player_id(player), Color.WHITE: self._player_id(opponent)}
            key = (*sorted(ids.values()), seed, *astuple(conditions))
            match = self._begun_match(key, after) if after else self._new_match(key)
            if match is None:
                return False
            self._database.executemany(
                "INSERT INTO games (match, black, winner, ending, plies) VALUES (?, ?, ?, ?, ?)",
                (
                    # The colour is the player's: where it is White, the opponent was Black.
                    (match, ids[game.color], _winner(game), game.ending, game.plies)
                    for game in games
                ),
            )
        return True

    # ---- what is asked ----

    def results(
        self, conditions: Conditions, identities: Collection[str] | None = None
    ) -> list[PairResult]:
        """Wins, draws and losses of each two players with these colours, by identity.

        Args:
            conditions: under which they were played.
            identities: only games between these; all if None.
        """
        rows = self._ask(
            "SELECT black.identity, white.identity, sum(winner IS 'black'), sum(winner IS NULL),"
            " sum(winner IS 'white') FROM games JOIN matches ON matches.id = games.match"
            " JOIN players AS black ON black.id = games.black"
            " JOIN players AS white ON white.id = matches.player + matches.opponent - games.black"
            f" WHERE {_SAME_CONDITIONS} GROUP BY black.id, white.id ORDER BY black.id, white.id",
            astuple(conditions),
        )
        found = (PairResult(*row) for row in rows)
        if identities is None:
            return list(found)
        return [pair for pair in found if pair.black in identities and pair.white in identities]

    def games_between(self, player: Player, opponent: Player, conditions: Conditions) -> int:
        """How many games two players have played, with whichever colours."""
        pair = {player.identity, opponent.identity}
        return sum(result.games for result in self.results(conditions, pair))

    def seeds(self, player: Player, opponent: Player) -> set[int]:
        """The seeds of all matches of two players, under whichever conditions."""
        rows = self._ask(
            "SELECT seed FROM matches JOIN players AS one ON one.id = player"
            " JOIN players AS other ON other.id = opponent"
            " WHERE (one.identity = ? AND other.identity = ?)"
            " OR (other.identity = ? AND one.identity = ?)",
            (player.identity, opponent.identity) * 2,
        )
        return {seed for (seed,) in rows}

    def players(self, conditions: Conditions | None = None) -> list[StoredPlayer]:
        """All who have played, those of the oldest games first."""
        where = "" if conditions is None else f"WHERE {_SAME_CONDITIONS}"
        rows = self._ask(
            "SELECT identity, name, count(*) FROM players"
            " JOIN matches ON players.id IN (matches.player, matches.opponent)"
            f" JOIN games ON games.match = matches.id {where}"
            " GROUP BY players.id ORDER BY players.id",
            () if conditions is None else astuple(conditions),
        )
        return [StoredPlayer(*row) for row in rows]

    def conditions(self) -> list[tuple[Conditions, int]]:
        """Under which conditions games were played, and how many; the most first."""
        rows = self._ask(
            "SELECT opening_plies, ply_limit, declaration, openings, count(*) FROM matches"
            " JOIN games ON games.match = matches.id"
            " GROUP BY opening_plies, ply_limit, declaration, openings ORDER BY count(*) DESC"
        )
        return [(Conditions(*row[:-1]), row[-1]) for row in rows]

    # ---- how ----

    def _prepare(self, *, create: bool) -> None:
        """Refuse other files; make the tables of an empty one."""
        application, version = (
            self._ask(f"PRAGMA {name}")[0][0] for name in ("application_id", "user_version")
        )
        is_empty = not self._ask("SELECT 1 FROM sqlite_master LIMIT 1")
        if is_empty and application == version == 0:
            if not create:
                raise StoreError(f"there are no results in {self.path}: it is empty")
        elif application != APPLICATION_ID:
            raise StoreError(f"{self.path} is a database of another program, not one of results")
        elif version > FORMAT_VERSION:
            raise StoreError(
                f"{self.path} has format version {version}, but this Keisei ({__version__}) "
                f"reads up to version {FORMAT_VERSION}"
            )
        if create:
            with self._writing():
                # Another process may have been faster.
                if not self._ask("SELECT 1 FROM sqlite_master LIMIT 1"):
                    for statement in _SCHEMA.split(";"):
                        self._database.execute(statement)
                    self._database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                # Written in any case: only that shows whether the file can be written.
                self._database.execute(f"PRAGMA user_version = {FORMAT_VERSION}")

    def _player_id(self, player: Player) -> int:
        """The number of a player, who is entered if new; the name is the latest one."""
        self._database.execute(
            "INSERT INTO players (identity, name) VALUES (?, ?)"
            " ON CONFLICT (identity) DO UPDATE SET name = excluded.name",
            (player.identity, player.name),
        )
        rows = self._ask("SELECT id FROM players WHERE identity = ?", (player.identity,))
        return int(rows[0][0])

    def _new_match(self, key: tuple[object, ...]) -> int | None:
        """Enter a match; None if it is there already."""
        cursor = self._database.execute(
            f"INSERT INTO matches ({_KEY}, played_at, keisei) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (*key, datetime.now(UTC).isoformat(timespec="seconds"), __version__),
        )
        return cursor.lastrowid if cursor.rowcount else None

    def _begun_match(self, key: tuple[object, ...], games: int) -> int | None:
        """The match of which exactly so many games are stored; None if there is no such one."""
        rows = self._ask(
            f"SELECT id FROM matches WHERE ({_KEY}) = (?, ?, ?, ?, ?, ?, ?)"
            " AND (SELECT count(*) FROM games WHERE match = matches.id) = ?",
            (*key, games),
        )
        return int(rows[0][0]) if rows else None

    def _ask(self, query: str, values: tuple[object, ...] = ()) -> list[Any]:
        with _explained(self.path):
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction: all that happens in it, or nothing if it ends by an exception."""
        with _explained(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:  # SQLite itself may have rolled it back
                    self._database.execute("ROLLBACK")
                raise


def _winner(game: PlayedGame) -> str | None:
    return None if game.winner is None else game.winner.name.lower()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say in the user's words what SQLite complains about."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # not about the file but about what is to be written
    except sqlite3.Error as error:
        reason = {
            sqlite3.SQLITE_NOTADB: "it is no database of results",
            sqlite3.SQLITE_CORRUPT: "it is damaged",
            sqlite3.SQLITE_READONLY: "it is write-protected",
            sqlite3.SQLITE_BUSY: f"another process has locked it for {BUSY_SECONDS:.0f} seconds",
            sqlite3.SQLITE_FULL: "the disk is full",
            sqlite3.SQLITE_CANTOPEN: "it cannot be opened, or made",
        }.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error))
        raise StoreError(f"cannot use {path}: {reason}") from error
