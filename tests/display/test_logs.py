"""One logging system: the file has everything, the console what matters."""

import io
import logging
import os
import threading
import warnings
from pathlib import Path

import pytest
from rich.console import Console

from keisei.display.logs import configure_logging, diverted, lasting_console, show_again
from keisei.errors import KeiseiError

logger = logging.getLogger("keisei.test")


def console(width: int = 40) -> Console:
    return Console(file=io.StringIO(), width=width)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def log_of(directory: Path) -> str:
    return (directory / "run.log").read_text("utf-8")


def test_messages_go_to_the_file_and_to_the_console(tmp_path: Path) -> None:
    screen = console()
    with configure_logging(tmp_path, screen):
        logger.info("a line of [bold]more than[/bold] forty characters is still a line: 玉")
        logger.debug("too fine")
        logging.getLogger("elsewhere").info("not ours")
        logging.getLogger("elsewhere").warning("worth knowing")
    lines = written(screen).splitlines()
    assert len(lines) == 2
    assert lines[0].endswith(
        "a line of [bold]more than[/bold] forty characters is still a line: 玉"
    )
    assert lines[1].endswith("warning: worth knowing")
    log = log_of(tmp_path)
    assert "INFO    keisei.test: a line of [bold]more" in log
    assert "WARNING elsewhere: worth knowing" in log
    assert "not ours" not in log
    assert "too fine" not in log


def test_tracebacks_are_kept(tmp_path: Path) -> None:
    with configure_logging(tmp_path, None):
        try:
            raise ZeroDivisionError("a bug")
        except ZeroDivisionError:
            logger.exception("it failed")
    assert "Traceback" in log_of(tmp_path)
    assert "ZeroDivisionError: a bug" in log_of(tmp_path)


def test_python_warnings_are_logged(tmp_path: Path) -> None:
    with configure_logging(tmp_path, None), warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old habits", DeprecationWarning, stacklevel=1)
    assert "DeprecationWarning: old habits" in log_of(tmp_path)


def test_a_quiet_console_shows_warnings_only(tmp_path: Path) -> None:
    screen = console()
    with configure_logging(tmp_path, screen, console_level=logging.WARNING):
        logger.info("quiet")
        logger.error("loud")
    assert "quiet" not in written(screen)
    assert "error: loud" in written(screen)
    assert "quiet" in log_of(tmp_path)


def test_a_second_session_appends_to_the_same_file(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with configure_logging(tmp_path, None):
            logger.info(text)
    assert [line.rpartition(" ")[2] for line in log_of(tmp_path).splitlines()] == [
        "first",
        "second",
    ]


def test_closing_puts_everything_back(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers), logging.getLogger("keisei").level
    session = configure_logging(tmp_path, console())
    assert len(logging.getLogger().handlers) == len(before[0]) + 2
    session.close()
    session.close()
    assert (logging.getLogger().handlers, logging.getLogger("keisei").level) == before


def test_messages_can_be_diverted_from_the_console(tmp_path: Path) -> None:
    screen = console()
    taken: list[logging.LogRecord] = []
    with configure_logging(tmp_path, screen):
        with diverted(taken.append):
            logger.info("for the display")
            try:
                raise ZeroDivisionError("a bug")
            except ZeroDivisionError:
                logger.exception("it failed")
        assert written(screen) == ""
        logger.info("for the console")
        show_again(taken[1:])
    assert [record.getMessage() for record in taken] == ["for the display", "it failed"]
    lines = written(screen).splitlines()
    assert lines[0].endswith("for the console")
    assert lines[1].endswith("error: it failed")
    assert len(lines) == 2  # the traceback is in the file
    assert log_of(tmp_path).count("it failed") == 1


def test_a_console_that_fails_does_not_stop_anyone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = console()
    with configure_logging(tmp_path, screen):
        assert isinstance(screen.file, io.StringIO)
        screen.file.close()
        logger.info("still in the file")
    assert "still in the file" in log_of(tmp_path)
    assert "Logging error" in capsys.readouterr().err


def test_a_log_that_cannot_be_opened_is_explained(tmp_path: Path) -> None:
    with pytest.raises(KeiseiError, match=r"cannot write .*run\.log: No such file"):
        configure_logging(tmp_path / "missing", None)


def test_a_console_outlives_its_output(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stream:
        screen = lasting_console(stream)
        with configure_logging(tmp_path, screen):
            logger.info("one")
            logger.info("two")
        assert not screen.file.isatty()
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # for what it has buffered
    log = log_of(tmp_path)
    assert "one" in log
    assert "two" in log
    assert log.count("the display is off, as its output has gone") == 1
    assert "Traceback" not in log


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_does_not_fill_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.log").symlink_to("/dev/full")
    screen = console(200)
    with configure_logging(tmp_path, screen):
        for _ in range(3):
            logger.error("the one right line")
        thread = threading.Thread(target=_write_to_a_full_disk, name="writer")
        thread.start()
        thread.join()
    first, *_, last = written(screen).splitlines()
    assert first.endswith("error: the one right line")
    assert last.endswith("error: writer has ended: [Errno 28] No space left on device")
    assert len(written(screen).splitlines()) == 4
    assert capsys.readouterr().err == ""


def _write_to_a_full_disk() -> None:
    with Path("/dev/full").open("wb", buffering=0) as file:
        file.write(b"x")


def test_errors_of_threads_are_in_the_log(tmp_path: Path) -> None:
    with configure_logging(tmp_path, None):
        thread = threading.Thread(target=lambda: 1 // 0, name="writer")
        thread.start()
        thread.join()
    assert "writer has ended" in log_of(tmp_path)
    assert "ZeroDivisionError" in log_of(tmp_path)
