"""How strong checkpoints are, as ``keisei evaluate`` measured them; the ladder of all players."""

from typing import TYPE_CHECKING, NamedTuple

import orjson

from keisei.runs import run_files
from keisei.runs.folder import RunsFolder

if TYPE_CHECKING:
    from pathlib import Path

    from keisei.evaluation.ladder import Ladder
    from keisei.evaluation.results import Conditions


class Rating(NamedTuple):
    """The Elo of a checkpoint with its 95 % interval."""

    timestep: int
    elo: float
    low: float
    high: float


class RunRatings(NamedTuple):
    """What ``strength.json`` says of a run."""

    anchor: str
    """Who has rating 0."""

    checkpoints: tuple[Rating, ...]
    opponents: tuple[tuple[str, float], ...]
    """Names and ratings, the strongest first."""


def read_ratings(folder: RunsFolder, name: str) -> RunRatings | None:
    """The ratings of a run's checkpoints; None if they have not been measured."""
    data = folder.read(name, run_files.STRENGTH)
    try:
        fields = orjson.loads(data or b"")
        return RunRatings(
            str(fields["anchor"]),
            tuple(
                Rating(
                    int(point["timestep"]),
                    float(point["elo"]),
                    float(point["low"]),
                    float(point["high"]),
                )
                for point in fields["checkpoints"]
            ),
            tuple((str(other["name"]), float(other["elo"])) for other in fields["opponents"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def read_ladder(path: "Path", conditions: "Conditions | None") -> "tuple[Ladder, list[Conditions]]":
    """(the ladder under some conditions, all conditions that there are games for).

    Args:
        path: of the stored results.
        conditions: which games count; those under which most were played if None.

    Raises:
        KeiseiError: There are no results, or they cannot be read.
    """
    # Half a second to import, which only this page needs.
    from keisei.evaluation import ladder, results

    with results.ResultStore(path) as store:
        known = [found for found, _ in store.conditions()]
        chosen = conditions or (known[0] if known else results.Conditions())
        return ladder.read_ladder(store, chosen), known
