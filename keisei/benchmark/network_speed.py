"""Speed of a network: its execution paths in torch, and next to onnxruntime.

`measure_paths` is a part of ``keisei benchmark train``; ``keisei benchmark network RUN`` compares a
trained network with its ONNX export, called as players call them. Only towers need torch.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from rich.console import Console

from keisei.benchmark.harness import Rate, print_header, side_by_side, this_machine
from keisei.constants import NUM_ACTIONS
from keisei.formats import new_table
from keisei.network.predictor import Predictor
from keisei.shogi.vector import VectorShogi

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from keisei.network.towers.model import ActorCritic

TYPICAL_LEGAL_MOVES: Final = 120
"""Typical length of the longest legal list in a batch of self-play."""


class Batch(NamedTuple):
    """Input of a network."""

    planes: "Tensor"
    """``[B, C, 9, 9]``."""

    legal: "Tensor"
    """``[B, M]`` int64."""


@dataclass(frozen=True)
class ExecutionPath:
    """Memory layout, precision, compilation and threads with which a network runs."""

    name: str
    channels_last: bool = False
    inference_mode: bool = False
    is_compiled: bool = False
    dtype: "torch.dtype | None" = None
    """Autocast dtype; None: float32 throughout."""

    one_thread: bool = False
    """Whether torch uses one thread only, instead of the number it is set to."""


NAIVE: Final = ExecutionPath("naive fp32")
LAID_OUT: Final = ExecutionPath(
    "inference_mode + channels_last", channels_last=True, inference_mode=True
)
ONE_THREAD: Final = ExecutionPath(
    "the same, one thread", channels_last=True, inference_mode=True, one_thread=True
)
COMPILED: Final = ExecutionPath(
    "compiled", channels_last=True, inference_mode=True, is_compiled=True
)


@dataclass(frozen=True)
class PathSpeed:
    """Positions per second on one path, and the ratios to naive fp32."""

    path: ExecutionPath
    acting: Rate
    learning: Rate
    acting_ratio: float
    learning_ratio: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "path": self.path.name,
            "acting": self.acting.as_dict(),
            "learning": self.learning.as_dict(),
            "acting_ratio": self.acting_ratio,
            "learning_ratio": self.learning_ratio,
        }


def sample_batch(model: "ActorCritic", size: int) -> Batch:
    """Return a batch of random planes and legal lists of typical length, on the model's device."""
    import torch

    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(0)
    planes = torch.rand(size, model.in_planes, 9, 9, generator=generator)
    legal = torch.randint(NUM_ACTIONS, (size, TYPICAL_LEGAL_MOVES), generator=generator)
    return Batch(planes.to(device), legal.to(device))


def reduced_paths(dtype: "torch.dtype") -> tuple[ExecutionPath, ExecutionPath]:
    """Return the paths with autocast to `dtype`."""
    suffix = str(dtype).removeprefix("torch.")
    return (
        ExecutionPath(f"channels_last, {suffix}", True, True, dtype=dtype),
        ExecutionPath(f"compiled, {suffix}", True, True, is_compiled=True, dtype=dtype),
    )


def measure_paths(
    model: "ActorCritic",
    batch: Batch,
    *,
    paths: Sequence[ExecutionPath] = (LAID_OUT, COMPILED),
    repetitions: int = 3,
    seconds: float = 1.0,
) -> list[PathSpeed]:
    """Measure forward passes and training steps of copies of `model`, side by side.

    The naive path, to which the ratios refer, comes first. A path that fails to compile is left
    out. A path's `dtype` must be safe on this machine (`keisei.network.towers.device`).
    """
    paths = [NAIVE, *paths]
    runs = [run for path in paths if (run := _Run.make(path, model, batch)) is not None]
    acting = side_by_side({r.path: r.act for r in runs}, repetitions=repetitions, seconds=seconds)
    learning = side_by_side(
        {r.path: r.learn for r in runs}, repetitions=repetitions, seconds=seconds
    )
    return [
        PathSpeed(
            run.path,
            acting[run.path],
            learning[run.path],
            acting[run.path].best / acting[NAIVE].best,
            learning[run.path].best / learning[NAIVE].best,
        )
        for run in runs
    ]


@dataclass(frozen=True)
class _Run:
    """A copy of the network, set up for one path."""

    path: ExecutionPath
    model: "ActorCritic"
    optimizer: "torch.optim.Optimizer"
    batch: Batch

    @classmethod
    def make(cls, path: ExecutionPath, model: "ActorCritic", batch: Batch) -> "_Run | None":
        import torch

        from keisei.network.towers.compilation import compile_forward
        from keisei.network.towers.model import lay_out

        model = copy.deepcopy(model)
        layout = torch.channels_last if path.channels_last else torch.contiguous_format
        lay_out(model, layout)
        run = cls(path, model, torch.optim.Adam(model.parameters()), batch)
        if path.is_compiled and not compile_forward(model, autocast=run._autocast):
            return None
        return run

    def act(self) -> int:
        """Run one forward pass; return the number of positions."""
        import torch

        context = torch.inference_mode if self.path.inference_mode else torch.no_grad
        with self._threads(), context(), self._autocast():
            return self._done(self.model(*self.batch).value)

    def learn(self) -> int:
        """Run one training step with losses like PPO's; return the number of positions."""
        import torch

        with self._threads():
            with self._autocast():
                output = self.model(*self.batch)
                policy_loss = -output.logits.log_softmax(dim=1)[:, 0].mean()
                returns = torch.zeros(len(output.logits), device=output.logits.device)
                loss = policy_loss + self.model.value_loss(output.value, returns).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            return self._done(loss)

    def _autocast(self) -> AbstractContextManager[object]:
        import torch

        kind = self.batch.planes.device.type
        return torch.autocast(kind, dtype=self.path.dtype, enabled=self.path.dtype is not None)

    @contextmanager
    def _threads(self) -> Iterator[None]:
        import torch

        before = torch.get_num_threads()
        if self.path.one_thread:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def _done(self, result: "Tensor") -> int:
        result.sum().item()  # waits for the device
        return len(self.batch.planes)


POSITIONS: Final = 1000
BATCHES: Final = (1, 16, 256)
REPETITIONS: Final = 7
SECONDS: Final = 0.5


def report_network(run: Path) -> None:
    """Compare a run's network with its ONNX export on one CPU thread: outputs and speed."""
    from keisei.network.loading import device_config, read_network
    from keisei.network.model_factory import network_type, resolve
    from keisei.network.onnx.onnx_model import onnx_model

    console = Console()
    network = read_network(run)
    kind = network.config.model.type
    is_tower = network_type(kind).model is not None
    packages = ("torch", "onnxruntime", "numpy") if is_tower else ("numba", "onnxruntime", "numpy")
    print_header(console, this_machine(packages))
    export = resolve(network_type(kind).exports["onnx"], f"exporting a network of type {kind!r}")
    predictors: dict[str, Predictor] = {
        packages[0]: network.network(device_config("cpu", 1)),
        "onnxruntime": onnx_model(export(network), Path(network.name), threads=1),
    }
    env = VectorShogi(POSITIONS, network.spec, seed=1, opening_plies=60)
    predictions = [predictor.predict(env.observe()) for predictor in predictors.values()]
    probabilities = [np.exp(prediction.log_probs) for prediction in predictions]
    console.print(
        f"{network.name}, {POSITIONS:,} positions after 60 random plies, largest difference: "
        f"probabilities {np.abs(probabilities[0] - probabilities[1]).max():.1e}, "
        f"values {np.abs(predictions[0].values - predictions[1].values).max():.1e}"
    )
    table = new_table("positions per second, one thread")
    for heading in ("batch", *predictors, "ratio", "noise"):
        table.add_column(heading, justify="right")
    for batch in BATCHES:
        work = {
            name: partial(_predict, predictor, env, batch) for name, predictor in predictors.items()
        }
        rates = side_by_side(work, repetitions=REPETITIONS, seconds=SECONDS)
        own, exported = (rates[name] for name in predictors)
        table.add_row(
            str(batch),
            f"{own.best:,.0f}",
            f"{exported.best:,.0f}",
            f"{exported.best / own.best:.2f}",
            f"{max(own.spread, exported.spread):.0%}",
        )
    console.print(table)


def _predict(predictor: Predictor, env: VectorShogi, batch: int) -> int:
    """Evaluate the first positions of `env`; return how many."""
    predictor.predict(env.observe().take(slice(batch)))
    return batch
