"""Whole games against another engine: ``scripts/engine_match.py``."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from keisei.constants import BUILTIN
from keisei.errors import KeiseiError
from tests.scripts import load_script
from tests.tiny_runs import tiny_run

FAIRY_STOCKFISH = shutil.which("fairy-stockfish") or shutil.which(
    "fairy-stockfish", path="/usr/games"
)

pytestmark = [
    pytest.mark.skipif(FAIRY_STOCKFISH is None, reason="fairy-stockfish is not installed"),
    pytest.mark.skipif(importlib.util.find_spec("cshogi") is None, reason="cshogi is missing"),
    pytest.mark.skipif(sys.platform == "win32", reason="the runner starts a shell script"),
]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load_script("engine_match", monkeypatch)


WEAKEST = {"Skill Level": -20, "Threads": 1}


def faults_but_of_time(script: ModuleType, report: Any) -> list[Any]:
    """The faults that count while other tests run in parallel."""
    return [fault for fault in report.faults if script.TIME_UP not in fault[0]]


def test_two_games(script: ModuleType, tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", checkpoints=1)
    openings = tmp_path / "openings.txt"
    script.write_openings(openings, 1, seed=3)
    report = script.play_match(
        tmp_path,
        str(run.resolve()),
        script.opponent_command("fairy-stockfish"),
        2,
        byoyomi=100,
        limit="depth 1",
        options=("--set", "Simulations=16"),
        opponent_options=WEAKEST,
        openings=openings,
    )
    assert report.result["total"] == len(report.endings) == report.score.games == 2
    assert faults_but_of_time(script, report) == []
    first = openings.read_text("utf-8").split()[2:]
    assert len(first) == script.OPENING_PLIES
    assert all(answer.moves.startswith(" ".join(first)) for answer in report.last_answers)
    assert report.lines(100)[0].startswith("Keisei: ")


def test_four_games_of_the_player_in_the_package_at_ten_milliseconds(
    script: ModuleType, tmp_path: Path
) -> None:
    openings = tmp_path / "openings.txt"
    script.write_openings(openings, 2, seed=3)
    report = script.play_match(
        tmp_path,
        BUILTIN,
        script.opponent_command("fairy-stockfish"),
        4,
        byoyomi=10,
        limit="depth 1",
        opponent_options=WEAKEST,
        openings=openings,
    )
    assert report.result["total"] == len(report.endings) == 4
    assert faults_but_of_time(script, report) == []


def test_a_missing_opponent_is_named(script: ModuleType) -> None:
    with pytest.raises(KeiseiError, match="not-there is not installed"):
        script.opponent_command("not-there")


@pytest.mark.soak
@pytest.mark.parametrize("byoyomi", [100, 10])
def test_a_hundred_games(script: ModuleType, tmp_path: Path, byoyomi: int) -> None:
    """The player in the package, or ``KEISEI_MATCH_RUN``. With -s the figures are shown."""
    games = int(os.environ.get("KEISEI_MATCH_GAMES", "100"))
    report = script.play_match(
        tmp_path,
        os.environ.get("KEISEI_MATCH_RUN", BUILTIN),
        script.opponent_command("fairy-stockfish"),
        games,
        byoyomi=byoyomi,
        opponent_options=WEAKEST,
    )
    sys.stderr.write("\n".join(["", *report.lines(byoyomi), ""]))
    assert report.result["total"] == len(report.endings) == games
    # The other engine's faults are its own, as long as the game was one by the rules until then.
    assert [fault for fault in report.faults if fault[1].engine == script.OURS] == []
