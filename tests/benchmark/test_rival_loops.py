"""The loops over other libraries do the same work as Keisei, by the same rules."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from keisei.benchmark import rival_loops
from keisei.constants import NUM_ACTIONS
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.sfen import STARTPOS_SFEN, format_sfen
from keisei.shogi.packed import unpack_diagram
from keisei.shogi.vector import VectorShogi

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
BLACK_MAY_DECLARE_NEXT = "KRRBB4/GGGG5/SSSS5/9/9/9/9/9/4k4 w - 1"
ROOK_AND_KING = "8k/R8/9/9/9/9/9/9/4K4 b - 1"
WHITE_FIRST = STARTPOS_SFEN.replace(" b ", " w ")

PIECES = (0, 1, 2, 3, 6, 4, 5, 7, 8, 9, 10, 11, 12, 13)
"""Plane of each of Keisei's pieces P L N S G B R K ... in cshogi, which puts gold after rook."""

MakeLoop = Callable[..., Any]


@pytest.fixture(params=["CshogiLoop", "TunedCshogiLoop"])
def make_loop(request: pytest.FixtureRequest) -> MakeLoop:
    """Make a loop over games that start at given SFENs, its buffers filled with garbage."""
    pytest.importorskip("cshogi")

    def make(*sfens: str, **settings: Any) -> Any:
        planes = np.full((len(sfens), 46, 9, 9), 7, dtype=np.float32)
        mask = np.ones((len(sfens), NUM_ACTIONS), dtype=np.bool_)
        return getattr(rival_loops, request.param)(sfens, planes, mask, **settings)

    return make


def play(loop: Any, usi: str) -> float:
    """Step the first game by a given move; return its reward."""
    loop.legal[0] = [loop.boards[0].move_from_usi(usi)]
    loop.step()
    return float(loop.rewards[0])


def in_keisei_order(planes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """``[N, piece, file, rank]`` of cshogi as ``[N, piece, row, column]``; files run leftwards."""
    ordered = planes.copy()
    pieces = [side + piece for side in (0, 14) for piece in PIECES]
    ordered[:, :28] = planes[:, pieces].transpose(0, 1, 3, 2)[:, :, :, ::-1]
    return ordered


def test_planes_and_masks_are_those_of_keisei(make_loop: MakeLoop) -> None:
    env = VectorShogi(20, seed=5, starts=[STARTPOS_SFEN, WHITE_FIRST])
    for _ in range(150):
        env.step(env.sample_actions())
    assert set(env.turns) == {0, 1}
    sfens = [format_sfen(unpack_diagram(packed)) for packed in env.packed]
    loop = make_loop(*sfens, ply_limit=env.ply_limit)
    loop.write_planes()
    loop.write_mask()
    np.testing.assert_array_equal(loop.mask, env.legal_mask())
    np.testing.assert_allclose(in_keisei_order(loop.planes), env.planes(), rtol=1e-6)


def test_packed_positions_can_be_unpacked(make_loop: MakeLoop) -> None:
    loop = make_loop(MATE_IN_ONE, STARTPOS_SFEN)
    loop.write_packed()
    for sfen, packed in zip((MATE_IN_ONE, STARTPOS_SFEN), loop.packed, strict=True):
        board = loop.boards[0].copy()
        board.set_hcp(packed)
        assert board.sfen().split()[:3] == sfen.split()[:3]


def test_games_are_played_by_legal_moves(make_loop: MakeLoop) -> None:
    cshogi = pytest.importorskip("cshogi")
    loop = make_loop(*[STARTPOS_SFEN] * 3, seed=1)
    for _ in range(60):
        loop.step()
    for board, legal in zip(loop.boards, loop.legal, strict=True):
        game = ShogiGame()
        for move in board.history:
            game.push(cshogi.move_to_usi(move))
        assert game.sfen() == board.sfen()
        assert {cshogi.move_to_usi(move) for move in legal} == {
            move.usi for move in game.legal_moves
        }
    assert len({board.sfen() for board in loop.boards}) == 3


def test_mate_wins_and_a_new_game_begins(make_loop: MakeLoop) -> None:
    loop = make_loop(MATE_IN_ONE, STARTPOS_SFEN)
    assert play(loop, "G*5b") == 1
    assert loop.boards[0].sfen() == STARTPOS_SFEN
    assert len(loop.legal[0]) == 30
    assert loop.rewards[1] == 0
    loop.step()
    assert loop.rewards[0] == 0


def test_the_ply_limit_is_a_draw(make_loop: MakeLoop) -> None:
    loop = make_loop(STARTPOS_SFEN, ply_limit=2)
    assert play(loop, "7g7f") == 0
    assert loop.boards[0].move_number == 2
    assert play(loop, "3c3d") == 0
    assert loop.boards[0].sfen() == STARTPOS_SFEN


def test_letting_the_opponent_declare_loses(make_loop: MakeLoop) -> None:
    loop = make_loop(BLACK_MAY_DECLARE_NEXT)
    assert play(loop, "5i5h") == -1
    assert loop.boards[0].sfen() == STARTPOS_SFEN


@pytest.mark.parametrize(
    ("sfen", "cycle", "reward"),
    [
        (STARTPOS_SFEN, "5i5h 5a5b 5h5i 5b5a", 0),
        (ROOK_AND_KING, "9b9a 1a1b 9a9b 1b1a", 1),  # White comes back; Black checked all the time
    ],
)
def test_the_fourth_occurrence_ends_the_game(
    make_loop: MakeLoop, sfen: str, cycle: str, reward: float
) -> None:
    loop = make_loop(sfen)
    moves = cycle.split() * 3
    for number, usi in enumerate(moves[:-1], start=1):
        assert play(loop, usi) == 0
        assert len(loop.boards[0].history) == number
    assert play(loop, moves[-1]) == reward
    assert loop.boards[0].history == []
    assert play(loop, "7g7f") == 0


@pytest.mark.parametrize("library", ["cshogi", "rsshogi"])
def test_perft_over_other_libraries(library: str) -> None:
    pytest.importorskip(library)
    perft = getattr(rival_loops, f"{library}_perft")
    counted = [perft(STARTPOS_SFEN, depth, plays_leaves=False)() for depth in (1, 2, 3)]
    assert counted == [30, 900, 25_470]
    assert [perft(STARTPOS_SFEN, depth, plays_leaves=True)() for depth in (1, 2)] == [30, 900]
