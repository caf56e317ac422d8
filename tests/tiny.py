"""Configurations that train in a second.

They train a tower; ``model.type=sparse``, or the fixture `family`, makes it a sparse network.
"""

from collections.abc import Sequence
from pathlib import Path

from keisei.callbacks import Callback, EventBus
from keisei.config import load_config
from keisei.config_schema import AppConfig
from keisei.ppo.agent import PPOAgent
from keisei.training.trainer import Trainer

TINY = (
    "run.total_timesteps=192",
    "env.num_games=8",
    "env.ply_limit=20",
    "env.opening_plies=0",
    "env.threads=1",
    "model.type=resnet",
    "model.tower_depth=1",
    "model.tower_width=8",
    "model.policy_width=4",
    "model.value_width=8",
    "model.accumulators=16",
    "model.hidden=8",
    "model.context=8",
    "selfplay.rollout_plies=8",
    "selfplay.mate_plies=1",
    "ppo.minibatch_size=32",
    "device.device=cpu",
    "device.threads=1",
    "evaluation.interval=0",
    "evaluation.background=off",
    "evaluation.final_games=4",
    "evaluation.mate_plies=1",
    "evaluation.within=0",
    "evaluation.final_within=0",
    "evaluation.max_games=64",
    'evaluation.opponents=["random", "greedy"]',
    "evaluation.ply_limit=20",
    "checkpoint.interval=1",
    "logging.display=off",
)


def tiny_config(*overrides: str) -> AppConfig:
    """The smallest sensible run, with some settings changed."""
    return load_config(None, (*TINY, *overrides))


def tiny_trainer(directory: Path, *overrides: str, callbacks: Sequence[Callback] = ()) -> Trainer:
    """A trainer of the smallest sensible run."""
    return Trainer(tiny_config(*overrides), directory, EventBus(list(callbacks)))


def agent_of(trainer: Trainer) -> PPOAgent:
    """The learner of a trainer, which in these tests is that of a tower."""
    assert isinstance(trainer.learner, PPOAgent)
    return trainer.learner
