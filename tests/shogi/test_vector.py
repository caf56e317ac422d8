"""Many games at once: against single games, across threads, seeds, errors, saved states."""

import itertools
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from keisei.constants import NUM_ACTIONS
from keisei.errors import IllegalMoveError, IllegalPositionError, KeiseiError
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.features import feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.packed import pack_game
from keisei.shogi.rules import DeclarationRule, Outcome, Termination
from keisei.shogi.types import Color
from keisei.shogi.vector import VectorShogi, VectorStep
from tests.positions import cycling_games, random_games
from tests.sampling import sample

ROOK_ENDING = "9/9/9/9/9/9/1R7/9/k3K4 b - 1"
NEAR_MATE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"


def run(env: VectorShogi, steps: int) -> list[object]:
    """Play at random: everything that each step returns, legal lists cut to their counts."""
    return [facts(env.step(env.sample_actions())) for _ in range(steps)]


def facts(step: VectorStep) -> object:
    lists = [row[:count].tolist() for row, count in zip(step[1], step.legal_counts, strict=True)]
    ended = np.flatnonzero(step.terminations)
    endings = [step.rewards.tolist(), step.terminations.tolist(), step.winners.tolist()]
    return fields(step.packed), lists, endings, fields(step.final_packed[ended])


def fields(records: npt.NDArray[Any]) -> list[Any]:
    return [records[name].tolist() for name in records.dtype.names or ()]


def equal(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    """Whether arrays are equal in every field, ignoring the padding between fields."""
    if first.dtype.names is None:
        return np.array_equal(first, second)
    return fields(first) == fields(second)


@pytest.mark.kernels
def test_it_plays_the_same_as_single_games() -> None:
    env = VectorShogi(sample(16, 2), ply_limit=120, seed=3)
    games = [ShogiGame(ply_limit=120) for _ in range(env.num_games)]
    endings: Counter[Termination] = Counter()
    for _ in range(sample(400, 150)):
        actions = env.sample_actions()
        step = env.step(actions)
        for i, action in enumerate(actions.tolist()):
            mover = games[i].turn
            games[i].push_action(action)
            outcome = games[i].outcome(claim_declaration=True)
            assert env.outcome(i) == outcome
            if outcome is None:
                assert (step.rewards[i], step.winners[i]) == (0, -1)
            else:
                endings[outcome.termination] += 1
                expected = 0 if outcome.winner is None else 1 if outcome.winner is mover else -1
                assert step.rewards[i] == expected
                assert step.final_packed[i] == pack_game(games[i])[0]
                assert env.finished_game(i).moves == games[i].moves
                games[i] = ShogiGame(ply_limit=120)
            assert step.packed[i] == pack_game(games[i])[0]
            count = step.legal_counts[i]
            assert step.legal_actions[i, :count].tolist() == games[i].legal_actions.tolist()
            assert step.packed[i].turn == env.turns[i]
    assert endings[Termination.PLY_LIMIT] > 0
    assert env.game(0).moves == games[0].moves


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("start", "actions", "outcome"),
    [
        (NEAR_MATE, ["G*5b"], Outcome(Termination.CHECKMATE, Color.BLACK)),
        (
            ROOK_ENDING,
            ["8g9g", "9i8i", "9g8g", "8i9i"] * 3,
            Outcome(Termination.PERPETUAL_CHECK, Color.WHITE),
        ),
        (
            STARTPOS_SFEN,
            ["2h3h", "8b7b", "3h2h", "7b8b"] * 3,
            Outcome(Termination.REPETITION, None),
        ),
    ],
)
def test_endings(start: str, actions: list[str], outcome: Outcome) -> None:
    env = VectorShogi(1, starts=[start])
    for usi in actions:
        assert env.outcome(0) is None
        game = env.game(0)
        game.push(usi)
        env.step([int(game.actions[-1])])
    assert env.outcome(0) == outcome
    assert env.game(0).sfen() == ShogiGame(start).sfen()


@pytest.mark.kernels
def test_a_side_that_may_declare_wins_at_once() -> None:
    start = "4K4/9/9/9/9/9/3kg4/ppppppppp/9 b 2r2b 1"
    env = VectorShogi(1, starts=[start])
    step = env.step(env.sample_actions())
    assert env.outcome(0) == Outcome(Termination.DECLARATION, Color.WHITE)
    assert step.rewards[0] == -1, "the move before the declaration lost the game"
    off = VectorShogi(1, starts=[start], declaration=DeclarationRule.OFF)
    off.step(off.sample_actions())
    assert off.outcome(0) is None


@pytest.mark.kernels
def test_threads_do_not_change_anything() -> None:
    games = sample(512, 256)
    steps = sample(80, 1)
    with (
        VectorShogi(games, seed=1, ply_limit=60, threads=1) as one,
        VectorShogi(games, seed=1, ply_limit=60, threads=3) as three,
    ):
        assert run(one, steps) == run(three, steps)
        assert np.array_equal(one.planes(), three.planes())
        assert np.array_equal(one.legal_mask(), three.legal_mask())


@pytest.mark.kernels
def test_equal_seeds_give_equal_games_and_others_do_not() -> None:
    first, second, other = (
        VectorShogi(3, seed=seed, ply_limit=30, opening_plies=4) for seed in (5, 5, 6)
    )
    played = run(first, 40)
    assert run(second, 40) == played
    assert run(other, 40) != played
    first.reset(seed=5)
    assert run(first, 40) == played


@pytest.mark.kernels
def test_a_saved_state_continues_exactly() -> None:
    env = VectorShogi(3, seed=1, ply_limit=50, opening_plies=2)
    run(env, 30)
    state = env.state()
    played = run(env, 60)
    env.restore(state)
    assert run(env, 60) == played
    twin = VectorShogi(3, seed=99, ply_limit=50, opening_plies=2)
    twin.restore(state)
    assert run(twin, 60) == played


def test_a_saved_state_survives_a_file_without_pickle(tmp_path: Path) -> None:
    env = VectorShogi(3, seed=1)
    path = tmp_path / "state.npz"
    arrays: dict[str, Any] = env.state()
    np.savez(path, **arrays)
    with np.load(path, allow_pickle=False) as state:
        env.restore(dict(state))


@pytest.mark.parametrize(
    "other",
    [
        VectorShogi(2),
        VectorShogi(3, ply_limit=100),
        VectorShogi(3, opening_plies=1),
        VectorShogi(3, starts=[ROOK_ENDING]),
    ],
    ids=["games", "ply limit", "openings", "starts"],
)
def test_a_state_of_another_environment_is_refused(other: VectorShogi) -> None:
    env = VectorShogi(3)
    before = run(VectorShogi(3), 3)
    with pytest.raises(KeiseiError, match="another environment"):
        env.restore(other.state())
    assert run(env, 3) == before


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("positions", "ply", 60_000),
        ("positions", "turn", 7),
        ("positions", "key", 1),
        ("positions", "pieces", 1),
        ("packed", "board", 255),
        ("packed", "hands", 99),
        ("final_packed", "board", 200),
        ("legal_counts", None, 20_000),
        ("legal_actions", None, 5),
        ("start_indices", None, 9),
        ("start_indices", None, -1),
        ("final_lengths", None, 10_000),
        ("buffers", None, 3),
        ("rng_states", None, 0),
    ],
)
def test_a_damaged_state_is_refused_and_nothing_changes(
    name: str, field: str | None, value: int
) -> None:
    env = VectorShogi(3)
    run(env, 3)
    state, before = env.state(), env.state()
    (state[name] if field is None else state[name][field])[1] = value
    with pytest.raises(KeiseiError, match="damaged"):
        env.restore(state)
    assert all(equal(before[key], array) for key, array in env.state().items())


def test_a_second_thread_is_kept_out() -> None:
    env = VectorShogi(2)
    with env._stepping(), pytest.raises(RuntimeError, match="another thread"):
        env.step(env.sample_actions())
    env.step(env.sample_actions())


def test_environments_can_be_copied() -> None:
    env = VectorShogi(2, seed=3)
    twin = pickle.loads(pickle.dumps(env))
    assert run(twin, 5) == run(env, 5)


@pytest.mark.kernels
def test_an_illegal_action_is_refused_and_nothing_changes() -> None:
    env = VectorShogi(3)
    before = env.state()
    actions = env.sample_actions()
    for bad, message in [
        (9055, r"game 1: action 9055, move 7g7f\+: neither 7g nor 7f is in the promotion zone"),
        (13240, r"game 1: action 13240, move P\*5e: Black has no pawn in hand"),
        (-1, r"game 1: action -1 is out of range, 0 to 13526"),
        (-2, "out of range"),
        (NUM_ACTIONS, "out of range"),
        (9054 + 65_536, "out of range"),
    ]:
        tried = actions.copy()
        tried[1] = bad
        with pytest.raises(IllegalMoveError, match=message):
            env.step(tried)
        after = env.state()
        changed = [name for name in before if not equal(before[name], after[name])]
        assert changed in ([], ["rng_states"])  # sampling draws random numbers


@pytest.mark.kernels
def test_an_illegal_action_can_lose_the_game_instead() -> None:
    env = VectorShogi(3, illegal="lose")
    actions = env.sample_actions()
    env.step(actions)
    actions = env.sample_actions()
    actions[1] = 13240
    position = env.packed[1].copy()
    step = env.step(actions)
    assert env.outcome(1) == Outcome(Termination.ILLEGAL_MOVE, Color.BLACK)
    assert step.rewards.tolist() == [0, -1, 0]
    assert step.final_packed[1] == position
    assert len(env.finished_game(1).moves) == 1
    assert [int(step.packed[i].ply) for i in range(3)] == [2, 0, 2]


@pytest.mark.parametrize("actions", [[1, 2], [[1, 2, 3]], [0.5, 1, 2], ["7g7f"] * 3, 5], ids=repr)
def test_actions_of_another_shape_are_refused(actions: object) -> None:
    with pytest.raises(ValueError, match="needs 3 integers"):
        VectorShogi(3).step(actions)  # type: ignore[arg-type]


@pytest.mark.kernels
def test_games_begin_at_the_given_starts_after_random_opening_plies() -> None:
    env = VectorShogi(32, starts=[STARTPOS_SFEN, ROOK_ENDING], opening_plies=3, seed=2)
    starts = Counter(ShogiGame(env.game(i).start).sfen() for i in range(32))
    assert starts[STARTPOS_SFEN] + starts[ROOK_ENDING] == 32
    assert min(starts.values()) > 4
    assert set(env.packed.ply.tolist()) == {3}
    assert len({env.game(i).sfen() for i in range(32)}) > 20


@pytest.mark.kernels
def test_staggered_games_are_in_all_phases_whoever_steps_them() -> None:
    env = VectorShogi(32, seed=3)
    before = fields(env.packed)
    env.stagger(0)
    assert fields(env.packed) == before
    env.stagger(64)
    plies = sorted(env.packed.ply.tolist())
    assert plies[0] < 6
    assert plies[-1] > 58
    assert max(high - low for low, high in itertools.pairwise(plies)) < 6
    for i in range(4):
        assert len(env.game(i).moves) == env.packed.ply[i]
        assert sorted(env.game(i).legal_actions) == sorted(
            env.legal_actions[i, : env.legal_counts[i]]
        )
    assert not env.last_step.terminations.any()
    assert env.outcome(0) is None
    half = VectorShogi(16, seed=3, first_game=16)
    half.stagger(64)
    assert fields(half.packed) == fields(env.packed[16:])
    with pytest.raises(ValueError, match="plies is -1"):
        env.stagger(-1)


@pytest.mark.kernels
def test_openings_that_end_the_game_are_tried_again() -> None:
    # Whatever White plays, Black declares: no opening of one ply is possible.
    start = "4K4/PPPPPPPPP/4G4/9/9/9/9/9/4k4 w R2B3GP 1"
    env = VectorShogi(sample(16, 2), starts=[start], opening_plies=1, seed=0)
    assert set(env.packed.ply.tolist()) == {0}, "such games start without an opening"
    # With an opening that ends the game only now and then, others are tried.
    start = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    env = VectorShogi(sample(256, 8), starts=[start], opening_plies=1, seed=0)
    assert set(env.packed.ply.tolist()) == {1}
    assert (env.legal_counts > 0).all()


@pytest.mark.kernels
def test_planes_and_masks_on_request() -> None:
    env = VectorShogi(5, "core46+all", seed=4)
    run(env, 20)
    planes, mask = env.planes(), env.legal_mask()
    assert np.array_equal(planes, env.features.encode(env.packed))
    for i in range(5):
        legal = env.legal_actions[i, : env.legal_counts[i]]
        assert np.flatnonzero(mask[i]).tolist() == sorted(legal.tolist())
    buffer, mask_buffer = np.empty_like(planes), np.empty_like(mask)
    assert env.planes(buffer) is buffer
    assert env.legal_mask(mask_buffer) is mask_buffer
    assert np.array_equal(buffer, planes)
    assert np.array_equal(mask_buffer, mask)
    assert env.planes(dtype=np.uint8).dtype == np.uint8
    with pytest.raises(ValueError, match="buffer of shape"):
        env.planes(np.empty((6, *env.features.shape), dtype=np.float32))
    with pytest.raises(ValueError, match="contiguous bool buffer"):
        env.legal_mask(np.zeros((4, NUM_ACTIONS), dtype=np.bool_))


def test_arrays_are_exposed_without_copies() -> None:
    env = VectorShogi(2)
    step = env.reset()
    again = env.step(env.sample_actions())
    assert step is again
    assert np.shares_memory(step.packed, env.packed)
    assert np.shares_memory(step.legal_actions, env.legal_actions)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"num_games": 0}, ValueError, "num_games is 0"),
        ({"ply_limit": 0}, ValueError, "ply_limit is 0"),
        ({"opening_plies": -1}, ValueError, "opening_plies is -1"),
        ({"threads": 0}, ValueError, "threads is 0"),
        ({"illegal": "ignore"}, ValueError, "'raise' or 'lose'"),
        ({"starts": []}, ValueError, "at least one"),
        ({"starts": ["4k4/9/9/9/9/9/9/9/9 b G 1"]}, IllegalPositionError, "lacks a king"),
        ({"starts": STARTPOS_SFEN}, ValueError, "a list"),
        ({"starts": ["4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"]}, IllegalPositionError, "checkmate"),
        ({"starts": ["4k4/9/9/9/9/9/9/9/4K4 b - 600"]}, IllegalPositionError, "ply limit of 512"),
        ({"features": "core47"}, KeiseiError, "start with one of"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    settings: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        VectorShogi(**{"num_games": 1, **settings})  # type: ignore[arg-type]


def test_small_things() -> None:
    env = VectorShogi(2, feature_spec("core46+check"))
    assert repr(env) == "VectorShogi(num_games=2, features='core46+check')"
    assert env.autoreset_mode == "same_step"
    with pytest.raises(ValueError, match="no game has ended at index 0"):
        env.finished_game(0)


@pytest.mark.soak
def test_long_random_play_stays_sound() -> None:
    """A million steps; every so often a game is replayed by the single-game object."""
    env = VectorShogi(1_024, threads=2, seed=123)
    for number in range(1_000):
        env.step(env.sample_actions())
        if number % 20 == 0:
            game = env.game(number % 1_024)
            assert env.packed[number % 1_024] == pack_game(game)[0]
        for i in itertools.islice(np.flatnonzero(env.last_step.terminations), 1):
            assert env.finished_game(int(i)).outcome(claim_declaration=True) == env.outcome(int(i))


# ---- from single games ----


def replayed(game: ShogiGame, ply_limit: int) -> VectorShogi:
    """The slow way: every move is played again."""
    env = VectorShogi(1, starts=[game.start], ply_limit=ply_limit, declaration=DeclarationRule.OFF)
    for action in game.actions.tolist():
        env.step([action])
    return env


@pytest.mark.kernels
def test_games_are_set_up_as_if_they_had_been_played_there() -> None:
    games = [
        game.copy()
        for source in (random_games(4, plies=60), cycling_games(2, plies=sample(80, 4)))
        for game in itertools.islice(source, 0, sample(90, 4), 3)
        if game.outcome() is None
    ]
    env = VectorShogi.from_games(games, ply_limit=300, declaration=DeclarationRule.OFF)
    assert len({id(game) for game in games}) == env.num_games == len(games)
    assert len(env.state()["starts"]) == len({game.start for game in games})
    for index, game in enumerate(games):
        alone = replayed(game, 300)
        expected, found = alone.branches(np.array([0])), env.branches(np.array([index]))
        length = len(game.actions) + 1
        assert fields(found.positions) == fields(expected.positions)
        assert fields(found.packed) == fields(expected.packed)
        for name in ("keys", "checks"):
            one, other = getattr(found, name), getattr(expected, name)
            assert np.array_equal(one[0, :length], other[0, :length])
        count = int(found.legal_counts[0])
        assert found.legal_actions[0, :count].tolist() == game.legal_actions.tolist()
        assert env.game(index).usi_position() == game.usi_position()
        assert env.last_move(index) == game.last_move


@pytest.mark.kernels
def test_games_that_were_set_up_are_played_on_with_their_history() -> None:
    shuffle = ["2h3h", "8b7b", "3h2h", "7b8b"]
    game = ShogiGame("startpos moves " + " ".join((shuffle * 3)[:-1]))
    env = VectorShogi.from_games([game, ShogiGame()])
    last = int(next(a for a in env.legal_actions[0] if env_move(env, int(a)) == "7b8b"))
    step = env.step([last, int(env.legal_actions[1, 0])])
    assert step.terminations.tolist() == [Termination.REPETITION, 0]
    assert env.finished_game(0).moves[-1].usi == "7b8b"
    env.restore(env.state())


def env_move(env: VectorShogi, action: int) -> str:
    return PolicyOutputMapper().move(action, Color(int(env.turns[0]))).usi


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (f"sfen {NEAR_MATE} moves G*5b", "game 1 is over: checkmate"),
        ("startpos moves " + "2h3h 8b7b 3h2h 7b8b " * 3, "game 1 is over: repetition"),
        ("startpos moves 7g7f 3c3d 2g2f", "game 1 is over: .*ply limit"),
        ("sfen 4k4/9/9/9/9/9/9/9/9 b P 1", "lacks a king"),
    ],
)
def test_games_that_cannot_be_set_up(position: str, message: str) -> None:
    with pytest.raises(KeiseiError, match=message):
        VectorShogi.from_games(
            [ShogiGame(), ShogiGame(position)], ply_limit=3 if "2g2f" in position else 512
        )
