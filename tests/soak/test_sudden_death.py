"""Games at 10 seconds for everything, on a machine that is busy: none is lost on time.

Keisei plays another copy of itself, which thinks for a fixed time of the same clock, as a control:
what the machine takes from that one, the engine could not have helped. ``KEISEI_SOAK_GAMES`` is the
number of games (200), ``KEISEI_SOAK_BUSY`` that of busy processes beside each (3). These are other
games: in each of them one engine computes.
"""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keisei.shogi.game import ShogiGame
from keisei.system import module_environment
from tests.soak.summary import note, setting

pytestmark = pytest.mark.soak

GAMES = int(setting("GAMES", 200))
BUSY = int(setting("BUSY", 3))
SECONDS = setting("SECONDS", 10)
MAX_PLIES = 320
BOARDS = BUSY + 1
"""Games at a time: each is played beside the others. The last ones go on beside games that do not
count."""

CONTROL_MOVES = 60
"""The control uses this part of its clock for each move."""


class Engine:
    """``keisei usi`` with a clock, kept as a match runner keeps it: from ``go`` to ``bestmove``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "keisei", "usi", "--set", "NetworkDelay=0"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=module_environment(OMP_NUM_THREADS="1"),
        )
        self.left = 0.0
        self.send("isready")
        self.until("readyok")

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def until(self, word: str) -> str:
        assert self._process.stdout is not None
        while not (line := self._process.stdout.readline()).startswith(word):
            assert line, "the engine has ended"
        return line

    def new_game(self) -> None:
        self.left = SECONDS
        self.send("usinewgame")
        self.send("isready")
        self.until("readyok")

    def move(self, game: ShogiGame, limits: str) -> str:
        """Return the answer; the time until then is taken off the clock."""
        self.send(f"position {game.usi_position()}")
        start = time.perf_counter()
        self.send(f"go {limits}")
        answer = self.until("bestmove").split()[1]
        self.left -= time.perf_counter() - start
        return answer

    def close(self) -> None:
        self.send("quit")
        self._process.wait(30)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def play(engine: Engine, control: Engine, number: int) -> tuple[str | None, int]:
    """Play a game; return who lost on time, if anyone, and the number of plies."""
    game = ShogiGame()
    for move in (
        ("7g7f", "2g2f", "5g5f", "9g9f")[number // 2 % 4],
        ("3c3d", "8c8d")[number // 8 % 2],
    ):
        game.push(move)
    for one in (engine, control):
        one.new_game()
    while game.ply < MAX_PLIES and game.outcome() is None:
        is_engine = (game.ply % 2 == 0) == (number % 2 == 0)
        if is_engine:
            ours, theirs = round(1000 * engine.left), round(1000 * control.left)
            times = (ours, theirs) if game.ply % 2 == 0 else (theirs, ours)
            answer = engine.move(game, f"btime {times[0]} wtime {times[1]}")
        else:
            part = max(1, round(1000 * control.left / CONTROL_MOVES))
            answer = control.move(game, f"movetime {part}")
        if engine.left <= 0.0 or control.left <= 0.0:
            return ("engine" if engine.left <= 0.0 else "control"), game.ply
        if answer in ("resign", "win"):
            break
        game.push(answer)
    return None, game.ply


@dataclass
class Board:
    """Where one of the games that run side by side takes place, and how they ended."""

    lost: Counter[str] = field(default_factory=Counter)
    plies: int = 0
    least: float = SECONDS

    def play_all(self, numbers: Iterator[int]) -> None:
        engine, control = Engine(), Engine()
        try:
            for number in numbers:
                loser, length = play(engine, control, number)
                if number >= GAMES:
                    continue
                self.plies += length
                self.least = min(self.least, engine.left)
                if loser is not None:
                    self.lost[loser] += 1
        finally:
            engine.close()
            control.close()


def test_no_game_is_lost_on_time() -> None:
    start = time.monotonic()
    boards = [Board() for _ in range(BOARDS)]
    numbers = iter(range(GAMES + BUSY))  # those of ranges are safe in threads
    with ThreadPoolExecutor(BOARDS) as threads:
        list(threads.map(Board.play_all, boards, [numbers] * BOARDS))
    lost = sum((board.lost for board in boards), Counter())
    result = (
        f"lost on time: {lost['engine']}, control engine {lost['control']}; "
        f"{sum(board.plies for board in boards):,} plies, "
        f"at least {min(board.least for board in boards):.1f} s left"
    )
    note(f"sudden death, {SECONDS:g} s + 0", f"{GAMES} games, {BUSY} busy", result, since=start)
    assert lost["engine"] == 0
