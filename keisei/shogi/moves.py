"""A move as people write it: absolute squares, USI text."""

from typing import NamedTuple

from keisei.errors import NotationError
from keisei.shogi.pieces import HAND_KINDS, SQUARE_NAMES, PieceKind, parse_square


class Move(NamedTuple):
    """A board move or a drop, in absolute squares (not turned for White).

    >>> Move.from_usi("7g7f")
    Move.from_usi('7g7f')
    """

    from_square: int | None
    """Where the piece comes from; None for a drop."""

    to_square: int
    """Where the piece goes."""

    promote: bool = False
    """Whether the piece promotes."""

    drop: PieceKind | None = None
    """The kind that is dropped; None for a board move."""

    @property
    def usi(self) -> str:
        """USI text: ``7g7f``, ``8h2b+``, ``P*5e``."""
        target = SQUARE_NAMES[self.to_square]
        if self.drop is not None:
            return f"{self.drop.symbol}*{target}"
        assert self.from_square is not None
        return f"{SQUARE_NAMES[self.from_square]}{target}{'+' if self.promote else ''}"

    @classmethod
    def from_usi(cls, text: str) -> "Move":
        """Read USI text. Says only whether it is a move, not whether it is legal somewhere."""
        if len(text) == 4 and text[1] == "*":
            kind = next((kind for kind in HAND_KINDS if kind.symbol == text[0]), None)
            if kind is None:
                raise NotationError(f"{text!r}: only P L N S G B R can be dropped, not {text[0]!r}")
            return cls(None, parse_square(text[2:]), False, kind)
        if len(text) == 4 or (len(text) == 5 and text[4] == "+"):
            from_square, to_square = parse_square(text[:2]), parse_square(text[2:4])
            if from_square == to_square:
                raise NotationError(f"{text!r} goes nowhere: origin and target are the same square")
            return cls(from_square, to_square, len(text) == 5)
        raise NotationError(
            f"{text!r} is not a USI move; expected something like '7g7f', '8h2b+' or 'P*5e'"
        )

    def __repr__(self) -> str:
        return f"Move.from_usi({self.usi!r})"

    def __str__(self) -> str:
        return self.usi
