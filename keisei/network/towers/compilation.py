"""`torch.compile` for networks, with the uncompiled model as the fallback."""

import logging
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from keisei.constants import BOARD_SIZE
from keisei.network.towers.model import ActorCritic, ModelOutput
from keisei.shogi.jit import cache_directory

logger = logging.getLogger(__name__)

CACHE_VARIABLE: Final = "TORCHINDUCTOR_CACHE_DIR"
SHARED_CACHE: Final = "torchinductor_"
"""Prefix of the name of torch's own cache directory; the user's name follows."""

TRIAL_BATCH: Final = 4
TRIAL_MOVES: Final = 3

NO_MEMORY: Final = ("out of memory", "can't allocate memory", "not enough memory")
"""Parts of the messages with which MPS, and the CPU on Linux, macOS and Windows, refuse memory."""

Forward = Callable[[Tensor, Tensor], ModelOutput]


def is_out_of_memory(error: Exception) -> bool:
    """Return whether a device had too little memory: only CUDA has an exception for it."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in NO_MEMORY)


def compile_forward(
    model: ActorCritic,
    *,
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
    backend: str = "inductor",
) -> bool:
    """Compile the forward pass of `model` for acting and learning; return whether that worked.

    Both are tried at once, the backward pass included, so that an error shows here and not in the
    middle of a run. After an error the model is unchanged, and a warning is logged.

    Args:
        model: stays the same object with the same parameters; copies of it are not compiled.
        autocast: makes the context in which the model will be called.
        backend: of `torch.compile`.
    """
    private_cache = _use_private_cache()
    try:
        # Batches and legal lists come in all sizes. On a CPU, code for any size is as fast as code
        # for one size, and compiling again for each size would take half a minute each time.
        compiled = torch.compile(model.forward_eager, dynamic=True, backend=backend)
        with autocast():
            _try_out(model, compiled)
    except Exception as error:  # noqa: BLE001 - compilers fail in all ways, and eager always works
        _warn(error)
        if private_cache is not None:
            # A process that was killed while compiling may have left half a file there.
            shutil.rmtree(private_cache, ignore_errors=True)
        return False
    model.compiled = CompiledForward(model, compiled)
    return True


class CompiledForward:
    """`ActorCritic.forward_eager`, compiled; after an error the model is used uncompiled."""

    def __init__(self, model: ActorCritic, compiled: Forward) -> None:
        self._model = model
        self._compiled = compiled

    def __call__(self, planes: Tensor, legal: Tensor) -> ModelOutput:
        """Compute the same as ``model.forward_eager(planes, legal)``."""
        try:
            # Code is compiled for a memory layout: a list cut out of a longer one has another.
            return self._compiled(planes, legal.contiguous())
        except Exception as error:
            if is_out_of_memory(error):
                raise  # not the compiler's fault: the caller makes its batch smaller
            _warn(error)
            self._model.compiled = None
            return self._model.forward_eager(planes, legal)


def _try_out(model: ActorCritic, forward: Forward) -> None:
    device = next(model.parameters()).device
    planes = torch.zeros(TRIAL_BATCH, model.in_planes, BOARD_SIZE, BOARD_SIZE, device=device)
    legal = torch.zeros(TRIAL_BATCH, TRIAL_MOVES, dtype=torch.int64, device=device)
    with torch.inference_mode():
        forward(planes, legal)
    with torch.enable_grad():
        output = forward(planes, legal)
        learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
        # Not backward(): the gradients that the model holds stay as they are.
        torch.autograd.grad(output.logits.sum() + output.value.sum(), learned)


def _warn(error: Exception) -> None:
    lines = str(error).strip().splitlines()
    logger.warning(
        "torch.compile failed, continuing without it: %s: %s",
        type(error).__name__,
        lines[0] if lines else "no message",
    )


def _use_private_cache() -> Path | None:
    """Choose a cache directory of Keisei's own; None if the user has chosen one.

    Torch's default directory is shared by all programs of a user, and a file that one of them left
    incomplete when it was killed breaks the others.
    """
    directory = cache_directory().parent / "inductor"
    chosen = os.environ.get(CACHE_VARIABLE)
    # Torch itself sets the variable to its shared directory, as soon as its compiler is imported.
    if chosen is not None and not Path(chosen).name.startswith(SHARED_CACHE):
        return directory if Path(chosen) == directory else None
    os.environ[CACHE_VARIABLE] = str(directory)
    return directory
