"""Servers that are used for twenty minutes hold no more than after a fifth of that time.

``KEISEI_SOAK_MINUTES`` is how long (20). `tests/training/test_soak.py` does the same to a run.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from tests.soak.summary import note, setting
from tests.web.conftest import Server

pytest.importorskip("nicegui")

from tests.soak.live_page import LivePage

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        not Path("/dev/shm").is_dir(), reason="counts what Linux shows of a process"
    ),
]
MINUTES = setting("MINUTES", 20)
SETTLED_MINUTES = 5.0
"""Shorter tests check no memory: pages that no browser opens stay for 20 seconds, 1 MB each."""

LIVE_VISITS = 0.1
"""Share of the visits that open the page's WebSocket, too."""

GAME = "PI\n+\n+7776FU\n-3334FU\n%TORYO\n"
LAST_MOVE = "３四歩"
"""As the lists of moves have it."""

LOOKS = 50
"""Measurements over the whole time."""


class Held(NamedTuple):
    """Resources that a server holds, with its child processes."""

    megabytes: float
    handles: int
    segments: int
    processes: int


def held(server: Server) -> Held:
    process = psutil.Process(server._process.pid)
    family = [process, *process.children(recursive=True)]
    return Held(
        sum(one.memory_info().rss for one in family) / (1 << 20),
        sum(one.num_fds() for one in family),
        sum(len(list(Path("/dev/shm").glob(f"keisei-*-{one.pid}-*"))) for one in family),
        len(family),
    )


def soak(server: Server, use: Callable[[random.Random], None], what: str) -> None:
    """Use a server all the time, and compare what it holds early and late."""
    start = time.monotonic()
    choice = random.Random(1)
    looks: list[Held] = []
    uses = 0
    while (passed := time.monotonic() - start) < 60.0 * MINUTES:
        use(choice)
        uses += 1
        if passed >= 60.0 * MINUTES * len(looks) / LOOKS:
            looks.append(held(server))
    time.sleep(min(2.0, 6.0 * MINUTES))  # the last connections are closed
    looks.append(held(server))
    early, late = looks[len(looks) // 5], looks[-1]
    rounded = [f"{one.megabytes:.0f} MB, {one.handles} handles" for one in (early, late)]
    note(
        f"memory, handles, segments: {what}",
        f"{MINUTES:g} minutes, {uses:,} uses",
        " -> ".join(rounded) + f", {late.segments} segments",
        since=start,
    )
    if MINUTES >= SETTLED_MINUTES:
        assert late.megabytes < early.megabytes * 1.1 + 20.0
    assert late.handles <= early.handles + 10, "sockets may be closing"
    assert (late.segments, late.processes) == early[2:]


def test_the_board_in_the_browser(runs: Path) -> None:
    server = Server("play", "--runs", str(runs), "--seed", "1")
    paths = ["/", "/?room=new", "/missing", "/?room=x", f"/?{'x' * 500}"]

    def use(choice: random.Random) -> None:
        if choice.random() < LIVE_VISITS:
            _open_game(server, choice.choice(["/", "/analysis"]))
        else:
            _visit(server, choice.choice(paths))

    try:
        for path in ("/", "/analysis"):  # the processes of later visits
            _open_game(server, path)
        soak(server, use, "play server")
    finally:
        server.interrupt()


def test_the_dashboard(runs: Path) -> None:
    server = Server("dashboard", str(runs))
    journal = runs / "tiny" / "metrics.jsonl"
    line = b'{"event":"step","update":3,"timestep":192,"total_timesteps":192,"games":1,' + (
        b'"seconds":1.0,"time":1.0,"metrics":{"losses/policy":0.5}}\n'
    )

    def use(choice: random.Random) -> None:
        path = choice.choice(["/", "/run/tiny", "/ladder", "/missing"])
        if path != "/missing" and choice.random() < LIVE_VISITS:
            with LivePage(server, path):
                pass
        else:
            _visit(server, path)
        if choice.random() < 0.2:
            with journal.open("ab") as file:
                file.write(line)

    try:
        soak(server, use, "dashboard")
    finally:
        server.interrupt()


def _open_game(server: Server, path: str) -> None:
    """Open a page with its WebSocket, send it a game, and wait until its moves are there."""
    with LivePage(server, path) as page:
        page.click("open")
        page.upload(GAME, "game.csa")
        page.wait_for(LAST_MOVE)


def _visit(server: Server, path: str) -> None:
    status, _ = server.request(path)
    assert status < 500
    time.sleep(float(os.environ.get("KEISEI_SOAK_PAUSE", "0.2")))
