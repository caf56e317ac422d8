"""What the commands about strength print."""

import math
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from keisei.formats import NOTHING, count, new_table, percent

if TYPE_CHECKING:
    from keisei.evaluation.ladder import Ladder, LadderProgress
    from keisei.evaluation.run_strength import RunStrength
    from keisei.evaluation.score import Score


def progress_bar() -> Progress:
    """A spinner, a bar and the time taken, on standard error; nothing where that is no terminal."""
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
    """A rating or a difference, with its sign.

    >>> elo_text(123.4), elo_text(-0.2), elo_text(float("inf"))
    ('+123', '0', '+∞')
    """
    if math.isinf(elo):
        return "+∞" if elo > 0 else "-∞"
    return f"{round(elo):+d}" if round(elo) else "0"


def interval_text(low: float, high: float) -> str:
    """The ends of an interval of ratings."""
    return f"{elo_text(low)} to {elo_text(high)}"


def tally_text(score: "Score") -> str:
    """Wins, draws and losses."""
    return "-".join(map(str, score.total))


def show_progress(bar: Progress, task: TaskID, progress: "LadderProgress") -> None:
    """Who plays, how it stands, and how many games are left."""
    one, other = (player.name for player in progress.pair)
    bar.update(
        task,
        description=escape(f"{one} - {other}: {tally_text(progress.score)}"),
        completed=progress.games,
        total=progress.missing,
    )


def print_ladder(ladder: "Ladder") -> None:
    """The ladder, and what else the ratings say."""
    console = Console()
    table = new_table("ladder")
    table.add_column("", justify="right")
    table.add_column("player", overflow="fold")
    for heading in ("Elo", "95 %", "games", "score", "better than next"):
        table.add_column(heading, justify="right")
    for standing in ladder.standings:
        is_anchor = standing.identity == ladder.ratings.anchor
        table.add_row(
            str(standing.rank),
            Text(standing.name),
            elo_text(standing.elo),
            "anchor" if is_anchor else interval_text(standing.low, standing.high),
            count(standing.games),
            percent(standing.score, 1),
            NOTHING if standing.superiority is None else percent(standing.superiority, 1),
        )
    console.print(table)
    _print_model(console, ladder)


def print_run_strength(strength: "RunStrength") -> None:
    """Elo over the plies learned from, and the opponents it was measured by."""
    console = Console()
    table = new_table(strength.run)
    opponents = list(dict.fromkeys(name for c in strength.checkpoints for name in c.scores))
    for heading in ("plies", "Elo", "95 %", *(f"vs {name}" for name in opponents)):
        table.add_column(Text(heading), justify="right")
    for checkpoint in strength.checkpoints:
        standing = checkpoint.standing
        table.add_row(
            count(checkpoint.timestep),
            elo_text(standing.elo),
            interval_text(standing.low, standing.high),
            *(
                percent(checkpoint.scores[name].score) if name in checkpoint.scores else NOTHING
                for name in opponents
            ),
        )
    console.print(table)
    ratings = ", ".join(f"{o.name} {elo_text(o.elo)}" for o in strength.opponents)
    print_line(console, f"opponents: {ratings}")
    _print_model(console, strength.ladder)
    for problem in strength.left_out:
        print_line(console, f"left out: {problem}", style="yellow")


def print_line(console: Console, line: str, *, style: str = "") -> None:
    """A line as it is, not broken where the terminal ends: it may be a path, or be searched."""
    console.print(Text(line, style=style), soft_wrap=True)


def _print_model(console: Console, ladder: "Ladder") -> None:
    ratings = ladder.ratings
    print_line(
        console,
        f"first move {elo_text(ratings.first_move)} Elo, "
        f"draws between equals {percent(ratings.draw_rate, 1)}",
    )
    print_line(console, str(ladder.conditions), style="dim")
    for note in ladder.notes:
        print_line(console, note, style="yellow")
