"""PPO: the learner, its buffer and its loss. Importing this package needs no torch.

`keisei.ppo.learner` has the interface to the training loop, `PPOAgent` implements it with torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

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

_MODULES: Final = {
    "PPOAgent": "agent",
    "Experience": "buffer",
    "ExperienceBuffer": "buffer",
    "LearnSettings": "learner",
    "Learner": "learner",
    "Ranks": "learner",
    "UpdateStats": "learner",
    "make_learner": "learner",
}
"""Module of each name, imported when the name is first used."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
