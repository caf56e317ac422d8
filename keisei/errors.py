"""The errors that users can cause with models, weights and devices."""


class KeiseiError(Exception):
    """Base of every error that a user's input or set-up can cause."""


class NotationError(KeiseiError, ValueError):
    """A text that is not the notation it should be, with the place where it went wrong."""

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
    """A move that the rules forbid here; the message says which rule."""


class IllegalPositionError(KeiseiError, ValueError):
    """A position that cannot be played from: two kings of a colour, too many pawns ..."""


class ModelError(KeiseiError, ValueError):
    """A model type, a choice or a size that does not exist; the message lists what does."""


class WeightsError(KeiseiError, ValueError):
    """Weights that do not fit the model; the message names the tensor and both shapes."""


class DeviceError(KeiseiError, ValueError):
    """A device or precision that this machine does not have; the message says why."""


class CheckpointError(KeiseiError):
    """A checkpoint that cannot be saved or loaded; the message names the file and the reason."""
