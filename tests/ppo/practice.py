"""A tiny learner and its self-play, without a trainer around them."""

import numpy as np

from keisei.ppo.agent import PPOAgent
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import LearnSettings, Ranks, UpdateStats, make_learner
from keisei.ppo.sparse_learner import SparseLearner
from keisei.selfplay.source import SelfPlay
from keisei.timing import SectionTimer
from tests.tiny import tiny_config

AnyLearner = PPOAgent | SparseLearner


def tiny_learner(*overrides: str, seed: int = 0, ranks: Ranks | None = None) -> AnyLearner:
    """The learner of the smallest sensible run, with some settings changed."""
    learner = make_learner(
        tiny_config(*overrides),
        seed=seed,
        random=np.random.default_rng(seed),
        ranks=ranks or Ranks(),
    )
    assert isinstance(learner, AnyLearner)
    return learner


def tiny_agent(*overrides: str, seed: int = 0) -> PPOAgent:
    """The learner of a tower."""
    agent = tiny_learner(*overrides, seed=seed)
    assert isinstance(agent, PPOAgent)
    return agent


class Practice:
    """A learner that plays itself and learns from it."""

    def __init__(self, *overrides: str, seed: int = 0) -> None:
        config = tiny_config(*overrides)
        self.learner = tiny_learner(*overrides, seed=seed)
        network = self.learner.network
        self.selfplay = SelfPlay(config, network, games=config.env.num_games, threads=1)
        self.selfplay.pool.add(network.weights())
        self.buffer = ExperienceBuffer(config.selfplay.rollout_plies, config.env.num_games)

    @property
    def agent(self) -> PPOAgent:
        """The learner, in tests that are about towers."""
        assert isinstance(self.learner, PPOAgent)
        return self.learner

    def play(self) -> ExperienceBuffer:
        """Fill the buffer with a rollout; games that have not ended continue in the next one."""
        self.selfplay.collect(self.buffer, SectionTimer())
        self.buffer.finish(gamma=0.99, gae_lambda=0.9)
        return self.buffer

    def learn(self, learning_rate: float = 0.01, entropy_weight: float = 0.0) -> UpdateStats:
        """Update the learner with the rollout."""
        return self.learner.learn(self.buffer, LearnSettings(learning_rate, entropy_weight))


def played(*overrides: str, seed: int = 0) -> Practice:
    """Practice whose first rollout has been played."""
    practice = Practice(*overrides, seed=seed)
    practice.play()
    return practice
