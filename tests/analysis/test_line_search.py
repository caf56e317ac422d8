"""Several lines of a position, each with a tree of its own."""

from keisei.analysis.game_analysis import moves_of
from keisei.analysis.line_search import LineSearch
from keisei.shogi.game import ShogiGame
from tests.predictors import KnownPredictor


def test_the_second_line_stays_when_it_changes_places_with_the_first() -> None:
    """Other trees begin again then, while the first knows the move that it has preferred so far."""
    game = ShogiGame("startpos moves 7g7f 3c3d 8h3c+")
    search = LineSearch(KnownPredictor(), megabytes=64)
    search.begin(game, ply_limit=512)
    for _ in range(10):
        search.step(3)
    first = set()
    for _ in range(250):
        search.step(3)
        moves = [moves_of(line.actions, game.turn)[0].usi for line in search.lines(10)]
        assert set(moves[:2]) == {"2a3c", "2b3c"}, "both take the bishop"
        assert len(set(moves)) == len(moves)
        first.add(moves[0])
    assert first == {"2a3c", "2b3c"}, "they have changed places"
