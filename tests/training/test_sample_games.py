"""Sample games on disk."""

from pathlib import Path

from keisei.callbacks import EvaluationEnd
from keisei.shogi.notation.files import load_game
from keisei.training.writers import SampleGamesWriter
from tests.training.fake_run import fake_evaluation, progress_at, random_game, random_record


def test_games_are_written_in_both_formats(tmp_path: Path) -> None:
    SampleGamesWriter(tmp_path, 4).on_evaluation(fake_evaluation(123, 200, games=2))
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


def test_no_more_games_are_written_than_requested(tmp_path: Path) -> None:
    SampleGamesWriter(tmp_path, 1).on_evaluation(fake_evaluation(1, 10, games=3))
    assert len(list((tmp_path / "games").iterdir())) == 2
    games = tuple(
        random_record(opponent, str(number), 0)
        for opponent in ("random", "greedy")
        for number in range(4)
    )
    SampleGamesWriter(tmp_path / "two", 2).on_evaluation(
        EvaluationEnd(progress_at(1, 10), {}, games=games)
    )
    names = sorted(path.name for path in (tmp_path / "two" / "games").glob("*.kif"))
    assert names == ["update-000001-greedy-vs-0.kif", "update-000001-random-vs-0.kif"]
    SampleGamesWriter(tmp_path / "none", 0).on_evaluation(fake_evaluation(1, 10, games=3))
    assert not (tmp_path / "none").exists()
