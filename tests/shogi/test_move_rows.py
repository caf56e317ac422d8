"""Rows of moves against slow facts, under symmetries, and within their limits."""

from collections import Counter

import pytest

from keisei.network.sparse.active_rows import RowReader
from keisei.shogi.actions import MIRRORED_ACTIONS
from keisei.shogi.game import ShogiGame
from keisei.shogi.move_rows import MAX_ROWS_PER_MOVE
from keisei.shogi.row_groups import MOVE_ROWS, row_spec
from keisei.shogi.types import Diagram
from tests.oracles.slow_rows import SlowRows
from tests.sampling import sample
from tests.shogi.row_cases import CASES, Games, cases, crowded_boards, facts
from tests.shogi.test_perspective import mirrored, turned

READER = RowReader()
MOST_MOVES = "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"


@pytest.mark.kernels
@cases
def test_rows_are_the_facts_of_each_move(games: Games) -> None:
    for game in games(sample(40, 1)):
        rows = READER.read_game(game).moves
        expected = SlowRows(game).move_facts()
        for move, found, wanted in zip(game.legal_moves, rows, expected, strict=True):
            assert facts(MOVE_ROWS, found) == wanted, (game, move)


def test_the_positions_above_have_rows_of_all_groups() -> None:
    found = {
        MOVE_ROWS.locate(row).group.name
        for games in CASES
        for game in games(40)
        for rows in READER.read_game(game).moves
        for row in rows
    }
    assert found == set(MOVE_ROWS.names)


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("sfen", "move", "wanted", "unwanted"),
    [
        # The silver leaves the line of the rook: a discovered check.
        (
            "4k4/9/9/9/4S4/9/9/4R4/4K4 b - 1",
            "5e4d",
            "gives_check: S, safe, unprotected, discovered",
            None,
        ),
        # The pawn stays on it: no check.
        ("4k4/9/9/9/4P4/9/9/4R4/4K4 b - 1", "5e5d", None, "gives_check"),
        ("4k4/9/9/9/9/9/4P4/4L4/4K4 b - 1", "5g5f", None, "gives_check"),
        ("4k4/9/9/9/4S4/9/9/4L4/4K4 b - 1", "5e5d", None, "gives_check"),
        # It stays on it and gives check itself; the rook behind it is not counted as protection.
        (
            "4k4/9/4S4/9/9/9/9/4R4/4K4 b - 1",
            "5c5b",
            "gives_check: S, attacked, unprotected, direct",
            None,
        ),
        ("4k4/9/9/9/4r4/9/9/9/4K4 b G 1", "G*5h", "evasion: drops, attacked", None),
        ("4k4/9/9/9/9/9/4p4/9/4K4 b Gg 1", "G*5h", "mate_defence: occupies, attacked", None),
        ("4k4/9/9/9/9/9/4p4/9/4K4 b Gg 1", "G*1a", "mate_defence: nothing, safe", None),
        ("4k4/9/9/9/4p4/4N4/9/9/4K4 b G 1", "G*5g", "defends: N, safe", None),
        ("4k4/9/9/9/4p4/4N4/4G4/9/4K4 b - 1", "5g5h", "abandons: N", None),
        ("4k4/9/9/9/9/3p5/9/9/3BK4 b - 1", "6i5h", None, "new_threat"),
        ("4k4/9/9/9/9/3p5/9/9/4K4 b S 1", "S*5g", "new_threat: S, P, unprotected, safe", None),
    ],
)
def test_examples(sfen: str, move: str, wanted: str | None, unwanted: str | None) -> None:
    game = ShogiGame(sfen)
    rows = READER.read_game(game).moves[[move.usi for move in game.legal_moves].index(move)]
    words = [MOVE_ROWS.describe(row) for row in rows]
    assert wanted is None or wanted in words
    assert unwanted not in [word.partition(":")[0] for word in words]


@pytest.mark.kernels
def test_a_recapture() -> None:
    game = ShogiGame("4k4/9/9/9/4p4/4P4/9/4R4/4K4 w - 1")
    game.push("5e5f")
    by_move = dict(zip(map(str, game.legal_moves), READER.read_game(game).moves, strict=True))
    assert "recapture: R" in [MOVE_ROWS.describe(row) for row in by_move["5h5f"]]


@pytest.mark.kernels
@cases
def test_the_turned_twin_has_the_same_rows(games: Games) -> None:
    for game in games(sample(80, 2)):
        start = Diagram(game.diagram.board, game.diagram.hands, game.turn)
        twin = READER.read_game(ShogiGame(turned(start))).moves
        assert twin == READER.read_game(ShogiGame(start)).moves


@pytest.mark.kernels
@cases
def test_the_mirror_image_has_the_mirrored_rows(games: Games) -> None:
    first = MOVE_ROWS.first_row("mate_defence")
    for played in games(sample(80, 1)):
        start = Diagram(played.diagram.board, played.diagram.hands, played.turn)
        game, image = ShogiGame(start), ShogiGame(mirrored(start))
        skipped = range(0)
        if len(SlowRows(game).mate_threats) > 1:  # another of them may be the first
            skipped = range(first, MOVE_ROWS.num_rows)
        rows_of_image = dict(
            zip(image.legal_actions.tolist(), READER.read_game(image).moves, strict=True)
        )
        for action, rows in zip(game.legal_actions, READER.read_game(game).moves, strict=True):
            expected = Counter(MOVE_ROWS.mirror(row) for row in rows if row not in skipped)
            found = rows_of_image[int(MIRRORED_ACTIONS[action])]
            assert Counter(row for row in found if row not in skipped) == expected


@pytest.mark.kernels
@pytest.mark.parametrize("left_out", MOVE_ROWS.names)
def test_a_group_that_is_switched_off_removes_its_rows(left_out: str) -> None:
    spec = row_spec("move", f"all-{left_out}")
    reader = RowReader(move_spec=spec)
    for games in CASES:
        for game in games(sample(8, 1)):
            both = zip(READER.read_game(game).moves, reader.read_game(game).moves, strict=True)
            for full, reduced in both:
                expected = {
                    fact: n for fact, n in facts(MOVE_ROWS, full).items() if fact[0] != left_out
                }
                assert facts(spec, reduced) == expected


@pytest.mark.kernels
def test_rows_stay_within_the_table() -> None:
    for games in CASES:
        for game in games(sample(60, 1)):
            for rows in READER.read_game(game).moves:
                assert 0 < len(rows) < MAX_ROWS_PER_MOVE
                assert all(0 <= row < MOVE_ROWS.num_rows for row in rows)


@pytest.mark.kernels
def test_the_position_with_the_most_legal_moves() -> None:
    game = ShogiGame(MOST_MOVES)
    rows = READER.read_game(game).moves
    assert len(rows) == 593
    assert READER.work.move_ends[592] < len(READER.work.move_rows)
    for index in range(0, 593, sample(50, 400)):
        found = facts(MOVE_ROWS, rows[index])
        assert found == Counter(SlowRows(game)._move_facts(game.legal_moves[index]))


@pytest.mark.kernels
def test_moves_on_crowded_boards_have_fewer_rows_than_there_is_room_for() -> None:
    games = crowded_boards(sample(300, 2))
    most = max(len(rows) for game in games for rows in READER.read_game(game).moves)
    assert sample(17, 10) < most < MAX_ROWS_PER_MOVE
