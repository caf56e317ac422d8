"""How long the engine thinks: longer if moves are close, shorter if time can be saved."""

import io
from types import SimpleNamespace

import pytest

from keisei.errors import KeiseiError
from keisei.network.loading import LoadedNetwork
from keisei.shogi.game import ShogiGame
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
