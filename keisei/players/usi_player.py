"""A USI engine as a player of many games at once: some processes, among which games are shared.

>>> from keisei.usi.client import Limit
>>> player = UsiPlayer(UsiSettings(command=("gpsusi",), limit=Limit(depth=2)))  # doctest: +SKIP
>>> player.choose(env, games, random)  # doctest: +SKIP
array([12, 3, -1])
"""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from threading import Thread
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from keisei.errors import IllegalMoveError, KeiseiError, NotationError
from keisei.players.player import BROKE_RULES, FAILED, RESIGNS
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.sfen import STARTPOS_SFEN, format_sfen
from keisei.shogi.vector import VectorShogi
from keisei.system import usable_cpus
from keisei.usi.client import UsiEngine, UsiEngineError, UsiSettings

MOST_FAILURES: Final = 3
"""After so many processes in a row that failed at their first move, the engine is given up."""

logger = logging.getLogger(__name__)


class UsiPlayer:
    """Chooses moves for many games. What it is asked at the same time, it thinks about in turn.

    A process thinks about one game after the other and is sent the whole game each time, so any
    process can take any game. An engine that fails loses that game; the next one gets a new
    process.
    """

    name: str
    """What it is called in tables."""

    identity: str
    """What it calls itself, its options and its limit, in one line: what its rating belongs to."""

    def __init__(
        self, settings: UsiSettings, *, name: str | None = None, processes: int | None = None
    ) -> None:
        """Start one process, so that mistakes show at once; the others start when needed.

        Args:
            settings: which engine, set up how.
            name: what it is called in tables; what it calls itself if None.
            processes: how many run side by side; one for each usable CPU if None.
        """
        if processes is None:
            processes = usable_cpus()
        if processes < 1:
            raise KeiseiError(f"an engine needs at least 1 process, not {processes}")
        self._seats = [_Seat(settings) for _ in range(processes)]
        engine = self._seats[0].occupied()
        options = "".join(f" {option}={value}" for option, value in settings.options)
        self.name = name or engine.name
        self.identity = f"{engine.name}{options} {settings.limit}"

    def choose(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """``[B]``: for each of the `games` a legal_index of its legal list, or a code of `choices`.

        `random` is there because all players have it; engines draw their own numbers.
        """
        legal_indices = np.full(len(games), FAILED, dtype=np.int64)
        shares: list[list[_Question]] = [[] for _ in self._seats]
        for place, number in enumerate(games.tolist()):
            shares[place % len(shares)].append(_Question(place, number, env.game(number)))

        def play(seat: _Seat, share: list[_Question]) -> None:
            for question in share:
                # Of a game's first two plies one is this player's first.
                is_first = len(question.game.actions) <= env.opening_plies + 1
                answer = seat.ask(question, is_first=is_first)
                if answer is not None:
                    legal_indices[question.place] = self._legal_index(env, question, answer)

        try:
            _side_by_side(
                partial(play, seat, share)
                for seat, share in zip(self._seats, shares, strict=True)
                if share
            )
        except BaseException:  # after an interrupt some may still be thinking
            for seat in self._seats:
                seat.kill()
            raise
        return legal_indices

    def close(self) -> None:
        """End all processes. May be called more than once."""
        _side_by_side(seat.close for seat in self._seats)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity!r}, {len(self._seats)} processes>"

    def _legal_index(self, env: VectorShogi, question: "_Question", answer: str) -> int:
        """What an answer means. The rules are the environment's, whatever the engine thinks.

        A declaration is never right: where it would be, the environment has ended the game.
        """
        number, game = question.number, question.game
        if answer == "resign":
            return RESIGNS
        try:
            game.push(answer)
        except (IllegalMoveError, NotationError) as error:
            logger.warning("game %d: %s broke the rules: %s", number, self.name, error)
            return BROKE_RULES
        legal = env.legal_actions[number, : env.legal_counts[number]]
        return int(np.flatnonzero(legal == game.actions[-1])[0])


class _Question(NamedTuple):
    """A game to move in."""

    place: int
    """Where the answer goes."""

    number: int
    """Which game of the environment it is."""

    game: ShogiGame


class _Seat:
    """Where one engine process sits, and after it another."""

    def __init__(self, settings: UsiSettings) -> None:
        self._settings = settings
        self._engine: UsiEngine | None = None
        self._has_answered = False
        self._failures = 0
        self._is_closed = False

    def occupied(self) -> UsiEngine:
        """The engine that sits here, a new one where none is running."""
        if self._engine is None or not self._engine.is_running:
            self._require_open()
            engine = UsiEngine(self._settings)
            self._has_answered = False
            self._engine = engine
            if self._is_closed:  # while the engine started: who closed did not see it
                engine.kill()
                self._require_open()
        return self._engine

    def ask(self, question: _Question, *, is_first: bool) -> str | None:
        """The engine's answer, None if it failed; raises when there is no hope."""
        sfen = format_sfen(question.game.start)
        start = "startpos" if sfen == STARTPOS_SFEN else sfen
        try:
            engine = self.occupied()
            if is_first:
                engine.new_game()
            answer = engine.best_move(start, [move.usi for move in question.game.moves])
        except UsiEngineError as error:
            self._require_open()
            logger.warning("game %d: %s", question.number, error)
            self._failures = 0 if self._has_answered else self._failures + 1
            if self._failures == MOST_FAILURES:
                raise UsiEngineError(
                    f"given up after {MOST_FAILURES} processes that failed at their first move; "
                    f"the last one: {error}"
                ) from error
            return None
        self._failures, self._has_answered = 0, True
        return answer

    def close(self) -> None:
        """End the engine; none will sit here any more."""
        self._is_closed = True
        if self._engine is not None:
            self._engine.close()

    def kill(self) -> None:
        """The same, at once."""
        self._is_closed = True
        if self._engine is not None:
            self._engine.kill()

    def _require_open(self) -> None:
        if self._is_closed:
            raise UsiEngineError("the engine is asked for a move after it was closed")


def _side_by_side(calls: Iterable[Callable[[], None]]) -> None:
    """Make all calls, each in a thread; then raise the first error, if there was one.

    Daemons, as after an interrupt they must not keep the interpreter from ending.
    """
    errors: list[BaseException] = []

    def make(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 -- raised again in the calling thread
            errors.append(error)

    threads = [Thread(target=make, args=(call,), name="usi-player", daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.1)  # a wait without end can't be interrupted on Windows
    if errors:
        raise errors[0]
