"""`keisei play`: in the browser or the terminal, and its error messages."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.errors import KeiseiError
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
    assert settings.first_game().players == {Color.BLACK: PERSON, Color.WHITE: PERSON}


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
@pytest.mark.parametrize("arguments", [(), ("random", "--against", "greedy")])
def test_without_the_extra_there_is_nobody_to_choose(arguments: tuple[str, ...]) -> None:
    with pytest.raises(KeiseiError, match=r"pip install 'keisei\[web\]'"):
        invoke(*arguments)


def test_the_terminal_needs_a_name() -> None:
    with pytest.raises(KeiseiError, match="keisei play --terminal RUN"):
        invoke("--terminal")


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
