"""Whole games against another engine, run by cshogi's match runner.

The runner is that of cshogi: it knows the rules, and ends a game at an illegal move or when a clock
has run out. It does not mind what comes of the byoyomi, so that is measured here.
"""

import importlib.util
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import keisei
from tests.tiny_runs import tiny_run

FAIRY_STOCKFISH = shutil.which("fairy-stockfish") or shutil.which(
    "fairy-stockfish", path="/usr/games"
)
BYOYOMI = int(os.environ.get("KEISEI_MATCH_BYOYOMI", "100"))
"""Milliseconds a move, for both."""

ILLEGAL_MOVE = ("反則負け", "反則勝ち")
TIME_UP = "切れ負け"
"""End of the runner's line about a game that was lost by a fault."""

pytestmark = [
    pytest.mark.skipif(FAIRY_STOCKFISH is None, reason="fairy-stockfish is not installed"),
    pytest.mark.skipif(importlib.util.find_spec("cshogi") is None, reason="cshogi is missing"),
    pytest.mark.skipif(sys.platform == "win32", reason="the runner starts a shell script"),
]


class MatchReport(NamedTuple):
    """Result of a match."""

    result: dict[str, Any]
    endings: list[str]
    """The runner's line about each game."""

    last_answers: list["Answer"]
    """The last answer of each game."""

    seconds: dict[str, list[float]]
    """Seconds that each engine used per move, by name."""

    @property
    def faults(self) -> list[tuple[str, "Answer"]]:
        """Games lost by a fault: the runner's verdict, and the answer that caused it."""
        games = zip(self.endings, self.last_answers, strict=True)
        words = (*ILLEGAL_MOVE, TIME_UP)
        return [(end, last) for end, last in games if any(word in end for word in words)]


class Answer(NamedTuple):
    """Answer of an engine in a position."""

    engine: str
    moves: str
    answer: str


def play_match(directory: Path, run: Path, games: int, *options: str) -> MatchReport:
    """Keisei against Fairy-Stockfish, colours alternating."""
    from cshogi import cli
    from cshogi.usi import Engine

    seconds: dict[str, list[float]] = {}
    answers: list[Answer] = []
    last_answers: list[Answer] = []

    class TimedEngine(Engine):  # type: ignore[misc]  # cshogi has no types
        def go(self, **limits: Any) -> tuple[str, str | None]:
            start = time.perf_counter()
            answer: tuple[str, str | None] = super().go(**limits)
            seconds.setdefault(self.name, []).append(time.perf_counter() - start)
            answers.append(Answer(self.name, self.played, answer[0]))
            return answer

        def position(self, moves: list[str], **settings: Any) -> None:
            self.played = " ".join(moves)
            super().position(moves, **settings)

        def gameover(self, **settings: Any) -> None:
            if answers:  # the second engine gets the same game
                last_answers.append(answers[-1])
                answers.clear()
            super().gameover(**settings)

        def quit(self, **settings: Any) -> None:
            process = self.proc
            super().quit(**settings)
            for pipe in (process.stdin, process.stdout, process.stderr):  # cshogi leaves them open
                pipe.close()

    command = [sys.executable, "-m", "keisei", "usi", str(run.resolve()), *options]
    script = directory / "keisei-usi"
    package = shlex.quote(str(Path(keisei.__file__).parents[1]))
    script.write_text(f"#!/bin/sh\nPYTHONPATH={package} exec {shlex.join(command)}\n", "utf-8")
    script.chmod(0o755)
    record = directory / "games.txt"  # readable during the match
    main: Callable[..., dict[str, Any]] = cli.main
    with (
        pytest.MonkeyPatch.context() as patch,
        record.open("w", encoding="utf-8", buffering=1) as printed,
        redirect_stdout(printed),
    ):
        patch.setattr(cli, "Engine", TimedEngine)
        result = main(
            str(script),
            str(FAIRY_STOCKFISH),
            options2={"Skill Level": -20, "Threads": 1},
            names=["Keisei", "Fairy-Stockfish"],
            games=games,
            byoyomi=BYOYOMI,
            time=0,
            draw=320,
            keep_process=True,
            print_summary=False,
        )
    endings = [line for line in record.read_text("utf-8").splitlines() if line.startswith("まで")]
    return MatchReport(result, endings, last_answers, seconds)


def test_two_games(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", checkpoints=1)
    report = play_match(tmp_path, run, 2, "--set", "Simulations=16")
    assert report.result["total"] == len(report.endings) == 2
    # Other tests run in parallel, so timeouts do not count here.
    assert [fault for fault in report.faults if TIME_UP not in fault[0]] == []


@pytest.mark.soak
def test_a_hundred_games(tmp_path: Path) -> None:
    """``KEISEI_MATCH_RUN`` names a trained run; a fresh one loses quickly. -s shows the figures."""
    chosen = os.environ.get("KEISEI_MATCH_RUN")
    run = Path(chosen) if chosen else tiny_run(tmp_path / "run", checkpoints=1)
    games = int(os.environ.get("KEISEI_MATCH_GAMES", "100"))
    report = play_match(tmp_path, run, games)
    lines = [str(report.result)]
    for name, seconds in report.seconds.items():
        ordered = sorted(seconds)
        over = sum(used > BYOYOMI / 1000 for used in ordered)
        quantiles = [ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99, 0.999, 1.0)]
        shown = ", ".join(f"{1000 * value:.0f}" for value in quantiles)
        lines.append(
            f"{name}: {len(ordered)} moves; ms used, median, 99 %, 99.9 %, most: {shown}; "
            f"over {BYOYOMI} ms: {over}"
        )
    lines += [f"fault: {fault}" for fault in report.faults]
    sys.stderr.write("\n".join(["", *lines, ""]))
    assert report.result["total"] == len(report.endings) == games
    # The other engine's faults are its own, as long as the game was one by the rules until then.
    assert [fault for fault in report.faults if fault[1].engine == "Keisei"] == []
