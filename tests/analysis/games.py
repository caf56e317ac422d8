"""Games to be analysed."""

from keisei.shogi.notation.record import GameRecord


def short_game() -> GameRecord:
    """Black gives a bishop for a pawn, and a search sees it before it is taken."""
    return GameRecord.from_moves(
        ["7g7f", "3c3d", "8h3c+", "2a3c", "2g2f", "4a3b"],
        headers={"black": "Akane", "white": "Botan"},
    )
