"""``keisei train``: a player from nothing."""

import json
from pathlib import Path
from typing import Annotated

import typer

from keisei.commands.train_options import (
    Config,
    InputFeatures,
    MixedPrecision,
    Model,
    Name,
    Profile,
    Resume,
    Seed,
    SeRatio,
    Settings,
    TowerDepth,
    TowerWidth,
    train_config,
)
from keisei.run_files import CONFIG, find_run

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells know it."""


def train(
    config: Config = None,
    model: Model = None,
    input_features: InputFeatures = None,
    tower_depth: TowerDepth = None,
    tower_width: TowerWidth = None,
    se_ratio: SeRatio = None,
    mixed_precision: MixedPrecision = False,
    name: Name = None,
    seed: Seed = None,
    settings: Settings = None,
    resume: Resume = None,
    profile: Profile = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Train a Shogi player by self-play, measure it, and say how strong it is."""
    from keisei.training.run import resume_run, start_run

    run_directory = None if resume is None else find_run(Path(resume))
    chosen = train_config(
        config=config if run_directory is None else run_directory / CONFIG,
        model=model,
        input_features=input_features,
        tower_depth=tower_depth,
        tower_width=tower_width,
        se_ratio=se_ratio,
        mixed_precision=mixed_precision,
        name=name,
        seed=seed,
        settings=settings,
    )
    if run_directory is None:
        summary = start_run(chosen, profile=profile)
    else:
        summary = resume_run(chosen, run_directory, profile=profile)
    if as_json:
        typer.echo(json.dumps(summary.as_dict()))
    else:
        typer.echo(str(summary))
    if summary.reason == "interrupted":
        raise typer.Exit(INTERRUPTED)
