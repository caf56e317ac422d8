"""``go mate`` and ``go`` on positions with known mates.

``tests/data/mates.json`` has positions from games between networks of this package. Another
program, the df-pn solver of cshogi, found the length of the shortest mate: with its depth limited
to two plies less it finds none. All are solved by ``make soak``, some by ``make test``.
"""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from keisei.shogi.game import ShogiGame
from tests.sampling import IS_COMPILED
from tests.usi.gui import Gui

PROBLEMS: list[tuple[str, int]] = json.loads(
    (Path(__file__).parents[1] / "data/mates.json").read_text("utf-8")
)
"""(SFEN, plies of the shortest mate)."""

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="too long to be interpreted")


def require_mate(sfen: str, moves: list[str]) -> None:
    """Play a line: checks by the attacker, until the defender is mated."""
    game = ShogiGame(sfen)
    attacker = game.turn
    for number, move in enumerate(moves):
        game.push(move)
        assert game.in_check or number % 2
    outcome = game.outcome()
    assert outcome is not None
    assert outcome.winner is attacker


def test_there_are_problems_of_all_lengths() -> None:
    lengths = Counter(plies for _, plies in PROBLEMS)
    assert len(PROBLEMS) >= 200
    assert sorted(lengths) == [3, 5, 7, 9, 11, 13]
    assert min(lengths.values()) >= 10


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.soak)])
def test_go_mate_solves_each(step: int) -> None:
    with Gui() as gui:
        gui.send("isready")
        gui.until("readyok")
        for sfen, plies in PROBLEMS[::step]:
            gui.send(f"position sfen {sfen}", "go mate 60000")
            moves = gui.until("checkmate")[-1].split()[1:]
            assert len(moves) >= plies, f"{sfen}: shorter than the shortest mate"
            require_mate(sfen, moves)


def test_a_search_misses_no_mate_in_three() -> None:
    with Gui() as gui:
        for sfen, plies in PROBLEMS:
            if plies != 3:
                continue
            gui.send(f"position sfen {sfen}", "go nodes 1")
            *_, info, answer = gui.until("bestmove")
            found = re.search(r"score mate 3 .* pv (.*)", info)
            assert found, f"{sfen}: {info}"
            require_mate(sfen, found[1].split())
            assert answer.split()[1] == found[1].split()[0]
