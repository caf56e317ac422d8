"""`ResultStore`: an SQLite file of games, their players and the conditions they were played under.

A ladder grows over years, so results must not get lost: the games of a match are added in one
transaction, which survives a power cut as a whole or not at all. Several processes may use the file
at the same time. It uses SQLite's rollback journal instead of the write-ahead log, so that there is
a single file to copy.
"""

import hashlib
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

from keisei import __version__
from keisei.errors import KeiseiError
from keisei.evaluation import DEFAULT_OPENING_PLIES, DEFAULT_PLY_LIMIT
from keisei.evaluation.match import MatchSettings, PlayedGame
from keisei.evaluation.ratings import PairResult
from keisei.evaluation.score import Score
from keisei.players.player import Player
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.types import Color
from keisei.system import make_directory

FORMAT_VERSION: Final = 1
"""The file's ``user_version``: raised by each change that older versions cannot read."""

APPLICATION_ID: Final = 0x4B534C44
"""SQLite application id of result stores (``KSLD``)."""

LOCK_TIMEOUT: Final = 30.0
"""Seconds to wait for another process's transaction, which takes milliseconds."""

CHUNK_GAMES: Final = 64
"""Games that are stored in one transaction, and lost together if the process dies before it."""

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
    """A result store that cannot be used; the message names the file and the reason."""


@dataclass(frozen=True, order=True)
class Conditions:
    """Conditions of games. Only games under the same conditions can be rated together."""

    opening_plies: int = DEFAULT_OPENING_PLIES
    ply_limit: int = DEFAULT_PLY_LIMIT
    declaration: str = "points 27"
    openings: str = "startpos"
    """``startpos``, or the number of start positions with a checksum."""

    @classmethod
    def of(cls, settings: MatchSettings) -> Self:
        """Return the conditions of a match."""
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
    """A player with stored games."""

    identity: str
    name: str
    games: int


def score_of(results: Iterable[PairResult], identity: str, opponent: str | None = None) -> Score:
    """Return a player's score against one opponent, or against all."""
    black, white = [0, 0, 0], [0, 0, 0]
    for result in results:
        wins, draws, losses = result.wins, result.draws, result.losses
        if result.black == identity and opponent in (None, result.white):
            black = [black[0] + wins, black[1] + draws, black[2] + losses]
        elif result.white == identity and opponent in (None, result.black):
            white = [white[0] + losses, white[1] + draws, white[2] + wins]
    return Score((black[0], black[1], black[2]), (white[0], white[1], white[2]))


class ResultStore:
    """A file of results. Close it, or use it in a ``with`` block."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open a file.

        Args:
            path: the file.
            create: create the file and its directory if missing; the file must be writable.

        Raises:
            KeiseiError: The file is missing, not a result store, or not writable.
        """
        self.path = path
        if create:
            make_directory(path.parent)
        elif not path.is_file():
            raise StoreError(f"there are no results in {path}: the file does not exist")
        with _explained(path):
            # This class begins and ends its transactions itself.
            self._database = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None)
        try:
            self._query("PRAGMA foreign_keys = ON")
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

    # ---- writing ----

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
            player: the first player, to whom the colours of the games refer.
            opponent: the second player.
            games: the results.
            conditions: the conditions of the match.
            seed: the seed of the match.
            after: number of games of the match that are stored already, which these follow.

        Returns:
            False if the store holds a different number of games of that match (same players,
            conditions and seed): another process has played it, and nothing is added.

        Raises:
            StoreError: The file cannot be written, or the players are the same.
        """
        if player.identity == opponent.identity:
            raise StoreError(
                f"{player.name} played against itself, which says nothing about its strength"
            )
        with self._writing():
            ids = {Color.BLACK: self._player_id(player), Color.WHITE: self._player_id(opponent)}
            key = (*sorted(ids.values()), seed, *astuple(conditions))
            match = self._begun_match(key, after) if after else self._new_match(key)
            if match is None:
                return False
            self._database.executemany(
                "INSERT INTO games (match, black, winner, ending, plies) VALUES (?, ?, ?, ?, ?)",
                (
                    # `color` is the first player's; where it is White, the opponent was Black.
                    (match, ids[game.color], _winner(game), game.ending, game.plies)
                    for game in games
                ),
            )
        return True

    # ---- queries ----

    def results(
        self, conditions: Conditions, identities: Collection[str] | None = None
    ) -> list[PairResult]:
        """Return wins, draws and losses for each pair of identities and colours.

        Args:
            conditions: the conditions of the games.
            identities: count only games between these players; None: all.
        """
        rows = self._query(
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
        """Return the number of games between two players, with any colours."""
        pair = {player.identity, opponent.identity}
        return sum(result.games for result in self.results(conditions, pair))

    def seeds(self, player: Player, opponent: Player) -> set[int]:
        """Return the seeds of all matches between two players, under any conditions."""
        rows = self._query(
            "SELECT seed FROM matches JOIN players AS one ON one.id = player"
            " JOIN players AS other ON other.id = opponent"
            " WHERE (one.identity = ? AND other.identity = ?)"
            " OR (other.identity = ? AND one.identity = ?)",
            (player.identity, opponent.identity) * 2,
        )
        return {seed for (seed,) in rows}

    def unused_seed(self, player: Player, opponent: Player, *, first: int = 0) -> int:
        """Return the lowest seed, from `first` on, with which two players have not played."""
        taken = self.seeds(player, opponent)
        return next(seed for seed in count(first) if seed not in taken)

    def players(self, conditions: Conditions | None = None) -> list[StoredPlayer]:
        """Return all players, those of the oldest games first."""
        where = "" if conditions is None else f"WHERE {_SAME_CONDITIONS}"
        rows = self._query(
            "SELECT identity, name, count(*) FROM players"
            " JOIN matches ON players.id IN (matches.player, matches.opponent)"
            f" JOIN games ON games.match = matches.id {where}"
            " GROUP BY players.id ORDER BY players.id",
            () if conditions is None else astuple(conditions),
        )
        return [StoredPlayer(*row) for row in rows]

    def conditions(self) -> list[tuple[Conditions, int]]:
        """Return the conditions of the games with their number, the most frequent first."""
        rows = self._query(
            "SELECT opening_plies, ply_limit, declaration, openings, count(*) FROM matches"
            " JOIN games ON games.match = matches.id"
            " GROUP BY opening_plies, ply_limit, declaration, openings ORDER BY count(*) DESC"
        )
        return [(Conditions(*row[:-1]), row[-1]) for row in rows]

    # ---- internals ----

    def _prepare(self, *, create: bool) -> None:
        """Refuse files of other programs; create the tables of an empty file."""
        application, version = (
            self._query(f"PRAGMA {name}")[0][0] for name in ("application_id", "user_version")
        )
        is_empty = not self._query("SELECT 1 FROM sqlite_master LIMIT 1")
        if is_empty and application == version == 0:
            if not create:
                raise StoreError(f"there are no results in {self.path}: the file is empty")
        elif application != APPLICATION_ID:
            raise StoreError(f"{self.path} is the database of another program, not a result store")
        elif version > FORMAT_VERSION:
            raise StoreError(
                f"{self.path} has format version {version}, but this Keisei ({__version__}) "
                f"reads up to version {FORMAT_VERSION}"
            )
        if create:
            with self._writing():
                # Another process may have been faster.
                if not self._query("SELECT 1 FROM sqlite_master LIMIT 1"):
                    for statement in _SCHEMA.split(";"):
                        self._database.execute(statement)
                    self._database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                # Written in any case, to find out whether the file is writable.
                self._database.execute(f"PRAGMA user_version = {FORMAT_VERSION}")

    def _player_id(self, player: Player) -> int:
        """Return the id of a player, inserted if new; its name is updated."""
        self._database.execute(
            "INSERT INTO players (identity, name) VALUES (?, ?)"
            " ON CONFLICT (identity) DO UPDATE SET name = excluded.name",
            (player.identity, player.name),
        )
        rows = self._query("SELECT id FROM players WHERE identity = ?", (player.identity,))
        return int(rows[0][0])

    def _new_match(self, key: tuple[object, ...]) -> int | None:
        """Insert a match and return its id; None if it exists already."""
        cursor = self._database.execute(
            f"INSERT INTO matches ({_KEY}, played_at, keisei) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (*key, datetime.now(UTC).isoformat(timespec="seconds"), __version__),
        )
        return cursor.lastrowid if cursor.rowcount else None

    def _begun_match(self, key: tuple[object, ...], games: int) -> int | None:
        """Return the id of the match with exactly this number of games; None if there is none."""
        rows = self._query(
            f"SELECT id FROM matches WHERE ({_KEY}) = (?, ?, ?, ?, ?, ?, ?)"
            " AND (SELECT count(*) FROM games WHERE match = matches.id) = ?",
            (*key, games),
        )
        return int(rows[0][0]) if rows else None

    def _query(self, query: str, values: tuple[object, ...] = ()) -> list[Any]:
        with _explained(self.path):
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run a transaction, rolled back if it raises."""
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
    """Turn errors of SQLite into a `StoreError` with a plain reason."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # caused by the data, not by the file
    except sqlite3.Error as error:
        reason = {
            sqlite3.SQLITE_NOTADB: "it is not a result store",
            sqlite3.SQLITE_CORRUPT: "it is damaged",
            sqlite3.SQLITE_READONLY: "it is write-protected",
            sqlite3.SQLITE_BUSY: f"another process has locked it for {LOCK_TIMEOUT:.0f} seconds",
            sqlite3.SQLITE_FULL: "the disk is full",
            sqlite3.SQLITE_CANTOPEN: "it cannot be opened or created",
        }.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error))
        raise StoreError(f"cannot use {path}: {reason}") from error
