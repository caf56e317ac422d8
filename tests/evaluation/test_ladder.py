"""Ladders grow, play no game twice, and always have an anchor."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from keisei.commands.tables import standing_cells
from keisei.errors import KeiseiError
from keisei.evaluation.ladder import (
    LadderProgress,
    distinct,
    labels,
    play_missing,
    read_ladder,
    round_robin,
)
from keisei.evaluation.match import MatchSettings, PlayedGame
from keisei.evaluation.placing import FAR
from keisei.evaluation.ratings import PairResult
from keisei.evaluation.results import Conditions, ResultStore, StoredPlayer, score_of
from keisei.evaluation.strength_plots import draw_ladder
from keisei.players.bots import AlphaBetaPlayer, GreedyPlayer, RandomPlayer
from keisei.plotting import png
from keisei.shogi.types import Color
from tests.evaluation.scales import bot_scale
from tests.evaluation.test_results import GAMES, A, B, C, Nobody

SETTINGS = MatchSettings(games=10, ply_limit=60)
CONDITIONS = Conditions.of(SETTINGS)
RANDOM, GREEDY = RandomPlayer(), GreedyPlayer()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultStore]:
    with ResultStore(tmp_path / "ladder.sqlite3", create=True) as store:
        yield store


def test_every_pair_meets_once() -> None:
    again = GreedyPlayer()
    assert distinct([RANDOM, GREEDY, again]) == [RANDOM, again]
    assert round_robin([A, B, C]) == [(A, B), (A, C), (B, C)]
    assert round_robin([GREEDY, again]) == []


def test_only_missing_games_are_played(store: ResultStore) -> None:
    pairs = round_robin([RANDOM, GREEDY])
    assert play_missing(store, pairs, SETTINGS) == 10
    assert play_missing(store, pairs, SETTINGS) == 0
    more = MatchSettings(games=14, ply_limit=60)
    assert play_missing(store, [(GREEDY, RANDOM)], more) == 4, "in any order"
    assert store.seeds(RANDOM, GREEDY) == {0, 1}, "new games are other games"
    other_conditions = MatchSettings(games=4, ply_limit=61)
    assert play_missing(store, pairs, other_conditions) == 4


def test_many_games_are_stored_chunk_by_chunk(store: ResultStore) -> None:
    seen: list[LadderProgress] = []
    third = AlphaBetaPlayer(1)
    pairs = round_robin([RANDOM, GREEDY, third])
    assert play_missing(store, pairs, SETTINGS, chunk=4, on_games=seen.append) == 30
    assert store.seeds(RANDOM, third) == {0, 1, 2}
    assert [progress.games for progress in seen] == sorted(progress.games for progress in seen)
    assert (seen[-1].games, seen[-1].missing) == (30, 30)
    assert {progress.pair for progress in seen} == set(pairs)
    assert all(progress.score.games <= 4 for progress in seen)
    colours = store.results(CONDITIONS, {RANDOM.identity, GREEDY.identity})
    assert [pair.games for pair in colours] == [5, 5]


def test_games_that_another_process_has_played_meanwhile_are_not_counted_twice(
    store: ResultStore, tmp_path: Path
) -> None:
    """The other process stores the chunk that is being played."""
    games = [PlayedGame(Color.BLACK, None, "repetition", 40)] * 6

    def meddle(progress: LadderProgress) -> None:
        with ResultStore(store.path, create=True) as other:
            other.add(RANDOM, GREEDY, games, conditions=CONDITIONS, seed=0)

    assert play_missing(store, [(RANDOM, GREEDY)], SETTINGS, on_games=meddle) == 4
    assert store.games_between(RANDOM, GREEDY, CONDITIONS) == 10
    assert store.seeds(RANDOM, GREEDY) == {0, 1}


def test_seeds_that_were_used_are_skipped(store: ResultStore) -> None:
    assert store.unused_seed(A, B, first=3) == 3
    for seed in (3, 4, 6):
        store.add(A, B, GAMES, conditions=CONDITIONS, seed=seed)
    assert store.unused_seed(B, A, first=3) == 5
    assert store.unused_seed(A, C, first=3) == 3


def test_a_ladder_is_anchored_at_random(store: ResultStore) -> None:
    play_missing(store, round_robin([GREEDY, RANDOM, AlphaBetaPlayer(1)]), SETTINGS)
    found = read_ladder(store, CONDITIONS)
    assert found.scale == "random = 0"
    (note,) = found.notes
    assert note.startswith("rating 0 is random: the scale's games have 4 opening plies")
    assert [standing.rank for standing in found.standings] == [1, 2, 3]
    last = found.standing("random")
    assert (last.elo, last.games, last.superiority) == (0.0, 20, None)
    best = found.standings[0]
    assert best.low < best.elo < best.high
    assert best.superiority is not None
    assert sum(standing.score for standing in found.standings) == pytest.approx(1.5)
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["players"][2]["name"] == "random"
    assert plain["conditions"]["ply_limit"] == 60
    assert png(draw_ladder(found)).startswith(b"\x89PNG")


def test_players_shown_are_rated_by_all_games(store: ResultStore) -> None:
    """A and C have not met, nor has either met random: B has met them all."""
    for other in (A, C, RANDOM):
        store.add(B, other, GAMES, conditions=CONDITIONS, seed=0)
    found = read_ladder(store, CONDITIONS, ["A#1", "C#1"])
    assert {standing.name for standing in found.standings} == {"A", "C"}
    assert found.scale == "random = 0"
    assert found.standings[0].games == 5
    assert found.ratings.names.index("B#1") >= 0


def test_without_random_the_first_is_the_anchor(store: ResultStore) -> None:
    store.add(A, B, GAMES, conditions=CONDITIONS, seed=0)
    store.add(B, C, GAMES, conditions=CONDITIONS, seed=0)
    scale = bot_scale(CONDITIONS)
    found = read_ladder(store, CONDITIONS, ["C#1", "B#1"], scale=scale)
    assert found.scale == "C = 0"
    assert found.notes == ("rating 0 is C: no games connect it with a reference of the scale",)
    assert read_ladder(store, CONDITIONS, scale=scale).scale == "B = 0", "who has played most"


def test_references_have_the_ratings_of_the_scale(store: ResultStore) -> None:
    bot = AlphaBetaPlayer(1)
    play_missing(store, round_robin([GREEDY, RANDOM, bot]), SETTINGS)
    found = read_ladder(store, CONDITIONS, scale=bot_scale(CONDITIONS))
    assert found.scale == "scale 1"
    assert found.notes == ()
    assert found.standing(GREEDY.identity).elo == 1500.0
    assert found.standing(GREEDY.identity).is_fixed
    assert not found.standing(bot.identity).is_fixed
    assert found.standing(bot.identity).elo > 1000.0


def test_players_without_a_connection_are_left_out_and_named(store: ResultStore) -> None:
    store.add(A, RANDOM, GAMES, conditions=CONDITIONS, seed=0)
    store.add(B, C, GAMES, conditions=CONDITIONS, seed=0)
    found = read_ladder(store, CONDITIONS)
    assert {standing.name for standing in found.standings} == {"A", "random"}
    assert found.notes[-1] == "left out, not connected by games: B, C"
    apart = read_ladder(store, CONDITIONS, ["B#1", "C#1"])
    assert apart.scale == "B = 0"


def test_no_games_under_these_conditions(store: ResultStore) -> None:
    with pytest.raises(KeiseiError, match="holds no games with 4 opening plies"):
        read_ladder(store, CONDITIONS)
    store.add(A, B, GAMES, conditions=Conditions(ply_limit=9), seed=0)
    with pytest.raises(KeiseiError, match=r"it holds\n  5 games: .*ply limit 9,"):
        read_ladder(store, CONDITIONS)


def test_names_that_are_not_unique_give_way_to_identities() -> None:
    players = [StoredPlayer("e 1", "e", 1), StoredPlayer("e 2", "e", 1), StoredPlayer("f", "f", 1)]
    assert labels(players) == {"e 1": "e 1", "e 2": "e 2", "f": "f"}


def test_the_score_between_two() -> None:
    results = [
        PairResult("a", "b", 1, 2, 3),
        PairResult("b", "a", 10, 20, 30),
        PairResult("a", "c", 9, 9, 9),
    ]
    score = score_of(results, "a", "b")
    assert (score.black, score.white) == ((1, 2, 3), (30, 20, 10))
    assert score_of(results, "b", "c").games == 0


def test_two_processes_with_the_same_new_player_agree(tmp_path: Path) -> None:
    """The second one to open the file finds the tables of the first."""
    path = tmp_path / "ladder.sqlite3"
    with ResultStore(path, create=True) as one, ResultStore(path, create=True) as other:
        assert one.add(A, B, GAMES, conditions=CONDITIONS, seed=0)
        assert other.add(A, Nobody("D", "D#1"), GAMES, conditions=CONDITIONS, seed=0)
        assert len(one.players()) == 3


WON = [PlayedGame(color, color, "checkmate", 90) for color in Color] * 200
"""Half of the games with each colour."""


def test_players_far_beyond_the_references_have_a_bound(store: ResultStore) -> None:
    weak, strong = Nobody("weak", "weak"), Nobody("strong", "strong")
    store.add(strong, GREEDY, WON, conditions=CONDITIONS, seed=0)
    store.add(RANDOM, weak, WON, conditions=CONDITIONS, seed=0)
    store.add(GREEDY, RANDOM, GAMES, conditions=CONDITIONS, seed=0)
    found = read_ladder(store, CONDITIONS, scale=bot_scale(CONDITIONS))
    positions = {standing.name: standing.position for standing in found.standings}
    assert positions == {"strong": "above", "greedy": "on", "random": "on", "weak": "below"}
    best = found.standings[0]
    assert best.low > 1500.0 + FAR
    assert standing_cells(best) == ("-", f"above the scale: {best.low:.0f} or more")
    assert standing_cells(found.standings[1]) == ("+1500", "fixed")
    assert found.as_dict()["players"][3]["position"] == "below"
    assert png(draw_ladder(found)).startswith(b"\x89PNG")
    without_scale = read_ladder(store, CONDITIONS, scale=bot_scale(Conditions(ply_limit=9)))
    assert {standing.position for standing in without_scale.standings} == {"on"}
