"""Strength of a run over its training: checkpoints against standard opponents, on one ladder."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from keisei import __version__
from keisei.checkpoints.rotation import list_checkpoints
from keisei.config_schema import DeviceConfig
from keisei.errors import CheckpointError, KeiseiError
from keisei.evaluation import DEFAULT_CHECKPOINTS, STANDARD_OPPONENTS
from keisei.evaluation.ladder import (
    Ladder,
    LadderProgress,
    Pair,
    Standing,
    distinct,
    play_missing,
    read_ladder,
    round_robin,
    score_of,
)
from keisei.evaluation.match import MatchSettings
from keisei.evaluation.results import Conditions, ResultStore
from keisei.evaluation.score import Score
from keisei.network.loading import read_network
from keisei.players.player import Player
from keisei.players.spec import policy_player
from keisei.run_files import CHECKPOINTS

STANDARD_GAMES_FACTOR: Final = 10
"""Factor on the number of games that the standard opponents play among each other.

Those games take seconds, and every rating depends on them: in 2,000 games against random, greedy
drew 58 and lost none, so few games leave the distance between the two wide open.
"""


class CheckpointPlayer(NamedTuple):
    """A loaded checkpoint."""

    timestep: int
    player: Player


@dataclass(frozen=True)
class CheckpointStrength:
    """Rating and scores of a checkpoint's network."""

    timestep: int
    """Plies that the network had been trained on."""

    standing: Standing
    scores: dict[str, Score]
    """Score against each opponent, by name."""


@dataclass(frozen=True, eq=False)
class RunStrength:
    """Ratings of a run's checkpoints and of their opponents."""

    run: str
    checkpoints: tuple[CheckpointStrength, ...]
    """The measured checkpoints, the oldest first."""

    opponents: tuple[Standing, ...]
    """The opponents, the strongest first."""

    ladder: Ladder
    left_out: tuple[str, ...]
    """Error messages of checkpoints that could not be loaded."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        ladder = self.ladder.as_dict()
        del ladder["players"]
        return {
            "run": self.run,
            "keisei": __version__,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            **ladder,
            "checkpoints": [
                {
                    "timestep": checkpoint.timestep,
                    **_rating(checkpoint.standing),
                    "scores": {name: _score(score) for name, score in checkpoint.scores.items()},
                }
                for checkpoint in self.checkpoints
            ],
            "opponents": [_rating(standing) for standing in self.opponents],
            "left_out": list(self.left_out),
        }


def measure_run(
    run_directory: Path,
    opponents: Sequence[Player],
    settings: MatchSettings,
    store: ResultStore,
    *,
    checkpoints: int = DEFAULT_CHECKPOINTS,
    device: DeviceConfig,
    on_games: Callable[[LadderProgress], None] | None = None,
) -> RunStrength:
    """Play the missing games between checkpoints of a run and the opponents, and rate them all.

    The opponents also play each other, which connects the ratings even if a network wins or loses
    all its games.

    Raises:
        KeiseiError: No checkpoint of the run can be loaded.
    """
    chosen, problems = load_spread(
        list_checkpoints(run_directory / CHECKPOINTS), checkpoints, device
    )
    if not chosen:
        reasons = "".join(f"\n  {problem}" for problem in problems) or " there are none"
        raise KeiseiError(f"no checkpoint of {run_directory} can be loaded:{reasons}")
    networks = [checkpoint.player for checkpoint in chosen]
    opponents = distinct(opponents)
    standard: list[Pair] = []
    others: list[Pair] = []
    for pair in round_robin(opponents):
        is_standard = all(player.name in STANDARD_OPPONENTS for player in pair)
        (standard if is_standard else others).append(pair)
    others += [pair for pair in product(networks, opponents) if len(distinct(pair)) == 2]
    more = replace(settings, games=settings.games * STANDARD_GAMES_FACTOR)
    play_missing(store, standard, more, on_games=on_games)
    play_missing(store, others, settings, on_games=on_games)
    shown = [player.identity for player in (*opponents, *networks)]
    ladder = read_ladder(store, Conditions.of(settings), shown)
    return RunStrength(
        run=run_directory.resolve().name,
        checkpoints=tuple(_strength(checkpoint, opponents, ladder) for checkpoint in chosen),
        opponents=tuple(
            standing
            for standing in ladder.standings
            if standing.identity in {opponent.identity for opponent in opponents}
        ),
        ladder=ladder,
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


def _strength(
    checkpoint: CheckpointPlayer, opponents: Iterable[Player], ladder: Ladder
) -> CheckpointStrength:
    identity = checkpoint.player.identity
    return CheckpointStrength(
        checkpoint.timestep,
        ladder.standing(identity),
        {
            ladder.standing(opponent.identity).name: score_of(
                ladder.results, identity, opponent.identity
            )
            for opponent in opponents
            if opponent.identity != identity
        },
    )


def _rating(standing: Standing) -> dict[str, Any]:
    fields = asdict(standing)
    return {name: fields[name] for name in ("name", "identity", "elo", "low", "high", "games")}


def _score(score: Score) -> dict[str, float]:
    low, high = score.interval
    return {"score": score.score, "low": low, "high": high, "games": score.games}
