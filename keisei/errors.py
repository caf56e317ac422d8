"""Errors that a user's input or set-up can cause; the command line prints their messages."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class KeiseiError(Exception):
    """Base class of every error that a user's input or set-up can cause."""


class NotationError(KeiseiError, ValueError):
    """Invalid notation, with the line and column of the fault."""

    line: int | None
    """Line of the fault, counted from 1; None for one-line notations."""

    column: int | None
    """Column of the fault, counted from 1."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        place = ", ".join(
            f"{name} {number}"
            for name, number in (("line", line), ("column", column))
            if number is not None
        )
        super().__init__(f"{place}: {message}" if place else message)
        self.reason = message
        self.line = line
        self.column = column


class IllegalMoveError(KeiseiError, ValueError):
    """A move that the rules forbid in this position; the message names the rule."""


class IllegalPositionError(KeiseiError, ValueError):
    """A position that no game can start from: two kings of a colour, too many pawns ..."""


class ModelError(KeiseiError, ValueError):
    """An unknown model type, choice or size; the message lists the valid ones."""


class WeightsError(KeiseiError, ValueError):
    """Weights that do not fit the model; the message names the tensor and both shapes."""


class DeviceError(KeiseiError, ValueError):
    """A device or precision that this machine does not support; the message says why."""


class CheckpointError(KeiseiError):
    """A checkpoint that cannot be saved or loaded; the message names the file and the reason."""


class TorchMissingError(KeiseiError):
    """Something needs torch, which is not installed; the message says how to install it."""

    def __init__(self, needed_by: str, *, instead: str = "") -> None:
        """Make the error.

        Args:
            needed_by: first words of the message: what needs torch.
            instead: last words, with an alternative that needs no torch.
        """
        super().__init__(
            f"{needed_by} needs torch, which is not installed: "
            f'python -m pip install "keisei[torch]"{instead}'
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the known one that is most like it.

    >>> did_you_mean("gredy", ["greedy", "random"])
    '; did you mean greedy?'
    >>> did_you_mean("nobody", ["greedy", "random"])
    ''
    """
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


@contextmanager
def torch_needed_by(what: str, *, instead: str = "") -> Iterator[None]:
    """Raise `TorchMissingError` if the block imports torch and it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_torch(error, what, instead=instead) from error


def missing_torch(error: ModuleNotFoundError, what: str, *, instead: str = "") -> Exception:
    """Return what to raise for a failed import: `TorchMissingError`, or `error` if not of torch."""
    return TorchMissingError(what, instead=instead) if error.name == "torch" else error
