"""Which device, precision and compiler are chosen; other machines are imitated."""

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

from keisei.config_schema import DeviceConfig
from keisei.errors import KeiseiError
from keisei.network.towers import device as compute_module
from keisei.network.towers.device import (
    Compute,
    Probe,
    StepSeconds,
    choose_compute,
    step_seconds,
)
from keisei.network.towers.model import ActorCritic
from tests.network.towers.samples import positions, small_model

Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Imitate a machine: number of GPUs, their compute capability, Apple's GPU, the probe."""

    def imitate(
        *,
        gpus: int = 0,
        capability: tuple[int, int] = (8, 0),
        mps: bool = False,
        probe: Probe | None = None,
    ) -> None:
        def probe_precision(device: str, dtype: torch.dtype, threads: int) -> Probe:
            assert probe is not None, "nothing should be probed here"
            return probe

        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(compute_module, "probe_precision", probe_precision)

    return imitate


@pytest.mark.parametrize(
    ("there_is", "expected"),
    [({}, "cpu"), ({"mps": True}, "mps"), ({"gpus": 2, "mps": True}, "cuda")],
)
def test_auto_is_the_best_device(machine: Machine, there_is: Any, expected: str) -> None:
    machine(**there_is)
    assert choose_compute(DeviceConfig()).device == torch.device(expected)


def test_a_device_can_be_named(machine: Machine) -> None:
    machine(gpus=2)
    for name in ("cpu", "cuda", "cuda:1"):
        assert choose_compute(DeviceConfig(device=name)).device == torch.device(name)


@pytest.mark.parametrize("name", ["cuda:2", "cuda:99", "mps"])
def test_what_is_not_there_is_refused_with_a_list(machine: Machine, name: str) -> None:
    machine(gpus=2)
    with pytest.raises(KeiseiError, match=r"there are auto, cpu, cuda, cuda:0, cuda:1$"):
        choose_compute(DeviceConfig(device=name))
    machine(mps=True)
    with pytest.raises(KeiseiError, match=r"'cuda' is not available; there are auto, cpu, mps$"):
        choose_compute(DeviceConfig(device="cuda"))


FASTER, SLOWER, DEAD = Probe(1.5, ""), Probe(0.8, ""), Probe(0.0, "ended with SIGILL")


@pytest.mark.parametrize(
    ("there_is", "choice", "expected"),
    [
        ({}, "off", None),
        ({"gpus": 1}, "off", None),
        ({"gpus": 1}, "auto", torch.bfloat16),
        ({"gpus": 1, "capability": (7, 5)}, "auto", torch.float16),
        ({"gpus": 1}, "bf16", torch.bfloat16),
        ({"gpus": 1, "capability": (7, 5)}, "fp16", torch.float16),
        ({"probe": FASTER}, "auto", torch.bfloat16),
        ({"probe": SLOWER}, "auto", None),
        ({"probe": DEAD}, "auto", None),
        ({"probe": SLOWER}, "bf16", torch.bfloat16),
        ({"probe": SLOWER}, "fp16", torch.float16),
        ({"mps": True, "probe": SLOWER}, "auto", None),
        ({"mps": True, "probe": FASTER}, "fp16", torch.float16),
    ],
)
def test_precision_is_what_works_here(
    machine: Machine, there_is: Any, choice: Any, expected: torch.dtype | None
) -> None:
    machine(**there_is)
    compute = choose_compute(DeviceConfig(mixed_precision=choice))
    assert compute.autocast_dtype is expected
    assert compute.needs_scaler == (expected is torch.float16)


def test_a_precision_that_would_end_the_process_is_refused(machine: Machine) -> None:
    machine(probe=DEAD)
    message = r"bf16 does not work on this cpu: .* failed \(ended with SIGILL\); use off or auto"
    with pytest.raises(KeiseiError, match=message):
        choose_compute(DeviceConfig(mixed_precision="bf16"))


def test_bf16_on_an_old_gpu_is_refused(machine: Machine) -> None:
    machine(gpus=1, capability=(7, 5))
    with pytest.raises(KeiseiError, match="cuda is too old for it; use fp16 or auto"):
        choose_compute(DeviceConfig(mixed_precision="bf16"))


def test_layout_and_threads(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine()
    monkeypatch.setattr(compute_module, "usable_cpus", lambda: 7)
    assert choose_compute(DeviceConfig()).threads == 7
    assert choose_compute(DeviceConfig(threads=3)).threads == 3
    assert choose_compute(DeviceConfig()).channels_last
    machine(mps=True)
    assert not choose_compute(DeviceConfig()).channels_last


def on_cpu(**changes: Any) -> Compute:
    settings: dict[str, Any] = {
        "device": torch.device("cpu"),
        "autocast_dtype": None,
        "compile": "off",
        "channels_last": True,
        "threads": 1,
        "deterministic": True,
    }
    return Compute(**(settings | changes))


def test_prepare_sets_up_process_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    model = small_model()
    batch = positions(2)
    expected = model(batch.planes, batch.legal)
    assert on_cpu(threads=2).prepare(model) is model
    assert torch.get_num_threads() == 2
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.benchmark
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    stem = model.get_parameter("trunk.stem.weight")
    assert stem.is_contiguous(memory_format=torch.channels_last)
    output = model(batch.planes, batch.legal)
    torch.testing.assert_close(output.logits, expected.logits)

    plain = on_cpu(deterministic=False, channels_last=False).prepare(small_model())
    assert plain.get_parameter("trunk.stem.weight").is_contiguous()
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.backends.cudnn.benchmark


def test_autocast_is_on_when_chosen() -> None:
    with on_cpu().autocast():
        assert not torch.is_autocast_enabled("cpu")
    with on_cpu(autocast_dtype=torch.bfloat16).autocast():  # nothing is multiplied in here
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") is torch.bfloat16


@pytest.mark.parametrize(
    ("choice", "acting", "learning", "is_compiled"),
    [
        ("off", 9.0, 9.0, False),
        ("on", 0.1, 0.1, True),
        ("auto", 1.3, 1.2, True),
        ("auto", 0.9, 1.5, True),
        ("auto", 0.9, 1.05, False),
        ("auto", None, None, False),
    ],
)
def test_compiled_compiles_when_that_is_chosen_or_faster(
    monkeypatch: pytest.MonkeyPatch,
    choice: str,
    acting: float | None,
    learning: float | None,
    is_compiled: bool,
) -> None:
    compiled: list[ActorCritic] = []

    def compile_forward(model: ActorCritic, **context: object) -> bool:
        """Works, unless there is no speed to measure."""
        if acting is None:
            return False
        assert context == ({"autocast": compute.autocast} if model is ours else {})
        compiled.append(model)
        return True

    def step_seconds(model: ActorCritic) -> StepSeconds:
        assert model is not ours, "its gradients are left alone"
        if model not in compiled:
            return StepSeconds(1.0, 1.0)
        assert acting is not None
        assert learning is not None
        return StepSeconds(1.0 / acting, 1.0 / learning)

    monkeypatch.setattr(compute_module, "step_seconds", step_seconds)
    monkeypatch.setattr(compute_module, "compile_forward", compile_forward)
    compute, ours = on_cpu(compile=choice), small_model()
    assert compute.compiled(ours) is ours
    assert (ours in compiled) == is_compiled


def test_steps_are_timed_and_leave_the_weights_alone() -> None:
    model = small_model()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    seconds = step_seconds(model)
    assert 0.0 < seconds.acting < seconds.learning
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
