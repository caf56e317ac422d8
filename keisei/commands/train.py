"""``keisei train``: train a player by self-play."""

import json
from pathlib import Path
from typing import Annotated

import typer

from keisei.commands.options import TRAIN_FLAGS, AsJson, ConfigOptions, with_config_options
from keisei.interrupts import INTERRUPTED
from keisei.run_files import CONFIG, find_run
from keisei.system import leave


@with_config_options(TRAIN_FLAGS)
def train(
    options: ConfigOptions,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Resume this run from its last checkpoint."),
    ] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Profile one update.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a Shogi player by self-play PPO and measure its strength."""
    from keisei.training.run import resume_run, start_run

    if resume is None:
        config = options.load()
        summary = start_run(config, named=options.named, profile=profile)
    else:
        run_directory = find_run(Path(resume))
        config = options.load(saved=run_directory / CONFIG)
        summary = resume_run(config, run_directory, named=options.named, profile=profile)
    if summary.is_first:
        typer.echo(json.dumps(summary.as_dict()) if as_json else str(summary))
    code = INTERRUPTED if summary.is_first and summary.reason == "interrupted" else 0
    if config.parallel.ddp:
        leave(code)  # torchrun takes a learner that torch's threads abort at the end for a failure
    if code:
        raise typer.Exit(code)
