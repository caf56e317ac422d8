"""A checkpoint of a stranger: its sums are right, but entries are missing or wrong."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from keisei.checkpoints.store import Checkpoint, load_checkpoint
from keisei.errors import CheckpointError, KeiseiError
from keisei.training.trainer import Trainer
from tests.tiny import tiny_trainer

WRONG: tuple[Any, ...] = (None, "x", 2**70, [{}], np.zeros((3, 5), np.float64))


@pytest.fixture(scope="module", params=["resnet", "sparse"])
def trainer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    settings = ("selfplay.pool_share=0.5", "selfplay.pool_interval=1", "ppo.ema_decay=0.9")
    family = f"model.type={request.param}"
    trainer = tiny_trainer(tmp_path_factory.mktemp("run"), family, *settings)
    trainer.train_step()
    return trainer


@pytest.fixture(scope="module")
def saved(trainer: Trainer) -> Checkpoint:
    trainer.evaluate(4, 0.0)
    return load_checkpoint(trainer.save())


def paths(state: Any, depth: int = 4) -> Iterator[tuple[Any, ...]]:
    """The way to each entry of a state, some levels down."""
    entries: Any = state.items() if isinstance(state, Mapping) else ()
    if isinstance(state, list):
        entries = list(enumerate(state))[:1]
    for key, value in entries:
        yield (key,)
        if depth > 1:
            yield from ((key, *rest) for rest in paths(value, depth - 1))


def changed(saved: Checkpoint, path: tuple[Any, ...], *value: Any) -> Checkpoint:
    """A checkpoint with another value somewhere, or none."""
    state: Any = copy.deepcopy(dict(saved.state))
    node = state
    for key in path[:-1]:
        node = node[key]
    if value:
        node[path[-1]] = value[0]
    else:
        del node[path[-1]]
    return replace(saved, state=state)


def test_no_missing_or_wrong_entry_is_a_traceback(trainer: Trainer, saved: Checkpoint) -> None:
    """Before: KeyError, TypeError, ValueError, OverflowError and RuntimeError."""
    refused = 0
    for path in paths(saved.state):
        for value in ((), *((wrong,) for wrong in WRONG)):
            try:
                trainer.restore(changed(saved, path, *value))
            except KeiseiError:
                refused += 1
    assert refused > 300
    trainer.restore(saved)
    trainer.train_step()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("scores",), {"random": ["x"] * 6}),
        (("scores",), {"random": [1, 2, 3]}),
        (("placement",), {"rating": "x", "low": 0.0, "high": 1.0, "games": 1}),
        (("selfplay", "pool", "snapshots"), "x"),
        (("selfplay", "pool", "snapshots"), [{"x": np.zeros(3)}]),
        (("selfplay", "pool", "snapshots"), [None]),
        (("games",), 1e400),
    ],
)
def test_what_would_fail_later_is_refused_at_once(
    trainer: Trainer, saved: Checkpoint, path: tuple[Any, ...], value: Any
) -> None:
    with pytest.raises(CheckpointError):
        trainer.restore(changed(saved, path, value))


def test_snapshots_of_another_size_are_refused(trainer: Trainer, saved: Checkpoint) -> None:
    snapshots = saved.state["selfplay"]["pool"]["snapshots"]
    assert len(snapshots) == 1
    name, array = next((name, one) for name, one in snapshots[0].items() if one.size > 1)
    for wrong in (np.concatenate([array, array]), array.astype(np.complex128), array.tolist()):
        with pytest.raises(CheckpointError):
            trainer.restore(changed(saved, ("selfplay", "pool", "snapshots", 0, name), wrong))


def test_the_message_names_the_entry(trainer: Trainer, saved: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match=r"is whole but cannot be resumed: .* 'games'"):
        trainer.restore(changed(saved, ("games",)))
