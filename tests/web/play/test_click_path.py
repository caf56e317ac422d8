"""The way from a click on the board to the opponent's answer stays short."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("nicegui")

SCRIPT = Path(__file__).parents[3] / "scripts" / "trace.py"


def test_few_functions_between_a_click_and_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("keisei_trace", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    trace = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "keisei_trace", trace)
    spec.loader.exec_module(trace)
    tracer = trace.trace_click()
    functions = [name for _, name in tracer.functions()]
    assert len(functions) <= trace.MAX_CLICK_FUNCTIONS, functions
    assert functions[0] == "PlayPage._move"
    assert tracer.calls[-1].function == "PlayPage.draw"
    for name in ("GameRoom.move", "GameSession.push", "Opponent.choose", "GreedyPlayer.choose"):
        assert name in functions, "the trace follows the move into tasks and threads"
