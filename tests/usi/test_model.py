"""The engine itself needs no torch; networks come out of runs, and mistakes are explained."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

import keisei
from keisei.errors import KeiseiError
from keisei.network.loading import load_network, read_network
from keisei.network.onnx.onnx_export import export_onnx
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions, pack_game
from tests.tiny_runs import tiny_run

ROOT = Path(keisei.__file__).parents[1]

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from pathlib import Path
from keisei.errors import KeiseiError
from keisei.usi.engine import Engine
from keisei.network.loading import LoadedNetwork, load_network
from keisei.usi.usi_io import UsiWriter
from tests.usi.gui import MaterialPredictor
network = LoadedNetwork(MaterialPredictor(), "m", "m", 0.0, 1, 512)
engine = Engine(lambda threads: network, UsiWriter(sys.stdout))
engine.run(["usi", "isready", "position startpos", "go nodes 20"])
try:
    load_network(Path(sys.argv[1]))
except KeiseiError as error:
    print("info string", error)
assert not [name for name in sys.modules if name.startswith("torch.")]
"""


def test_the_engine_plays_where_there_is_no_torch(run: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(run)],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("bestmove ") for line in lines)
    assert "needs torch, which is not installed" in lines[-1]


ONNX_WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from keisei.cli import main
sys.argv = ["keisei", "usi", sys.argv[1]]
main()
"""

EXPORT_WITHOUT_TORCH = ONNX_WITHOUT_TORCH.replace('"usi"', '"export"')


def test_where_there_is_no_torch_export_says_what_is_missing(run: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXPORT_WITHOUT_TORCH, str(run)],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert "needs torch, which is not installed" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_an_onnx_file_plays_where_there_is_no_torch(run: Path, tmp_path: Path) -> None:
    model = tmp_path / "tiny.onnx"
    model.write_bytes(export_onnx(read_network(run)))
    done = subprocess.run(
        [sys.executable, "-c", ONNX_WITHOUT_TORCH, str(model)],
        check=False,
        cwd=ROOT,
        input="usi\nisready\nposition startpos\ngo nodes 20\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "readyok" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("bestmove ")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run(tmp_path_factory.mktemp("usi") / "tiny", checkpoints=1)


def test_a_run_is_loaded_with_its_own_settings_and_no_more_threads_than_allowed(run: Path) -> None:
    import torch

    loaded = load_network(run, threads=1)
    assert torch.get_num_threads() == 1
    assert loaded.name == "tiny@64"
    assert (loaded.mate_plies, loaded.ply_limit) == (1, 20)
    game = ShogiGame()
    legal = game.legal_actions
    prediction = loaded.predictor.predict(
        Positions(pack_game(game), legal[None], np.array([30], dtype=np.int32))
    )
    assert np.exp(prediction.log_probs[0, :30]).sum() == pytest.approx(1.0, abs=1e-4)


def test_networks_that_are_not_there_are_explained(tmp_path: Path) -> None:
    with pytest.raises(KeiseiError, match="no run or checkpoint"):
        load_network(tmp_path / "nothing")
    with pytest.raises(KeiseiError, match="onnx"):
        load_network(tmp_path / "nothing.onnx")


def talk(run: Path, text: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "keisei", "usi", str(run), *options],
        check=False,
        cwd=ROOT,
        input=text,
        capture_output=True,
        timeout=120,
    )


def test_the_command_speaks_nothing_but_usi_and_writes_a_log(run: Path, tmp_path: Path) -> None:
    log = tmp_path / "usi.log"
    text = b"usi\r\n\xff\xfe\x00\nisready\nposition startpos moves 7g7f\ngo nodes 20\nquit"
    done = talk(run, text.replace(b"\nquit", b""), "--set", "multipv=2", "--log", str(log))
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    words = {line.split()[0] for line in done.stdout.decode("ascii").splitlines()}
    assert words == {"id", "option", "usiok", "readyok", "info", "bestmove"}
    assert b"option name MultiPV type spin default 2 " in done.stdout
    written = log.read_text(encoding="utf-8")
    assert "< position startpos moves 7g7f" in written
    assert "> bestmove" in written
    assert talk(run, text).returncode == 0


def test_mistakes_end_the_command_with_a_message(run: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((tmp_path / "nothing",), "no run or checkpoint"),
        ((run, "--set", "Threads=0"), "from 1 to 512"),
        ((run, "--set", "Threads"), "expected NAME=VALUE"),
        ((run, "--log", tmp_path / "missing" / "log"), "cannot write"),
        ((run, "--log", tmp_path), "cannot write"),
    ):
        done = talk(arguments[0], b"usi\nisready\n", *map(str, arguments[1:]))
        assert done.returncode == 2
        assert done.stdout == b"", "it fails before the first line"
        assert message in done.stderr.decode()
        assert "Traceback" not in done.stderr.decode()


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="measures what Unix knows of a process")
@pytest.mark.parametrize("last", [b"quit\n", b""])
def test_the_process_leaves_at_once(last: bytes, run: Path) -> None:
    """GUIs kill engines that linger; on a busy machine each CPU second takes many."""
    command = [sys.executable, "-m", "keisei", "usi", str(run)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"usi\n")
        process.stdin.flush()
        while process.stdout.readline() != b"usiok\n":
            pass
        times = psutil.Process(process.pid).cpu_times()
        process.stdin.write(last)  # while it loads the network
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert usage.ru_utime + usage.ru_stime - times.user - times.system < 0.5
