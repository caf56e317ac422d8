"""A USI engine as a player of many games at once: the games are shared among some processes.

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

MAX_FAILURES: Final = 3
"""Processes in a row that may fail at their first move before the engine is given up."""

logger = logging.getLogger(__name__)


class UsiPlayer:
    """Chooses moves by some processes of a USI engine.

    A process searches one game after the other and is sent the whole game each time, so any process
    can take any game. An engine that fails loses that game; the next game gets a new process.
    """

    name: str
    """Name in tables."""

    identity: str
    """The engine's own name, its options and its limit, in one line."""

    def __init__(
        self, settings: UsiSettings, *, name: str | None = None, processes: int | None = None
    ) -> None:
        """Start one process, so that mistakes show at once; the others start when needed.

        Args:
            settings: command, options and limit of the engine.
            name: name in tables; the engine's own if None.
            processes: number of processes; one for each usable CPU if None.
        """
        if processes is None:
            processes = usable_cpus()
        if processes < 1:
            raise KeiseiError(f"an engine needs at least 1 process, not {processes}")
        self._slots = [_Slot(settings) for _ in range(processes)]
        engine = self._slots[0].running_engine()
        options = "".join(f" {option}={value}" for option, value in settings.options)
        self.name = name or engine.name
        self.identity = f"{engine.name}{options} {settings.limit}"

    def choose(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Choose a legal index, or a code below 0, for each of the `games`, ``[G]``.

        `random` is not used: engines have their own generators.
        """
        legal_indices = np.full(len(games), FAILED, dtype=np.int64)
        shares: list[list[_Request]] = [[] for _ in self._slots]
        for row, number in enumerate(games.tolist()):
            shares[row % len(shares)].append(_Request(row, number, env.game(number)))

        def play(slot: _Slot, share: list[_Request]) -> None:
            for request in share:
                # One of a game's first two plies is this player's first.
                is_first = len(request.game.actions) <= env.opening_plies + 1
                answer = slot.answer(request, is_first=is_first)
                if answer is not None:
                    legal_indices[request.row] = self._legal_index(env, request, answer)

        try:
            _run_in_threads(
                partial(play, slot, share)
                for slot, share in zip(self._slots, shares, strict=True)
                if share
            )
        except BaseException:  # after an interrupt, engines may still be searching
            for slot in self._slots:
                slot.kill()
            raise
        return legal_indices

    def close(self) -> None:
        """End all processes. May be called more than once."""
        _run_in_threads(slot.close for slot in self._slots)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity!r}, {len(self._slots)} processes>"

    def _legal_index(self, env: VectorShogi, request: "_Request", answer: str) -> int:
        """Return the legal index of an answer, or a code below 0, by the rules of the environment.

        A declaration is always wrong: where it is right, the environment has ended the game.
        """
        number, game = request.number, request.game
        if answer == "resign":
            return RESIGNS
        try:
            game.push(answer)
        except (IllegalMoveError, NotationError) as error:
            logger.warning("game %d: %s broke the rules: %s", number, self.name, error)
            return BROKE_RULES
        legal = env.legal_actions[number, : env.legal_counts[number]]
        return int(np.flatnonzero(legal == game.actions[-1])[0])


class _Request(NamedTuple):
    """A game to choose a move for."""

    row: int
    """Index of the answer."""

    number: int
    """Index of the game in the environment."""

    game: ShogiGame


class _Slot:
    """A place for one engine process, and for its successors."""

    def __init__(self, settings: UsiSettings) -> None:
        self._settings = settings
        self._engine: UsiEngine | None = None
        self._has_answered = False
        self._failures = 0
        self._is_closed = False

    def running_engine(self) -> UsiEngine:
        """Return the running engine; start one where none is running."""
        if self._engine is None or not self._engine.is_running:
            self._require_open()
            engine = UsiEngine(self._settings)
            self._has_answered = False
            self._engine = engine
            if self._is_closed:  # closed while the engine started
                engine.kill()
                self._require_open()
        return self._engine

    def answer(self, request: _Request, *, is_first: bool) -> str | None:
        """Return the engine's answer, None if it failed; raise after too many failures."""
        sfen = format_sfen(request.game.start)
        start = "startpos" if sfen == STARTPOS_SFEN else sfen
        try:
            engine = self.running_engine()
            if is_first:
                engine.new_game()
            answer = engine.best_move(start, [move.usi for move in request.game.moves])
        except UsiEngineError as error:
            self._require_open()
            logger.warning("game %d: %s", request.number, error)
            self._failures = 0 if self._has_answered else self._failures + 1
            if self._failures == MAX_FAILURES:
                raise UsiEngineError(
                    f"given up after {MAX_FAILURES} processes that failed at their first move; "
                    f"the last one: {error}"
                ) from error
            return None
        self._failures, self._has_answered = 0, True
        return answer

    def close(self) -> None:
        """End the engine; no other will be started."""
        self._is_closed = True
        if self._engine is not None:
            self._engine.close()

    def kill(self) -> None:
        """Kill the engine; no other will be started."""
        self._is_closed = True
        if self._engine is not None:
            self._engine.kill()

    def _require_open(self) -> None:
        if self._is_closed:
            raise UsiEngineError("the engine was closed: it cannot choose a move")


def _run_in_threads(calls: Iterable[Callable[[], None]]) -> None:
    """Make all calls, each in a thread of its own; then raise the first error, if there was one.

    Daemon threads, as after an interrupt they must not keep the interpreter from ending.
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
            thread.join(0.1)  # without a timeout, it cannot be interrupted on Windows
    if errors:
        raise errors[0]
