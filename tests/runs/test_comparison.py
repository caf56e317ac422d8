"""Settings that differ, groups of seeds, and the mean of their curves."""

import numpy as np
import pytest

from keisei.runs.comparison import differing_settings, mean_curve, seed_groups
from keisei.runs.curves import Curve


def config(seed: int, **ppo: object) -> dict[str, object]:
    return {"run": {"seed": seed, "name": f"run-{seed}"}, "ppo": {"epochs": 1, **ppo}}


def line(*points: tuple[float, float]) -> Curve:
    x, y = np.array(points).T
    return Curve(x, y, y - 0.5, y + 0.5)


def test_only_settings_that_differ_are_listed() -> None:
    configs = {
        "a": config(1, clip=0.2),
        "b": config(2, clip=0.3),
        "c": config(2, clip=0.2, new=[1]),
    }
    assert differing_settings(configs) == [
        ("run.seed", ["1", "2", "2"]),
        ("ppo.clip", ["0.2", "0.3", "0.2"]),
        ("ppo.new", ["-", "-", "[1]"]),
    ]
    assert differing_settings({"a": config(1)}) == []
    assert differing_settings({}) == []


@pytest.mark.parametrize(
    ("names", "group"),
    [
        (("exp-seed1", "exp-seed2"), "exp"),
        (("exp_1", "exp_10"), "exp_1"),
        (("first", "second"), "first"),
        (("a-seed-1", "a-seed-2"), "a"),
    ],
)
def test_seeds_are_grouped_and_named_by_what_they_share(names: tuple[str, str], group: str) -> None:
    configs = {name: config(seed) for seed, name in enumerate(names)}
    configs["other"] = config(0, clip=0.5)
    assert [tuple(found) for found in seed_groups(configs)] == [
        (group, names),
        ("other", ("other",)),
    ]


def test_the_mean_spans_what_all_curves_cover() -> None:
    mean = mean_curve(
        [line((0.0, 0.0), (10.0, 10.0)), line((2.0, 4.0), (4.0, 6.0), (6.0, 8.0), (8.0, 10.0))]
    )
    assert mean.x.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert mean.mean.tolist() == [3.0, 5.0, 7.0, 9.0]
    assert mean.low.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert mean.high.tolist() == [4.0, 6.0, 8.0, 10.0]


def test_the_mean_of_one_or_none() -> None:
    one, empty = line((1.0, 2.0)), Curve(*(np.empty(0) for _ in range(4)))
    assert mean_curve([one, empty]) is one
    assert len(mean_curve([empty]).x) == len(mean_curve([]).x) == 0
    assert len(mean_curve([line((0.0, 1.0), (1.0, 1.0)), line((2.0, 1.0))]).x) == 0
    both = mean_curve([line((3.0, 1.0)), line((3.0, 2.0))])
    assert (both.x.tolist(), both.mean.tolist()) == ([3.0], [1.5])
