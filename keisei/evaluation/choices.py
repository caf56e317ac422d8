"""What a player may answer instead of a move: codes below zero, where columns begin at 0."""

from typing import Final

RESIGNS: Final = -1
"""The player gives the game up."""

BROKE_RULES: Final = -2
"""The player answered with a move that is illegal, or no move at all."""

FAILED: Final = -3
"""The player did not answer: its program died, or thought for too long."""
