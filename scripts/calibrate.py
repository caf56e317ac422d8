"""Calibrate the rating scale: games between its references, and the ratings that follow.

    python scripts/calibrate.py references --store games.sqlite3 --output ratings-1.json
    python scripts/calibrate.py refit games.sqlite3 --output ratings-1.json
    python scripts/calibrate.py compare ONE.json OTHER.json
    python scripts/calibrate.py halves PLAYER ...
    python scripts/calibrate.py engines ratings-1.json --store engines.sqlite3

``references`` plays in rounds: after each, the ratings are computed, and every two references that
are near each other by them play until they have met often enough. It can be interrupted and
continued. ``refit`` computes the ratings from games that were played before. ``compare`` checks a
second calibration, with other seeds, against the first. ``halves`` places players by every other
reference, and by those in between: do the two ratings agree?
``engines`` rates the programs of others that are installed (Debian: ``apt install fairy-stockfish
gnushogi gpsshogi``) on a finished scale and adds them to its file.
"""

import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from keisei import __version__
from keisei.commands.tables import progress_bar, show_ladder_progress
from keisei.errors import KeiseiError
from keisei.evaluation import ZERO_PLAYER
from keisei.evaluation.ladder import Pair, play_missing
from keisei.evaluation.match import MatchSettings, play_match
from keisei.evaluation.placing import PlacingSettings, place_player
from keisei.evaluation.ratings import (
    Z_95,
    PairResult,
    Ratings,
    connected,
    fit_pair_deviation,
    rate,
)
from keisei.evaluation.results import Conditions, ResultStore, score_of
from keisei.evaluation.scale import RatedEngine, Scale, current_scale
from keisei.evaluation.score import expected_score
from keisei.formats import new_table
from keisei.players.player import Player
from keisei.players.spec import make_player
from keisei.system import write_atomically
from keisei.usi.client import UsiEngineError


def _weak(name: str, temperature: int) -> str:
    """Return the spec of a frozen network whose policy is flat and that overlooks mates."""
    return f"frozen:{name},temperature={temperature},mate=0"


REFERENCES: Final = (
    "random",
    *(f"greedy,random=0.{tenths}" for tenths in (9, 8, 7)),
    _weak("8m", 12),
    *(f"greedy,random=0.{tenths}" for tenths in (6, 5, 4)),
    _weak("8m", 9),
    "greedy,random=0.3",
    "frozen:250k",
    "greedy,random=0.2",
    _weak("8m", 7),
    "greedy,random=0.1",
    "greedy",
    _weak("8m", 6),
    "alphabeta:1",
    _weak("1m", 5),
    "alphabeta:2,random=0.5",
    _weak("8m", 5),
    *(f"alphabeta:2,random=0.{tenths}" for tenths in (4, 3)),
    _weak("8m", 4),
    *(f"alphabeta:2,random=0.{tenths}" for tenths in (2, 1)),
    "alphabeta:2",
    "alphabeta:3,random=0.3",
    _weak("8m", 3),
    *(f"alphabeta:3,random=0.{tenths}" for tenths in (2, 1)),
    "frozen:500k",
    _weak("8m", 2),
    "frozen:1m",
    "alphabeta:3",
    "frozen:1m:search=8",
    "frozen:2m",
    "frozen:8m",
    "frozen:2m:search=8",
    "frozen:8m:search=4",
    "frozen:1m:search=64",
    "alphabeta:4",
    "frozen:8m:search=16",
    "frozen:2m:search=64",
    "frozen:8m:search=32",
    "alphabeta:3,quiet=6",
    "frozen:8m:search=64",
    "frozen:8m:search=96",
    "frozen:2m:search=192",
    "frozen:8m:search=128",
    "alphabeta:4,quiet=6",
    "frozen:8m:search=192",
    "frozen:8m:search=256",
    "frozen:8m:search=512",
)
"""Players that define the scale, roughly from the weakest to the strongest: bots, and networks of
several ages by flat policies, by their own, and by searches. Each stretch has players of two kinds,
so that a rating says how players do against both."""

FIRST_GAMES: Final = 24
"""Games of neighbours in `REFERENCES`, and of the next but one, before there are ratings."""

NEAR: Final = 260.0
"""Points within which two references play each other: up to a score of 82 %."""

COUNTED: Final = 400.0
"""Points within which the games of a pair count."""

FIT_ROUNDS: Final = 4
"""Times that ratings are computed, since they decide which pairs count."""

PARTNERS: Final = 4
"""References above it that each one plays at least, however far they are."""

ROUND_SECONDS: Final = 20.0
"""Seconds for the games of one pair: slow players play fewer, but `MIN_GAMES` at least."""

MIN_GAMES: Final = 24
MAX_CHUNK: Final = 400
"""Games that are played side by side: the more, the less time goes into Python."""

TIMED_GAMES: Final = 4

app = typer.Typer(add_completion=False)
console = Console()


class Candidate(NamedTuple):
    """A reference to be rated."""

    spec: str
    player: Player
    seconds: float
    """Seconds of one core that its moves take in a game."""


def open_candidates(
    stack: ExitStack, specs: Iterable[str], seconds: Mapping[str, float] | None = None
) -> list[Candidate]:
    """Make the players and measure their speed, unless their `seconds` are known by identity."""
    found = []
    for spec in specs:
        player = stack.enter_context(closing(make_player(spec)))
        known = (seconds or {}).get(player.identity)
        found.append(Candidate(spec, player, measure_seconds(spec) if known is None else known))
    return found


def measure_seconds(spec: str) -> float:
    """Return the seconds of one core that a player's moves take in a game."""
    settings = MatchSettings(games=TIMED_GAMES, seed=0, ply_limit=100)
    with closing(make_player(spec, threads=1)) as player:
        play_match(player, player, settings)  # compiles
        start = time.process_time()
        play_match(player, player, settings)
        seconds = (time.process_time() - start) / TIMED_GAMES / 2
    return float(f"{seconds:.2g}")


def games_of(pair: tuple[Candidate, Candidate], games: int, seconds: float = ROUND_SECONDS) -> int:
    """Return how many games a pair plays: as many as asked for, unless they take too long."""
    of_a_game = sum(candidate.seconds for candidate in pair)
    return min(games, max(MIN_GAMES, int(seconds / max(of_a_game, 1e-6)) // 2 * 2))


def near_pairs(order: Sequence[str], ratings: Ratings) -> set[frozenset[str]]:
    """Return the pairs that are to play, of players in the order of their ratings."""
    pairs = set()
    for place, name in enumerate(order):
        for above, other in enumerate(order[place + 1 :]):
            gap = ratings.rating(other) - ratings.rating(name)
            if above < PARTNERS or gap <= NEAR:
                pairs.add(frozenset((name, other)))
    return pairs


@app.command()
def references(
    store: Annotated[Path, typer.Option(help="Result store of the games.")],
    output: Annotated[Path, typer.Option(help="File of ratings to write.")],
    games: Annotated[int, typer.Option(min=2, help="Games of each pair that is near.")] = 400,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="Seconds for the games of slow pairs.")
    ] = ROUND_SECONDS,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    version: Annotated[int, typer.Option(min=1, help="Version of the scale.")] = 1,
) -> None:
    """Play the games between the references and write their ratings."""
    settings = MatchSettings(games=games, seed=seed)
    with ResultStore(store, create=True) as results, ExitStack() as stack, progress_bar() as bar:
        task = bar.add_task("loading", total=None)
        candidates = open_candidates(stack, REFERENCES)
        by_name = {candidate.player.identity: candidate for candidate in candidates}
        start = [*pairwise(candidates), *zip(candidates, candidates[2:], strict=False)]
        _play(results, start, settings, FIRST_GAMES, seconds, bar, task)
        while True:
            found = results.results(Conditions.of(settings), by_name)
            ratings = rate(found, fixed={ZERO_PLAYER: 0.0})
            order = ratings.ranking()[::-1]
            pairs = [
                (by_name[one], by_name[other])
                for one, other in (sorted(pair) for pair in near_pairs(order, ratings))
            ]
            if not _play(results, pairs, settings, games, seconds, bar, task):
                break
    write_scale(found, candidates, output, conditions=Conditions.of(settings), version=version)


@app.command()
def refit(
    store: Annotated[Path, typer.Argument(help="Result store of the games.")],
    output: Annotated[Path, typer.Option(help="File of ratings to write.")],
    seconds_of: Annotated[
        Path | None,
        typer.Option(
            help="File of ratings whose seconds of each player are taken; else they are measured."
        ),
    ] = None,
    version: Annotated[int, typer.Option(min=1, help="Version of the scale.")] = 1,
) -> None:
    """Write the ratings that follow from kept games, without playing."""
    seconds = (
        {r.identity: r.seconds for r in Scale.read(seconds_of).references} if seconds_of else {}
    )
    conditions = Conditions.of(MatchSettings(games=2))
    with ResultStore(store) as results, ExitStack() as stack:
        played = {player.identity for player in results.players(conditions)}
        specs = []
        for spec in REFERENCES:
            with closing(make_player(spec, threads=1)) as player:
                if player.identity in played:
                    specs.append(spec)
                else:
                    console.print(f"left out: {spec}, it has no games")
        candidates = open_candidates(stack, specs, seconds)
        found = results.results(conditions, {one.player.identity for one in candidates})
        write_scale(found, candidates, output, conditions=conditions, version=version)


def write_scale(
    results: Sequence[PairResult],
    candidates: Sequence[Candidate],
    output: Path,
    *,
    conditions: Conditions,
    version: int,
) -> None:
    """Write and print the scale that follows from results."""
    ratings, counted = fit(results)
    scale = Scale.of(
        ratings,
        tuple(counted),
        specs={candidate.player.identity: candidate.spec for candidate in candidates},
        seconds={candidate.player.identity: candidate.seconds for candidate in candidates},
        conditions=conditions,
        keisei=__version__,
        version=version,
    )
    _write(scale, output)
    print_scale(scale, ratings)


def fit(results: Sequence[PairResult]) -> tuple[Ratings, list[PairResult]]:
    """Return the ratings, and the results that they were computed from: those of near pairs.

    Elo's curve does not hold between players that are far apart: `greedy` scores 0 % against a bot
    where 4 % would follow from those in between.
    """
    ratings = rate(results, fixed={ZERO_PLAYER: 0.0})
    counted = list(results)
    for _ in range(FIT_ROUNDS):
        counted = near_results(results, ratings)
        deviation = fit_pair_deviation(counted, fixed={ZERO_PLAYER: 0.0})
        ratings = rate(counted, fixed={ZERO_PLAYER: 0.0}, pair_deviation=deviation)
    return ratings, counted


def near_results(results: Sequence[PairResult], ratings: Ratings) -> list[PairResult]:
    """Return the results of players near each other, and all of players who are near none."""

    def gap(result: PairResult) -> float:
        return abs(ratings.rating(result.black) - ratings.rating(result.white))

    near = {name for r in results if gap(r) <= COUNTED for name in (r.black, r.white)}
    return [
        result
        for result in results
        if gap(result) <= COUNTED or not near.issuperset((result.black, result.white))
    ]


def _play(
    store: ResultStore,
    pairs: Sequence[tuple[Candidate, Candidate]],
    settings: MatchSettings,
    games: int,
    seconds: float,
    bar: Progress,
    task: TaskID,
) -> int:
    """Play the missing games of some pairs; return how many there were."""
    played = 0
    for pair in sorted(pairs, key=lambda pair: sum(candidate.seconds for candidate in pair)):
        players: Pair = (pair[0].player, pair[1].player)
        wanted = replace(settings, games=games_of(pair, games, seconds))
        played += play_missing(
            store,
            [players],
            wanted,
            chunk=MAX_CHUNK,
            on_games=lambda now: show_ladder_progress(bar, task, now),
        )
    return played


def print_scale(scale: Scale, ratings: Ratings) -> None:
    """Print the references, the scores of neighbours, and where ratings do not explain scores."""
    table = new_table(f"scale {scale.version}")
    for heading in ("player", "Elo", "+-", "games", "opponents", "score of next", "ms/game"):
        table.add_column(heading, justify="left" if heading == "player" else "right")
    names = [reference.identity for reference in scale.references]
    for place, reference in enumerate(scale.references):
        met = {
            name
            for r in scale.results
            for name in (r.black, r.white)
            if reference.identity in (r.black, r.white)
        }
        score = ""
        if place + 1 < len(names):
            found = score_of(scale.results, names[place + 1], reference.identity)
            score = f"{found.score:.0%}" if found.games else "-"
        table.add_row(
            reference.spec,
            f"{reference.rating:.0f}",
            f"{1.96 * reference.error:.0f}",
            f"{reference.games:,}",
            str(len(met) - 1),
            score,
            f"{1000 * reference.seconds:.0f}",
        )
    console.print(table)
    console.print(
        f"{sum(r.games for r in scale.results):,} games; first move {ratings.first_move:+.0f}; "
        f"pairs deviate by {ratings.pair_deviation:.0f} points (standard deviation). The largest:"
    )
    for one, other, points in scale.file.deviations[:8]:
        share = score_of(scale.results, one, other).score
        expected = expected_score(ratings.rating(one) - ratings.rating(other))
        console.print(
            f"  {one} - {other}: {points:+.0f} points, {share:.0%} instead of {expected:.0%}"
        )


@app.command()
def compare(one: Path, other: Path) -> None:
    """Compare two calibrations with different seeds: do they agree within their errors?

    Errors of the ratings include that pairs deviate, which both calibrations share if the same
    pairs met. The last columns leave that out: ratings as if no pair deviated, whose errors are
    those of sampling alone.
    """
    first, second = Scale.read(one), Scale.read(other)
    pure = [rate(scale.results, fixed={ZERO_PLAYER: 0.0}) for scale in (first, second)]
    table = new_table("two calibrations")
    for heading in ("player", "Elo", "Elo again", "difference", "in deviations",
                    "by games alone", "in sampling errors"):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "player" else "right")
    distances, sampled = [], []
    for reference in first.references:
        name = reference.identity
        again = next(r for r in second.references if r.identity == name)
        gap = again.rating - reference.rating
        sampled_gap = pure[1].rating(name) - pure[0].rating(name)
        distances.append(_distance(gap, reference.error, again.error))
        sampled.append(_distance(sampled_gap, pure[0].error(name), pure[1].error(name)))
        table.add_row(
            reference.spec, f"{reference.rating:.0f}", f"{again.rating:.0f}", f"{gap:+.0f}",
            f"{distances[-1]:.1f}", f"{sampled_gap:+.0f}", f"{sampled[-1]:.1f}",
        )  # fmt: skip
    console.print(table)
    _print_distances("standard deviations", distances)
    _print_distances("sampling errors", sampled)


def _distance(gap: float, one: float, other: float) -> float:
    """Return a difference in units of its error, from those of both; 0 for fixed ratings."""
    error = float(np.hypot(one, other))
    return abs(gap) / error if error else 0.0


def _print_distances(unit: str, distances: Sequence[float]) -> None:
    """Print the largest distance, and how many are within the 95 % interval but for `random`."""
    console.print(
        f"largest distance {max(distances):.1f} {unit}, "
        f"{np.mean(np.array(distances[1:]) < Z_95):.0%} within 1.96"
    )


@app.command()
def halves(
    players: Annotated[list[str], typer.Argument(help="Player specs, not of references.")],
    within: Annotated[float, typer.Option(min=1.0, help="Half of the interval.")] = 50.0,
    max_games: Annotated[int, typer.Option(min=2, help="Games of each half.")] = 4_000,
) -> None:
    """Place players by two disjoint halves of the references."""
    scale = current_scale()
    settings = PlacingSettings(within=within, max_games=max_games)
    for spec in players:
        with closing(make_player(spec)) as player:
            one, other = (
                place_player(
                    player, scale, settings, references=scale.references[half::2]
                ).placement
                for half in (0, 1)
            )
        error = float(np.hypot(one.error, other.error)) / Z_95
        typer.echo(
            f"{spec}: {one}, {one.games:,} games; {other}, {other.games:,} games: "
            f"{abs(one.rating - other.rating) / error:.1f} standard deviations apart"
        )


# ---- engines ----

DEBIAN_GAMES: Final = Path("/usr/games")
"""Directory of Debian's packages, which may not be on the PATH."""

BRIDGE: Final = Path(__file__).with_name("gnushogi_usi.py")

NODES: Final = 1_000_000
"""Node limit next to a depth limit, which alone does not end long sequences of captures and checks:
Fairy-Stockfish 11.1 was seen to think for a minute at depth 1. The engine does not keep it exactly
(5,183 nodes were seen at a limit of 1,000). If it fails too, the move timeout ends the search, and
the game is lost."""


class EngineSetting(NamedTuple):
    """An engine at some strength."""

    name: str
    program: str
    settings: str


def _stockfish(limit: str, *options: str) -> EngineSetting:
    bounded = limit if limit.startswith("nodes=") else f"{limit},nodes={NODES}"
    return EngineSetting(
        " ".join(("Fairy-Stockfish", *options, limit)).replace("=", " "),
        "fairy-stockfish",
        ",".join((*options, bounded)),
    )


ENGINES: Final = (
    _stockfish("depth=1", "Skill Level=-20"),
    _stockfish("depth=1", "Skill Level=-10"),
    _stockfish("depth=1", "Skill Level=-5"),
    _stockfish("depth=1", "Skill Level=-3"),
    _stockfish("depth=1", "Skill Level=0"),
    _stockfish("depth=1", "Skill Level=5"),
    _stockfish("depth=1"),
    EngineSetting("GNU Shogi depth 1", "gnushogi", "depth=1"),
    _stockfish("depth=2"),
    _stockfish("depth=3"),
    EngineSetting("GNU Shogi depth 3", "gnushogi", "depth=3"),
    _stockfish("depth=4"),
    _stockfish("nodes=1000"),
    _stockfish("nodes=3000"),
    _stockfish("nodes=10000"),
    EngineSetting("gpsusi depth 4", "gpsusi", "LimitDepth=4,BookDepth=0,Thread=1,byoyomi=10000"),
)
"""Engines, roughly from the weakest to the strongest."""


def engine_spec(engine: EngineSetting) -> str | None:
    """Return the spec of an engine's player; None if its program is not installed."""
    found = shutil.which(engine.program) or shutil.which(engine.program, path=str(DEBIAN_GAMES))
    if found is None:
        return None
    command = {
        "gnushogi": f'"{sys.executable}" "{BRIDGE}" "{found}"',
        "gpsusi": f'"{found}" -N 1 --memory-use-percent 10',
    }.get(engine.program, f'"{found}"')
    return f"usi:{command},name={engine.name},{engine.settings}"


@app.command()
def engines(
    scale: Annotated[Path, typer.Argument(help="File of a scale; its engines are replaced.")],
    store: Annotated[Path, typer.Option(help="Result store of the games.")],
    games: Annotated[int, typer.Option(min=2, help="Games of each pair that is near.")] = 40,
    opponents: Annotated[
        int, typer.Option(min=2, help="Neighbours that each engine plays, on either side.")
    ] = 2,
) -> None:
    """Rate engines by games against neighbouring references, and against each other."""
    known = Scale.read(scale)
    settings = MatchSettings(games=games)
    conditions = Conditions.of(settings)
    with ResultStore(store, create=True) as results, ExitStack() as stack, progress_bar() as bar:
        task = bar.add_task("loading", total=None)
        players: dict[str, Player] = {}
        for engine in ENGINES:
            if (spec := engine_spec(engine)) is None:
                console.print(f"left out: {engine.name}, {engine.program} is not installed")
                continue
            try:
                player = stack.enter_context(closing(make_player(spec)))
            except UsiEngineError as error:
                console.print(f"left out: {engine.name}, {error}")
                continue
            players[player.identity] = player
        fixed = {r.identity: r.rating for r in known.references}
        rivals = {
            r.identity: stack.enter_context(closing(make_player(r.spec))) for r in known.references
        }
        settled: set[frozenset[str]] = set()
        while True:
            new = _engine_pairs(results, players, fixed, conditions, opponents, known) - settled
            if not new:
                break
            for pair in new:
                one, other = ((players | rivals)[name] for name in sorted(pair))
                try:
                    play_missing(
                        results,
                        [(one, other)],
                        settings,
                        on_games=lambda now: show_ladder_progress(bar, task, now),
                    )
                except UsiEngineError as error:
                    console.print(f"aborted: {one.name} against {other.name}, {error}")
                settled.add(pair)
        found = _connected(results.results(conditions), fixed)
    ratings = rate(found, fixed=fixed, pair_deviation=known.file.pair_deviation)
    rated = tuple(
        RatedEngine(
            name=player.name,
            version=identity,
            spec=player.name,
            rating=round(ratings.rating(identity)),
            low=round(ratings.interval(identity)[0]),
            high=round(ratings.interval(identity)[1]),
            games=ratings.games[ratings.names.index(identity)],
        )
        for identity, player in players.items()
        if identity in ratings.names
    )
    ordered = tuple(sorted(rated, key=lambda engine: engine.rating))
    _write(Scale(known.file.model_copy(update={"engines": ordered})), scale)
    for found_engine in ordered:
        interval = f"{found_engine.low:.0f} to {found_engine.high:.0f}"
        console.print(f"{found_engine.rating:5.0f} ({interval}) {found_engine.name}")


def _connected(results: Sequence[PairResult], fixed: dict[str, float]) -> list[PairResult]:
    """Return the results of players that games connect with a reference."""
    reached = connected(results, fixed)
    return [result for result in results if result.black in reached]


def _engine_pairs(
    store: ResultStore,
    engines: dict[str, Player],
    fixed: dict[str, float],
    conditions: Conditions,
    opponents: int,
    scale: Scale,
) -> set[frozenset[str]]:
    """Return the pairs to play next: each engine with its neighbours by what is known so far."""
    results = _connected(store.results(conditions), fixed)
    pairs: set[frozenset[str]] = set()
    names = list(engines)
    if not results:
        middle = scale.references[len(scale.references) // 2].identity
        return {frozenset((names[0], middle))} if names else pairs
    ratings = rate(results, fixed=fixed, pair_deviation=scale.file.pair_deviation)
    elo = fixed | {name: ratings.rating(name) for name in engines if name in ratings.names}
    order = sorted(elo, key=lambda name: elo[name])
    for name in names:
        if name in elo:
            place = order.index(name)
            near = order[max(0, place - opponents) : place + opponents + 1]
            pairs |= {frozenset((name, other)) for other in near if other != name}
        else:  # like the engine before it, which is weaker by a guess
            before = [earlier for earlier in names[: names.index(name)] if earlier in elo]
            start = before[-1] if before else scale.references[0].identity
            nearest = min(fixed, key=lambda other: abs(fixed[other] - elo[start]))
            pairs.add(frozenset((name, nearest)))
            break
    return {pair for pair in pairs if pair & engines.keys()}


def _write(scale: Scale, path: Path) -> None:
    write_atomically(path, scale.file.model_dump_json(indent=1).encode())
    console.print(f"written: {path}")


if __name__ == "__main__":
    try:
        app()
    except KeiseiError as error:
        sys.exit(f"error: {error}")
