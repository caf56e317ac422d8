"""Games of a match on disk."""

from pathlib import Path

import pytest

from keisei.evaluation.match import file_name, write_games
from keisei.shogi.notation.files import load_game
from keisei.shogi.notation.record import Ending, GameRecord, Result
from tests.training.fake_run import random_record


def test_games_with_the_same_title_don_t_overwrite_each_other(tmp_path: Path) -> None:
    records = [random_record("a", "b", seed) for seed in (0, 1, 0)]
    paths = write_games(records, tmp_path, prefix="match", event="A match")
    assert [path.name for path in paths] == [f"match-a-vs-b{end}.kif" for end in ("", "-2", "-3")]
    assert load_game(paths[1]).main_line == records[1].main_line
    assert load_game(paths[0]).event == "A match: a vs b"
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.parametrize("ending", [Ending.RESIGNATION, Ending.ILLEGAL_MOVE, Ending.TIME_UP])
def test_endings_that_the_moves_don_t_tell_are_written(ending: Ending, tmp_path: Path) -> None:
    record = GameRecord.from_moves(
        ["7g7f"], headers={"black": "a", "white": "b"}, result=Result(ending)
    )
    (path,) = write_games([record], tmp_path, prefix="match", event="A match")
    for suffix in (".kif", ".csa"):
        result = load_game(path.with_suffix(suffix)).result
        assert result is not None
        assert result.ending is ending


@pytest.mark.parametrize(
    ("title", "name"),
    [("Network vs 先手!", "network-vs"), ("../../etc", "etc"), ("", "game"), ("a/b\\c", "a-b-c")],
)
def test_titles_become_harmless_file_names(title: str, name: str) -> None:
    assert file_name(title) == name
