"""Attack maps against the attacks of each piece, one by one."""

from collections import Counter

import pytest

from keisei.network.sparse.active_rows import RowReader
from keisei.shogi.attacks import attacked_squares
from keisei.shogi.bitboard import load, squares_of
from keisei.shogi.types import Diagram, in_view_of
from tests.sampling import sample
from tests.shogi.row_cases import Games, cases

READER = RowReader()


def check_maps(diagram: Diagram) -> None:
    """Compare the maps of the position that the reader has just read."""
    maps, mover = READER.work.maps, diagram.turn
    counts: Counter[tuple[int, int]] = Counter()
    kinds: dict[tuple[int, int], set[int]] = {}
    for sq, piece in enumerate(diagram.board):
        if piece is None:
            continue
        attacked = {
            in_view_of(mover, target) for target in attacked_squares(diagram.board, sq, piece)
        }
        assert set(squares_of(load(maps.by_square[in_view_of(mover, sq)]))) == attacked
        side = int(piece.color is not mover)
        for target in attacked:
            counts[side, target] += 1
            kinds.setdefault((side, target), set()).add(int(piece.kind))
    for side in range(2):
        for sq in range(81):
            assert maps.counts[side, sq] == counts[side, sq]
            assert maps.kinds[side, sq] == sum(1 << kind for kind in kinds.get((side, sq), ()))


@pytest.mark.kernels
@cases
def test_counts_and_kinds_of_attackers(games: Games) -> None:
    for game in games(sample(100, 4)):
        READER.read_game(game)
        check_maps(game.diagram)
