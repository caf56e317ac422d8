"""Workers on a Ray cluster: the same games, and nodes that come and go.

The cluster is a real one as far as Ray is concerned: each of its nodes has processes of its own.
"""

import logging
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.models.compute import choose_compute
from keisei.models.factory import build_model
from keisei.models.network import ActorCritic
from keisei.ppo.experience import Experience
from keisei.ppo.inference import Inference
from keisei.selfplay import ray_workers
from keisei.selfplay.ray_workers import RaySelfPlay, import_ray
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.source import GameSource, SelfPlay
from keisei.selfplay.timing import SectionTimer
from keisei.selfplay.workforce import WorkersFailedError
from keisei.shogi.features import feature_spec
from tests.tiny import tiny_config

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow]


class Nodes:
    """A cluster on this machine: a head for the learner, nodes of one CPU for workers."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster: Any = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "include_dashboard": False, **STORE},
        )
        self.address: str = self._cluster.address
        self._nodes: list[Any] = []

    def have(self, number: int) -> None:
        """Add or remove nodes until there are so many."""
        while len(self._nodes) < number:
            self._nodes.append(self._cluster.add_node(num_cpus=1, **STORE))
        while len(self._nodes) > number:
            self.kill()

    def kill(self) -> None:
        """End a node and all of its processes at once."""
        self._cluster.remove_node(self._nodes.pop(), allow_graceful=False)

    def shutdown(self) -> None:
        self._cluster.shutdown()


STORE = {"object_store_memory": 80 << 20}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else Ray writes one to the home
        import_ray()
        cluster = Nodes()
        try:
            yield cluster
        finally:
            cluster.shutdown()
