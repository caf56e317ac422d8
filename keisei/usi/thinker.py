"""`Thinker`: chooses the move of the USI engine by rules, mate search and tree search."""

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.formats import centipawns
from keisei.network.loading import LoadedNetwork
from keisei.search.game_search import GameSearch
from keisei.search.mates import MateSearch
from keisei.search.mcts import PrincipalVariation
from keisei.search.tsume import MateSolver, MateStatus
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Move, PieceKind
from keisei.usi.limits import AnswerCost, Job, TimePlan
from keisei.usi.options import NEVER_RESIGNS, Settings
from keisei.usi.usi_io import UsiWriter, score_of

INFO_INTERVAL: Final = 0.5
"""Seconds between two ``info`` reports of a search."""

MATE_PLIES: Final = 3
"""Length of mates that are searched for before the tree search, as in ``RUN:search=N``."""

SIMULATIONS_PER_DEPTH: Final = 1_000
"""A search with ``depth`` ends after this many simulations per ply, even if its line is shorter."""

SLOW_BATCH_MEMORY: Final = 0.97
"""Decay per batch of the remembered slowest batch: on a busy machine slow batches recur."""

MAX_BATCH_SECONDS: Final = 0.5
"""Longer batches are treated as outliers, such as a suspended computer."""

BATCHES_NEAR_THE_END: Final = 6
"""Batches get smaller when fewer than this many of the slowest fit into the time left."""

BATCHES_KEPT_BACK: Final = 1.5
"""Number of the slowest batches that must fit into the time left for another one to start."""

CLOSE: Final = 0.5
"""Visits of the second move over those of the first from which on the two are close."""

HURRY: Final = 1.0
"""Seconds on a clock without byoyomi below which no mates are searched for."""

MATE_SLICE: Final = 1_000
"""Nodes of the mate solver between two looks at the clock: 5 to 25 ms."""

_MATE_IN_ONE: Final = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
_PLY_STEP: Final = 256
_ACTIONS: Final = PolicyOutputMapper()


class Decision(NamedTuple):
    """The engine's answer to ``go``."""

    move: str
    """USI move, ``resign`` or ``win``."""

    ponder: str | None = None
    """Expected reply, to ponder on."""

    def __str__(self) -> str:
        return self.move if self.ponder is None else f"{self.move} ponder {self.ponder}"


class Thinker:
    """Searches one position at a time, in the thread of the caller."""

    def __init__(self, load: Callable[[int], LoadedNetwork], writer: UsiWriter) -> None:
        """Create a thinker whose network `get_ready` will load.

        Args:
            load: loads the network, given the number of threads.
            writer: where ``info`` goes.
        """
        self._load = load
        self._writer = writer
        self._loaded: LoadedNetwork | None = None
        self._built_for: tuple[int, ...] = ()
        self._game: ShogiGame | None = ShogiGame()
        self._random = np.random.default_rng()
        self._seed = 0
        self._solver = MateSolver()
        self._slowest = 0.0
        """Seconds of the slowest recent batch."""

        self._cost = AnswerCost()
        self._searched = 0.0
        """Seconds of the present search that were planned for it."""

        self._search_start = 0.0

    @property
    def is_loaded(self) -> bool:
        """Whether a network is loaded."""
        return self._loaded is not None

    def is_ready_for(self, settings: Settings) -> bool:
        """Whether network and tree fit these settings."""
        return self._built_for == _build(settings)

    def get_ready(self, settings: Settings) -> None:
        """Load the network, allocate the tree and run every kernel once."""
        if self.is_ready_for(settings):
            return
        loaded = self._loaded
        if loaded is None or self._built_for[:1] != _build(settings)[:1]:
            loaded = self._load(settings.threads)
        search = self._new_search(loaded, settings)
        game = ShogiGame()
        search.begin(game, ply_limit=loaded.ply_limit)
        for _ in range(2):
            search.step()
        reply = search.variations()[0].actions
        search.begin(ShogiGame(_position_after(game, reply[:2])), ply_limit=loaded.ply_limit)
        search.clear()
        MateSearch(MATE_PLIES).line(game)
        for position in (game, ShogiGame(_MATE_IN_ONE)):
            self._solver.solve(position, 100)
        self._solver.clear()
        self._loaded, self._search = loaded, search
        self._built_for = _build(settings)

    def _new_search(self, loaded: LoadedNetwork, settings: Settings) -> GameSearch:
        """Return a search with the memory of the settings, or with the default if that fails."""
        megabytes, usual = settings.megabytes, Settings().megabytes
        while True:
            try:
                return GameSearch(loaded.predictor, batch_size=settings.batch, megabytes=megabytes)
            except MemoryError:
                if megabytes <= usual:
                    raise KeiseiError(f"not enough memory for a tree of {megabytes} MB") from None
                self._writer.send_info(
                    f"not enough memory for a tree of {megabytes} MB, using {usual} MB"
                )
                megabytes = usual

    def new_game(self) -> None:
        """Clear the tree and the mate solver."""
        if self._loaded is not None:
            self._search.clear()
        self._solver.clear()

    def forget_position(self) -> None:
        """Have no position, so that the next search is refused."""
        self._game = None

    def set_position(self, text: str) -> None:
        """Set the position from the arguments of ``position``; there is none after an error."""
        self._game = None
        game = ShogiGame(text)
        self._game = game

    def think(self, job: Job) -> Decision:
        """Return the answer to ``go``, not before the protocol allows it; needs `get_ready`."""
        game, self._searched = self._game, 0.0
        left, increment = (0.0, 0.0) if game is None else job.limits.clock(game.turn)
        if game is not None and left > 0.0:
            self._cost.asked(game.turn, game.ply, left, increment)
        decision = self._decide(job)
        job.wait_until_it_may_answer()
        start = job.clock_start
        if game is not None and left > 0.0 and start is not None and not job.limits.infinite:
            elapsed = time.monotonic() - start
            cost = elapsed - self._searched
            self._cost.answered(game.turn, game.ply, left, elapsed, cost)
        return decision

    def solve(self, job: Job) -> str:
        """Return the answer to ``go mate``, which follows ``checkmate``."""
        game = self._game
        if game is None:
            return "notimplemented"
        plan = self._plan(game, job)
        end = None if plan is None else job.arrival + plan.most
        if self._solver.is_full:
            self._solver.clear()
        verdict: MateStatus = MateStatus.UNKNOWN
        line: list[Move] = []
        while verdict is MateStatus.UNKNOWN and not job.is_stopped:
            if (end is not None and time.monotonic() >= end) or self._solver.is_full:
                break
            verdict, line = self._solver.solve(game, MATE_SLICE)
        if verdict is MateStatus.MATE:
            return " ".join(move.usi for move in line)
        if verdict is MateStatus.NO_MATE:
            return "nomate"
        job.wait_until_it_may_answer()  # without a time limit there is no timeout
        return "timeout"

    # ---- search ----

    def _decide(self, job: Job) -> Decision:
        game, settings = self._game, job.settings
        if game is None:
            self._writer.send_info("there is no legal position to search")
            return Decision("resign")
        if (
            sum(piece is not None and piece.kind is PieceKind.KING for piece in game.diagram.board)
            < 2
        ):
            self._writer.send_info("a king is missing: such positions are for 'go mate' only")
            return Decision("resign")
        game.declaration = settings.declaration
        if not len(game.legal_actions):
            self._report([PrincipalVariation((), -1.0, 0, 0.0, 0)], job)
            return Decision("resign")
        if game.can_declare:
            return Decision("win")
        only = self._allowed(game, job.limits.moves)
        is_hurried = 0.0 < job.limits.clock(game.turn)[0] < HURRY and not job.limits.byoyomi
        mate = [] if only is not None or is_hurried else self._short_mate(game, settings)
        if mate:
            actions = _actions_of(game, mate)
            line = PrincipalVariation(actions, 1.0, 0, 1.0, len(mate))
            self._report([line], job)
            return self._decision([line], settings)
        return self._decision(self._search_tree(game, job, only), settings)

    def _short_mate(self, game: ShogiGame, settings: Settings) -> list[Move]:
        assert self._loaded is not None
        plies = MATE_PLIES if settings.simulations else self._loaded.mate_plies
        if settings.mate_plies is not None:
            plies = settings.mate_plies
        return MateSearch(plies).line(game) if plies else []

    def _search_tree(
        self, game: ShogiGame, job: Job, only: npt.NDArray[np.uint16] | None
    ) -> list[PrincipalVariation]:
        search, settings = self._search, job.settings
        if settings.simulations == 0:
            search.clear()
        search.begin(
            game,
            ply_limit=self._ply_limit(game, settings),
            declaration=settings.declaration,
            only=only,
        )
        self._slowest /= 2  # after a very slow batch there might never be another
        done, reported = 0, time.monotonic()
        self._search_start = reported
        while True:
            now = time.monotonic()
            left = self._seconds_left(game, job, done, now)
            most = self._simulations_left(job, done)
            if (
                job.is_stopped
                or most == 0
                or search.is_proven
                or search.is_full
                or (left is not None and left <= BATCHES_KEPT_BACK * self._slowest)
                or (left is not None and done and len(game.legal_actions) == 1)
            ):
                break
            if left is not None and left <= BATCHES_NEAR_THE_END * self._slowest:
                smaller = max(1, search.step_size // 4)
                most = smaller if most is None else min(most, smaller)
            done += search.step(most)
            ended = time.monotonic()
            slow = min(ended - now, MAX_BATCH_SECONDS)
            self._slowest = max(slow, SLOW_BATCH_MEMORY * self._slowest)
            if ended - reported >= INFO_INTERVAL:
                lines = search.variations(settings.multipv)
                self._report(lines, job, done)
                reported = ended
                if job.limits.depth is not None and len(lines[0].actions) >= job.limits.depth:
                    break
            elif job.limits.depth is not None and (
                len(search.variations()[0].actions) >= job.limits.depth
            ):
                break
        self._note_search(game, job)
        lines = search.variations(settings.multipv)
        self._report(lines, job, done)
        if settings.spread:
            return [search.sample_policy(settings.spread, self._rng(settings))]
        if settings.temperature:
            return [search.sample(settings.temperature / 100, self._rng(settings))]
        return lines

    def _note_search(self, game: ShogiGame, job: Job) -> None:
        """Note the seconds of the search that has ended, as far as they were planned."""
        start, plan = job.clock_start, self._plan(game, job)
        if start is not None:
            spent = time.monotonic() - max(start, self._search_start)
            self._searched = spent if plan is None else min(spent, plan.most)

    def _seconds_left(self, game: ShogiGame, job: Job, done: int, now: float) -> float | None:
        """Return the time left for this move, 0 if it is better kept; None: no limit at present.

        After the usual time only a search continues whose best moves are close. It ends before, if
        the second move can't get as many visits as the first any more, and if time can be saved.
        """
        start = job.clock_start
        if start is None:
            return None
        plan = self._plan(game, job)
        if plan is None:
            return None
        usual_left, used = start + plan.usual - now, max(now - start, 1e-3)
        first, second = self._search.top_visits
        if usual_left <= BATCHES_KEPT_BACK * self._slowest:
            return start + plan.most - now if second >= CLOSE * first > 0 else 0.0
        if plan.is_saved and done and first - second > done / used * usual_left:
            return 0.0
        return usual_left

    def _plan(self, game: ShogiGame, job: Job) -> TimePlan | None:
        return job.limits.time_plan(
            game.turn,
            ply=game.ply,
            delay=job.settings.network_delay / 1000,
            reserve=self._cost.reserve(game.ply),
        )

    def _simulations_left(self, job: Job, done: int) -> int | None:
        """Return the number of simulations left; None: no limit."""
        limits, settings = job.limits, job.settings
        allowed = [number for number in (limits.nodes,) if number is not None]
        if settings.simulations >= 0:
            allowed.append(settings.simulations)
        if limits.depth is not None:
            allowed.append(max(1, limits.depth) * SIMULATIONS_PER_DEPTH)
        return max(0, min(allowed) - done) if allowed else None

    def _ply_limit(self, game: ShogiGame, settings: Settings) -> int:
        """Return the ply at which the game is a draw, beyond the current ply if that is past it."""
        assert self._loaded is not None
        if settings.max_moves > game.ply:
            return settings.max_moves
        return max(self._loaded.ply_limit, (game.ply // _PLY_STEP + 2) * _PLY_STEP)

    def _rng(self, settings: Settings) -> np.random.Generator:
        if settings.seed != self._seed:
            self._random = np.random.default_rng(settings.seed or None)
            self._seed = settings.seed
        return self._random

    def _allowed(self, game: ShogiGame, moves: Sequence[str]) -> npt.NDArray[np.uint16] | None:
        """Return the legal actions among some moves; None: no restriction."""
        allowed = []
        for text in moves:
            try:
                move = Move.from_usi(text)
                if not game.is_legal(move):
                    raise KeiseiError(f"{text} is not legal here")
                allowed.append(_ACTIONS.index(move, game.turn))
            except KeiseiError as error:
                self._writer.send_info(f"searchmoves: {error}")
        return np.array(allowed, dtype=np.uint16) if allowed else None

    # ---- output ----

    def _decision(self, lines: list[PrincipalVariation], settings: Settings) -> Decision:
        best = lines[0]
        is_lost = best.mate is not None and best.mate < 0
        score = 1 - NEVER_RESIGNS if is_lost else centipawns(best.value)
        if settings.resign_value < NEVER_RESIGNS and score <= -settings.resign_value:
            return Decision("resign")
        assert self._game is not None
        moves = _moves_of(self._game, best)
        expected = moves[1] if settings.ponder and len(moves) > 1 else None
        return Decision(moves[0], expected)

    def _report(self, lines: list[PrincipalVariation], job: Job, done: int | None = None) -> None:
        """Send the lines that were found by `done` simulations; None: without the tree."""
        assert self._game is not None
        seconds = max(time.monotonic() - job.arrival, 1e-3)
        # What was found without the tree leaves it as the search of an earlier move left it.
        nodes, deepest, full = 0, 0, 0
        if done is not None:
            nodes, deepest, full = done, self._search.max_depth, self._search.permille_full
        for number, line in enumerate(lines, 1):
            moves = " ".join(_moves_of(self._game, line))
            several = f" multipv {number}" if job.settings.multipv > 1 else ""
            self._writer.send(
                f"info depth {max(1, len(line.actions))} "
                f"seldepth {max(1, len(line.actions), deepest)}{several} "
                f"score {score_of(line)} nodes {nodes} nps {round(nodes / seconds)} "
                f"hashfull {full} time {round(1000 * seconds)}" + (f" pv {moves}" if moves else "")
            )


def _build(settings: Settings) -> tuple[int, ...]:
    """Return the settings that the tree depends on; the first also concerns the network."""
    return settings.threads, settings.batch, settings.megabytes


def _moves_of(game: ShogiGame, line: PrincipalVariation) -> list[str]:
    """Return a line as USI moves; a mate in one at its end is completed."""
    turn, moves = game.turn, []
    for action in line.actions:
        moves.append(_ACTIONS.move(action, turn).usi)
        turn = turn.opponent
    if line.mate is not None and abs(line.mate) == len(moves) + 1:
        end = ShogiGame(_position_after(game, line.actions)).mate_in_one()
        moves += [] if end is None else [end.usi]
    return moves


def _position_after(game: ShogiGame, actions: Sequence[int]) -> str:
    """Return the USI position of a game after some more moves."""
    turn, moves = game.turn, []
    for action in actions:
        moves.append(_ACTIONS.move(action, turn).usi)
        turn = turn.opponent
    text = game.usi_position()
    separator = "" if " moves " in text or not moves else " moves"
    return f"{text}{separator} {' '.join(moves)}".strip()


def _actions_of(game: ShogiGame, moves: Sequence[Move]) -> tuple[int, ...]:
    turn, actions = game.turn, []
    for move in moves:
        actions.append(_ACTIONS.index(move, turn))
        turn = turn.opponent
    return tuple(actions)
