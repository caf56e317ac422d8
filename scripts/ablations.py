"""Train the quick-start recipe with one thing changed at a time, and measure what it was worth.

    python scripts/ablations.py train results.jsonl [--seeds 3] [--plies 1500000] [--only NAME ...]
    python scripts/ablations.py table results.jsonl

``train`` goes through all variants with one seed, then with the next, and appends a line per
network to the file. It can be interrupted and continued: what is in the file is not trained again.
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
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console
from rich.progress import track

from keisei.errors import KeiseiError
from keisei.evaluation.match import MatchSettings, play_match
from keisei.players.spec import make_player

BASE: Final = "nothing"
OPPONENTS: Final = ("alphabeta:2", "alphabeta:3")
GAMES: Final = 400
MIN_SEEDS: Final = 3
"""Seeds that a verdict needs."""

SPARSE: Final = {
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
}
"""What is changed, and the settings that do it. Networks are measured under the same rules."""

app = typer.Typer(add_completion=False)


class Result(NamedTuple):
    """Scores of a trained network against the opponents, as fractions."""

    variant: str
    seed: int
    plies: int
    scores: dict[str, float]


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


def measure(run: Path, seed: int) -> dict[str, float]:
    """Play the opponents."""
    scores = {}
    for spec in OPPONENTS:
        with (
            closing(make_player(str(run), threads=1)) as player,
            closing(make_player(spec, threads=1)) as opponent,
        ):
            match = MatchSettings(games=GAMES, seed=seed)
            scores[spec] = play_match(player, opponent, match).score.score
    return scores


@app.command()
def train(
    results: Annotated[Path, typer.Argument(help="File that results are appended to.")],
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each variant.")] = 3,
    plies: Annotated[int, typer.Option(min=1, help="Length of each training.")] = 1_500_000,
    only: Annotated[list[str] | None, typer.Option(help="Variants; all by default.")] = None,
) -> None:
    """Train and measure what is missing in the file."""
    names = only or list(SPARSE)
    if unknown := set(names) - set(SPARSE):
        raise KeiseiError(
            f"no variant {', '.join(sorted(unknown))}; there are: {', '.join(SPARSE)}"
        )
    known = {(result.variant, result.seed) for result in read_results(results)}
    missing = [(name, seed) for seed in range(seeds) for name in names if (name, seed) not in known]
    for name, seed in track(missing, "training", console=Console(stderr=True)):
        with tempfile.TemporaryDirectory() as directory:
            run = train_variant(SPARSE[name], seed, plies, Path(directory))
            result = Result(name, seed, plies, measure(run, seed))
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


def markdown(results: Sequence[Result]) -> str:
    """Return the table; differences from the unchanged recipe have 95 % intervals."""
    by_opponent = {opponent: means(results, opponent) for opponent in OPPONENTS}
    heading = ["changed", "seeds", *OPPONENTS, "difference", "verdict"]
    rows = [heading, ["---"] * len(heading)]
    order = [name for name in SPARSE if name in by_opponent[OPPONENTS[0]]]
    for name in order:
        own = [result for result in results if result.variant == name]
        cells = [name, str(len(own))]
        cells += [f"{by_opponent[opponent][name].score:.1%}" for opponent in OPPONENTS]
        difference, verdict = _difference(by_opponent, name)
        rows.append([*cells, difference, verdict if len(own) >= MIN_SEEDS else ""])
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
def table(results: Annotated[Path, typer.Argument(help="File that `train` wrote.")]) -> None:
    """Print the table of results."""
    typer.echo(markdown(read_results(results)))


def main(arguments: Sequence[str] | None = None) -> Any:
    """Run the command line."""
    try:
        return app(arguments)
    except KeiseiError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
