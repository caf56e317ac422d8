"""Play a match of the USI engine against another program, by cshogi's match runner.

    python scripts/engine_match.py --opponent fairy-stockfish --limit "depth 1" --byoyomi 100
    python scripts/engine_match.py RUN --limit "nodes 10000" --byoyomi 1000
    python scripts/engine_match.py --opponent gnushogi --limit "depth 1"

The runner is not Keisei's: it knows the rules, ends a game at an illegal move or when a clock has
run out, and plays each opening with both colours. It does not mind what comes of the byoyomi, so
the time of every move is measured here. The opponent gets a limit of its own, such as a depth, or
the same byoyomi. It prints the result, the times and all faults.

Needs cshogi (``pip install cshogi``), a Unix shell, and the opponent: Debian has fairy-stockfish
and gnushogi.
"""

import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import typer

import keisei
from keisei.constants import BUILTIN
from keisei.errors import KeiseiError
from keisei.evaluation.score import Score
from keisei.shogi.game import ShogiGame

DEBIAN_GAMES: Final = "/usr/games"
BRIDGE: Final = Path(__file__).with_name("gnushogi_usi.py")
OPENING_PLIES: Final = 4
DRAW_PLIES: Final = 320

ILLEGAL_MOVE: Final = ("反則負け", "反則勝ち")
TIME_UP: Final = "切れ負け"
"""Ends of the runner's line about a game that was lost by a fault."""

OURS: Final = "Keisei"


class Answer(NamedTuple):
    """Answer of an engine in a position."""

    engine: str
    moves: str
    answer: str


class MatchReport(NamedTuple):
    """Result of a match."""

    result: dict[str, Any]
    endings: list[str]
    """The runner's line about each game."""

    last_answers: list[Answer]
    """The last answer of each game."""

    seconds: dict[str, list[float]]
    """Seconds that each engine used per move, by name."""

    @property
    def faults(self) -> list[tuple[str, Answer]]:
        """Games lost by a fault: the runner's verdict, and the answer that caused it."""
        games = zip(self.endings, self.last_answers, strict=True)
        words = (*ILLEGAL_MOVE, TIME_UP)
        return [(end, last) for end, last in games if any(word in end for word in words)]

    @property
    def score(self) -> Score:
        """Wins, draws and losses of Keisei."""
        # The runner does not count by colour.
        won, lost, drawn = (self.result[key] for key in ("engine1_won", "engine2_won", "draw"))
        return Score((won, drawn, lost), (0, 0, 0))

    def lines(self, byoyomi: int) -> list[str]:
        """Return the report in words."""
        lines = [f"{OURS}: {self.score}"]
        for name, seconds in self.seconds.items():
            ordered = 1000 * np.sort(seconds)
            shares = np.quantile(ordered, (0.5, 0.99, 0.999, 1.0), method="lower")
            shown = ", ".join(f"{value:.0f}" for value in shares)
            lines.append(
                f"{name}: {len(ordered):,} moves; ms used, median, 99 %, 99.9 %, most: {shown}; "
                f"over {byoyomi} ms: {int((ordered > byoyomi).sum())}"
            )
        return lines + [f"fault: {fault}" for fault in self.faults]


def play_match(
    directory: Path,
    model: str,
    opponent: str,
    games: int,
    *,
    byoyomi: int,
    limit: str = "",
    options: Sequence[str] = (),
    opponent_options: Mapping[str, int | str] | None = None,
    openings: Path | None = None,
) -> MatchReport:
    """Play ``keisei usi`` against another program, colours alternating.

    Args:
        directory: for the files of the match; ``games.txt`` can be read while it is played.
        model: the network, as ``keisei usi`` takes it.
        opponent: command of the other program.
        games: number of games.
        byoyomi: milliseconds per move.
        limit: what follows ``go`` for the opponent; empty: the same byoyomi.
        options: further words of the command ``keisei usi``.
        opponent_options: USI options of the other program.
        openings: file of openings, a line of moves each.
    """
    from cshogi import cli
    from cshogi.usi import Engine

    seconds: dict[str, list[float]] = {}
    answers: list[Answer] = []
    last_answers: list[Answer] = []

    class TimedEngine(Engine):  # type: ignore[misc]  # cshogi has no types
        def go(self, **limits: Any) -> tuple[str, str | None]:
            if limit and self.name != OURS:
                # cshogi's `go` knows no depth; it writes what it is given behind the word.
                word, _, rest = limit.partition(" ")
                if word != "nodes":
                    rest = f"1000000 {limit}"
                limits = {"nodes": rest, "listener": limits.get("listener")}
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

    ours = [sys.executable, "-m", "keisei", "usi", model, *options]
    package = shlex.quote(str(Path(keisei.__file__).parents[1]))
    commands = []
    for name, command in ((OURS, shlex.join(ours)), ("opponent", opponent)):
        script = directory / f"{name.lower()}-usi"
        script.write_text(f"#!/bin/sh\nPYTHONPATH={package} exec {command}\n", "utf-8")
        script.chmod(0o755)
        commands.append(str(script))
    record = directory / "games.txt"
    original = cli.Engine
    cli.Engine = TimedEngine
    try:
        with record.open("w", encoding="utf-8", buffering=1) as printed, redirect_stdout(printed):
            result: dict[str, Any] = cli.main(
                *commands,
                options2=dict(opponent_options or {}),
                names=[OURS, "opponent"],
                games=games,
                byoyomi=byoyomi,
                time=0,
                draw=DRAW_PLIES,
                opening=None if openings is None else str(openings),
                opening_moves=OPENING_PLIES,
                opening_seed=0,
                keep_process=True,
                print_summary=False,
            )
    finally:
        cli.Engine = original
    endings = [line for line in record.read_text("utf-8").splitlines() if line.startswith("まで")]
    return MatchReport(result, endings, last_answers, seconds)


def opponent_command(program: str) -> str:
    """Return the shell command of an opponent.

    Raises:
        KeiseiError: It is not installed.
    """
    found = shutil.which(program) or shutil.which(program, path=DEBIAN_GAMES)
    if found is None:
        raise KeiseiError(f"{program} is not installed; on Debian: apt install {program}")
    if program == "gnushogi":
        return shlex.join([sys.executable, str(BRIDGE), found])
    return shlex.quote(found)


def write_openings(path: Path, number: int, seed: int) -> None:
    """Write random openings, as the runner reads them."""
    random = np.random.default_rng(seed)
    lines = []
    for _ in range(number):
        game = ShogiGame()
        for _ in range(OPENING_PLIES):
            game.push(game.legal_moves[random.integers(len(game.legal_moves))])
        lines.append("startpos moves " + " ".join(move.usi for move in game.moves))
    path.write_text("\n".join(lines) + "\n", "utf-8")


def main(
    model: Annotated[str, typer.Argument(help="Run, file or builtin.")] = BUILTIN,
    opponent: Annotated[str, typer.Option(help="Program of the opponent.")] = "fairy-stockfish",
    limit: Annotated[
        str, typer.Option(help="Limit of the opponent: 'depth 1', 'nodes 10000'; else the byoyomi.")
    ] = "",
    option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE of the opponent; may be repeated.")
    ] = None,
    games: Annotated[int, typer.Option(min=1, help="Number of games.")] = 100,
    byoyomi: Annotated[int, typer.Option(min=1, help="Milliseconds per move.")] = 100,
    threads: Annotated[int, typer.Option(min=1, help="Threads of Keisei.")] = 2,
    delay: Annotated[int, typer.Option(min=0, help="Keisei's NetworkDelay in ms.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the openings.")] = 0,
) -> None:
    """Play a match and print its result, the times of moves and all faults."""
    settings = dict(text.partition("=")[::2] for text in option or ())
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_openings(directory / "openings.txt", (games + 1) // 2, seed)
        typer.echo(f"playing; {directory / 'games.txt'} shows the games so far", err=True)
        report = play_match(
            directory,
            model,
            opponent_command(opponent),
            games,
            byoyomi=byoyomi,
            limit=limit,
            options=("--set", f"Threads={threads}", "--set", f"NetworkDelay={delay}"),
            opponent_options=settings,
            openings=directory / "openings.txt",
        )
    typer.echo("\n".join(report.lines(byoyomi)))


if __name__ == "__main__":
    try:
        typer.run(main)
    except KeiseiError as error:
        sys.exit(f"error: {error}")
