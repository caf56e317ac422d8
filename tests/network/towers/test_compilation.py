"""What is compiled is what is called, and a compiler's failure is survived."""

import copy
import logging
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from keisei.network.towers import compilation
from keisei.network.towers.compilation import CACHE_VARIABLE, compile_forward
from keisei.network.towers.model import ActorCritic, ModelOutput
from tests.network.towers.samples import positions, small_model

GRAPHS_ONLY = "eager"
"""Backend that runs the captured graph as it is: the C++ compiler takes half a minute."""


@pytest.fixture(autouse=True)
def private_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "inductor"))
    torch._dynamo.reset()
    counters().clear()
    yield
    torch._dynamo.reset()


def counters() -> dict[str, Any]:
    """Return what torch has counted; importing it takes seconds."""
    from torch._dynamo.utils import counters

    return counters


def graphs() -> int:
    return int(counters()["stats"]["unique_graphs"])


def gradients(model: ActorCritic, output: ModelOutput) -> tuple[torch.Tensor, ...]:
    loss = output.logits.square().mean() + output.value.sum()
    return torch.autograd.grad(loss, list(model.parameters()))


@pytest.mark.parametrize(
    "model_type", ["resnet", pytest.param("transformer", marks=pytest.mark.soak)]
)
def test_calls_while_acting_and_learning_run_compiled(model_type: str) -> None:
    model = small_model(type=model_type, tower_depth=1)
    batch = positions(5)
    expected = model(batch.planes, batch.legal)
    wanted = gradients(model, expected)
    assert graphs() == 0
    assert compile_forward(model, backend=GRAPHS_ONLY)
    assert graphs() == 2  # one for acting, one for learning, both whole: no graph breaks
    assert not counters()["graph_break"]

    with torch.inference_mode():
        acting = model(batch.planes, batch.legal)
    learning = model(batch.planes, batch.legal)
    for output in (acting, learning):
        torch.testing.assert_close(output.logits, expected.logits)
        torch.testing.assert_close(output.value, expected.value)
    for ours, theirs in zip(wanted, gradients(model, learning), strict=True):
        torch.testing.assert_close(ours, theirs)
    model.eval()(batch.planes[:3], batch.legal[:3, :20])
    assert graphs() == 2  # other sizes and modes need no new graph


def test_a_compiler_that_fails_is_survived(caplog: pytest.LogCaptureFixture) -> None:
    model = small_model(tower_depth=1)
    with caplog.at_level(logging.WARNING):
        assert not compile_forward(model, backend="no such backend")
    assert "torch.compile failed, continuing without it" in caplog.text
    assert model.compiled is None
    batch = positions(2)
    assert model(batch.planes, batch.legal).logits.shape == batch.legal.shape


class Failing:
    """Stands for compiled code that fails on some inputs."""

    def __init__(self, model: ActorCritic, error: Exception) -> None:
        self.forward = model.forward_eager
        self.error = error

    def __call__(self, planes: torch.Tensor, legal: torch.Tensor) -> ModelOutput:
        if len(planes) > compilation.TRIAL_BATCH:
            raise self.error
        return self.forward(planes, legal)


@pytest.fixture
def compile_to_failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    def compile_it(model: ActorCritic, error: Exception) -> None:
        monkeypatch.setattr(torch, "compile", lambda forward, **_: Failing(model, error))
        assert compile_forward(model)
        assert model.compiled is not None

    return compile_it


def test_compiled_networks_keep_names_and_are_copied_plain(compile_to_failing: Any) -> None:
    model = small_model(tower_depth=1)
    names = list(model.state_dict())
    compile_to_failing(model, RuntimeError())
    assert list(model.state_dict()) == names
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.compiled is None
    assert model.compiled is not None


def test_a_failure_in_the_middle_of_a_run_is_survived(
    compile_to_failing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = small_model(tower_depth=1)
    compile_to_failing(model, RuntimeError("guards went mad\nlong story"))
    batch = positions(5)
    with caplog.at_level(logging.WARNING):
        output = model(batch.planes, batch.legal)
    assert output.logits.shape == batch.legal.shape
    assert caplog.messages == [
        "torch.compile failed, continuing without it: RuntimeError: guards went mad"
    ]
    assert model.compiled is None


def test_lack_of_memory_is_the_callers_business(compile_to_failing: Any) -> None:
    model = small_model(tower_depth=1)
    compile_to_failing(model, torch.OutOfMemoryError("too large"))
    batch = positions(5)
    with pytest.raises(torch.OutOfMemoryError):
        model(batch.planes, batch.legal)
    assert model.compiled is not None


@pytest.mark.parametrize("torchs_choice", [None, "/tmp/torchinductor_somebody"])
def test_compiled_code_is_kept_in_a_directory_of_our_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, torchs_choice: str | None
) -> None:
    monkeypatch.setattr(compilation, "cache_directory", lambda: tmp_path / "kernels-1")
    monkeypatch.delenv(CACHE_VARIABLE)
    if torchs_choice is not None:
        monkeypatch.setenv(CACHE_VARIABLE, torchs_choice)
    for _ in range(2):
        compile_forward(small_model(tower_depth=1), backend="no such backend")
        assert os.environ[CACHE_VARIABLE] == str(tmp_path / "inductor")


def test_what_may_be_half_written_is_cleared_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compilation, "cache_directory", lambda: tmp_path / "kernels-1")
    monkeypatch.delenv(CACHE_VARIABLE)
    broken = tmp_path / "inductor" / "half.so"
    broken.parent.mkdir()
    broken.write_bytes(b"\x7fELF")
    assert not compile_forward(small_model(tower_depth=1), backend="no such backend")
    assert not broken.exists()


def test_a_directory_that_the_user_chose_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compilation, "cache_directory", lambda: tmp_path / "ours" / "kernels-1")
    theirs = tmp_path / "inductor" / "file"
    theirs.parent.mkdir()
    theirs.touch()
    assert not compile_forward(small_model(tower_depth=1), backend="no such backend")
    assert theirs.exists()
    assert os.environ[CACHE_VARIABLE] == str(theirs.parent)
