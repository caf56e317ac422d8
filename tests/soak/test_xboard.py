"""A whole game in a GUI: XBoard, by way of uci2wb, on a display that nobody sees."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import keisei
from keisei.shogi.jit import cache_directory
from tests.soak.summary import note, setting

GAMES_PATH = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/games"
PROGRAMS = {name: shutil.which(name, path=GAMES_PATH) for name in ("xboard", "uci2wb", "Xvfb")}
TIMEOUT = 60.0 * setting("XBOARD_MINUTES", 15)

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(None in PROGRAMS.values(), reason="needs xboard, uci2wb and Xvfb"),
]


@pytest.fixture
def display(tmp_path: Path) -> Iterator[str]:
    """A display in memory."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [str(PROGRAMS["Xvfb"]), "-displayfd", str(writer), "-screen", "0", "1024x768x24"],
        pass_fds=[writer],
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    with os.fdopen(reader) as file:
        number = file.readline().strip()
    yield f":{number}"
    process.terminate()
    process.wait(30)


def test_a_game_in_xboard(display: str, tmp_path: Path) -> None:
    start = time.monotonic()
    engine = tmp_path / "keisei-usi"
    root = shlex.quote(str(Path(keisei.__file__).parents[1]))
    log = shlex.quote(str(tmp_path))
    engine.write_text(
        f"#!/bin/sh\nPYTHONPATH={root} exec {shlex.quote(sys.executable)} -m keisei usi "
        f"--set Simulations=64 --log {log}/usi.$$.log\n"
    )
    engine.chmod(0o755)
    record, debug = tmp_path / "game.pgn", tmp_path / "xboard.debug"
    command = f"{PROGRAMS['uci2wb']} -s {engine}"
    environment = os.environ | {
        "DISPLAY": display,
        "HOME": str(tmp_path),  # XBoard keeps settings there
        "KEISEI_CACHE_DIR": str(cache_directory().parent),
        "OMP_NUM_THREADS": "1",
        "PATH": GAMES_PATH,
    }
    xboard = subprocess.Popen(
        [
            *(str(PROGRAMS["xboard"]), "-variant", "shogi", "-fcp", command, "-scp", command),
            *("-matchGames", "1", "-tc", "5", "-inc", "1", "-saveGameFile", str(record)),
            *("-debug", "-nameOfDebugFile", str(debug)),
        ],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        # It stays open after the match.
        while not record.exists() and time.monotonic() < start + TIMEOUT:
            time.sleep(0.5)
        time.sleep(2.0)
    finally:
        xboard.kill()
        xboard.wait()
    said = debug.read_text(errors="replace")
    assert record.exists(), said[-3000:]
    game = record.read_text(errors="replace")
    assert 'Variant "shogi"' in game
    for fault in ("Illegal", "illegal", "forfeits", "exited unexpectedly"):
        assert fault not in game, game
    moves = sum(
        "< bestmove" in line or "> bestmove" in line
        for path in tmp_path.glob("usi.*.log")
        for line in path.read_text().splitlines()
    )
    result = next(line for line in game.splitlines() if line.startswith("[Result "))
    note("a game in XBoard", f"{moves} moves", result.strip("[]").replace('"', ""), since=start)
    assert moves > 20
