"""``keisei train``: a player from nothing."""

import json
from pathlib import Path
from typing import Annotated

import typer

from keisei.commands.options import TRAIN_FLAGS, ConfigOptions, with_config_options
from keisei.run_files import CONFIG, find_run

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells know it."""


@with_config_options(TRAIN_FLAGS)
def train(
    options: ConfigOptions,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Go on with this run from its last checkpoint."),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Record an update with torch.profiler.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Train a Shogi player by self-play, measure it, and say how strong it is."""
    from keisei.training.run import resume_run, start_run

    if resume is None:
        summary = start_run(options.load(), profile=profile)
    else:
        run_directory = find_run(Path(resume))
        config = options.load(saved=run_directory / CONFIG)
        summary = resume_run(config, run_directory, profile=profile)
    if not summary.is_first:
        return
    if as_json:
        typer.echo(json.dumps(summary.as_dict()))
    else:
        typer.echo(str(summary))
    if summary.reason == "interrupted":
        raise typer.Exit(INTERRUPTED)
