"""The set-up of a game: who plays, from which position, with which clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from keisei.play.session import EVERYBODY
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.types import Color


class Seat(NamedTuple):
    """Who plays a side."""

    key: str | None = None
    """Of the catalogue; None: a person."""

    level: int | None = None
    """Strength, where there is a choice; None: the usual one."""


PERSON: Final = Seat()


@dataclass(frozen=True)
class Setup:
    """What a game is begun with."""

    black: Seat = PERSON
    white: Seat = PERSON
    start: str = STARTPOS_SFEN
    limit: TimeLimit | None = None

    @property
    def seats(self) -> Mapping[Color, Seat]:
        """Both of them."""
        return {Color.BLACK: self.black, Color.WHITE: self.white}

    @property
    def people(self) -> frozenset[Color]:
        """The sides that people play."""
        return frozenset(color for color in EVERYBODY if self.seats[color].key is None)
