"""How much memory this process takes."""

import sys
from pathlib import Path

import torch

_STATUS = Path("/proc/self/status")


def video_megabytes() -> float | None:
    """The most memory that tensors took on the GPU so far, in megabytes; None without a GPU."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    return torch.cuda.max_memory_allocated() / (1 << 20)


def resident_megabytes() -> float:
    """Resident memory in megabytes: now on Linux, the most so far elsewhere, 0 if unknown."""
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmRSS:"):
                return float(line.split()[1]) / 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows has no such module
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024
