"""Gymnasium and PettingZoo environments, for other learners.

They need the extra packages of ``keisei[envs]``. Importing this package registers
``keisei/Shogi-v0`` with Gymnasium:

>>> import gymnasium
>>> import keisei.shogi.envs
>>> env = gymnasium.make("keisei/Shogi-v0")
>>> envs = gymnasium.make_vec("keisei/Shogi-v0", num_envs=3)

and `shogi_v0` is the PettingZoo environment:

>>> from keisei.shogi.envs import shogi_v0
>>> shogi_v0.env().possible_agents
['black_0', 'white_0']
"""

from keisei.errors import KeiseiError

try:
    import gymnasium
    import pettingzoo  # type: ignore[import-untyped]  # noqa: F401
except ModuleNotFoundError as error:
    raise KeiseiError(
        f'the environments need the package {error.name}: python -m pip install "keisei[envs]"'
    ) from error

from keisei.shogi.envs import pettingzoo_env as shogi_v0
from keisei.shogi.envs.gymnasium_env import ShogiEnv, ShogiVectorEnv
from keisei.shogi.envs.pettingzoo_env import ShogiAECEnv

__all__ = ["ShogiAECEnv", "ShogiEnv", "ShogiVectorEnv", "shogi_v0"]

gymnasium.register(
    id="keisei/Shogi-v0",
    entry_point="keisei.shogi.envs.gymnasium_env:ShogiEnv",
    vector_entry_point="keisei.shogi.envs.gymnasium_env:ShogiVectorEnv",
)
