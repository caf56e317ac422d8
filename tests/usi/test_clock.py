"""Answers come in time, measured by a fake clock that only the network advances."""

import random

import pytest

from keisei.usi import engine, limits, thinker
from tests.usi.gui import Gui, MaterialPredictor


class FakeTime:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize("batch_seconds", [0.005, 0.02, 0.3])
@pytest.mark.parametrize(
    ("go", "allowed"),
    [
        ("go btime 0 wtime 0 byoyomi 1000", 1.0),
        ("go byoyomi 100", 0.1),
        ("go movetime 700", 0.7),
        ("go btime 2000 wtime 2000 binc 500 winc 500", 2.0),
    ],
)
def test_answers_come_in_time(
    monkeypatch: pytest.MonkeyPatch, batch_seconds: float, go: str, allowed: float
) -> None:
    """Batches vary by a factor of two; only the very first cannot be foreseen."""
    clock, rng, predictor = FakeTime(), random.Random(3), MaterialPredictor()
    for module in (engine, limits, thinker):
        monkeypatch.setattr(module, "time", clock)

    def take_time() -> None:
        clock.now += batch_seconds * rng.uniform(0.5, 1.0)

    with Gui(predictor) as gui:
        gui.send("isready")
        gui.until("readyok")
        predictor.on_call = take_time
        for _ in range(3):
            start = clock.now
            gui.best_move("usinewgame", "position startpos", go)
            used = clock.now - start
            assert used <= max(allowed, 2 * batch_seconds)
            if 20 * batch_seconds < allowed and "btime 2000" not in go:
                assert used >= allowed / 4


def test_a_ponder_hit_gives_all_the_time_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, predictor = FakeTime(), MaterialPredictor()
    for module in (engine, limits, thinker):
        monkeypatch.setattr(module, "time", clock)
    with Gui(predictor) as gui:
        gui.send("isready")
        gui.until("readyok")
        predictor.is_called.clear()
        gui.send("position startpos", "go ponder btime 0 wtime 0 byoyomi 1000")
        assert predictor.is_called.wait(60)
        clock.now += 100.0
        assert gui.is_silent()
        hits: list[float] = []

        def take_time() -> None:
            clock.now += 0.01
            hits.append(clock.now)

        gui.send("ponderhit", "usi")
        gui.until("usiok")  # no time has passed since the hit
        predictor.on_call = take_time
        gui.until("bestmove")
        assert 0.5 < hits[-1] - hits[0] < 1.0


@pytest.mark.parametrize("lost", [0.0, 0.05, 0.15])
def test_sudden_death_is_survived_on_a_busy_machine(
    lost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 moves in 10 seconds, of which each answer loses some before the engine sees it."""
    clock, predictor = FakeTime(), MaterialPredictor()
    for module in (engine, limits, thinker):
        monkeypatch.setattr(module, "time", clock)

    def take_time() -> None:
        clock.now += 0.004

    left, used = 10.0, []
    with Gui(predictor) as gui:
        gui.send("setoption name NetworkDelay value 0", "isready")
        gui.until("readyok")
        predictor.on_call = take_time
        moves = ""
        for number in range(60):
            start = clock.now
            gui.best_move(f"position startpos{moves}", f"go btime {round(1000 * left)} wtime 9000")
            used.append(clock.now - start)
            left -= used[-1] + lost
            assert left > 0.0, f"move {number}"
            pair = (" 5i5h 5a5b", " 5h5i 5b5a")[number % 2]
            moves = f"{moves or ' moves'}{pair}"
    assert used[0] > 0.05, "it thinks while there is time"
