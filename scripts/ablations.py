"""Train the quick-start recipe with one thing changed at a time, and measure what it was worth.

    python scripts/ablations.py train results.jsonl [--family FAMILY] [--seeds 3] [--only NAME ...]
    python scripts/ablations.py table results.jsonl [--family FAMILY]

``train`` goes through all variants with one seed, then with the next, and appends a line per
network to the file. It can be interrupted and continued: what is in the file is not trained again.
A network takes one core; ``--part 1/2`` and ``--part 2/2`` share the work between two processes.
``--family towers`` is the same for a small residual tower, over fewer plies and with weaker
opponents; ``--family values`` is about what values are trained for: the networks play with a tree
search, and the log-loss of their values is measured in games of a strong player.
``table`` prints the means over the seeds, as Markdown, and what differs from the unchanged recipe.
"""

import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console
from rich.progress import track

from keisei.errors import KeiseiError
from keisei.evaluation.calibration import PlayedGames, calibration_on, play_games
from keisei.evaluation.match import MatchSettings, play_match
from keisei.network import load_network
from keisei.players.spec import make_player
from keisei.shogi.vector import VectorShogi

BASE: Final = "nothing"
GAMES: Final = 400
MIN_SEEDS: Final = 3
"""Seeds that a verdict needs."""

SPARSE_VARIANTS: Final[dict[str, tuple[str, ...]]] = {
    BASE: (),
    # Rows of positions.
    "no threats": ("model.position_rows=all-threats",),
    "no pieces near kings": ("model.position_rows=all-own_king-enemy_king",),
    "no squares around kings": ("model.position_rows=all-king_zone-king_escapes",),
    "no pins, no mate threat": (
        "model.position_rows=all-pins-mate_threat",
        "model.move_rows=all-mate_defence",
    ),
    # Rows of moves.
    "no exchange, no escape": ("model.move_rows=all-exchange-escape",),
    "no new threats, defence, abandoning": ("model.move_rows=all-new_threat-defends-abandons",),
    "no check, evasion, recapture": ("model.move_rows=all-gives_check-evasion-recapture",),
    "no places relative to kings": ("model.move_rows=all-to_enemy_king-to_own_king",),
    # Sizes.
    "32 accumulators": ("model.accumulators=32",),
    "256 accumulators": ("model.accumulators=256",),
    "context 64": ("model.context=64",),
    "hidden 64": ("model.hidden=64",),
    # Learning.
    "learning rate 1e-3": ("ppo.learning_rate=1e-3",),
    "learning rate 4e-3": ("ppo.learning_rate=4e-3",),
    "one learning rate for all": ("ppo.position_rate=1", "ppo.move_rate=1"),
    "entropy 0.03 to 0.01": ("ppo.entropy=0.03", "ppo.entropy_end=0.01"),
    "entropy 0.15 to 0.08": ("ppo.entropy=0.15", "ppo.entropy_end=0.08"),
    "lambda 0.92 throughout": ("ppo.gae_lambda=0.92",),
    "lambda to 0.97": ("ppo.gae_lambda_end=0.97",),
    "values by lambda 0.97": ("ppo.value_lambda=0.97",),
    "values by outcomes": ("ppo.value_lambda=1",),
    "discount 0.997": ("ppo.gamma=0.997",),
    "value weight 0.5": ("ppo.value_weight=0.5",),
    "minibatches of 1,024": ("ppo.minibatch_size=1024",),
    "minibatches of 4,096": ("ppo.minibatch_size=4096",),
    "two epochs": ("ppo.epochs=2",),
    "the half with large advantages": ("ppo.learn_share=0.5",),
    "mirrored samples": ("ppo.mirror=true",),
    "advantages not clipped": ("ppo.advantage_clip=1000", "ppo.dual_clip=1000"),
    "averaged weights (0.98)": ("ppo.ema_decay=0.98",),
    "KL to averaged weights (0.1)": ("ppo.ema_decay=0.98", "ppo.ema_kl=0.1"),
    # Games.
    "128 games": ("env.num_games=128",),
    "2,048 games": ("env.num_games=2048",),
    "32 plies per rollout": ("selfplay.rollout_plies=32",),
    "no random opening plies": ("env.opening_plies=0",),
    "mates in one only in self-play": ("selfplay.mate_plies=1",),
    "a quarter of the games against the past": ("selfplay.pool_share=0.25",),
    "shaping by material": ("selfplay.shaping=0.5",),
    "mates played by rule are learned": ("selfplay.learn_mates=true",),
}
"""What is changed, and the settings that do it. Networks are measured under the same rules."""

TOWER_VARIANTS: Final[dict[str, tuple[str, ...]]] = {
    BASE: (),
    "planes of attacks": ("env.input_features=core46+attacks",),
    "64 games": ("env.num_games=64",),
    "64 games, planes of attacks": ("env.num_games=64", "env.input_features=core46+attacks"),
    "128 games, planes of attacks": ("env.num_games=128", "env.input_features=core46+attacks"),
    "64 games, planes of attacks, staggered": (
        "env.num_games=64",
        "env.input_features=core46+attacks",
        "env.stagger_plies=128",
    ),
    "staggered": ("env.stagger_plies=128",),
    "16 plies per rollout": ("selfplay.rollout_plies=16",),
    "the half with large advantages": ("ppo.learn_share=0.5",),
}


VALUE_VARIANTS: Final[dict[str, tuple[str, ...]]] = {
    BASE: (),
    "values by lambda 0.97": ("ppo.value_lambda=0.97",),
    "values by outcomes": ("ppo.value_lambda=1",),
    "discount 0.997": ("ppo.gamma=0.997",),
    "discount 0.997, values by lambda 0.97": ("ppo.gamma=0.997", "ppo.value_lambda=0.97"),
    "no discount, values by outcomes": ("ppo.gamma=1", "ppo.value_lambda=1"),
    "value weight 0.5": ("ppo.value_weight=0.5",),
    "value weight 4": ("ppo.value_weight=4",),
    "256 accumulators": ("model.accumulators=256",),
    "16 random opening plies": ("env.opening_plies=16",),
}


class Family(NamedTuple):
    """Networks of one kind: a recipe, what is changed of it, and how it is measured."""

    settings: tuple[str, ...]
    """The recipe, on top of the quick start."""

    variants: dict[str, tuple[str, ...]]
    opponents: tuple[str, ...]
    plies: int
    """Length of each training."""

    search: str = ""
    """How the networks play, behind the run's path; empty: by their policy."""

    games: int = GAMES
    """Games against each opponent."""


SPARSE: Final = Family((), SPARSE_VARIANTS, ("alphabeta:2", "alphabeta:3"), 1_500_000)
VALUES: Final = Family(
    (), VALUE_VARIANTS, ("frozen:2m:search=64",), 1_500_000, search=":search=64", games=200
)
TOWERS: Final = Family(
    (
        "model.type=resnet",
        "model.tower_depth=2",
        "model.tower_width=32",
        "env.num_games=256",
        "env.ply_limit=256",
        "env.opening_plies=0",
        "ppo.minibatch_size=512",
        "ppo.entropy=0.01",
        "ppo.entropy_end=0.002",
        "ppo.gae_lambda_end=0.95",
        "ppo.beta2=0.999",
    ),
    TOWER_VARIANTS,
    ("greedy", "alphabeta:1"),
    131_072,
)
"""The settings of the `gpu` recipe, in small."""

FAMILIES: Final = {"sparse": SPARSE, "values": VALUES, "towers": TOWERS}

Name = Annotated[str, typer.Option("--family", help=f"One of {', '.join(FAMILIES)}.")]

STRONG: Final = "builtin:search=16"
"""The player in whose games values are measured."""

app = typer.Typer(add_completion=False)


class Result(NamedTuple):
    """Scores of a trained network against the opponents, as fractions."""

    variant: str
    seed: int
    plies: int
    scores: dict[str, float]
    log_loss: float | None = None
    """Of its values in games of `STRONG`, if it was measured."""


def family_named(name: str) -> Family:
    """Return a family by its name."""
    if name not in FAMILIES:
        raise KeiseiError(f"no family {name}; there are: {', '.join(FAMILIES)}")
    return FAMILIES[name]


def read_results(path: Path) -> list[Result]:
    """Return the results in a file that may not exist yet."""
    if not path.exists():
        return []
    return [Result(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def train_variant(settings: Sequence[str], seed: int, plies: int, root: Path) -> Path:
    """Train a network; returns its run."""
    options = (
        f"run.seed={seed}",
        f"run.total_timesteps={plies}",
        "run.max_minutes=0",
        f"run.root={root.as_posix()}",
        "device.threads=1",
        "env.threads=1",
        "evaluation.interval=0",
        "evaluation.final_games=1",
        "evaluation.final_within=0",
        "evaluation.opponents=[random]",
        "checkpoint.interval=0",
        "logging.tensorboard=false",
        "logging.display=off",
        *settings,
    )
    words = [word for option in options for word in ("--set", option)]
    command = [sys.executable, "-m", "keisei", "train", "--config", "quickstart", "--name", "run"]
    subprocess.run([*command, *words], check=True, capture_output=True)
    return root / "run"


def measure(run: Path, seed: int, family: Family) -> dict[str, float]:
    """Play the opponents."""
    scores = {}
    for spec in family.opponents:
        with (
            closing(make_player(f"{run}{family.search}", threads=1)) as player,
            closing(make_player(spec, threads=1)) as opponent,
        ):
            match = MatchSettings(games=family.games, seed=seed)
            scores[spec] = play_match(player, opponent, match).score.score
    return scores


@cache
def strong_games() -> PlayedGames:
    """Return the games that values are measured in, the same for all networks."""
    with closing(make_player(STRONG, threads=1)) as player:
        return play_games(player, VectorShogi(GAMES, seed=0, opening_plies=8), seed=0)


@app.command()
def train(
    results: Annotated[Path, typer.Argument(help="File that results are appended to.")],
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each variant.")] = 3,
    family: Name = "sparse",
    only: Annotated[list[str] | None, typer.Option(help="Variants; all by default.")] = None,
    plies: Annotated[int, typer.Option(min=0, help="Of each training; 0: the family's.")] = 0,
    part: Annotated[str, typer.Option(help="Which part of the work, of how many.")] = "1/1",
) -> None:
    """Train and measure what is missing in the file."""
    chosen = family_named(family)
    names = only or list(chosen.variants)
    if unknown := set(names) - set(chosen.variants):
        raise KeiseiError(
            f"no variant {', '.join(sorted(unknown))}; there are: {', '.join(chosen.variants)}"
        )
    number, _, parts = part.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise KeiseiError(f"--part {part}: it must be like 1/2, the first of two parts")
    earlier = read_results(results)
    if lengths := {result.plies for result in earlier} - {plies or chosen.plies}:
        found = ", ".join(f"{length:,}" for length in sorted(lengths))
        raise KeiseiError(
            f"{results} holds networks of {found} plies; others belong in another file"
        )
    known = {(result.variant, result.seed) for result in earlier}
    # Parts of the whole, not of what is missing: processes may start at different times.
    whole = [(name, seed) for seed in range(seeds) for name in names]
    missing = [pair for pair in whole[int(number) - 1 :: int(parts)] if pair not in known]
    for name, seed in track(missing, "training", console=Console(stderr=True)):
        with tempfile.TemporaryDirectory() as directory:
            settings = (*chosen.settings, *chosen.variants[name])
            run = train_variant(settings, seed, plies or chosen.plies, Path(directory))
            log_loss = None
            if chosen is VALUES:
                network = load_network(run, threads=1).predictor
                log_loss = calibration_on(network, strong_games()).log_loss
            scores = measure(run, seed, chosen)
            result = Result(name, seed, plies or chosen.plies, scores, log_loss)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result._asdict()) + "\n")


class Mean(NamedTuple):
    """Mean of a variant's scores over its seeds, with its standard error."""

    score: float
    error: float


def means(results: Iterable[Result], opponent: str) -> dict[str, Mean]:
    """Return the mean of each variant.

    The deviation between seeds is taken as the same for all variants: three seeds alone would say
    little about it.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for result in results:
        scores[result.variant].append(result.scores[opponent])
    repeated = [values for values in scores.values() if len(values) > 1]
    freedom = sum(len(values) - 1 for values in repeated)
    squares = sum(statistics.variance(values) * (len(values) - 1) for values in repeated)
    deviation = math.sqrt(squares / freedom) if freedom else math.nan
    return {
        name: Mean(statistics.fmean(values), deviation / math.sqrt(len(values)))
        for name, values in scores.items()
    }


def markdown(results: Sequence[Result], family: Family) -> str:
    """Return the table; differences from the unchanged recipe have 95 % intervals."""
    opponents = family.opponents
    by_opponent = {opponent: means(results, opponent) for opponent in opponents}
    losses = [result.log_loss for result in results if result.log_loss is not None]
    heading = ["changed", "seeds", *opponents, "difference", "verdict"]
    heading += ["log-loss"] if losses else []
    rows = [heading, ["---"] * len(heading)]
    order = [name for name in family.variants if name in by_opponent[opponents[0]]]
    for name in order:
        own = [result for result in results if result.variant == name]
        cells = [name, str(len(own))]
        cells += [f"{by_opponent[opponent][name].score:.1%}" for opponent in opponents]
        difference, verdict = _difference(by_opponent, name)
        cells += [difference, verdict if len(own) >= MIN_SEEDS else ""]
        measured = [result.log_loss for result in own if result.log_loss is not None]
        if measured:
            ends = f"{min(measured):.3f} to {max(measured):.3f}"
            cells.append(f"{statistics.fmean(measured):.3f} ({ends})")
        rows.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _difference(by_opponent: dict[str, dict[str, Mean]], name: str) -> tuple[str, str]:
    """Compare a variant with the unchanged recipe, in the mean of the opponents' scores."""
    if name == BASE:
        return "", ""
    difference = statistics.fmean(
        means[name].score - means[BASE].score for means in by_opponent.values()
    )
    variance = (
        sum(means[name].error ** 2 + means[BASE].error ** 2 for means in by_opponent.values())
        / len(by_opponent) ** 2
    )
    # The scores of one network against both opponents vary together: twice the variance at most.
    interval = 1.96 * math.sqrt(len(by_opponent) * variance)
    verdict = "" if abs(difference) < interval else "better" if difference > 0 else "worse"
    return f"{100 * difference:+.1f} ± {100 * interval:.1f}", verdict


@app.command()
def table(
    results: Annotated[Path, typer.Argument(help="File that `train` wrote.")],
    family: Name = "sparse",
) -> None:
    """Print the table of results."""
    typer.echo(markdown(read_results(results), family_named(family)))


def main(arguments: Sequence[str] | None = None) -> Any:
    """Run the command line."""
    try:
        return app(arguments)
    except KeiseiError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
