"""Rows of positions against slow facts, under symmetries, and within their limits."""

from collections import Counter

import pytest

from keisei.network.sparse.active_rows import RowReader
from keisei.shogi.game import ShogiGame
from keisei.shogi.position_rows import MAX_POSITION_ROWS
from keisei.shogi.row_groups import POSITION_ROWS, row_spec
from keisei.shogi.types import Diagram
from tests.oracles.slow_rows import SlowRows
from tests.sampling import sample
from tests.shogi.row_cases import CASES, Games, cases, crowded_boards, facts
from tests.shogi.test_perspective import mirrored, turned

READER = RowReader()


@pytest.mark.kernels
@cases
def test_rows_are_the_facts_of_the_position(games: Games) -> None:
    for game in games(sample(80, 2)):
        rows = READER.read_game(game).position
        assert facts(POSITION_ROWS, rows) == SlowRows(game).position_facts(), game


def test_the_positions_above_have_rows_of_all_groups() -> None:
    found = {
        POSITION_ROWS.locate(row).group.name
        for games in CASES
        for game in games(80)
        for row in READER.read_game(game).position
    }
    assert found == set(POSITION_ROWS.names)


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("sfen", "fact"),
    [
        # A knight that nothing protects is attacked by a pawn.
        ("4k4/9/9/9/4p4/4N4/9/9/4K4 b - 1", "pieces: own N, 5f, attacked, unprotected"),
        ("4k4/9/9/9/4p4/4N4/9/9/4K4 b - 1", "threats: enemy P, N, unprotected"),
        # The same with White to move: the view is turned.
        ("4k4/9/9/9/4p4/4N4/9/9/4K4 w - 1", "pieces: enemy N, 5d, attacked, unprotected"),
        ("4k4/9/9/9/4p4/4N4/9/9/4K4 w - 1", "threats: own P, N, unprotected"),
        ("4k4/4r4/9/9/9/9/9/4S4/4K4 b - 1", "pins: own, S"),
        ("4k4/4p4/9/9/9/4L4/9/9/4K4 w - 1", "pins: own, P"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 18p 1", "hands: enemy, P, at least 18"),
        ("4k4/9/9/9/9/4p4/9/9/4K4 b g 1", "king_escapes: own, squares 5, attacker's hand 1"),
        ("8k/9/9/9/9/9/9/9/4K4 b - 1", "king_escapes: enemy, squares 3, attacker's hand 0"),
        ("4k4/9/9/9/9/9/4p4/9/4K4 b g 1", "mate_threat: G dropped"),
        ("4k4/9/9/9/9/9/4s4/4p4/4K4 b - 1", "check: in check"),
        ("4k4/9/9/9/9/9/9/9/4K4 w - 1", "turn: White"),
    ],
)
def test_examples(sfen: str, fact: str) -> None:
    rows = READER.read_game(ShogiGame(sfen)).position
    assert fact in [POSITION_ROWS.describe(row) for row in rows]


@pytest.mark.kernels
@cases
def test_the_turned_twin_has_the_same_rows_but_for_the_colour(games: Games) -> None:
    turn = POSITION_ROWS.first_row("turn")
    for game in games(sample(80, 3)):
        start = Diagram(game.diagram.board, game.diagram.hands, game.turn)
        twin = READER.read_game(ShogiGame(turned(start))).position
        rows = READER.read_game(ShogiGame(start)).position
        swap = {turn: turn + 1, turn + 1: turn}
        assert Counter(swap.get(row, row) for row in twin) == Counter(rows)


@pytest.mark.kernels
@cases
def test_the_mirror_image_has_the_mirrored_rows(games: Games) -> None:
    threat = POSITION_ROWS.first_row("mate_threat")
    for game in games(sample(80, 2)):
        start = Diagram(game.diagram.board, game.diagram.hands, game.turn)
        rows = READER.read_game(ShogiGame(start)).position
        image = READER.read_game(ShogiGame(mirrored(start))).position
        if len(SlowRows(game).mate_threats) > 1:  # another of them may be the first
            threats = range(threat, threat + 27)
            rows = [row for row in rows if row not in threats]
            image = [row for row in image if row not in threats]
        assert Counter(map(POSITION_ROWS.mirror, rows)) == Counter(image)


@pytest.mark.kernels
@pytest.mark.parametrize("left_out", POSITION_ROWS.names)
def test_a_group_that_is_switched_off_removes_its_rows(left_out: str) -> None:
    spec = row_spec("position", f"all-{left_out}")
    reader = RowReader(position_spec=spec)
    for games in CASES:
        for game in games(sample(8, 1)):
            expected = facts(POSITION_ROWS, READER.read_game(game).position)
            expected = Counter({fact: n for fact, n in expected.items() if fact[0] != left_out})
            assert facts(spec, reader.read_game(game).position) == expected


@pytest.mark.kernels
@cases
def test_rows_stay_within_the_table(games: Games) -> None:
    for game in games(sample(80, 2)):
        rows = READER.read_game(game).position
        assert all(0 <= row < POSITION_ROWS.num_rows for row in rows)


@pytest.mark.kernels
def test_crowded_boards_have_fewer_rows_than_there_is_room_for() -> None:
    games = crowded_boards(sample(300, 2))
    most = max(len(READER.read_game(game).position) for game in games)
    assert sample(180, 100) < most < MAX_POSITION_ROWS
