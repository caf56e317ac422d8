"""What a benchmark ran on: without it a figure says little."""

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from keisei.doctor import usable_cpus

CPU_INFO = Path("/proc/cpuinfo")
"""Where Linux tells the processor's model."""


@dataclass(frozen=True)
class Machine:
    """Processor, interpreter and libraries, and how busy it all was."""

    cpu: str
    """The processor's model name."""

    cpus: int
    """How many processors this process may use."""

    load: float | None
    """Processes that wanted to run during the last minute, on average; None where unknown."""

    python: str
    versions: dict[str, str]
    """Version of each package that takes part; those that are not installed are left out."""

    @property
    def is_busy(self) -> bool:
        """Whether other processes are likely to disturb the measurement."""
        return self.load is not None and self.load > self.cpus / 2

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "is_busy": self.is_busy}


def this_machine(packages: Iterable[str]) -> Machine:
    """Describe the machine as it is now; `packages` are those whose versions matter."""
    return Machine(
        cpu=_cpu_model(),
        cpus=usable_cpus(),
        load=_load_average(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions={name: found for name in packages if (found := installed_version(name))},
    )


def installed_version(package: str) -> str | None:
    """The version of an installed package; None if it isn't."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    if CPU_INFO.exists():
        for line in CPU_INFO.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _load_average() -> float | None:
    if not hasattr(os, "getloadavg"):  # Windows
        return None
    try:
        return os.getloadavg()[0]
    except OSError:
        return None
