"""The way from a click on the board to the opponent's answer stays short."""

import pytest

from tests.scripts import load_script

pytest.importorskip("nicegui")


def test_few_functions_between_a_click_and_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = load_script("trace", monkeypatch)
    tracer = trace.trace_click()
    functions = [name for _, name in tracer.functions()]
    assert len(functions) <= trace.MAX_CLICK_FUNCTIONS, functions
    assert functions[0] == "PlayPage._move"
    assert tracer.calls[-1].function == "PlayPage.draw"
    for name in ("GameRoom.move", "GameSession.push", "Opponent.choose", "GreedyPlayer.choose"):
        assert name in functions, "the trace follows the move into tasks and threads"
