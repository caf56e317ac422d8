"""Games of strangers are read in a process of its own, which may be slow or killed."""

import os
import re
import time
from collections.abc import Iterator
from threading import Thread, Timer

import psutil
import pytest

from keisei.errors import KeiseiError, NotationError
from keisei.play.transfer import MAX_GAME_BYTES, TOO_LARGE, read_record
from keisei.play.uploads import ENDED, TOO_SLOW, UploadReader
from keisei.shogi.notation.record import GameRecord

GAME = b"startpos moves 7g7f 3c3d"
LONG_GAME = b"PI\n+\n" + b"+2838HI\n-8272HI\n+3828HI\n-7282HI\n" * 8_000
"""As many moves as the largest file has."""


def read_slowly(data: bytes, name: str = "", *, variations: bool = False) -> GameRecord:
    """Take as many seconds as the name of the file says."""
    time.sleep(float(name or 0))
    if data == b"dies":
        os._exit(1)
    return read_record(GAME, variations=variations)


@pytest.fixture(scope="module")
def uploads() -> Iterator[UploadReader]:
    reader = UploadReader()
    yield reader
    reader.close()


@pytest.fixture
def slow() -> Iterator[UploadReader]:
    reader = UploadReader(read_slowly, time_limit=5.0)
    yield reader
    reader.close()


def test_a_game_is_read_in_another_process(uploads: UploadReader) -> None:
    assert UploadReader().process_id is None, "a server that nobody sends a game has no process"
    uploads.prepare()
    process = uploads.process_id
    assert process not in (None, os.getpid())
    assert uploads.read(GAME) == read_record(GAME)
    kif = "手合割：平手\n   1 ７六歩(77)\n   2 ３四歩(33)\n\n変化：2手\n   2 ８四歩(83)\n".encode()
    assert uploads.read(kif, "a.kif", variations=True) == read_record(kif, "a.kif", variations=True)
    assert uploads.process_id == process, "it stays for the next game"


def test_errors_are_those_of_the_reader(uploads: UploadReader) -> None:
    for data, name in ((b"+7775FU\n", "a.csa"), (b"", "game.exe"), (b"nonsense", "")):
        with pytest.raises(KeiseiError) as expected:
            read_record(data, name)
        with pytest.raises(KeiseiError, match=f"^{re.escape(str(expected.value))}$") as caught:
            uploads.read(data, name)
        assert isinstance(caught.value, NotationError) == isinstance(expected.value, NotationError)
    with pytest.raises(KeiseiError, match=re.escape(TOO_LARGE)):
        uploads.read(b"x" * (MAX_GAME_BYTES + 1))


def test_a_long_game_leaves_the_processor_to_other_pages(uploads: UploadReader) -> None:
    uploads.read(GAME)
    own = psutil.Process().cpu_times().user
    records: list[GameRecord] = []
    reading = Thread(target=lambda: records.append(uploads.read(LONG_GAME, "long.csa")))
    reading.start()
    reading.join()
    assert len(records[0].moves) == 32_000
    child = psutil.Process(uploads.process_id).cpu_times().user
    assert psutil.Process().cpu_times().user - own < 0.5 * child


def test_a_game_that_takes_too_long_is_given_up(slow: UploadReader) -> None:
    slow.read(b"")
    process = slow.process_id
    assert process is not None
    start = time.monotonic()
    with pytest.raises(KeiseiError, match=TOO_SLOW):
        slow.read(b"", "600")
    assert time.monotonic() - start < 60.0
    assert not psutil.pid_exists(process)
    slow.read(b"")
    assert slow.process_id not in (None, process), "the next one has a new process"


def test_a_process_that_was_killed_is_replaced(uploads: UploadReader, slow: UploadReader) -> None:
    uploads.read(GAME)
    psutil.Process(uploads.process_id).kill()
    assert uploads.read(GAME) == read_record(GAME)

    slow.read(b"")
    victim = slow.process_id
    killer = Timer(0.3, psutil.Process(victim).kill)
    killer.start()
    assert len(slow.read(b"", "0.8").moves) == 2, "killed in the middle of it, and read again"
    killer.join()
    assert slow.process_id != victim


def test_a_game_that_kills_its_reader_is_an_error(slow: UploadReader) -> None:
    with pytest.raises(KeiseiError, match=ENDED):
        slow.read(b"dies")
