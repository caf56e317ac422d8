"""A run that never was: plausible events, to try displays, trackers and reports on.

To see the live display at work, and the report at the end:

    python -m tests.training.fake_run /tmp/fake-run
"""

import math
import random
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from keisei.callbacks import (
    CheckpointSaved,
    EpochEnd,
    EvaluationEnd,
    Event,
    GameEnd,
    PhaseProgress,
    Progress,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)
from keisei.config_schema import AppConfig
from keisei.evaluation.calibration import Calibration, CalibrationBin
from keisei.evaluation.placing import Placement
from keisei.evaluation.score import Score
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.rules import Outcome, Termination
from keisei.system import write_atomically

PLIES_PER_STEP = 16_384
SECONDS_PER_STEP = 6.0
GAMES_PER_STEP = 130
PARAMETERS = 213_504


def fake_config(updates: int = 60, **logging: object) -> AppConfig:
    """Return settings for a run of `updates` updates."""
    run = {"name": "fake", "total_timesteps": updates * PLIES_PER_STEP}
    model = {"type": "resnet"}
    return AppConfig.model_validate({"run": run, "model": model, "logging": logging})


def progress_at(update: int, updates: int, max_minutes: float = 0.0) -> Progress:
    """How far a run is after some updates."""
    return Progress(
        timestep=update * PLIES_PER_STEP,
        total_timesteps=updates * PLIES_PER_STEP,
        update=update,
        games=update * GAMES_PER_STEP,
        seconds=update * SECONDS_PER_STEP,
        max_minutes=max_minutes,
    )


def fake_metrics(update: int, updates: int) -> dict[str, float]:
    """The metrics of a step: every metric that there is."""
    chance = random.Random(update)
    done = update / updates
    ply_limit = 0.6 * math.exp(-8 * done) + 0.01
    draws = ply_limit + 0.01
    black = (1 - draws) * (0.5 + chance.gauss(0, 0.02))
    return {
        "charts/SPS": 2_700 + chance.gauss(0, 80),
        "charts/network_share": 0.9,
        "charts/learning_rate": 6e-4 - 4e-4 * done,
        "charts/entropy_weight": 0.01 - 0.008 * done,
        "charts/minibatch_size": 512,
        "charts/epochs_done": 1,
        "losses/total": 0.1,
        "losses/policy": -0.02 + 0.01 * done + chance.gauss(0, 0.002),
        "losses/value": 0.15 + 0.2 * math.exp(-4 * done) + chance.gauss(0, 0.005),
        "losses/entropy": 3.4 - 1.6 * done + chance.gauss(0, 0.03),
        "losses/approx_kl": 0.008 + abs(chance.gauss(0, 0.002)),
        "losses/clip_fraction": 0.1 + abs(chance.gauss(0, 0.02)),
        "losses/explained_variance": 0.7 * (1 - math.exp(-5 * done)) + chance.gauss(0, 0.02),
        "losses/grad_norm": 0.4 + abs(chance.gauss(0, 0.1)),
        "losses/ema_kl": 0.002,
        "losses/skipped_minibatches": 0,
        "games/finished": GAMES_PER_STEP,
        "games/black_wins": black,
        "games/white_wins": 1 - draws - black,
        "games/draws": draws,
        "games/ply_limit_rate": ply_limit,
        "games/mean_plies": 110 + 120 * math.exp(-8 * done) + chance.gauss(0, 4),
        "games/forced_moves": 0.008,
        "games/pool_share": 0.2,
        "games/pool_score": 0.55,
        "games/termination/checkmate": 1 - draws,
        "games/termination/ply_limit": ply_limit,
        "games/termination/repetition": 0.01,
        "time/env": 0.5,
        "time/inference": 2.4,
        "time/learning": 3.0,
        "time/waiting": 0.2,
        "time/other": 0.1,
        "workers/policy_lag": 1,
        "workers/abandoned_games": 0,
        "workers/failures": 0,
        **{
            f"workers/{number}/{figure}": value
            for number in range(2)
            for figure, value in (
                ("SPS", 1_400),
                ("waiting", 0.05),
                ("games", 20 * update),
                ("version", update),
                ("rss_mb", 400),
            )
        },
        "memory/rss_mb": 812,
        "memory/vram_mb": 1024,
        "system/cpu": 0.75 + chance.gauss(0, 0.03),
        "system/memory": 0.4 + 0.1 * done,
        "system/gpu": 0.6,
    }


def fake_scores(update: int, updates: int, games: int = 128) -> dict[str, Score]:
    """The network becomes better, against greedy later than against random."""
    chance = random.Random(update)
    done = update / updates
    scores = {}
    for opponent, speed in (("random", 30.0), ("greedy", 4.0)):
        won = 1 - math.exp(-speed * done)
        halves = []
        for _ in range(2):
            wins = min(games // 2, max(0, round(games / 2 * won + chance.gauss(0, 2))))
            drawn = (games // 2 - wins) // 3
            halves.append((wins, drawn, games // 2 - wins - drawn))
        scores[opponent] = Score(halves[0], halves[1])
    return scores


@cache
def random_game(seed: int) -> tuple[ShogiGame, Outcome]:
    """A random game that ended in mate."""
    chance = random.Random(seed)
    while True:
        game = ShogiGame(ply_limit=400)
        while (outcome := game.outcome()) is None:
            game.push_action(chance.choice(game.legal_actions.tolist()))
        if outcome.termination is Termination.CHECKMATE:
            return game, outcome


def random_record(black: str, white: str, seed: int) -> GameRecord:
    """The record of a random game."""
    headers = {header.BLACK: black, header.WHITE: white}
    return GameRecord.from_game(*random_game(seed), headers=headers)


def fake_step(update: int, updates: int, max_minutes: float = 0.0) -> StepEnd:
    """Return the end of a step, with a game in progress."""
    game = random_game(0)[0]
    shown = ShogiGame()
    for move in game.moves[: min(len(game.moves), 20 + update)]:
        shown.push(move)
    progress = progress_at(update, updates, max_minutes)
    return StepEnd(progress, fake_metrics(update, updates), shown)


def fake_evaluation(update: int, updates: int, *, games: int = 2) -> EvaluationEnd:
    """The end of an evaluation, with sample games."""
    players = (("network", "greedy"), ("greedy", "network"), ("network", "random"))
    samples = tuple(random_record(*players[seed % 3], seed) for seed in range(games))
    scores = fake_scores(update, updates)
    elo = 500.0 + 100.0 * update
    placement = Placement(elo, elo - 50.0, elo + 50.0, games=200)
    calibration = Calibration(
        0.5, 2, 40, (CalibrationBin(0.2, 0.25, 20), CalibrationBin(0.7, 0.6, 20))
    )
    return EvaluationEnd(progress_at(update, updates), scores, placement, samples, calibration)


def fake_start(run_directory: Path, config: AppConfig, update: int, updates: int) -> TrainingStart:
    """The beginning, or the resume at an update."""
    facts = {"parameters": PARAMETERS, "planes": 46, "device": "cpu", "precision": "fp32"}
    progress = progress_at(update, updates, config.run.max_minutes)
    return TrainingStart(config, run_directory, progress, facts)


def fake_events(
    run_directory: Path,
    *,
    updates: int = 60,
    first: int = 0,
    last: int | None = None,
    evaluation_interval: int = 5,
    reason: str = "finished",
    config: AppConfig | None = None,
) -> Iterator[Event]:
    """The events of a session that goes from update `first` to update `last`."""
    last = updates if last is None else last
    config = config or fake_config(updates)
    write_atomically(run_directory / "config.json", config.model_dump_json(indent=2).encode())
    yield fake_start(run_directory, config, first, updates)
    for update in range(first + 1, last + 1):
        yield PhaseProgress("playing", 0, PLIES_PER_STEP)
        for _ in range(10):
            yield GameEnd(random_game(0)[1], 120)
        yield PhaseProgress("learning", PLIES_PER_STEP // 2, PLIES_PER_STEP)
        yield EpochEnd(1, progress_at(update, updates))
        yield fake_step(update, updates)
        if evaluation_interval and update % evaluation_interval == 0:
            yield fake_evaluation(update, updates)
        if update % 10 == 0:
            path = run_directory / "checkpoints" / f"update-{update:06}"
            yield CheckpointSaved(path, progress_at(update, updates))
    yield TrainingEnd(reason, progress_at(last, updates))


def main() -> None:
    """Show a fake run on the terminal and write its report."""
    from rich.console import Console

    from keisei.callbacks import EventBus
    from keisei.display.live import make_display
    from keisei.display.logs import configure_logging
    from keisei.training.trackers import make_trackers
    from keisei.training.writers import ReportWriter, SampleGamesWriter

    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    config = fake_config(tensorboard=False)
    with configure_logging(directory, console):
        bus = EventBus(
            [
                *make_trackers(config, directory),
                SampleGamesWriter(directory, 4),
                make_display(config, console),
                ReportWriter(directory),
            ]
        )
        for event in fake_events(directory, config=config):
            bus.emit(event)
            time.sleep(0.1 if isinstance(event, StepEnd) else 0.0)


if __name__ == "__main__":
    main()
