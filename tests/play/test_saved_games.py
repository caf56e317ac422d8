"""The folder of people's games."""

from pathlib import Path

import pytest

from keisei.errors import KeiseiError
from keisei.play.saved_games import GAMES_VARIABLE, SavedGames, games_directory
from keisei.play.session import GameSession
from keisei.shogi.notation.record import Ending


def played(*moves: str) -> GameSession:
    session = GameSession(headers={"black": "You", "white": "Keisei (level 4)"})
    for move in moves:
        session.push(move)
    return session


def test_games_are_saved_listed_found_and_deleted(tmp_path: Path) -> None:
    saved = SavedGames(tmp_path / "new" / "games")
    assert saved.games() == []
    session = played("7g7f")
    name = saved.save(session.record(), players="who plays: {}")
    session.push("3c3d")
    session.finish(Ending.RESIGNATION)
    assert saved.save(session.record(), name=name, players="who plays: {}") == name
    (game,) = saved.games()
    assert (game.name, game.players, len(game.record.moves)) == (name, "who plays: {}", 2)
    assert game.own_record() == session.record(), "the file says nothing else"
    other = saved.save(played("2g2f").record())
    assert {game.name for game in saved.games()} == {name, other}
    saved.delete(name)
    saved.delete(name)
    assert [game.name for game in saved.games()] == [other]


def test_files_that_cannot_be_read_hide_no_others(tmp_path: Path) -> None:
    saved = SavedGames(tmp_path)
    name = saved.save(played("7g7f").record())
    (tmp_path / "20260101-000000-abcd.kif").write_bytes(b"\xff\x00 gibberish")
    (tmp_path / "notes.kif").write_text("not one of ours")
    assert [game.name for game in saved.games()] == [name]


@pytest.mark.parametrize("name", ["", "../secret", "20260101-000000-abcd/../x", "a.kif"])
def test_names_lead_nowhere_else(tmp_path: Path, name: str) -> None:
    saved = SavedGames(tmp_path)
    for act in (saved.find, saved.delete):
        with pytest.raises(KeiseiError, match="there is no saved game"):
            act(name)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeiseiError, match="cannot make"):
        SavedGames(tmp_path / "file" / "games").save(played("7g7f").record())


def test_the_usual_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(GAMES_VARIABLE, str(tmp_path))
    assert games_directory() == SavedGames().directory == tmp_path
    monkeypatch.delenv(GAMES_VARIABLE)
    assert games_directory().name == "games"
    assert games_directory().is_absolute()
