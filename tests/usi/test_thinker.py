"""How long the engine thinks: longer if moves are close, shorter if time can be saved."""

import io
from types import SimpleNamespace

import pytest

from keisei.errors import KeiseiError
from keisei.network.loading import LoadedNetwork
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Move
from keisei.usi.limits import Job, parse_go
from keisei.usi.options import Settings
from keisei.usi.thinker import Thinker
from keisei.usi.usi_io import UsiWriter


def no_network(threads: int) -> LoadedNetwork:
    raise KeiseiError("not needed")


@pytest.mark.parametrize(
    ("text", "visits", "seconds", "left"),
    [
        # 2 seconds are usual, 4 the most that is used; 1,000 simulations a second are done.
        ("btime 40000 byoyomi 1000", (600, 300), 0.8, 1.2),
        ("btime 40000 byoyomi 1000", (700, 90), 1.8, 0.0),
        ("btime 40000 byoyomi 1000", (700, 600), 1.8, 0.2),
        ("btime 40000 byoyomi 1000", (900, 400), 2.1, 0.0),
        ("btime 40000 byoyomi 1000", (900, 500), 2.1, 1.9),
        ("btime 40000 byoyomi 1000", (900, 500), 4.1, -0.1),
        # Byoyomi that is not used is lost.
        ("btime 0 byoyomi 1100", (700, 90), 0.8, 0.15),
        ("btime 0 byoyomi 1100", (700, 600), 0.8, 0.15),
        ("btime 0 byoyomi 1100", (700, 600), 1.0, -0.05),
        ("infinite", (700, 90), 9.0, None),
        ("nodes 5000", (700, 90), 9.0, None),
    ],
)
def test_time_left(text: str, visits: tuple[int, int], seconds: float, left: float | None) -> None:
    thinker = Thinker(no_network, UsiWriter(io.StringIO()))
    thinker._search = SimpleNamespace(top_visits=visits)  # type: ignore[assignment]
    job = Job(parse_go(text.split())[0], Settings())
    assert job.clock_start is not None
    now = job.clock_start + seconds
    found = thinker._seconds_left(ShogiGame(), job, round(1000 * seconds), now)
    assert found == (None if left is None else pytest.approx(left))


@pytest.mark.parametrize(
    ("limits", "is_called"),
    [
        ("btime 900 wtime 900", False),
        ("btime 900 wtime 5000 binc 100", False),
        ("btime 5000 wtime 900", True),
        ("btime 900 byoyomi 1000", True),
        ("btime 0 byoyomi 1000", True),
        ("movetime 500", True),
    ],
)
def test_no_mate_is_looked_for_in_the_last_second(
    limits: str, is_called: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With byoyomi there is time for it in every move."""
    calls: list[str] = []

    def short_mate(*arguments: object) -> list[Move]:
        calls.append(limits)
        return []

    def search_tree(*arguments: object) -> None:
        raise KeiseiError("the tree is searched")

    monkeypatch.setattr(Thinker, "_short_mate", short_mate)
    monkeypatch.setattr(Thinker, "_search_tree", search_tree)
    thinker = Thinker(no_network, UsiWriter(io.StringIO()))
    with pytest.raises(KeiseiError, match="the tree is searched"):
        thinker.think(Job(parse_go(limits.split())[0], Settings()))
    assert bool(calls) is is_called
