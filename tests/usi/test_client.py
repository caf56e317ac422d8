"""Working and faulty engines: each fault ends with a clear error, and no process is left."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer
from threading import enumerate as enumerate_threads
from typing import Any

import pytest

from keisei.shogi.game import ShogiGame
from keisei.usi import client_process
from keisei.usi.client import (
    Limit,
    UsiEngine,
    UsiEngineError,
    UsiSettings,
)

BRIDGE = Path(__file__).parents[2] / "scripts" / "gnushogi_usi.py"
GNUSHOGI = shutil.which("gnushogi") or shutil.which("gnushogi", path="/usr/games")
STUB = (sys.executable, str(Path(__file__).with_name("usi_stub.py")))
FAIRY_STOCKFISH = shutil.which("fairy-stockfish") or shutil.which(
    "fairy-stockfish", path="/usr/games"
)

needs_fairy_stockfish = pytest.mark.skipif(
    FAIRY_STOCKFISH is None, reason="fairy-stockfish is not installed"
)
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs a subreaper")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="signals and groups of POSIX")


def stub(
    fault: str = "",
    *options: tuple[str, str],
    startup_timeout: float = 20.0,
    move_timeout: float = 20.0,
) -> UsiSettings:
    return UsiSettings(
        command=(*STUB, fault),
        options=options,
        limit=Limit(depth=1),
        startup_timeout=startup_timeout,
        move_timeout=move_timeout,
    )


def is_alive(process_id: int) -> bool:
    """Whether a process runs. One that has ended and waits to be noticed does not."""
    with suppress(OSError):
        status = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8")
        return status.rpartition(")")[2].split()[0] not in "ZX"
    try:
        os.kill(process_id, 0)
    except OSError:
        return False
    return True


def soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5.0
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


Processes = list["subprocess.Popen[bytes]"]


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """The engines that a test starts. None may be left."""
    started: Processes = []
    start = subprocess.Popen

    def watched(*args: Any, **kwargs: Any) -> "subprocess.Popen[bytes]":
        started.append(start(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", watched)
    yield started
    # One that was still starting when it was closed ends a moment later.
    assert soon(lambda: all(process.poll() is not None for process in started))
    assert soon(lambda: not any(thread.name.startswith("usi-") for thread in enumerate_threads()))


# ---- engines that behave ----


def test_an_engine_is_set_up_and_asked() -> None:
    options = (("skill level", "-3"), ("STYLE", "very wild"), ("USI_Hash", "8"))
    with UsiEngine(stub("tells-all", *options, ("clear hash", ""))) as engine:
        assert engine.name == "Stub 1.0"
        engine.new_game()
        received = engine.best_move("startpos", ["7g7f", "3c3d"]).split(",")
        again = engine.best_move("4k4/9/9/9/9/9/9/9/4K4 b R 1", []).split(",")
    assert received == [
        "usi",
        "setoption_name_Skill_Level_value_-3",
        "setoption_name_Style_value_Very_Wild",
        "setoption_name_USI_Hash_value_8",
        "setoption_name_Clear_Hash",
        "isready",
        "usinewgame",
        "position_startpos_moves_7g7f_3c3d",
        "go_depth_1",
    ]
    assert again == ["position_sfen_4k4/9/9/9/9/9/9/9/4K4_b_R_1", "go_depth_1"]


def test_limits_are_commands() -> None:
    assert Limit(nodes=5).command == "go nodes 5"
    assert Limit(byoyomi=900).command == "go btime 0 wtime 0 byoyomi 900"
    every = Limit(byoyomi=900, nodes=5, depth=2)
    assert every.command == "go depth 2 nodes 5 btime 0 wtime 0 byoyomi 900"
    assert str(every) == "depth 2 nodes 5 byoyomi 900 ms"
    assert [str(limit) for limit in (Limit(nodes=5), Limit(depth=2), Limit(byoyomi=9))] == [
        "nodes 5",
        "depth 2",
        "byoyomi 9 ms",
    ]


def test_an_engine_without_a_name_is_called_like_its_program() -> None:
    with UsiEngine(stub("nameless")) as engine:
        assert engine.name == Path(sys.executable).name
        assert str(engine.process_id) in repr(engine)


def test_noise_on_stderr_does_no_harm() -> None:
    with UsiEngine(stub("stderr-flood")) as engine:
        assert engine.best_move("startpos", []) == "7g7f"


def test_a_second_answer_is_not_taken_for_the_next() -> None:
    with UsiEngine(stub("answers-twice")) as engine:
        assert engine.best_move("startpos", []) == "7g7f"
        time.sleep(0.1)
        assert engine.best_move("startpos", ["7g7f"]) == "3c3d"


def test_a_slow_answer_is_waited_for() -> None:
    with UsiEngine(stub("late")) as engine:
        assert engine.best_move("startpos", []) == "7g7f"
        assert engine.best_move("startpos", ["7g7f"]) == "3c3d"


def test_the_last_lines_of_an_engine_count() -> None:
    with UsiEngine(stub("last-words-count")) as engine:
        assert engine.best_move("startpos", []) == "7g7f"
        assert soon(lambda: not engine.is_running)
        with pytest.raises(UsiEngineError, match=r"Stub 1\.0: it ended with exit code 0; it last"):
            engine.best_move("startpos", [])


@pytest.mark.parametrize(("fault", "answer"), [("no-word", ""), ("garbage", r"\xff\xfe")])
def test_nonsense_is_handed_on(fault: str, answer: str) -> None:
    with UsiEngine(stub(fault)) as engine:
        assert engine.best_move("startpos", []) == answer


# ---- engines that don't ----


@pytest.mark.parametrize(
    "fault", ["hangs-at-start", "hangs-at-usi", "hangs-at-isready", "endless-thoughts"]
)
def test_engines_that_do_not_get_ready(fault: str) -> None:
    # Python itself may take longer than this to start: then it is silent all the same.
    with pytest.raises(UsiEngineError, match=r"it did not answer with '\w+' within 0\.4 s; it "):
        UsiEngine(stub(fault, startup_timeout=0.4))


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("dies-at-start", "it ended with exit code 3"),
        ("endless-line", "it printed a line of more than 65536 bytes; it last printed 'xxx"),
        ("endless-options", "4096 lines"),
    ],
)
def test_engines_that_break_off_at_the_start(fault: str, complaint: str) -> None:
    with pytest.raises(UsiEngineError) as caught:
        UsiEngine(stub(fault))
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(f"{Path(sys.executable).name}: ")


def test_the_last_lines_of_stderr_are_shown() -> None:
    with pytest.raises(UsiEngineError, match="it last printed 'no evaluation file'"):
        UsiEngine(stub("dies-at-start"))


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (
            "hangs-at-go",
            "it did not answer with 'bestmove' within 0.3 s; it last printed",
        ),
        ("half-an-answer", "within 0.3 s; it last printed"),
        ("stops-reading", "it did not answer with 'bestmove' within 0.3 s"),
        ("late", "it did not answer with 'bestmove' within 0.1 s"),
    ],
)
def test_engines_that_do_not_answer(fault: str, complaint: str, processes: Processes) -> None:
    seconds = 0.1 if fault == "late" else 0.3
    # More moves than a pipe holds: writing must not wait for an engine that does not read.
    moves = ["7g7f"] * 40_000 if fault == "stops-reading" else []
    with UsiEngine(stub(fault, move_timeout=seconds)) as engine:
        with pytest.raises(UsiEngineError) as caught:
            engine.best_move("startpos", moves)
        assert complaint in str(caught.value)
        assert ("'bestmove 7g7f'" in str(caught.value)) == (fault == "half-an-answer")
        assert not engine.is_running
        assert processes[-1].poll() is not None
        with pytest.raises(UsiEngineError, match=r"it (was )?ended"):
            engine.new_game()


def test_an_engine_that_closes_its_input() -> None:
    with UsiEngine(stub("closes-input")) as engine:
        with pytest.raises(UsiEngineError, match=r"Stub 1\.0: it has closed its input; it last"):
            engine.best_move("startpos", [])
        assert not engine.is_running


@posix_only
def test_an_engine_that_dies_while_it_thinks() -> None:
    with UsiEngine(stub("dies-in-mid-game")) as engine:
        assert engine.best_move("startpos", []) == "7g7f"
        complaint = "it was ended by SIGKILL while waiting for 'bestmove'; .*assertion failed"
        with pytest.raises(UsiEngineError, match=complaint):
            engine.best_move("startpos", ["7g7f", "3c3d"])


def test_an_engine_that_floods_its_output() -> None:
    with UsiEngine(stub("flood-after-answer")) as engine:
        assert engine.best_move("startpos", []) == "7g7f"
        # How long it takes to print so many lines depends on the machine.
        assert soon(lambda: engine._process._failure is not None)
        with pytest.raises(UsiEngineError, match="4096 lines that were not requested"):
            engine.best_move("startpos", [])


@posix_only
def test_the_processes_that_an_engine_started_end_with_it() -> None:
    with UsiEngine(stub("has-a-child")) as engine:
        child = _child(engine)
        assert is_alive(child)
    assert soon(lambda: not is_alive(child))


@posix_only
def test_the_processes_of_an_engine_that_died_end_too() -> None:
    with UsiEngine(stub("dies-and-leaves-a-child")) as engine:
        child = _child(engine)
        with pytest.raises(UsiEngineError, match="exit code 7"):
            engine.best_move("startpos", [])
        assert soon(lambda: not is_alive(child))


@posix_only
def test_a_process_that_left_the_group_of_its_engine_ends_with_it() -> None:
    with UsiEngine(stub("has-an-orphan")) as engine:
        orphan = _child(engine)
        assert is_alive(orphan)
    assert soon(lambda: not is_alive(orphan))


@linux_only
def test_a_process_without_group_and_environment_ends_with_its_engine() -> None:
    with UsiEngine(stub("has-a-runaway")) as engine:
        runaway = _child(engine)
        assert is_alive(runaway)
    assert soon(lambda: not is_alive(runaway))


@linux_only
def test_all_processes_of_an_engine_end_when_keisei_is_killed() -> None:
    program = (
        "import os\n"
        "from tests.usi.test_client import UsiEngine, stub\n"
        "engine = UsiEngine(stub('has-a-runaway'))\n"
        "print(engine.process_id, engine.name.split()[-1], flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    engine, runaway = map(int, done.stdout.split())
    assert soon(lambda: not is_alive(engine) and not is_alive(runaway))


def test_an_engine_that_closes_its_output_has_lost_at_once() -> None:
    start = time.monotonic()
    with (
        UsiEngine(stub("closes-output")) as engine,
        pytest.raises(
            UsiEngineError, match="it has closed its output while waiting for 'bestmove'"
        ),
    ):
        engine.best_move("startpos", [])
    assert time.monotonic() - start < 20.0


def _child(engine: UsiEngine) -> int:
    """The stub calls itself by the process that it has started."""
    return int(engine.name.removeprefix("Parent of "))


# ---- how they end ----


@posix_only
def test_an_engine_that_ignores_quit_and_sigterm_is_killed(
    monkeypatch: pytest.MonkeyPatch, processes: Processes
) -> None:
    monkeypatch.setattr(client_process, "QUIT_TIMEOUT", 0.2)
    engine = UsiEngine(stub("ignores-quit"))
    engine.close()
    assert processes[-1].returncode == -signal.SIGKILL
    engine.close()
    engine.kill()


def test_an_engine_that_is_forgotten_ends(processes: Processes) -> None:
    engine = UsiEngine(stub())
    assert engine.is_running
    del engine
    gc.collect()
    assert processes[-1].poll() is not None


@posix_only
def test_an_engine_ends_with_the_interpreter() -> None:
    program = (
        "from tests.usi.test_client import UsiEngine, stub\n"
        "engine = UsiEngine(stub('ignores-quit'))\n"
        "print(engine.process_id)"
    )
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    assert soon(lambda: not is_alive(int(done.stdout)))


def test_closing_from_another_thread_ends_the_wait() -> None:
    engine = UsiEngine(stub("hangs-at-go"))
    timer = Timer(0.2, engine.kill)
    timer.start()
    with pytest.raises(UsiEngineError, match="while waiting for 'bestmove'"):
        engine.best_move("startpos", [])
    timer.join()


# ---- mistakes of the user ----


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (("Depth", "3"), "it has no option 'Depth'; it has Skill Level, Style, OwnBook"),
        (("Skill Level", "21"), "option 'Skill Level' is 21, it must be from -20 to 20"),
        (("Skill Level", "-21"), "it must be from -20 to 20"),
        (("Skill Level", "high"), "option 'Skill Level' is 'high', it must be a whole number"),
        (("OwnBook", "yes"), "option 'OwnBook' can't be 'yes', it takes true, false"),
        (("Style", "Wild"), "option 'Style' can't be 'Wild', it takes Solid, Very Wild"),
        (("Clear Hash", "now"), "option 'Clear Hash' can't be 'now', it takes no value"),
    ],
)
def test_wrong_options_are_explained(option: tuple[str, str], complaint: str) -> None:
    with pytest.raises(UsiEngineError) as caught:
        UsiEngine(stub("", option))
    assert str(caught.value).startswith(f"Stub 1.0: {complaint}" if "it has" in complaint else "")
    assert complaint in str(caught.value)


def test_programs_that_are_not_there_are_explained(tmp_path: Path) -> None:
    settings = UsiSettings(command=("no-such-engine",), limit=Limit(depth=1))
    with pytest.raises(
        UsiEngineError, match=r"program no-such-engine not found; is it installed and on"
    ):
        UsiEngine(settings)


@posix_only
def test_programs_that_are_no_programs_are_explained(tmp_path: Path) -> None:
    program = tmp_path / "engine"
    program.write_bytes(b"\x00\x01")
    program.chmod(0o755)
    with pytest.raises(UsiEngineError, match="engine can't be started: "):
        UsiEngine(UsiSettings(command=(str(program),), limit=Limit(depth=1)))


def test_settings_that_make_no_sense_are_explained() -> None:
    with pytest.raises(UsiEngineError, match="needs a limit: depth, nodes or byoyomi"):
        Limit()
    with pytest.raises(UsiEngineError, match="depth of an engine is 0, but must be at least 1"):
        Limit(depth=0, nodes=1)
    with pytest.raises(UsiEngineError, match="needs a command"):
        UsiSettings(command=(), limit=Limit(depth=1))
    with pytest.raises(UsiEngineError, match="control character"):
        stub("", ("Skill Level", "1\nquit"))
    with pytest.raises(UsiEngineError, match="byoyomi 60000 ms leaves no time"):
        UsiSettings(command=STUB, limit=Limit(byoyomi=60_000))


# ---- a real one ----


@needs_fairy_stockfish
@pytest.mark.parametrize("limit", [Limit(depth=1), Limit(nodes=100), Limit(byoyomi=100)])
def test_fairy_stockfish_plays(limit: Limit) -> None:
    assert FAIRY_STOCKFISH is not None
    settings = UsiSettings(
        command=(FAIRY_STOCKFISH,), options=(("skill level", "-5"),), limit=limit
    )
    with UsiEngine(settings) as engine:
        assert engine.name.startswith("Fairy-Stockfish")
        engine.new_game()
        game = ShogiGame()
        for _ in range(4):
            game.push(engine.best_move("startpos", [move.usi for move in game.moves]))


# ---- GNU Shogi, which does not speak USI ----


def gnushogi(program: str, *options: tuple[str, str]) -> UsiSettings:
    return UsiSettings(
        command=(sys.executable, str(BRIDGE), program), options=options, limit=Limit(depth=1)
    )


@pytest.mark.skipif(GNUSHOGI is None, reason="gnushogi is not installed")
def test_gnushogi_plays() -> None:
    assert GNUSHOGI is not None
    with UsiEngine(gnushogi(GNUSHOGI, ("Depth", "2"))) as engine:
        assert engine.name == "GNU Shogi"
        assert engine.best_move("4k4/9/4g4/9/9/9/+P8/9/4K4 w G2r 1", ["R*1i"]) == "5i5h"
        assert engine.best_move("startpos", ["7g7e"]) == "resign", "the move is illegal"
        assert engine.best_move("a position", []) == "resign"
        game = ShogiGame()
        for move in ["2h5h", "8b5b", "5h2h", "5b8b"] * 60:  # longer than what is replayed
            game.push(move)
        move = engine.best_move("startpos", [move.usi for move in game.moves])
        assert game.is_legal(move)


@posix_only
def test_gnushogi_may_fail(tmp_path: Path) -> None:
    program = tmp_path / "gnushogi"
    program.write_text("#!/bin/sh\nread line\necho Welcome\n", encoding="utf-8")
    program.chmod(0o755)
    with UsiEngine(gnushogi(str(program))) as engine:
        for _ in range(2):
            assert engine.best_move("startpos", []) == "resign"
        assert "info string GNU Shogi " in engine._process.last_output


@posix_only
def test_the_bridge_ends_with_its_input(tmp_path: Path) -> None:
    program = tmp_path / "gnushogi"
    program.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    program.chmod(0o755)
    command = (sys.executable, str(BRIDGE), str(program))
    commands = "usi\nposition startpos\ngo depth 1\n"
    done = subprocess.run(
        command, input=commands, capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout.endswith("usiok\n")
    assert done.stderr == ""
