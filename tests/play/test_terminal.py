"""A game in the terminal, typed by a test."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from keisei.checkpoints.store import CheckpointError
from keisei.cli import app
from keisei.play.opponent import Opponent
from keisei.play.terminal import TerminalGame
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.files import load_games
from keisei.shogi.notation.record import Ending
from keisei.shogi.types import Color
from tests.tiny import tiny_trainer

MATE_FOR_BLACK = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
MATE_FOR_WHITE = "4k4/9/9/9/9/9/4p4/9/4K4 w g 1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    directory = tmp_path_factory.mktemp("runs") / "tiny"
    trainer = tiny_trainer(directory)
    trainer.train_step()
    trainer.save()
    return directory


@pytest.fixture
def opponent(run: Path) -> Opponent:
    return Opponent.from_spec(str(run))


def typed(*lines: str) -> Callable[[str], str]:
    """Type these lines, then leave."""
    left = list(lines)

    def ask(prompt: str) -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    return ask


def game_against(
    opponent: Opponent, *, color: Color = Color.BLACK, sfen: str = "startpos"
) -> tuple[TerminalGame, io.StringIO]:
    shown = io.StringIO()
    console = Console(file=shown, width=100)
    game = TerminalGame(opponent, console, color=color, lettering="letters", game=ShogiGame(sfen))
    return game, shown


def test_moves_are_answered(opponent: Opponent) -> None:
    game, shown = game_against(opponent)
    assert game.play(typed("7g7f", "2g2f")) is None, "left in the middle"
    assert len(game.game.moves) == 4
    assert game.game.moves[0].usi == "7g7f"
    assert shown.getvalue().count("tiny@64 plays ") == 2
    assert "of the points" in shown.getvalue()


def test_with_white_the_network_begins(opponent: Opponent) -> None:
    game, shown = game_against(opponent, color=Color.WHITE)
    game.play(typed())
    assert len(game.game.moves) == 1
    assert "You are White" in shown.getvalue()


def test_a_mate_ends_the_game(opponent: Opponent, tmp_path: Path) -> None:
    game, shown = game_against(opponent, sfen=MATE_FOR_BLACK)
    record = tmp_path / "won.csa"
    verdict = game.play(typed("G*5b", "save nowhere.txt", f"save {record}", ""))
    assert verdict == "You win: checkmate."
    assert "You win" in shown.getvalue()
    assert len(load_games(record)[0].moves) == 1


def test_the_network_mates_when_it_can(opponent: Opponent) -> None:
    game, _ = game_against(opponent, sfen=MATE_FOR_WHITE)
    assert game.play(typed()) == "You lose: checkmate."
    assert game.game.moves[-1].usi == "G*5h"


def test_mistakes_are_explained(opponent: Opponent) -> None:
    game, shown = game_against(opponent)
    game.play(typed("7g7e", "nonsense", "", "save", "save game.txt", "back", "declare", "7g7f"))
    assert len(game.game.moves) == 2
    text = shown.getvalue()
    assert "7g7e" in text
    assert "nonsense" in text
    assert "save needs the name" in text
    assert "nothing to take back" in text
    assert "not fulfilled" in text


def test_commands_that_can_be_typed(opponent: Opponent, tmp_path: Path) -> None:
    game, shown = game_against(opponent)
    record = tmp_path / "game.kif"
    verdict = game.play(
        typed("help", "moves", "hint", "7g7f", f"save {record}", "back", "2g2f", "resign")
    )
    assert verdict == "You lose: you resigned."
    assert game.game.moves[0].usi == "2g2f"
    text = shown.getvalue()
    assert "drops a pawn" in text
    assert "1g1f 1i1h 2g2f" in text
    assert "%" in text
    (saved,) = load_games(record)
    assert (saved.headers["black"], saved.headers["white"]) == ("you", "tiny@64")
    assert game.play(typed("quit")) == verdict, "it stays lost"


def test_a_win_can_be_declared(opponent: Opponent) -> None:
    sfen = "K+R+R+B+BGGGG/SSSS5/9/9/9/9/9/9/8k b 18P4L4N 1"
    game, _ = game_against(opponent, sfen=sfen)
    assert game.play(typed("declare")) == "You win: declaration."


def test_probabilities_are_a_distribution_over_legal_moves(opponent: Opponent) -> None:
    analysis = opponent.analyze(ShogiGame())
    assert analysis is not None
    assert len(analysis.candidates) == 30
    probabilities = [candidate.probability for candidate in analysis.candidates]
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-4)
    assert probabilities == sorted(probabilities, reverse=True)
    assert -1.0 <= analysis.value <= 1.0


def test_temperature_gives_variety(run: Path) -> None:
    def played(setting: str, times: int) -> set[object]:
        opponent = Opponent.from_spec(f"{run}:policy,{setting}", seed=0)
        return {opponent.choose(ShogiGame()) for _ in range(times)}

    best = played("temperature=0", 5)
    assert len(best) == 1
    assert len(played("temperature=1", 20)) > 3
    assert played("temperature=1e-6", 5) == best


def test_bots_play_too_and_give_no_hints() -> None:
    game, shown = game_against(Opponent.from_spec("random", seed=1))
    game.play(typed("hint", "7g7f"))
    assert len(game.game.moves) == 2
    assert "random has no network" in shown.getvalue()
    assert "of the points" not in shown.getvalue()


def test_hints_are_probabilities(opponent: Opponent) -> None:
    game, shown = game_against(opponent)
    game.play(typed("hint"))
    shares = [int(share) for share in re.findall(r"(-?\d+)%", shown.getvalue())]
    assert len(shares) == 5
    assert all(0 <= share <= 100 for share in shares)
    assert sum(shares) > 0


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Ending.RESIGNATION, "You win: tiny@64: resignation."),
        (Ending.DECLARATION, "You lose: tiny@64: declaration."),
        (Ending.ERROR, "Broken off: tiny@64: error."),
    ],
)
def test_the_opponent_may_end_the_game(
    opponent: Opponent, monkeypatch: pytest.MonkeyPatch, answer: Ending, verdict: str
) -> None:
    monkeypatch.setattr(opponent, "choose", lambda game: answer)
    game, _ = game_against(opponent)
    assert game.play(typed("7g7f")) == verdict


def test_the_command(run: Path) -> None:
    result = CliRunner().invoke(
        app,
        ["play", "--terminal", str(run), "--color", "white", "--style", "letters"],
        input="moves\nquit\n",
    )
    assert result.exit_code == 0, result.output
    assert "tiny@64 plays" in result.stdout


def test_what_is_no_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no run or checkpoint"):
        CliRunner().invoke(
            app, ["play", "--terminal", str(tmp_path / "none")], catch_exceptions=False
        )
