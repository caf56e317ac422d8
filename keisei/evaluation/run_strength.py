"""Strength of a run over its training: ratings of its checkpoints on the scale."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from keisei import __version__
from keisei.checkpoints.rotation import list_checkpoints
from keisei.config_schema import DeviceConfig
from keisei.errors import CheckpointError, KeiseiError
from keisei.evaluation import DEFAULT_CHECKPOINTS
from keisei.evaluation.ladder import distinct, play_missing
from keisei.evaluation.placing import Placement, PlacingSettings, place_player
from keisei.evaluation.results import ResultStore, score_of
from keisei.evaluation.scale import Scale, current_scale
from keisei.evaluation.score import Score
from keisei.network.loading import read_network
from keisei.players.player import Player
from keisei.players.spec import policy_player
from keisei.run_files import CHECKPOINTS


class CheckpointPlayer(NamedTuple):
    """A loaded checkpoint."""

    timestep: int
    player: Player


@dataclass(frozen=True)
class CheckpointStrength:
    """Rating and scores of a checkpoint's network."""

    timestep: int
    """Plies that the network had been trained on."""

    name: str
    identity: str
    placement: Placement
    scores: dict[str, Score]
    """Score against each opponent, by name."""


@dataclass(frozen=True)
class RunStrength:
    """Ratings of a run's checkpoints."""

    run: str
    checkpoints: tuple[CheckpointStrength, ...]
    """The measured checkpoints, the oldest first."""

    opponents: tuple[tuple[str, float], ...]
    """Names and ratings of the references among the opponents, the strongest first."""

    scale: Scale
    left_out: tuple[str, ...]
    """Error messages of checkpoints that could not be loaded."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "run": self.run,
            "keisei": __version__,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "scale": self.scale.version,
            "conditions": asdict(self.scale.conditions),
            "checkpoints": [
                {
                    "timestep": checkpoint.timestep,
                    "name": checkpoint.name,
                    "identity": checkpoint.identity,
                    **checkpoint.placement.as_dict(),
                    "scores": {name: _score(score) for name, score in checkpoint.scores.items()},
                }
                for checkpoint in self.checkpoints
            ],
            "opponents": [{"name": name, "elo": elo} for name, elo in self.opponents],
            "left_out": list(self.left_out),
        }


class RunProgress(NamedTuple):
    """Progress of `measure_run`."""

    checkpoint: int
    """Number of the checkpoint that plays, from 0."""

    checkpoints: int
    player: str
    opponent: str
    placement: Placement | None
    """What is known of its rating; None before."""


def measure_run(
    run_directory: Path,
    opponents: Sequence[Player],
    store: ResultStore,
    *,
    games: int,
    placing: PlacingSettings,
    seed: int = 0,
    checkpoints: int = DEFAULT_CHECKPOINTS,
    device: DeviceConfig,
    scale: Scale | None = None,
    on_progress: Callable[[RunProgress], None] = lambda progress: None,
) -> RunStrength:
    """Place checkpoints of a run on the rating scale.

    Args:
        run_directory: the run.
        opponents: every checkpoint plays these; other references are chosen as needed.
        store: games in it count, and new ones are added.
        games: games against each of the opponents.
        placing: how exactly the ratings are to be known.
        seed: seed of the first match of each pair.
        checkpoints: number of checkpoints, spread evenly over the run.
        device: where the networks compute.
        scale: the scale; None: the current one.
        on_progress: called during the games.

    Raises:
        KeiseiError: No checkpoint of the run can be loaded.
    """
    scale = scale or current_scale()
    chosen, problems = load_spread(
        list_checkpoints(run_directory / CHECKPOINTS), checkpoints, device
    )
    if not chosen:
        reasons = "".join(f"\n  {problem}" for problem in problems) or " there are none"
        raise KeiseiError(f"no checkpoint of {run_directory} can be loaded:{reasons}")
    opponents = distinct(opponents)
    match = scale.match_settings(games=games, seed=seed)
    strengths = []
    for number, (timestep, player) in enumerate(chosen):

        def show(opponent: str, placement: Placement | None) -> None:
            on_progress(RunProgress(number, len(chosen), player.name, opponent, placement))  # noqa: B023 -- called in this turn only

        pairs = [(player, other) for other in opponents if other.identity != player.identity]
        play_missing(store, pairs, match, on_games=lambda now: show(now.pair[1].name, None))
        placement = place_player(
            player,
            scale,
            placing,
            seed=seed,
            threads=device.threads,
            store=store,
            on_games=lambda now: show(now.opponent, now.placement),
        ).placement
        results = store.results(scale.conditions)
        scores = {
            other.name: score_of(results, player.identity, other.identity) for _, other in pairs
        }
        strengths.append(
            CheckpointStrength(timestep, player.name, player.identity, placement, scores)
        )
    rated = [(o.name, scale.ratings[o.identity]) for o in opponents if o.identity in scale.ratings]
    return RunStrength(
        run=run_directory.resolve().name,
        checkpoints=tuple(strengths),
        opponents=tuple(sorted(rated, key=lambda entry: -entry[1])),
        scale=scale,
        left_out=tuple(problems),
    )


def load_spread(
    paths: Sequence[Path], wanted: int, device: DeviceConfig
) -> tuple[list[CheckpointPlayer], list[str]]:
    """Load checkpoints evenly spread over those that can be loaded.

    The newest good checkpoint is always among them; only chosen ones are loaded.

    Returns:
        The checkpoints, and the error messages of those that could not be loaded.
    """
    good: dict[Path, CheckpointPlayer] = {}
    problems = []
    left = list(paths)
    while chosen := spread(left, wanted):
        for path in chosen:
            try:
                good[path] = good.get(path) or _load(path, device)
            except CheckpointError as error:
                problems.append(str(error))
                left.remove(path)
        if all(path in good for path in chosen):
            break
    by_identity = {good[path].player.identity: good[path] for path in chosen}
    return list(by_identity.values()), problems


def spread(paths: Sequence[Path], wanted: int) -> list[Path]:
    """Return `wanted` evenly spread paths, the last always included."""
    if len(paths) <= wanted:
        return list(paths)
    last = len(paths) - 1
    places = [last] if wanted == 1 else [round(i * last / (wanted - 1)) for i in range(wanted)]
    return [paths[place] for place in places]


def _load(path: Path, device: DeviceConfig) -> CheckpointPlayer:
    network = read_network(path)
    return CheckpointPlayer(network.timestep, policy_player(network, device))


def _score(score: Score) -> dict[str, float]:
    low, high = score.interval
    return {"score": score.score, "low": low, "high": high, "games": score.games}
