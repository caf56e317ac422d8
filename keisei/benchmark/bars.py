"""The speeds that Keisei promises."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bar:
    """A speed that Keisei promises on a quiet machine."""

    claim: str
    needed: float
    unit: str
    measured: float | None
    """None if what it compares with is not installed or was not measured."""

    @property
    def passed(self) -> bool | None:
        """Whether the promise holds here; None when not measured."""
        return None if self.measured is None else self.measured >= self.needed

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**vars(self), "passed": self.passed}
