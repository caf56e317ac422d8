"""``keisei benchmark strength``: speed, memory and Elo of a whole recipe, in one table."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from keisei import __version__, run_files
from keisei import metric_names as metrics
from keisei.benchmark.harness import (
    NOT_MEASURED,
    Machine,
    ProgressCallback,
    print_header,
    this_machine,
)
from keisei.errors import KeiseiError
from keisei.evaluation import DEFAULT_MAX_GAMES, STANDARD_OPPONENTS
from keisei.evaluation.match import play_match
from keisei.evaluation.placing import Placement, PlacingSettings, place_player
from keisei.evaluation.scale import current_scale
from keisei.evaluation.score import Score
from keisei.formats import network_name, new_table
from keisei.players.player import Player
from keisei.players.spec import make_player, open_players
from keisei.runs.history import History
from keisei.system import read_bytes

PACKAGES: Final = ("torch", "numpy", "numba")


@dataclass(frozen=True)
class ReportRow:
    """A row of the table."""

    name: str
    value: float
    unit: str
    more_is_better: bool


@dataclass(frozen=True)
class StrengthReport:
    """Speed, memory and strength of a run."""

    machine: Machine
    run: str
    recipe: dict[str, str]
    """Network, games, plies and device, in a few words."""

    plies_per_second: float
    games_per_second: float
    peak_memory: float
    """Peak memory of the process in MB."""

    peak_video_memory: float | None
    """Peak GPU memory in MB; None without a GPU."""

    placement: Placement
    """Rating on the scale."""

    scores: dict[str, Score]
    """Score against each bot, by name."""

    def figures(self) -> Iterator[ReportRow]:
        """Yield the rows of the table."""
        yield ReportRow("games", self.games_per_second, "/s", True)
        yield ReportRow("plies", self.plies_per_second, "/s", True)
        yield ReportRow("peak memory", self.peak_memory, " MB", False)
        if self.peak_video_memory is not None:
            yield ReportRow("peak video memory", self.peak_video_memory, " MB", False)
        for name, score in self.scores.items():
            yield ReportRow(f"score against {name}", 100 * score.score, " %", True)
        yield ReportRow("Elo", self.placement.rating, "", True)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "keisei": __version__,
            "machine": self.machine.as_dict(),
            "run": self.run,
            "recipe": self.recipe,
            "figures": {row.name: row.value for row in self.figures()},
            "rating": self.placement.as_dict(),
            "results": {
                name: {"black": list(score.black), "white": list(score.white)}
                for name, score in self.scores.items()
            },
        }


def measure_strength(
    run_directory: Path,
    *,
    games: int,
    max_games: int = DEFAULT_MAX_GAMES,
    seed: int = 0,
    on_progress: ProgressCallback = lambda step, done, total: None,
) -> StrengthReport:
    """Measure a trained run.

    Args:
        run_directory: the run.
        games: games against each of the standard opponents.
        max_games: games for its rating, at most.
        seed: seed of the first match.
        on_progress: called before each match.

    Raises:
        KeiseiError: The directory is not a run, or it has not been trained.
    """
    history = History.read(run_directory)
    if not history.steps:
        raise KeiseiError(f"{run_directory} has not been trained yet")
    player = make_player(str(run_directory))
    placement, scores = _play(player, games, max_games, seed, on_progress)
    seconds = sum(step.metrics.get(name, 0.0) for step in history.steps for name in metrics.TIMES)
    last = history.steps[-1]
    video = [step.metrics.get(metrics.VIDEO_MEMORY) for step in history.steps]
    return StrengthReport(
        machine=this_machine(PACKAGES),
        run=player.name,
        recipe=_recipe(run_directory, history),
        plies_per_second=last.timestep / seconds,
        games_per_second=last.games / seconds,
        peak_memory=max(step.metrics.get(metrics.MEMORY, 0.0) for step in history.steps),
        peak_video_memory=max((value for value in video if value is not None), default=None),
        placement=placement,
        scores=scores,
    )


def read_figures(path: Path) -> dict[str, float]:
    """Return the figures of an earlier report, as ``--json`` printed it."""
    try:
        figures = json.loads(read_bytes(path))["figures"]
        return {str(name): float(value) for name, value in figures.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KeiseiError(
            f"{path} is not a report of `keisei benchmark strength --json`"
        ) from error


def _play(
    player: Player, games: int, max_games: int, seed: int, on_progress: ProgressCallback
) -> tuple[Placement, dict[str, Score]]:
    """Place the player; return its rating, and its scores against the standard opponents."""
    scale = current_scale()
    scores: dict[str, Score] = {}
    with open_players(STANDARD_OPPONENTS) as bots:
        for number, bot in enumerate(bots):
            on_progress(f"{player.name} against {bot.name}", number, len(bots) + 1)
            match = scale.match_settings(games=games, seed=seed + number)
            scores[bot.name] = play_match(player, bot, match).score
    on_progress(f"placing {player.name} on the scale", len(scores), len(scores) + 1)
    settings = PlacingSettings(max_games=max_games)
    placing = place_player(player, scale, settings, seed=seed + len(scores))
    return placing.placement, scores


def _recipe(run_directory: Path, history: History) -> dict[str, str]:
    config = run_files.read_config(run_directory)
    model, facts = config["model"], history.facts
    last = history.steps[-1]
    return {
        "network": network_name(model),
        "planes": str(config["env"]["input_features"]),
        "games at once": str(config["env"]["num_games"]),
        "trained plies": f"{last.timestep:,}",
        "minutes": f"{last.seconds / 60:.1f}",
        "device": str(facts.get("device", "?")),
        "threads": str(facts.get("threads", "?")),
        "precision": str(facts.get("precision", "?")),
    }


def print_strength_report(report: StrengthReport, old: Mapping[str, float] | None) -> None:
    """Print the table, next to the figures of an earlier report if one is given."""
    console = Console()
    print_header(console, report.machine)
    recipe = ", ".join(f"{name} {value}" for name, value in report.recipe.items())
    console.print(Text(f"{report.run}: {recipe}"))
    table = new_table("the recipe as a whole")
    table.add_column("", no_wrap=True)
    table.add_column("now" if old is not None else "measured", justify="right", no_wrap=True)
    if old is not None:
        for heading in ("before", "change"):
            table.add_column(heading, justify="right", no_wrap=True)
    for row in report.figures():
        cells = [Text(row.name), Text(_text(row, row.value))]
        if old is not None:
            cells += _comparison(row, old.get(row.name))
        table.add_row(*cells)
    console.print(table)
    placement = report.placement
    console.print(f"Elo on scale {placement.version}: {placement}", style="dim", highlight=False)


def _comparison(row: ReportRow, before: float | None) -> list[Text]:
    if before is None:
        return [Text(NOT_MEASURED), Text(NOT_MEASURED)]
    is_difference = row.unit in (" %", "")  # ratios of shares and ratings mean nothing
    change = (
        f"{row.value - before:+.1f}"
        if is_difference
        else f"{row.value / before:.2f}x"
        if before
        else NOT_MEASURED
    )
    is_better = (row.value > before) == row.more_is_better
    style = "" if row.value == before else "green" if is_better else "red"
    return [Text(_text(row, before)), Text(change, style=style)]


def _text(row: ReportRow, value: float) -> str:
    digits = 0 if row.unit in (" MB", "") else 1
    return f"{value:,.{digits}f}{row.unit}"
