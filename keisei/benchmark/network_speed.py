"""How fast a network acts and learns here, by each way of running it."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from keisei.benchmark.harness import Rate, side_by_side
from keisei.constants import NUM_ACTIONS
from keisei.network.towers.compilation import compile_forward
from keisei.network.towers.layers import lay_out
from keisei.network.towers.model import ActorCritic

TYPICAL_LEGAL_MOVES: Final = 120
"""Length of the longest legal list in a batch of self-play, more or less."""


class Batch(NamedTuple):
    """What a network is measured on."""

    planes: Tensor
    """``[B, C, 9, 9]``."""

    legal: Tensor
    """``[B, M]`` int64."""


@dataclass(frozen=True)
class Path:
    """A way of running a network."""

    name: str
    channels_last: bool = False
    inference_mode: bool = False
    is_compiled: bool = False
    dtype: torch.dtype | None = None
    """What autocast goes down to; None: float32 throughout."""

    one_thread: bool = False
    """Whether torch may use one thread only; else as many as it is set to."""


NAIVE: Final = Path("naive fp32")
LAID_OUT: Final = Path("inference_mode + channels_last", channels_last=True, inference_mode=True)
ONE_THREAD: Final = Path(
    "the same, one thread", channels_last=True, inference_mode=True, one_thread=True
)
COMPILED: Final = Path("compiled", channels_last=True, inference_mode=True, is_compiled=True)


@dataclass(frozen=True)
class PathSpeed:
    """Positions per second by one path, and over those of naive fp32."""

    path: Path
    acting: Rate
    learning: Rate
    acting_ratio: float
    learning_ratio: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "path": self.path.name,
            "acting": self.acting.as_dict(),
            "learning": self.learning.as_dict(),
            "acting_ratio": self.acting_ratio,
            "learning_ratio": self.learning_ratio,
        }


def sample_batch(model: ActorCritic, size: int) -> Batch:
    """A batch of the usual size of legal lists, with random planes, where `model` is."""
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(0)
    planes = torch.rand(size, model.in_planes, 9, 9, generator=generator)
    legal = torch.randint(NUM_ACTIONS, (size, TYPICAL_LEGAL_MOVES), generator=generator)
    return Batch(planes.to(device), legal.to(device))


def reduced_paths(dtype: torch.dtype) -> tuple[Path, Path]:
    """The paths with autocast to `dtype`."""
    suffix = str(dtype).removeprefix("torch.")
    return (
        Path(f"channels_last, {suffix}", True, True, dtype=dtype),
        Path(f"compiled, {suffix}", True, True, is_compiled=True, dtype=dtype),
    )


def measure_paths(
    model: ActorCritic,
    batch: Batch,
    *,
    paths: Sequence[Path] = (LAID_OUT, COMPILED),
    repetitions: int = 3,
    seconds: float = 1.0,
) -> list[PathSpeed]:
    """Measure forward passes and training steps of copies of `model`, side by side.

    The naive path, to which the ratios refer, comes first. One that fails to compile is left out.
    A `dtype` that paths go down to must be safe here (`keisei.network.towers.device`).
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
    """A copy of the network, ready to be run along a path."""

    path: Path
    model: ActorCritic
    optimizer: torch.optim.Optimizer
    batch: Batch

    @classmethod
    def make(cls, path: Path, model: ActorCritic, batch: Batch) -> "_Run | None":
        model = copy.deepcopy(model)
        layout = torch.channels_last if path.channels_last else torch.contiguous_format
        lay_out(model, layout)
        run = cls(path, model, torch.optim.Adam(model.parameters()), batch)
        if path.is_compiled and not compile_forward(model, autocast=run._autocast):
            return None
        return run

    def act(self) -> int:
        """One forward pass; returns the number of positions."""
        context = torch.inference_mode if self.path.inference_mode else torch.no_grad
        with self._threads(), context(), self._autocast():
            return self._done(self.model(*self.batch).value)

    def learn(self) -> int:
        """One training step with losses as in PPO; returns the number of positions."""
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
        kind = self.batch.planes.device.type
        return torch.autocast(kind, dtype=self.path.dtype, enabled=self.path.dtype is not None)

    @contextmanager
    def _threads(self) -> Iterator[None]:
        before = torch.get_num_threads()
        if self.path.one_thread:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def _done(self, result: Tensor) -> int:
        result.sum().item()  # waits for the device
        return len(self.batch.planes)
