"""Cores are divided between learners and workers."""

import pytest

from keisei.ppo import learner as resources
from keisei.ppo.learner import Ranks, learner_threads, number_of_workers
from tests.tiny import tiny_config


def test_the_number_of_workers_follows_from_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "usable_cpus", lambda: 8)
    auto = tiny_config("parallel.num_workers=auto", "device.threads=0")
    assert number_of_workers(auto, Ranks(), on_cpu=False) == 8
    assert number_of_workers(auto, Ranks(), on_cpu=True) == 4, "8 games cannot be divided by 7"
    assert learner_threads(auto, Ranks(), on_cpu=True) == 4
    assert number_of_workers(tiny_config("parallel.num_workers=3"), Ranks(), on_cpu=True) == 3
    twice = tiny_config("parallel.num_workers=auto", "parallel.worker_threads=4")
    assert number_of_workers(twice, Ranks(), on_cpu=False) == 2
