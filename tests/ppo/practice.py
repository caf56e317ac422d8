"""A tiny agent and its self-play, without a trainer around them."""

import numpy as np

from keisei.ppo.agent import PPOAgent, make_agent
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import LearnSettings, Ranks, UpdateStats
from keisei.selfplay.source import SelfPlay
from keisei.timing import SectionTimer
from tests.tiny import tiny_config


def tiny_agent(*overrides: str, seed: int = 0) -> PPOAgent:
    """An agent of the smallest sensible run, with some settings changed."""
    random = np.random.default_rng(seed)
    return make_agent(tiny_config(*overrides), seed=seed, random=random, ranks=Ranks())


class Practice:
    """An agent that plays itself and learns from it."""

    def __init__(self, *overrides: str, seed: int = 0) -> None:
        config = tiny_config(*overrides)
        self.agent = tiny_agent(*overrides, seed=seed)
        self.selfplay = SelfPlay(config, self.agent.network, games=config.env.num_games, threads=1)
        self.selfplay.pool.add(self.agent.network.weights())
        self.buffer = ExperienceBuffer(config.selfplay.rollout_plies, config.env.num_games)

    def play(self) -> ExperienceBuffer:
        """Fill the buffer with a rollout; games that have not ended continue in the next one."""
        self.selfplay.collect(self.buffer, SectionTimer())
        self.buffer.finish(gamma=0.99, gae_lambda=0.9)
        return self.buffer

    def learn(self, learning_rate: float = 0.01, entropy_weight: float = 0.0) -> UpdateStats:
        """Update the agent with the rollout."""
        return self.agent.learn(self.buffer, LearnSettings(learning_rate, entropy_weight))


def played(*overrides: str, seed: int = 0) -> Practice:
    """Practice whose first rollout has been played."""
    practice = Practice(*overrides, seed=seed)
    practice.play()
    return practice
