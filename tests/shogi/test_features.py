"""Observation planes, compared with a slow encoder written from the table in the spec."""

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from keisei.constants import HAND_LIMITS
from keisei.shogi import features
from keisei.shogi.features import (
    FEATURE_SPECS,
    UnknownFeatureError,
    feature_spec,
    register_feature,
    registered_features,
)
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import new_packed, pack_game
from keisei.shogi.types import Color
from tests.oracles.slow_shogi import SlowShogi, Square
from tests.positions import cycling_games, random_endgames, random_games
from tests.sampling import IS_COMPILED, sample

SIZES = {
    "core46": 46,
    "check": 1,
    "repetition": 3,
    "prom_zone": 2,
    "last2ply": 4,
    "hand_onehot": 76,
    "attacks": 36,
}

KINDS = ("P", "L", "N", "S", "G", "B", "R", "K", "+P", "+L", "+N", "+S", "+B", "+R")


def slow_planes(game: ShogiGame) -> npt.NDArray[np.float32]:
    """``core46+all``, plane by plane, from the properties of `ShogiGame`."""
    mover = game.turn
    diagram = game.diagram
    planes = np.zeros((168, 9, 9), dtype=np.float32)

    def place(sq: int) -> tuple[int, int]:
        return divmod(sq if mover is Color.BLACK else 80 - sq, 9)

    for sq, piece in enumerate(diagram.board):
        if piece is not None:
            planes[(int(piece.kind) + 14 * (piece.color is not mover), *place(sq))] = 1
    for side, color in enumerate((mover, mover.opponent)):
        for kind, count in enumerate(diagram.hands[color]):
            planes[28 + 7 * side + kind] = count / HAND_LIMITS[kind]
    planes[42] = mover is Color.BLACK
    planes[43] = min(game.ply / game.ply_limit, 1)
    planes[46] = game.in_check
    if game.repetitions:
        planes[47 + min(game.repetitions, 3) - 1] = 1
    planes[50, :3] = 1
    planes[51, 6:] = 1
    for back, move in enumerate(game.moves[-1:-3:-1]):
        if move.from_square is not None:
            planes[(52 + 2 * back, *place(move.from_square))] = 1
        planes[(53 + 2 * back, *place(move.to_square))] = 1
    first = 56
    for color in (mover, mover.opponent):
        for limit, count in zip(HAND_LIMITS, diagram.hands[color], strict=True):
            planes[first : first + count] = 1
            first += limit
    planes[132:] = slow_attacks(SlowShogi.from_sfen(game.sfen()))
    return planes


def slow_attacks(game: SlowShogi) -> npt.NDArray[np.float32]:
    """The planes of ``attacks``, piece by piece."""
    counts, by_kind = np.zeros((2, 9, 9), dtype=int), np.zeros((28, 9, 9))
    pinned = np.zeros((2, 9, 9))

    def place(square: Square) -> tuple[int, int]:
        row, column = square[1] - 1, 9 - square[0]
        return (row, column) if game.black_to_move else (8 - row, 8 - column)

    for square, (black, kind) in game.board.items():
        side = int(black is not game.black_to_move)
        for target in game.targets(square):
            counts[(side, *place(target))] += 1
            by_kind[(14 * side + KINDS.index(kind), *place(target))] = 1
        rest = {sq: piece for sq, piece in game.board.items() if sq != square}
        if kind != "K" and checkers(rest, black) != checkers(game.board, black):
            pinned[(side, *place(square))] = 1
    at_least = [counts[side] >= number for side in range(2) for number in (1, 2, 3)]
    return np.concatenate([at_least, by_kind, pinned]).astype(np.float32)


def checkers(board: dict[Square, tuple[bool, str]], black: bool) -> set[Square]:
    """Squares of the pieces that give check to the king of a side."""
    game = SlowShogi(board, {}, black)
    enemies = [square for square, piece in board.items() if piece[0] is not black]
    kings = [square for square, piece in board.items() if piece == (black, "K")]
    return {square for square in enemies if kings and kings[0] in game.targets(square)}


def games() -> Iterator[ShogiGame]:
    yield from itertools.islice(random_games(seed=5), sample(300, 20))
    yield from itertools.islice(random_endgames(seed=5), sample(100, 20))
    yield from itertools.islice(cycling_games(seed=5), sample(20, 1))


@pytest.mark.kernels
def test_planes_equal_the_slow_encoder() -> None:
    spec = feature_spec("core46+all")
    constant = np.zeros(spec.num_planes, dtype=bool)
    constant[list(spec.constant_planes)] = True
    has_varied = np.zeros(spec.num_planes, dtype=bool)
    repeated = 0
    for game in games():
        game.ply_limit = 400
        planes = slow_planes(game)
        assert np.array_equal(spec.encode(pack_game(game))[0], planes), game
        repeated += game.repetitions > 0
        varies = np.ptp(planes, axis=(1, 2)) > 0
        assert not (varies & constant).any(), "the constant planes have one value"
        has_varied |= varies
    assert repeated > 0
    if IS_COMPILED:  # in fewer positions some planes stay blank
        assert np.array_equal(has_varied, ~constant), "the others have not"


@pytest.mark.kernels
def test_pins_and_boards_without_kings() -> None:
    """A lance pins a bishop if nothing else stands before the king; without a king, nothing."""
    spec = feature_spec("core46+attacks")
    game = ShogiGame("4l3k/9/4B4/9/9/9/9/3GP4/4K4 w - 1")
    planes = dict(zip(spec.plane_names, spec.encode(pack_game(game))[0], strict=True))
    assert not planes["opponent pinned"].any(), "the pawn shields the king too"
    game = ShogiGame("4l3k/9/4B4/9/9/9/9/3G5/4K4 w - 1")
    planes = dict(zip(spec.plane_names, spec.encode(pack_game(game))[0], strict=True))
    assert np.argwhere(planes["opponent pinned"]).tolist() == [[6, 4]]
    assert not planes["own pinned"].any()
    assert planes["attacked by own L"].sum() == 2
    without = new_packed(1)
    without[0] = pack_game(game)[0]
    without.board[0, without.board[0] == 8] = 0
    without.board[0, without.board[0] == 22] = 0
    planes = dict(zip(spec.plane_names, spec.encode(without)[0], strict=True))
    assert not planes["opponent pinned"].any()
    assert planes["attacked by own L"].sum() == 2


@pytest.mark.kernels
def test_each_subset_is_made_of_the_same_planes() -> None:
    packed = pack_game(ShogiGame("position startpos moves 7g7f 3c3d 8h2b+"))
    everything = feature_spec("core46+all")
    planes = dict(zip(everything.plane_names, everything.encode(packed)[0], strict=True))
    options = list(SIZES)[1:]
    for size in range(len(options) + 1):
        for chosen in itertools.combinations(options, size):
            spec = feature_spec("+".join(["core46", *reversed(chosen)]))
            assert spec.name == "+".join(["core46", *chosen])
            assert spec.num_planes == 46 + sum(SIZES[option] for option in chosen)
            for name, plane in zip(spec.plane_names, spec.encode(packed)[0], strict=True):
                assert np.array_equal(plane, planes[name])


def test_all_is_every_option_of_keisei() -> None:
    assert feature_spec("core46+all").name == "+".join(SIZES)
    assert feature_spec("core46+all").shape == (168, 9, 9)
    assert len(set(feature_spec("core46+all").plane_names)) == 168


@pytest.mark.kernels
def test_a_batch_into_a_given_buffer_in_every_type() -> None:
    positions = [pack_game(game)[0].copy() for game in itertools.islice(random_games(6), 70)]
    packed = new_packed(len(positions))
    for index, position in enumerate(positions):
        packed[index] = position
    spec = feature_spec("core46+all")
    planes = spec.encode(packed)
    out = np.full_like(planes, 7)
    assert spec.encode(packed, out) is out
    assert np.array_equal(out, planes)
    assert np.array_equal(spec.encode(packed, dtype=np.uint8), np.rint(planes * 255))
    torch = pytest.importorskip("torch")
    bits = torch.from_numpy(spec.encode(packed, dtype=np.uint16)).view(torch.bfloat16)
    assert torch.equal(bits, torch.from_numpy(planes).to(torch.bfloat16))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("core45", "start with one of core46"),
        ("", "start with one of core46"),
        ("check", "start with one of core46"),
        ("core46+chess", "no option 'chess'"),
        ("core46+check+check", "twice"),
        ("core46+all+check", "'all' includes"),
        ("core46+core46", "no option 'core46'"),
    ],
)
def test_unknown_names_are_explained(name: str, message: str) -> None:
    with pytest.raises(UnknownFeatureError, match=message):
        feature_spec(name)


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((1, 45, 9, 9), dtype=np.float32),
        np.zeros((2, 46, 9, 9), dtype=np.float32),
        np.zeros((1, 46, 9, 9), dtype=np.float64),
        np.zeros((1, 46, 9, 18), dtype=np.float32)[..., ::2],
    ],
)
def test_a_wrong_buffer_is_refused(out: npt.NDArray[np.float32]) -> None:
    with pytest.raises(ValueError, match=r"buffer|float32"):
        feature_spec("core46").encode(pack_game(ShogiGame()), out)


@pytest.fixture
def clean_registry() -> Iterator[None]:
    known, specs = dict(features._features), dict(FEATURE_SPECS)
    yield
    features._features.clear()
    features._features.update(known)
    FEATURE_SPECS.clear()
    FEATURE_SPECS.update(specs)


@pytest.mark.usefixtures("clean_registry")
def test_a_new_feature_is_one_registered_function() -> None:
    @register_feature("gold_in_hand", ["own gold in hand"], constant=["own gold in hand"])
    def write(packed: object, planes: npt.NDArray[np.float32], first: int) -> None:
        planes[:, first] = packed.hands[:, 0, 4, None] > 0  # type: ignore[attr-defined]

    spec = feature_spec("core46+gold_in_hand+check")
    assert spec.plane_names[-1] == "own gold in hand"
    with_gold = spec.encode(pack_game(ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b G 1")))
    without = spec.encode(pack_game(ShogiGame()))
    assert (with_gold[0, -1] == 1).all()
    assert (without[0, -1] == 0).all()
    assert spec.constant_planes == (*range(28, 46), 46, 47)
    assert feature_spec("core46+all").num_planes == 168, "a plug-in must not change stored names"
    assert registered_features()[-1].name == "gold_in_hand"
    assert FEATURE_SPECS["core46+gold_in_hand"].num_planes == 47
    with pytest.raises(ValueError, match="cannot be named"):
        register_feature("gold_in_hand", ["again"])(write)
    with pytest.raises(ValueError, match="'odd' has no planes two"):
        register_feature("odd", ["one"], constant=["two"])(write)
