"""Changes of settings when a run is resumed: which are allowed, and which need new games.

A checkpoint holds the settings that it was written with, and those of the resumed run are compared
with them, not with the run's ``config.json``: that may be newer than the last checkpoint.
"""

import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from keisei.checkpoints.store import Checkpoint
from keisei.config import ConfigError, explain, sections, shown
from keisei.config_schema import AppConfig

logger = logging.getLogger(__name__)


class AtResume(StrEnum):
    """Consequence of changing a setting when a run is resumed."""

    APPLIES = "applies"
    """It takes effect; the run continues as it is."""

    NEW_GAMES = "new games"
    """It takes effect; the games in progress are abandoned, counted, and new ones begin."""

    FIXED = "fixed"
    """It cannot change: the run is not resumed."""


_KEEPS_NETWORK: Final = (
    "a run keeps its network. To continue with another one, start a new run with run.start_from "
    "set to this one"
)

_FIXED: Final[Mapping[str, str]] = {
    "run.name": "a run has the name of its directory: rename that instead",
    "run.root": "a run stays where its directory is: move that instead",
    "run.start_from": "it is read at the start of a run only: start a new run with it",
    "env.input_features": _KEEPS_NETWORK,
    "model": _KEEPS_NETWORK,
}
"""Settings that cannot change, or whole sections, each with the way out."""

_NEW_GAMES: Final = frozenset(
    {
        "run.seed",
        "env.num_games",
        "env.ply_limit",
        "env.opening_plies",
        "env.stagger_plies",
        "env.declaration",
        "parallel.backend",
        "parallel.num_workers",
    }
)

_FINAL_EVALUATION: Final = frozenset(
    f"evaluation.{field}"
    for field in (
        *("final_games", "final_within", "max_games", "opponents"),
        *("ply_limit", "opening_plies", "temperature", "mate_plies"),
    )
)


class Change(NamedTuple):
    """A setting before and after."""

    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{shown(self.before)} -> {shown(self.after)}"


Changes = Mapping[str, Change]
"""Changed settings, by ``section.field``."""


def at_resume(path: str) -> AtResume:
    """Return what happens to the setting ``section.field``."""
    if _way_out(path) is not None:
        return AtResume.FIXED
    return AtResume.NEW_GAMES if path in _NEW_GAMES else AtResume.APPLIES


def needs_new_games(changes: Changes) -> bool:
    """Return whether the games in progress cannot continue under the changed settings."""
    return any(at_resume(path) is AtResume.NEW_GAMES for path in changes)


def needs_final_evaluation(changes: Changes) -> bool:
    """Return whether the network has to be measured again if the run was finished."""
    return not _FINAL_EVALUATION.isdisjoint(changes)


def changed_settings(before: AppConfig, after: AppConfig) -> dict[str, Change]:
    """Return all settings that differ."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    return {
        f"{section}.{field}": Change(old[section][field], new[section][field])
        for section, schema in sections().items()
        for field in schema.model_fields
        if old[section][field] != new[section][field]
    }


def changes_since(checkpoint: Checkpoint, config: AppConfig) -> dict[str, Change]:
    """Return the settings that changed since a checkpoint of the run was written.

    Raises:
        ConfigError: One of them cannot change; the message names it, and the way out.
    """
    try:
        before = AppConfig.model_validate_json(checkpoint.config_json)
    except ValidationError as error:
        raise ConfigError([f"{checkpoint.path}: {p}" for p in explain(error).problems]) from None
    changes = changed_settings(before, config)
    require_changeable(changes)
    return changes


def require_changeable(changes: Changes) -> None:
    """Raise `ConfigError` if a setting of a run was changed that cannot be."""
    problems = [
        f"{path} cannot change when a run is resumed ({change}): {reason}"
        for path, change in changes.items()
        if (reason := _way_out(path)) is not None
    ]
    if problems:
        raise ConfigError(problems)


def _way_out(path: str) -> str | None:
    return _FIXED.get(path, _FIXED.get(path.partition(".")[0]))
