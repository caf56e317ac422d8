"""`AnalysisSession`: a network that analyses for a person, in a thread: positions and games.

>>> session = AnalysisSession.load("builtin")  # doctest: +SKIP
>>> session.analyse(ShogiGame())  # doctest: +SKIP
>>> session.info.lines[0].moves, session.info.simulations  # a moment later  # doctest: +SKIP
((Move.from_usi('7g7f'), Move.from_usi('3c3d')), 51200)
>>> session.close()  # doctest: +SKIP

A position is searched until it is stopped, its result is proven or the memory is full, as by the
USI engine: the lines get longer and their values better all the time. The review of a game comes
in between.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from threading import Condition, Thread
from typing import Final, NamedTuple

import psutil

from keisei.analysis.game_analysis import MATE_PLIES, GameAnalysis, analyze_game, moves_of
from keisei.analysis.line_search import LineSearch
from keisei.constants import MAX_PLY_LIMIT
from keisei.errors import KeiseiError
from keisei.network.loading import LoadedNetwork, load_network
from keisei.search.mates import MateSearch
from keisei.search.mcts import SearchStoppedError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.types import Color, Move, PieceKind

MAX_MEGABYTES: Final = 1024
"""Largest tree where nothing else is said; the system provides the memory as the tree grows."""

_MIN_MEGABYTES: Final = 64
_SHARE_OF_MEMORY: Final = 16
"""A tree may take one part in 16 of the memory that is free: several people may analyse."""

MAX_LINES: Final = 10
"""Lines of a `SearchInfo`, at most."""

REPORT_INTERVAL: Final = 0.2
"""Seconds between two reports of a search."""

_SEARCHED_PLIES: Final = 256
"""Plies that a search may look ahead before it meets a ply limit."""

_CLOSE_TIMEOUT: Final = 10.0

logger = logging.getLogger(__name__)


class SearchStatus(Enum):
    """What the search of a position is doing, or why it has ended."""

    RUNNING = "running"
    STOPPED = "stopped"
    PROVEN = "proven"
    """More simulations cannot change the result."""

    FULL = "full"
    """There is no memory for more simulations."""

    OVER = "over"
    """The game is over in this position."""


class SearchLine(NamedTuple):
    """A move and the play that the search expects after it."""

    moves: tuple[Move, ...]
    value: float
    """For the side to move, from -1 to 1."""

    visits: int
    """Simulations of the first move."""

    mate: int | None = None
    """Plies to a proven mate, negative if the side to move is mated; None without one."""


@dataclass(frozen=True)
class SearchInfo:
    """A report of the search of a position."""

    game: ShogiGame
    """The position; not to be changed."""

    status: SearchStatus = SearchStatus.RUNNING
    lines: tuple[SearchLine, ...] = ()
    """The best moves, best first, up to `MAX_LINES`: the first `AnalysisSession.lines` of them were
    searched, the others looked at."""

    simulations: int = 0
    depth: int = 0
    """Plies of the longest simulation."""

    seconds: float = 0.0
    """Time that was searched."""

    @property
    def turn(self) -> Color:
        """The side to move."""
        return self.game.turn

    def chances(self, color: Color) -> float | None:
        """Return the expected score of a side, from 0 to 1; None before it is known."""
        if not self.lines:
            return None
        value = self.lines[0].value
        return (1.0 + (value if color is self.turn else -value)) / 2.0


@dataclass(frozen=True)
class _Review:
    """A game to be reviewed."""

    record: GameRecord
    simulations: int
    done: Callable[[GameAnalysis | KeiseiError], None]


class AnalysisSession:
    """A network that searches one position at a time, and reviews games, in its own thread."""

    def __init__(self, network: LoadedNetwork, *, megabytes: int | None = None) -> None:
        """Start the thread; it waits for something to analyse.

        Args:
            network: used by this session only, because predictors are not thread-safe.
            megabytes: how large the tree may grow; None: by the memory that is free.
        """
        self.name = network.name
        self.lines = 1
        """Number of lines that are searched, 1 to `MAX_LINES`; may be changed at any time."""

        self._network = network
        self._megabytes = _free_share() if megabytes is None else megabytes
        self._search: LineSearch | None = None
        self._changed = Condition()
        self._wanted: ShogiGame | None = None
        """The position to be searched; None: none."""
        self._finished: ShogiGame | None = None
        """The position whose search has ended, or was stopped."""
        self._reviews: list[_Review] = []
        self._current_review: _Review | None = None
        self._info: SearchInfo | None = None
        self._problem = ""
        self._is_closed = False
        self._thread = Thread(target=self._run, name="analysis", daemon=True)
        self._thread.start()

    @classmethod
    def load(
        cls, path: str | Path, *, threads: int = 0, megabytes: int | None = None
    ) -> "AnalysisSession":
        """Load a network, by anything that `load_network` accepts, and make a session of it."""
        return cls(load_network(Path(path), threads=threads), megabytes=megabytes)

    # ---- called by others ----

    @property
    def info(self) -> SearchInfo | None:
        """The last report on the position that was asked for; None before the first."""
        return self._info

    @property
    def problem(self) -> str:
        """Why the search has failed; empty if it has not."""
        return self._problem

    def analyse(self, game: ShogiGame) -> None:
        """Search a position, in place of the one before; what the tree knows of it is kept.

        Raises:
            KeiseiError: A king is missing: networks have never seen such positions.
        """
        require_kings(game)
        with self._changed:
            self._wanted, self._problem = game.copy(), ""
            self._info = SearchInfo(self._wanted)
            self._changed.notify()

    def stop(self) -> None:
        """Stop the search; its last report remains."""
        with self._changed:
            self._wanted = None
            if self._info is not None and self._info.status is SearchStatus.RUNNING:
                self._info = replace(self._info, status=SearchStatus.STOPPED)
            self._changed.notify()

    def review(
        self,
        record: GameRecord,
        simulations: int,
        done: Callable[[GameAnalysis | KeiseiError], None],
    ) -> None:
        """Analyse all positions of a game's main line as soon as possible.

        Args:
            record: the game.
            simulations: of each position; 0: the network alone.
            done: called with the result in this session's thread; it must return soon.
        """
        with self._changed:
            self._reviews.append(_Review(record, simulations, done))
            self._changed.notify()

    def stop_reviews(self) -> None:
        """Drop all reviews, the one that is being made too: none of them is answered."""
        with self._changed:
            self._reviews.clear()
            self._current_review = None

    def close(self) -> None:
        """End the thread and release the memory; reviews are dropped."""
        self.stop_reviews()
        with self._changed:
            self._is_closed, self._wanted = True, None
            self._changed.notify()
        self._thread.join(_CLOSE_TIMEOUT)
        self._search = None

    # ---- in the thread ----

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._is_closed or self._reviews or self._wanted is not self._finished
                )
                if self._is_closed:
                    return
                review = self._current_review = self._reviews.pop(0) if self._reviews else None
                wanted = self._wanted
            if review is not None:
                self._run_review(review)
                continue
            if wanted is not None:
                try:
                    self._search_position(wanted)
                except Exception as error:  # a page would wait for ever
                    logger.exception("the analysis of %s failed", wanted.sfen())
                    self._problem = f"the search failed: {error!r}"
                if self._reviews and self._wanted is wanted and self._is_running:
                    continue  # the search continues after the review
            self._finished = wanted

    def _run_review(self, review: _Review) -> None:
        network = self._network
        answer: GameAnalysis | KeiseiError
        try:
            answer = analyze_game(
                review.record,
                network.predictor,
                name=network.name,
                simulations=review.simulations,
                ply_limit=network.ply_limit,
                should_stop=lambda: self._current_review is not review,
            )
        except SearchStoppedError:
            return
        except KeiseiError as error:
            answer = error
        except Exception as error:  # a page would wait for ever
            logger.exception("the review of a game failed")
            answer = KeiseiError(f"the review failed: {error!r}")
        with self._changed:  # not after `stop_reviews` has returned
            if self._current_review is review:
                review.done(answer)

    @property
    def _is_running(self) -> bool:
        return self._info is not None and self._info.status is SearchStatus.RUNNING

    def _search_position(self, game: ShogiGame) -> None:
        """Search until the position is no longer wanted, or there is nothing left to search."""
        before = self._info.seconds if self._info is not None else 0.0
        if game.outcome() is not None:
            self._report(SearchInfo(game, SearchStatus.OVER))
            return
        mate = MateSearch(MATE_PLIES).line(game)
        if mate:
            line = SearchLine(tuple(mate), 1.0, 0, len(mate))
            self._report(SearchInfo(game, SearchStatus.PROVEN, (line,), depth=len(mate)))
            return
        search = self._search = self._search or LineSearch(
            self._network.predictor, megabytes=self._megabytes
        )
        limit = min(max(self._network.ply_limit, game.ply + _SEARCHED_PLIES), MAX_PLY_LIMIT)
        search.begin(game, ply_limit=limit)
        start = reported = time.monotonic()
        while self._wanted is game and not self._reviews:
            if search.is_proven:
                status = SearchStatus.PROVEN
            elif search.is_full:
                status = SearchStatus.FULL
            else:
                status = SearchStatus.RUNNING
                search.step(self.lines)
            now = time.monotonic()
            if status is not SearchStatus.RUNNING or now - reported >= REPORT_INTERVAL:
                self._report(_info(game, search, status, before + now - start))
                reported = now
            if status is not SearchStatus.RUNNING:
                return
        self._report(_info(game, search, SearchStatus.RUNNING, before + time.monotonic() - start))

    def _report(self, info: SearchInfo) -> None:
        with self._changed:
            if self._wanted is info.game:
                self._info = info
            elif self._info is not None and self._info.game is info.game:  # stopped meanwhile
                self._info = replace(info, status=SearchStatus.STOPPED)


def _free_share() -> int:
    """Return how many megabytes a tree may take."""
    free = psutil.virtual_memory().available // (1_000_000 * _SHARE_OF_MEMORY)
    return int(max(_MIN_MEGABYTES, min(free, MAX_MEGABYTES)))


def require_kings(game: ShogiGame) -> None:
    """Raise `KeiseiError` unless both kings are on the board."""
    kings = [piece for piece in game.diagram.board if piece and piece.kind is PieceKind.KING]
    if len(kings) < len(Color):
        missing = Color.WHITE if kings[0].color is Color.BLACK else Color.BLACK
        raise KeiseiError(
            f"{missing.name.title()}'s king is missing: networks analyse positions with both kings"
        )


def _info(game: ShogiGame, search: LineSearch, status: SearchStatus, seconds: float) -> SearchInfo:
    lines = tuple(
        SearchLine(moves_of(found.actions, game.turn), found.value, found.visits, found.mate)
        for found in search.lines(MAX_LINES)
    )
    return SearchInfo(game, status, lines, search.simulations, search.max_depth, seconds)
