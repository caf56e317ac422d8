"""Execution paths of a network, side by side."""

import copy

import pytest
import torch

from keisei.benchmark import network_speed
from keisei.benchmark.network_speed import (
    COMPILED,
    LAID_OUT,
    NAIVE,
    ONE_THREAD,
    measure_paths,
    reduced_paths,
    sample_batch,
)
from keisei.network.towers import compilation
from tests.network.towers.samples import small_model


@pytest.fixture(autouse=True)
def compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes half a minute."""
    monkeypatch.setattr(compilation, "compile_forward", lambda model, **_: True)


def test_every_path_is_measured_against_the_naive_one() -> None:
    model = small_model(tower_depth=1)
    before = copy.deepcopy(model.state_dict())
    speeds = measure_paths(model, sample_batch(model, 4), repetitions=2, seconds=0.01)
    assert [speed.path for speed in speeds] == [NAIVE, LAID_OUT, COMPILED]
    assert (speeds[0].acting_ratio, speeds[0].learning_ratio) == (1.0, 1.0)
    for speed in speeds:
        assert speed.acting.best > 0
        assert speed.learning_ratio == speed.learning.best / speeds[0].learning.best
        assert speed.as_dict()["path"] == speed.path.name
    assert model.compiled is None
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())


def test_what_cannot_be_compiled_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "compile_forward", lambda model, **_: False)
    model = small_model(tower_depth=1)
    speeds = measure_paths(model, sample_batch(model, 2), repetitions=1, seconds=0.0)
    assert [speed.path for speed in speeds] == [NAIVE, LAID_OUT]


def test_a_precision_adds_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run under autocast; not here, where that may not be safe."""
    made: list[network_speed.ExecutionPath] = []

    def act(run: network_speed._Run) -> int:
        made.append(run.path)
        return 1

    monkeypatch.setattr(network_speed._Run, "act", act)
    monkeypatch.setattr(network_speed._Run, "learn", lambda run: 1)
    model = small_model(tower_depth=1)
    batch = sample_batch(model, 2)
    paths = reduced_paths(torch.bfloat16)
    speeds = measure_paths(model, batch, paths=paths, repetitions=1, seconds=0.0)
    names = [speed.path.name for speed in speeds]
    assert names == ["naive fp32", "channels_last, bfloat16", "compiled, bfloat16"]
    run = network_speed._Run.make(made[-1], model, batch)
    assert run is not None
    with run._autocast():
        assert torch.get_autocast_dtype("cpu") is torch.bfloat16
        assert torch.is_autocast_enabled("cpu")


def test_one_thread_is_temporary() -> None:
    model = small_model(tower_depth=1)
    run = network_speed._Run.make(ONE_THREAD, model, sample_batch(model, 2))
    assert run is not None
    torch.set_num_threads(2)
    try:
        with run._threads():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_the_batch_is_like_those_of_training() -> None:
    model = small_model("core46+all")
    batch = sample_batch(model, 3)
    assert batch.planes.shape == (3, 168, 9, 9)
    assert batch.legal.shape == (3, network_speed.TYPICAL_LEGAL_MOVES)
    assert model(*batch).logits.shape == batch.legal.shape
