"""The errors that users can cause: the CLI prints their message, no traceback, and exits with 2."""


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
