"""The quick-start recipe as a whole: it takes five minutes, so ``make strength`` runs it."""

from pathlib import Path

import pytest

from keisei.callbacks import EventBus
from keisei.config import load_config
from keisei.evaluation.match import MatchSettings, play_match
from keisei.network.loading import read_network
from keisei.players.network import PolicyPlayer
from keisei.run_files import CHECKPOINTS
from keisei.runs.history import History
from keisei.runs.journal import CHECKPOINT
from keisei.training.run import RunSummary, start_run
from keisei.training.trainer import Trainer

pytestmark = pytest.mark.strength

CONFIG = load_config("quickstart")


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    root = tmp_path_factory.mktemp("runs")
    settings = [f"run.root={root}", "run.name=quickstart", "checkpoint.interval=4"]
    return start_run(load_config("quickstart", [*settings, "checkpoint.keep=100"]))


def test_it_beats_the_bots_within_six_minutes(summary: RunSummary) -> None:
    """The promise; intervals of 400 games are 2 points wide at 95 % and 5 at 55 %."""
    assert summary.seconds < 6 * 60
    assert summary.scores["greedy"].score >= 0.99
    assert summary.scores["alphabeta:2"].score >= 0.95
    assert summary.scores["alphabeta:3"].score >= 0.55
    assert all(score.games >= 400 for score in summary.scores.values())


def test_it_beats_its_own_start(summary: RunSummary, tmp_path: Path) -> None:
    """Requirement C7 asks for 60 % after 5,000 games of self-play."""
    saved = [
        entry
        for entry in History.read(summary.run_directory).entries
        if entry.event == CHECKPOINT and entry.games <= 5_000
    ]
    checkpoint = summary.run_directory / CHECKPOINTS / Path(saved[-1].path).name
    beginner = Trainer(CONFIG, tmp_path, EventBus()).learner  # the same seed, the same weights
    trained = read_network(checkpoint).network(CONFIG.device)
    result = play_match(
        PolicyPlayer(trained, name="trained", identity="trained"),
        PolicyPlayer(beginner.network, name="beginner", identity="beginner"),
        MatchSettings(games=400, seed=1, ply_limit=CONFIG.evaluation.ply_limit),
    )
    assert result.score.score >= 0.60
    text = f"after {saved[-1].games:,} games against its own start: {result.score}"
    print(f"\n{summary}\n{text}")  # noqa: T201 - for the record
