"""``keisei evaluate``: the strength of a run, checkpoint by checkpoint."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.commands import options
from keisei.evaluation import (
    DEFAULT_CHECKPOINTS,
    DEFAULT_GAMES,
    DEFAULT_MAX_GAMES,
    DEFAULT_WITHIN,
    STANDARD_OPPONENTS,
)
from keisei.interrupts import like_ctrl_c
from keisei.run_files import ELO_PLOT, STRENGTH, find_run, require_own_files

if TYPE_CHECKING:
    from keisei.evaluation.placing import PlacingSettings
    from keisei.evaluation.run_strength import RunStrength


@like_ctrl_c()
def evaluate(
    run: Annotated[Path, typer.Argument(help="A run, by path or name.")],
    opponents: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLAYER",
            show_default=", ".join(STANDARD_OPPONENTS),
            help=f"Also compare with: {options.PLAYER_HELP} Repeatable.",
        ),
    ] = None,
    games: Annotated[int, typer.Option(min=1, help="Games against each of them.")] = DEFAULT_GAMES,
    within: options.Within = DEFAULT_WITHIN,
    max_games: options.MaxGames = DEFAULT_MAX_GAMES,
    checkpoints: Annotated[
        int, typer.Option(min=1, help="Number of the run's checkpoints, the newest included.")
    ] = DEFAULT_CHECKPOINTS,
    store: options.Store = options.DEFAULT_STORE,
    seed: options.Seed = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png", show_default=f"RUN/{ELO_PLOT}", help="Plot of Elo over plies."
        ),
    ] = None,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    as_json: options.AsJson = False,
) -> None:
    """Measure a run: its checkpoints are placed on the Elo scale, by games against references.

    Only games that are not stored yet are played. The ratings are written to RUN/strength.json.
    """
    from keisei.evaluation.placing import PlacingSettings
    from keisei.system import make_directory

    directory = find_run(run)
    require_own_files(directory)
    strength = _measure(
        directory,
        opponents,
        games,
        PlacingSettings(within=within, max_games=max_games),
        seed,
        checkpoints,
        store,
        device,
        threads,
    )
    picture = plot or directory / ELO_PLOT
    if plot is None:
        make_directory(picture.parent)
    _write(strength, directory / STRENGTH, picture)
    if as_json:
        typer.echo(json.dumps(strength.as_dict(), indent=2))
    else:
        from keisei.commands.tables import print_run_strength

        print_run_strength(strength)
        typer.echo(f"written: {directory / STRENGTH}, {picture}")


def _measure(
    directory: Path,
    specs: list[str] | None,
    games: int,
    placing: "PlacingSettings",
    seed: int,
    checkpoints: int,
    store: Path,
    device: str,
    threads: int,
) -> "RunStrength":
    from keisei.commands.tables import progress_bar, show_run_progress
    from keisei.evaluation.results import ResultStore
    from keisei.evaluation.run_strength import measure_run
    from keisei.network.loading import device_config
    from keisei.players.spec import open_players

    with progress_bar() as bar, ResultStore(store, create=True) as results:
        task = bar.add_task("loading", total=None)
        with open_players(specs or STANDARD_OPPONENTS, device=device, threads=threads) as opponents:
            return measure_run(
                directory,
                opponents,
                results,
                games=games,
                placing=placing,
                seed=seed,
                checkpoints=checkpoints,
                device=device_config(device, threads),
                on_progress=lambda now: show_run_progress(bar, task, now),
            )


def _write(strength: "RunStrength", results: Path, picture: Path) -> None:
    from keisei.evaluation.strength_plots import draw_run
    from keisei.plotting import png
    from keisei.system import write_atomically

    write_atomically(results, json.dumps(strength.as_dict(), indent=2).encode())
    write_atomically(picture, png(draw_run(strength)))
