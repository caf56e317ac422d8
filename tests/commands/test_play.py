"""`keisei play`: in the browser or the terminal, and its error messages."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.errors import KeiseiError
from keisei.levels import DEFAULT_LEVEL
from keisei.shogi.types import Color
from keisei.web import server
from keisei.web.play import pages
from keisei.web.play.catalogue import PERSON, PlayerChoice
from keisei.web.play.pages import PlaySettings


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PlaySettings, dict[str, Any]]]:
    """Records the settings and the address that would be served."""
    calls: list[tuple[PlaySettings, dict[str, Any]]] = []
    monkeypatch.setattr(
        pages, "serve_play", lambda settings, **where: calls.append((settings, where))
    )
    monkeypatch.setattr(server, "find_spec", lambda name: object())
    return calls


def invoke(*arguments: str, typed: str = "") -> str:
    result = CliRunner().invoke(app, ["play", *arguments], input=typed, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_browser_is_the_usual_way(
    served: list[tuple[PlaySettings, dict[str, Any]]], tmp_path: Path
) -> None:
    invoke("greedy", "--color", "white", "--runs", str(tmp_path), "--no-browser", "--seed", "3")
    ((settings, where),) = served
    assert (settings.model, settings.runs, settings.seed) == ("greedy", tmp_path, 3)
    assert where["host"] == "127.0.0.1"
    assert where["port"] is where["token"] is None
    assert where["open_browser"] is False
    game = settings.first_game()
    assert (game.black, game.white) == (PlayerChoice("named:greedy"), PERSON)


def test_nobody_is_named(served: list[tuple[PlaySettings, dict[str, Any]]]) -> None:
    invoke()
    settings = served[0][0]
    assert settings.model is None
    assert settings.first_game().players == {
        Color.BLACK: PERSON, Color.WHITE: PlayerChoice("builtin"),
    }  # fmt: skip


def test_a_level(served: list[tuple[PlaySettings, dict[str, Any]]]) -> None:
    invoke("--level", "3")
    invoke("first", "--level", "10")
    assert [settings.model for settings, _ in served] == ["builtin:level=3", "first:level=10"]
    with pytest.raises(KeiseiError, match="a level has its own temperature"):
        invoke("--level", "3", "--temperature", "1")


def test_watching_two(served: list[tuple[PlaySettings, dict[str, Any]]]) -> None:
    invoke("first", "--temperature", "0.5", "--against", "alphabeta:2", "--against", "usi:x")
    settings = served[0][0]
    game = settings.first_game()
    assert game.black == PlayerChoice("named:first,temperature=0.5")
    assert game.white == PlayerChoice("named:alphabeta:2")
    assert settings.others == ("alphabeta:2", "usi:x")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extra."""
    monkeypatch.setattr(server, "find_spec", lambda name: None)


@pytest.mark.usefixtures("bare")
def test_without_the_extra_the_terminal_is_used_and_the_extra_named() -> None:
    output = invoke("random", "--style", "letters", typed="moves\nquit\n")
    assert "pip install 'keisei[web]'" in output
    assert "You are Black" in output


@pytest.mark.usefixtures("bare")
def test_without_the_extra_two_players_cannot_be_watched() -> None:
    with pytest.raises(KeiseiError, match=r"pip install 'keisei\[web\]'"):
        invoke("random", "--against", "greedy")


@pytest.mark.parametrize("arguments", [("--terminal",), ("--terminal", "--level", "2")])
def test_the_player_in_the_package_is_the_opponent_unless_another_is_named(
    arguments: tuple[str, ...],
) -> None:
    output = invoke(*arguments, typed="7g7f\nquit\n")
    level = arguments[-1] if len(arguments) > 1 else str(DEFAULT_LEVEL)
    assert f"builtin:level={level}" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "there is no run or checkpoint nowhere"),
        (("random", "--against", "nowhere"), "there is no run or checkpoint nowhere"),
        (("random", "--sfen", "nonsense"), "an SFEN has a board"),
        (("random", "--token", "short"), "a token needs at least"),
        (("random", "--host", "no.such.host.invalid"), "there is no host"),
    ],
)
def test_mistakes_are_told_before_anything_is_served(
    arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(KeiseiError, match=message):
        invoke(*arguments, "--no-browser")
