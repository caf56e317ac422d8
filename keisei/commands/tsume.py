"""``keisei tsume``: solve a mate problem, generate some from games, solve them in the browser."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from keisei.commands.options import AsJson
from keisei.errors import KeiseiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keisei.shogi.game import ShogiGame
    from keisei.shogi.notation.record import GameRecord
    from keisei.shogi.types import Move

DEFAULT_NODES: Final = 2_000_000
"""Positions that are visited before the solver gives up."""

DEFAULT_FILE: Final = Path("problems.txt")
_GAMES_AT_ONCE: Final = 32


def tsume(
    sfen: Annotated[
        list[str] | None, typer.Argument(help="SFEN or USI position to solve; moves allowed.")
    ] = None,
    nodes: Annotated[
        int, typer.Option(min=1, help="Positions to visit before giving up.")
    ] = DEFAULT_NODES,
    generate: Annotated[
        int | None,
        typer.Option(min=1, help="Find this many problems with a unique mate in games instead."),
    ] = None,
    games: Annotated[
        list[Path] | None,
        typer.Option(help="Game records, or folders and runs with them; else games are played."),
    ] = None,
    player: Annotated[
        str, typer.Option(help="Who plays the games against itself; a player spec.")
    ] = "builtin",
    max_plies: Annotated[int, typer.Option(help="Longest mate of a problem: 3, 5, 7 or 9.")] = 9,
    seed: Annotated[int, typer.Option(help="Seed of the games that are played.")] = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File for the generated problems.")
    ] = DEFAULT_FILE,
    browser: Annotated[
        bool, typer.Option("--browser", help="Solve problems on a board in the browser.")
    ] = False,
    problems: Annotated[
        Path | None, typer.Option(help="Problems for --browser; else those in the package.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Solve a mate problem (tsume shogi), or generate some from games of self-play."""
    if sum((bool(sfen), generate is not None, browser)) != 1:
        raise KeiseiError("give a position to solve, or --generate NUMBER, or --browser")
    if as_json and not sfen:
        raise KeiseiError("--json prints the solution of a position; give one to solve")
    if browser:
        from keisei.web.server import require_installed

        require_installed()
        from keisei.web.play.problems_page import serve_problems

        serve_problems(problems)
    elif generate is not None:
        if max_plies not in (3, 5, 7, 9):
            raise KeiseiError(f"--max-plies {max_plies}: a mate takes 3, 5, 7 or 9 plies")
        _generate(generate, games or [], player, max_plies, seed, output)
    else:
        _solve(" ".join(sfen or []), nodes, as_json=as_json)


def _solve(position: str, nodes: int, *, as_json: bool) -> None:
    from keisei.commands.tables import progress_bar
    from keisei.search.tsume import MateSolver, MateStatus
    from keisei.shogi.game import ShogiGame
    from keisei.shogi.render.text import board_text

    with progress_bar() as progress:
        progress.add_task("searching", total=None)
        game = ShogiGame(position)
        status, line = MateSolver().solve(game, nodes)
        if status is MateStatus.MATE:
            line = _shortest(game) or line
    if as_json:
        usi = [move.usi for move in line]
        typer.echo(json.dumps({"status": status.value, "plies": len(line), "moves": usi}))
        return
    typer.echo(board_text(game.diagram, last_move=game.last_move))
    if status is MateStatus.MATE:
        typer.echo(f"Mate in {len(line)}: {' '.join(move.usi for move in line)}")
    elif status is MateStatus.UNKNOWN:
        typer.echo(f"Unknown after {nodes:,} positions; --nodes searches longer.")
    else:
        typer.echo("There is no mate by continuous checks.")


def _shortest(game: "ShogiGame") -> "list[Move]":
    """Return the shortest mate where it is short enough for exhaustive search; else nothing."""
    from keisei.search.mates import MAX_MATE_PLIES, MateSearch

    return MateSearch(MAX_MATE_PLIES).line(game)


def _generate(
    number: int, paths: list[Path], player: str, max_plies: int, seed: int, output: Path
) -> None:
    from keisei.commands.tables import progress_bar
    from keisei.play.mate_problems import MateProblem, problems_in, write_problems

    found: dict[str, MateProblem] = {}
    with progress_bar() as progress:
        task = progress.add_task("problems", total=number)
        records = _stored_games(paths) if paths else _played_games(player, seed)
        for problem in problems_in(records, max_plies=max_plies):
            found.setdefault(problem.sfen.rpartition(" ")[0], problem)
            progress.update(task, completed=len(found))
            if len(found) == number:
                break
    if not found:
        raise KeiseiError("there is no problem in these games")
    write_problems(output, list(found.values()))
    lengths = sorted(problem.plies for problem in found.values())
    counts = ", ".join(f"{lengths.count(plies)} of {plies} plies" for plies in sorted({*lengths}))
    typer.echo(f"{len(found)} problems in {output}: {counts}")
    if len(found) < number:
        typer.echo(f"These games have no more, though {number} were asked for.", err=True)


def _stored_games(paths: list[Path]) -> "Iterator[GameRecord]":
    """Yield the games of files, of folders, and of the sample games of runs."""
    from keisei.run_files import GAMES, run_places
    from keisei.shogi.notation.files import load_games

    for path in paths:
        folders = [place / GAMES for place in run_places(path) if (place / GAMES).is_dir()]
        folder = folders[0] if folders else path
        if not folder.exists():
            raise KeiseiError(f"{path}: there is no such file, folder or run")
        files = [folder] if folder.is_file() else sorted(folder.rglob("*.csa"))
        files = files or sorted(folder.rglob("*.kif"))
        if not files:
            raise KeiseiError(f"there are no game records (.csa, .kif) in {folder}")
        for file in files:
            yield from load_games(file)


def _played_games(spec: str, seed: int) -> "Iterator[GameRecord]":
    """Yield games of a player against itself, without end."""
    from contextlib import closing
    from itertools import count

    from keisei.evaluation.match import MatchSettings, play_match
    from keisei.players.spec import make_player

    with closing(make_player(spec)) as player:
        for number in count(seed):
            settings = MatchSettings(_GAMES_AT_ONCE, seed=number, keep_games=_GAMES_AT_ONCE)
            yield from play_match(player, player, settings).records
