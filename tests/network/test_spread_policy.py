"""A policy of any sharpness, scaled to a given spread."""

import numpy as np
import pytest

from keisei.network.predictor import spread_policy


def test_rows_get_the_same_standard_deviation_and_keep_their_order() -> None:
    random = np.random.default_rng(0)
    log_probs = random.normal(-40.0, [[50.0], [5.0], [0.2]], (3, 30)).astype(np.float32)
    log_probs[:, 25:] = -np.inf
    found = spread_policy(log_probs, 1.7)
    assert found.dtype == np.float32
    assert np.isneginf(found[:, 25:]).all()
    assert found[:, :25].std(axis=1) == pytest.approx(1.7, abs=1e-4)
    assert (np.argsort(found[:, :25]) == np.argsort(log_probs[:, :25])).all()


def test_no_preferences_stay_none_and_a_single_move_is_a_move() -> None:
    assert not spread_policy(np.full((1, 9), -2.0, np.float32), 3.0).any()
    single = spread_policy(np.array([[0.0, -np.inf]], np.float32), 3.0)
    assert single[0, 0] == 0.0
    assert np.isneginf(single[0, 1])
