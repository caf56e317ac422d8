"""PPO: the learner, its buffer and its loss. Importing this package needs no torch.

`keisei.ppo.learner` has the interface to the training loop, `PPOAgent` implements it with torch.
"""

from typing import TYPE_CHECKING

from keisei.front_door import imported_on_use

if TYPE_CHECKING:
    from keisei.ppo.agent import PPOAgent
    from keisei.ppo.buffer import Experience, ExperienceBuffer
    from keisei.ppo.learner import (
        Learner,
        LearnSettings,
        Ranks,
        UpdateStats,
        make_learner,
    )

__all__ = [
    "Experience",
    "ExperienceBuffer",
    "LearnSettings",
    "Learner",
    "PPOAgent",
    "Ranks",
    "UpdateStats",
    "make_learner",
]

__getattr__, __dir__ = imported_on_use(
    __name__,
    {
        "PPOAgent": "agent",
        "Experience": "buffer",
        "ExperienceBuffer": "buffer",
        "LearnSettings": "learner",
        "Learner": "learner",
        "Ranks": "learner",
        "UpdateStats": "learner",
        "make_learner": "learner",
    },
)
