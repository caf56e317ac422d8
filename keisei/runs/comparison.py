"""Runs side by side: the settings in which they differ, and groups that differ by their seed only.

The curves of a group are shown as their mean, with a band from the lowest run to the highest.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from keisei.runs.curves import Curve, Floats

OWN_SETTINGS: Final = frozenset({"run.seed", "run.name", "run.root"})
"""Settings that always differ between the seeds of an experiment."""

MISSING: Final = "-"
"""Value of a setting that a run of another version does not have."""


def flat_settings(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return settings as text by their full names.

    >>> flat_settings({"ppo": {"epochs": 2, "target_kl": None}})
    {'ppo.epochs': '2', 'ppo.target_kl': 'null'}
    """
    found: dict[str, str] = {}
    for name, value in config.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            found |= flat_settings(value, f"{path}.")
        else:
            found[path] = value if isinstance(value, str) else json.dumps(value, default=str)
    return found


def differing_settings(configs: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return (setting, its value in each run) for all settings that are not the same in all runs.

    Args:
        configs: settings of the runs by name.
    """
    flat = [flat_settings(config) for config in configs.values()]
    paths = dict.fromkeys(path for settings in flat for path in settings)
    rows = [(path, [settings.get(path, MISSING) for settings in flat]) for path in paths]
    return [
        (path, values)
        for path, values in rows
        if len(set(values)) > 1 and path not in ("run.name", "run.root")
    ]


class SeedGroup(NamedTuple):
    """Runs whose settings differ by their seed only."""

    name: str
    runs: tuple[str, ...]


def seed_groups(configs: Mapping[str, Mapping[str, Any]]) -> list[SeedGroup]:
    """Divide runs into groups, in the order of their first runs; most may have one run only.

    >>> alike = {"a-1": {"run": {"seed": 1}}, "a-2": {"run": {"seed": 2}}}
    >>> seed_groups({**alike, "b": {"run": {"seed": 1}, "ppo": {"epochs": 9}}})
    [SeedGroup(name='a', runs=('a-1', 'a-2')), SeedGroup(name='b', runs=('b',))]
    """
    members: dict[str, list[str]] = {}
    for name, config in configs.items():
        flat = flat_settings(config)
        key = json.dumps(sorted((p, v) for p, v in flat.items() if p not in OWN_SETTINGS))
        members.setdefault(key, []).append(name)
    return [SeedGroup(_group_name(names), tuple(names)) for names in members.values()]


def _group_name(names: Sequence[str]) -> str:
    """Return what the names of a group have in common, or its first name."""
    if len(names) == 1:
        return names[0]
    shortest = min(names, key=len)
    length = next(
        (place for place, letter in enumerate(shortest) if any(n[place] != letter for n in names)),
        len(shortest),
    )
    common = shortest[:length]
    return common.rstrip("-_. ").removesuffix("seed").rstrip("-_. ") or names[0]


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """Return the mean of curves, with the lowest and the highest of them.

    It spans the part of the axis that all of them cover, at the points of the one with the most;
    between its points a curve is a straight line.
    """
    known = [curve for curve in curves if len(curve.x)]
    if len(known) <= 1:
        return known[0] if known else Curve(*(np.empty(0) for _ in range(4)))
    first = max(float(curve.x[0]) for curve in known)
    last = min(float(curve.x[-1]) for curve in known)
    densest = max(known, key=lambda curve: len(curve.x)).x
    if first > last:
        return Curve(*(np.empty(0) for _ in range(4)))
    inner = densest[(densest > first) & (densest < last)]
    x: Floats = np.unique(np.concatenate([[first], inner, [last]]))
    values = np.stack([np.interp(x, curve.x, curve.mean) for curve in known])
    return Curve(x, values.mean(axis=0), values.min(axis=0), values.max(axis=0))
