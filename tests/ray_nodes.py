"""A Ray cluster on this machine, whose nodes come and go."""

import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock

from keisei.selfplay.workers.ray_pool import import_ray

PROCESSES = Path("/proc")
STORE = {"object_store_memory": 80 << 20}
TOKEN = secrets.token_hex(32)
"""Without one Ray writes its own into the home. It is the same for all clusters of this process, as
Ray reads it only once."""

LOCK = Path(tempfile.gettempdir(), "keisei-tests-ray.lock")
"""Held by the process that has a cluster: with two on one machine, workers get lost."""


class Nodes:
    """A cluster on this machine, whose nodes have one CPU each."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster: Any = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False, **STORE},
        )
        self.address = str(self._cluster.address)
        self._others: list[Any] = []

    def have(self, number: int) -> None:
        """Add or kill nodes until there are `number`, the head included."""
        while 1 + len(self._others) < number:
            self._others.append(self._cluster.add_node(num_cpus=1, **STORE))
        while 1 + len(self._others) > number:
            self.kill_one()
        self._cluster.wait_for_nodes()

    def kill_one(self) -> None:
        """Kill a node with all its processes, without notifying the cluster."""
        self._cluster.remove_node(self._others.pop(), allow_graceful=False)

    def kill_worker(self) -> bool:
        """Kill the process of a worker that plays games; return whether there was one."""
        for process in psutil.Process().children(recursive=True):
            try:
                # Ray writes what an actor does into the name of its process.
                title = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if title.startswith("ray::RayWorker"):
                process.send_signal(signal.SIGKILL)
                return True
        return False

    def shutdown(self) -> None:
        self._cluster.shutdown()


@contextmanager
def ray_cluster() -> Iterator[Nodes]:
    """A cluster of one node, which leaves no process behind; skips where there is no Ray."""
    pytest.importorskip("ray", reason="Ray is an extra")
    if sys.platform != "linux":
        pytest.skip("elsewhere Ray has no clusters of several nodes on one machine")
    before = children()
    with pytest.MonkeyPatch.context() as patch, FileLock(LOCK):
        patch.setenv("RAY_AUTH_TOKEN", TOKEN)
        import_ray()
        cluster = Nodes()
        try:
            yield cluster
        finally:
            cluster.shutdown()
    assert children() == before


def children() -> set[int]:
    """Return the processes that this one has started, where the system lists them."""
    if not PROCESSES.is_dir():
        return set()
    found = set()
    for path in PROCESSES.glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(path.parent.name))
    return found
