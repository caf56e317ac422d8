"""Progress bars and tables that several commands print."""

import math
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from keisei.evaluation.rating_text import bound_text
from keisei.formats import NOTHING, count, new_table, percent

if TYPE_CHECKING:
    from keisei.evaluation.ladder import Ladder, LadderProgress, Standing
    from keisei.evaluation.match import MatchResult
    from keisei.evaluation.match_report import MatchReport
    from keisei.evaluation.placing import Placement, PlacingProgress
    from keisei.evaluation.rating_text import Position
    from keisei.evaluation.run_strength import RunProgress, RunStrength
    from keisei.evaluation.scale import Scale
    from keisei.evaluation.score import Score, Sprt


def progress_bar() -> Progress:
    """Return a progress bar on standard error, disabled where that is not a terminal."""
    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def elo_text(elo: float) -> str:
    """Format a rating or a difference, with its sign.

    >>> elo_text(123.4), elo_text(-0.2), elo_text(float("inf"))
    ('+123', '0', '+∞')
    """
    if math.isinf(elo):
        return "+∞" if elo > 0 else "-∞"
    return f"{round(elo):+d}" if round(elo) else "0"


def interval_text(low: float, high: float) -> str:
    """Format an interval of ratings."""
    return f"{elo_text(low)} to {elo_text(high)}"


def tally_text(score: "Score") -> str:
    """Format wins, draws and losses."""
    return "-".join(map(str, score.total))


def show_ladder_progress(bar: Progress, task: TaskID, progress: "LadderProgress") -> None:
    """Show the current pair, its score, and the games played of those missing."""
    one, other = (player.name for player in progress.pair)
    _show_games(bar, task, (one, other), progress.score, progress.games, progress.missing)


def show_match_progress(bar: Progress, task: TaskID, result: "MatchResult", games: int) -> None:
    """Show the players, their score, and the games played of `games`."""
    names = (result.player, result.opponent)
    _show_games(bar, task, names, result.score, len(result.games), games)


def _show_games(
    bar: Progress, task: TaskID, names: tuple[str, str], score: "Score", games: int, total: int
) -> None:
    description = escape(f"{names[0]} - {names[1]}: {tally_text(score)}")
    bar.update(task, description=description, completed=games, total=total)


def print_match(report: "MatchReport", *, games_dir: Path | None, store: Path | None) -> None:
    """Print the result of a match."""
    console = Console()
    result, score = report.result, report.result.score
    if score.games == 0:
        console.print("No game has ended.")
        return
    print_line(console, f"{result.player} against {result.opponent}: {score.games} games")
    console.print(_match_table(score))
    low, high = score.interval
    plies = result.plies
    lines = [
        f"score {percent(score.score, 1)}, 95 %: {percent(low, 1)} to {percent(high, 1)}",
        f"Elo difference {elo_text(score.elo)}, 95 %: {interval_text(*score.elo_interval)}",
        f"median length {median(plies):g} plies, from {plies[0]} to {plies[-1]}",
        "ended by " + ", ".join(f"{name} {n}" for name, n in result.endings.most_common()),
        f"{report.conditions}, seed {report.settings.seed}",
    ]
    rated = () if report.rated is None else (report.rated,)
    lines += [
        f"{name} on scale {placement.version}: {placement}, {count(placement.games)} games"
        for name, placement in report.placed or rated
    ]
    if report.test is not None:
        lines.append(_sprt_text(report.test, score))
    if games_dir is not None:
        lines.append(f"games written: {len(result.records)}, in {games_dir}")
    if store is not None:
        lines.append(f"games stored: {report.stored}, in {store}")
    for line in lines:
        print_line(console, line)
    if report.is_interrupted:
        print_line(
            console,
            "Interrupted: the games that end first are not representative of all games.",
            style="yellow",
        )


def _match_table(score: "Score") -> Table:
    table = new_table("")
    for heading in ("", "won", "drawn", "lost", "score"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, counts, points in (
        ("as Black", score.black, score.as_black),
        ("as White", score.white, score.as_white),
        ("together", score.total, score.score),
    ):
        share = NOTHING if points is None else percent(points, 1)
        table.add_row(name, *map(str, counts), share)
    return table


def _sprt_text(test: "Sprt", score: "Score") -> str:
    from keisei.evaluation.score import ERROR_RATE, LOWER, UPPER, Verdict

    verdict = {
        Verdict.H0: f"{test.elo0:g} Elo or less rather than {test.elo1:g}",
        Verdict.H1: f"{test.elo1:g} Elo or more rather than {test.elo0:g}",
        Verdict.UNDECIDED: "undecided",
    }[test.verdict(score)]
    return (
        f"SPRT of {test.elo0:g} against {test.elo1:g} Elo: {verdict} (log-likelihood ratio "
        f"{test.log_likelihood_ratio(score):.2f}, bounds {LOWER:.2f} and {UPPER:.2f}, "
        f"error rates {percent(ERROR_RATE)})"
    )


def print_ladder(ladder: "Ladder") -> None:
    """Print a ladder with the parameters of its rating model."""
    console = Console()
    table = new_table("ladder")
    table.add_column("", justify="right")
    table.add_column("player", overflow="fold")
    for heading in ("Elo", "95 %", "games", "score", "better than next"):
        table.add_column(heading, justify="right")
    for standing in ladder.standings:
        table.add_row(
            str(standing.rank),
            Text(standing.name),
            *standing_cells(standing),
            count(standing.games),
            percent(standing.score, 1),
            NOTHING if standing.superiority is None else percent(standing.superiority, 1),
        )
    console.print(table)
    _print_model(console, ladder)


def print_scale(scale: "Scale") -> None:
    """Print the players of a scale with their ratings."""
    console = Console()
    table = new_table(f"scale {scale.version}")
    table.add_column("player", overflow="fold")
    table.add_column("")
    for heading in ("Elo", "95 %", "games"):
        table.add_column(heading, justify="right")
    for player in scale.players:
        margin = f"±{player.margin:.0f}" if player.margin else "fixed"
        cells = (player.kind, elo_text(player.elo), margin, count(player.games))
        table.add_row(Text(player.name), *cells)
    console.print(table)
    print_line(
        console,
        f"First move {elo_text(scale.file.first_move)} Elo; a pair deviates from its ratings by "
        f"{scale.file.pair_deviation:.0f} points (standard deviation)",
    )
    print_line(
        console,
        "95 %: of a reference, its distance to random; of an engine, its place among them",
    )
    print_line(console, f"{scale.conditions}", style="dim")


def print_run_strength(strength: "RunStrength") -> None:
    """Print the Elo of a run's checkpoints, and the opponents it was measured against."""
    console = Console()
    table = new_table(strength.run)
    opponents = list(dict.fromkeys(name for c in strength.checkpoints for name in c.scores))
    for heading in ("plies", "Elo", "95 %", *(f"vs {name}" for name in opponents)):
        table.add_column(Text(heading), justify="right")
    for checkpoint in strength.checkpoints:
        placement = checkpoint.placement
        table.add_row(
            count(checkpoint.timestep),
            *placement_cells(placement),
            *(
                percent(checkpoint.scores[name].score) if name in checkpoint.scores else NOTHING
                for name in opponents
            ),
        )
    console.print(table)
    if strength.opponents:
        ratings = ", ".join(f"{name} {elo_text(elo)}" for name, elo in strength.opponents)
        print_line(console, f"references: {ratings}")
    print_line(
        console, f"Elo on scale {strength.scale.version}; {strength.scale.conditions}", style="dim"
    )
    for problem in strength.left_out:
        print_line(console, f"left out: {problem}", style="yellow")


def placement_cells(placement: "Placement") -> tuple[str, str]:
    """Return rating and interval for a table; a bound alone beyond the ends of the scale."""
    return _rating_cells(placement.rating, placement.low, placement.high, placement.position)


def standing_cells(standing: "Standing") -> tuple[str, str]:
    """Return rating and interval of a row of a ladder, as `placement_cells` does."""
    if standing.is_fixed:
        return elo_text(standing.elo), "fixed"
    return _rating_cells(standing.elo, standing.low, standing.high, standing.position)


def _rating_cells(elo: float, low: float, high: float, position: "Position") -> tuple[str, str]:
    if bound := bound_text(low, high, position):
        return NOTHING, bound
    return elo_text(elo), interval_text(low, high)


def show_placing(bar: Progress, task: TaskID, player: str, now: "PlacingProgress") -> None:
    """Show the current opponent and what is known of a player's rating."""
    known = f", {now.placement}" if now.placement.games else ""
    bar.update(task, description=escape(f"{player} - {now.opponent}: {now.games} games{known}"))


def show_run_progress(bar: Progress, task: TaskID, now: "RunProgress") -> None:
    """Show the checkpoint that plays, its opponent and what is known of its rating."""
    known = f": {now.placement}" if now.placement is not None and now.placement.games else ""
    bar.update(
        task,
        description=escape(f"{now.player} - {now.opponent}{known}"),
        completed=now.checkpoint,
        total=now.checkpoints,
    )


def print_line(console: Console, line: str, *, style: str = "") -> None:
    """Print a line without wrapping it at the terminal's width: it may hold a path."""
    console.print(Text(line, style=style), soft_wrap=True)


def _print_model(console: Console, ladder: "Ladder") -> None:
    ratings = ladder.ratings
    print_line(
        console,
        f"first move {elo_text(ratings.first_move)} Elo, draws {percent(ratings.draws, 1)}",
    )
    print_line(console, f"Elo: {ladder.scale}; {ladder.conditions}", style="dim")
    for note in ladder.notes:
        print_line(console, note, style="yellow")
