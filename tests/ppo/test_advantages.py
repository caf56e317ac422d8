"""Two-player advantages against brute force, one player at a time."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.ppo.buffer import shaped_rewards, two_player_advantages

Array = npt.NDArray[np.float64]


def brute_force(
    rewards: Array,
    values: Array,
    ends: npt.NDArray[np.bool_],
    last: float,
    gamma: float,
    lam: float,
) -> list[float]:
    """For each ply: the lambda-weighted mean of all n-step returns, seen by the ply's mover.

    Written as a plain sum over the plies that follow, with an explicit sign for whose they are.
    """
    plies = len(rewards)
    advantages = []
    for t in range(plies):
        total = 0.0
        for k in range(t, plies):
            sign = 1.0 if (k - t) % 2 == 0 else -1.0  # whose ply it is
            following = last if k + 1 == plies else values[k + 1]
            delta = rewards[k] - values[k] - (0.0 if ends[k] else gamma * following)
            total += sign * (gamma * lam) ** (k - t) * delta
            if ends[k]:
                break
        advantages.append(total)
    return advantages


games = st.integers(1, 12).flatmap(
    lambda plies: st.tuples(
        st.lists(st.floats(-1, 1, width=32), min_size=plies, max_size=plies),
        st.lists(st.floats(-1, 1, width=32), min_size=plies, max_size=plies),
        st.lists(st.booleans(), min_size=plies, max_size=plies),
        st.floats(-1, 1, width=32),
    )
)


@given(games, st.floats(0.5, 1.0), st.floats(0.0, 1.0))
def test_advantages_equal_brute_force(
    game: tuple[list[float], list[float], list[bool], float], gamma: float, lam: float
) -> None:
    rewards, values, ends, last = (np.array(part) for part in game)
    fast = two_player_advantages(
        rewards.astype(np.float32)[:, None],
        values.astype(np.float32)[:, None],
        ends[:, None],
        np.array([last], dtype=np.float32),
        gamma=gamma,
        gae_lambda=lam,
    )
    slow = brute_force(rewards, values, ends, float(last), gamma, lam)
    assert np.allclose(fast[:, 0], slow, atol=1e-4)


def test_the_loser_of_a_short_game_is_blamed() -> None:
    """Three plies, won at the third: the loser's only move has a negative advantage."""
    advantages = two_player_advantages(
        np.array([[0.0], [0.0], [1.0]], dtype=np.float32),
        np.zeros((3, 1), dtype=np.float32),
        np.array([[False], [False], [True]]),
        np.zeros(1, dtype=np.float32),
        gamma=1.0,
        gae_lambda=1.0,
    )
    assert advantages[:, 0].tolist() == [1.0, -1.0, 1.0]


def test_the_last_position_counts_with_the_opponents_sign() -> None:
    settings = {"gamma": 0.9, "gae_lambda": 0.5}
    advantages = two_player_advantages(
        np.zeros((1, 1), dtype=np.float32),
        np.zeros((1, 1), dtype=np.float32),
        np.array([[False]]),
        np.array([0.5], dtype=np.float32),
        **settings,
    )
    assert advantages[0, 0] == pytest.approx(-0.45)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=10), st.floats(0.5, 1.0))
def test_shaping_adds_up_to_what_the_first_position_was_worth(
    potentials: list[float], gamma: float
) -> None:
    """So it favours no policy: whatever is played, the same constant is added."""
    plies = len(potentials)
    ends = np.zeros((plies, 1), dtype=np.bool_)
    ends[-1] = True
    shaped = shaped_rewards(
        np.zeros((plies, 1), dtype=np.float32),
        np.array(potentials, dtype=np.float32)[:, None],
        ends,
        np.array([0.7], dtype=np.float32),
        gamma=gamma,
        weight=2.0,
    )[:, 0]
    signs = np.array([1.0 if t % 2 == 0 else -1.0 for t in range(plies)])
    total = float((signs * gamma ** np.arange(plies) * shaped).sum())
    assert total == pytest.approx(-2.0 * potentials[0], abs=1e-4)
