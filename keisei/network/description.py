"""`Description`: the inputs and parts of a network in numbers, as ``keisei describe`` shows them.

Each network type makes its own (`keisei.network.model_factory.describe_network`). Nothing here
needs torch.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

TYPICAL_LEGAL_MOVES: Final = 80
"""Legal moves of the position that multiplications are counted for: a typical number."""


@dataclass(frozen=True)
class InputGroup:
    """Inputs that belong together: the planes of a feature, or a group of rows."""

    name: str
    first: int
    size: int
    axes: str = ""
    """Axes that number the rows of a group, with their sizes: ``piece 28 x square 81``."""


@dataclass(frozen=True)
class InputTable:
    """Inputs of one sort: planes, rows of positions or rows of moves."""

    name: str
    unit: str
    """Plural of what is counted: ``planes``, ``rows``."""

    groups: tuple[InputGroup, ...]

    @property
    def size(self) -> int:
        """Number of inputs."""
        return sum(group.size for group in self.groups)


@dataclass(frozen=True)
class Part:
    """A table, a layer, a block or a head."""

    name: str
    parameters: int
    macs: int
    """Multiply-accumulate operations for one position; adding a row counts one per number."""


@dataclass(frozen=True)
class Description:
    """Inputs and parts of a network."""

    model: str
    """Name of its class."""

    inputs: tuple[InputTable, ...]
    parts: tuple[Part, ...]

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(part.parameters for part in self.parts)

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations for one position."""
        return sum(part.macs for part in self.parts)

    def as_dict(self) -> dict[str, Any]:
        """Description as plain values, for JSON."""
        totals = {
            "input_sizes": {table.name: table.size for table in self.inputs},
            "parameters": self.parameters,
            "macs_per_position": self.macs,
        }
        return asdict(self) | totals
