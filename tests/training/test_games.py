"""Sample games on disk."""

from pathlib import Path

import pytest

from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.files import load_game
from keisei.shogi.notation.record import Ending
from keisei.shogi.pieces import Color
from keisei.shogi.rules import Outcome, Termination
from keisei.training.events import EvaluationEnd
from keisei.training.games import SampleGames, file_name, game_record
from tests.training.fake_run import fake_evaluation, progress_at, random_game


def test_games_are_written_in_both_formats(tmp_path: Path) -> None:
    SampleGames(tmp_path, 4).on_evaluation(fake_evaluation(123, 200, games=2))
    names = sorted(path.name for path in (tmp_path / "games").iterdir())
    assert names == [
        "update-000123-greedy-vs-network.csa",
        "update-000123-greedy-vs-network.kif",
        "update-000123-network-vs-greedy.csa",
        "update-000123-network-vs-greedy.kif",
    ]
    game, outcome = random_game(0)
    for suffix in (".kif", ".csa"):
        record = load_game(tmp_path / "games" / f"update-000123-network-vs-greedy{suffix}")
        assert record.main_line == game.moves
        assert record.winner is outcome.winner
        assert (record.black, record.white) == ("network", "greedy")
        assert record.event == "Keisei, update 123: network vs greedy"


def test_no_more_games_are_written_than_asked_for(tmp_path: Path) -> None:
    SampleGames(tmp_path, 1).on_evaluation(fake_evaluation(1, 10, games=3))
    assert len(list((tmp_path / "games").iterdir())) == 2
    titles = (f"{opponent} {number}" for opponent in ("random", "greedy") for number in range(4))
    games = tuple((title, *random_game(0)) for title in titles)
    SampleGames(tmp_path / "two", 2).on_evaluation(EvaluationEnd(progress_at(1, 10), {}, games))
    names = sorted(path.name for path in (tmp_path / "two" / "games").glob("*.kif"))
    assert names == ["update-000001-greedy-0.kif", "update-000001-random-0.kif"]
    SampleGames(tmp_path / "none", 0).on_evaluation(fake_evaluation(1, 10, games=3))
    assert not (tmp_path / "none").exists()


def test_games_with_the_same_title_don_t_overwrite_each_other(tmp_path: Path) -> None:
    games = tuple(("a vs b", *random_game(seed)) for seed in (0, 1, 0))
    SampleGames(tmp_path, 9).on_evaluation(EvaluationEnd(progress_at(1, 10), {}, games))
    names = sorted(path.name for path in (tmp_path / "games").glob("*.kif"))
    assert names == [f"update-000001-a-vs-b{end}.kif" for end in ("-2", "-3", "")]


@pytest.mark.parametrize(
    ("termination", "winner", "ending"),
    [
        (Termination.DECLARATION, Color.BLACK, Ending.DECLARATION),
        (Termination.PLY_LIMIT, None, Ending.MAX_MOVES),
        (Termination.ILLEGAL_MOVE, Color.WHITE, Ending.ILLEGAL_MOVE),
    ],
)
def test_endings_that_the_moves_don_t_tell_are_written(
    termination: Termination, winner: Color | None, ending: Ending
) -> None:
    game = ShogiGame("startpos moves 7g7f 3c3d")
    record = game_record(game, Outcome(termination, winner), "a vs b", 1)
    assert record.result is not None
    assert record.result.ending is ending
    assert record.winner is winner


def test_a_title_of_another_form_names_nobody() -> None:
    record = game_record(*random_game(0), "self-play", 1)
    assert (record.black, record.white) == ("", "")
    assert record.result is not None
    assert record.result.ending is Ending.MATE


@pytest.mark.parametrize(
    ("title", "name"),
    [("A vs B", "a-vs-b"), ("../../etc/passwd", "etc-passwd"), ("寒い", "game"), ("", "game")],
)
def test_titles_become_harmless_file_names(title: str, name: str) -> None:
    assert file_name(title) == name
