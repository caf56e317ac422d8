"""What works with ``pip install keisei`` alone: processes in which torch cannot be imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NO_TORCH = '''
"""Python imports this module at its start: from then on torch is not installed."""

import importlib.metadata
from importlib.machinery import PathFinder

find_spec, from_name = PathFinder.find_spec, importlib.metadata.Distribution.from_name


def find_all_but_torch(name, path=None, target=None):
    return None if name.partition(".")[0] == "torch" else find_spec(name, path, target)


def all_but_torch(name):
    if name == "torch":
        raise importlib.metadata.PackageNotFoundError(name)
    return from_name(name)


PathFinder.find_spec = find_all_but_torch
importlib.metadata.Distribution.from_name = all_but_torch
'''

TINY_SPARSE = (
    "run.total_timesteps=256", "env.num_games=8", "env.ply_limit=30", "env.threads=1",
    "model.accumulators=16", "model.hidden=8", "model.context=16", "selfplay.rollout_plies=16",
    "ppo.minibatch_size=64", "device.threads=1", "evaluation.interval=0",
    "evaluation.background=off", "evaluation.final_games=4", "evaluation.ply_limit=30",
    "evaluation.max_games=64",
    "logging.display=off",
)  # fmt: skip


def keisei(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without torch."""
    hooks = folder / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "sitecustomize.py").write_text(NO_TORCH, encoding="utf-8")
    paths = (str(hooks), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    return subprocess.run(
        [sys.executable, "-m", "keisei", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"},
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=400,
        check=False,
    )


def works(folder: Path, *arguments: str, given: str = "") -> str:
    """Run a command that must succeed; return what it prints."""
    done = keisei(folder, *arguments, given=given)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that was trained without torch."""
    folder = tmp_path_factory.mktemp("without_torch")
    settings = [argument for setting in TINY_SPARSE for argument in ("--set", setting)]
    summary = json.loads(works(folder, "train", "--name", "tiny", *settings, "--json"))
    assert (summary["timestep"], summary["reason"]) == (256, "finished")
    return folder


def test_torch_is_really_missing(tmp_path: Path) -> None:
    done = keisei(tmp_path, "describe", "--model", "resnet")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: a network of type 'resnet' needs torch, which is not installed: "
        'python -m pip install "keisei[torch]"'
    ]


def test_a_run_is_resumed(folder: Path) -> None:
    more = ("--set", "run.total_timesteps=384", "--json")
    assert json.loads(works(folder, "train", "--resume", "tiny", *more))["timestep"] == 384


def test_a_run_with_workers(folder: Path) -> None:
    settings = [argument for setting in TINY_SPARSE for argument in ("--set", setting)]
    workers = ("--set", "parallel.num_workers=1", "--json")
    summary = json.loads(works(folder, "train", "--name", "workers", *settings, *workers))
    assert summary["timestep"] == 256


def test_a_network_is_exported_matched_and_run_as_an_engine(folder: Path) -> None:
    assert "tiny.keisei (" in works(folder, "export", "tiny", "--output", "tiny.keisei")
    files = ("export", "tiny.keisei", "--dtype", "int8", "--output", "half.keisei")
    assert "half.keisei (" in works(folder, *files)
    limits = ("--games", "2", "--ply-limit", "20", "--json")
    for players in (("tiny", "half.keisei"), ("tiny.keisei:search=2", "random")):
        assert json.loads(works(folder, "match", *players, *limits))["games"] == 2
    dialogue = "usi\nisready\nposition startpos\ngo nodes 2\n"
    for network in ("tiny", "half.keisei"):
        engine = works(folder, "usi", network, given=dialogue)
        assert {"usiok", "readyok"} <= set(engine.splitlines())
        assert "\nbestmove " in engine


def test_a_run_is_evaluated(folder: Path) -> None:
    limits = ("--games", "2", "--within", "900", "--max-games", "8", "--checkpoints", "1")
    strength = json.loads(
        works(folder, "evaluate", "tiny", "--opponents", "random", *limits, "--json")
    )
    (checkpoint,) = strength["checkpoints"]
    assert checkpoint["games"] >= 8
    assert [opponent["name"] for opponent in strength["opponents"]] == ["random"]
    kept = json.loads((folder / "runs" / "tiny" / "strength.json").read_text("utf-8"))
    assert kept["checkpoints"] == strength["checkpoints"]


def test_a_network_as_onnx(folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    assert "tiny.onnx (" in works(folder, "export", "tiny", "--output", "tiny.onnx")
    limits = ("--games", "2", "--ply-limit", "10", "--json")
    assert json.loads(works(folder, "match", "tiny.onnx", "tiny", *limits))["games"] == 2


def test_a_game_in_the_terminal(folder: Path) -> None:
    shown = works(folder, "play", "--terminal", "tiny", given="7g7f\nresign\n\n")
    assert "You lose: you resigned." in shown


def test_the_default_network_is_described(folder: Path) -> None:
    assert json.loads(works(folder, "describe", "--json"))["model"] == "SparseNetwork"


def test_the_doctor_misses_nothing(folder: Path) -> None:
    report = json.loads(works(folder, "doctor", "--json"))
    checks = {check["name"]: check for check in report["checks"]}
    assert report["usable"]
    assert checks["extra torch"]["status"] == "off"
    assert checks["extra torch"]["hint"] == 'python -m pip install "keisei[torch]"'
    assert "sparse networks" in checks["device"]["found"]
    assert checks["threads"]["status"] == "ok"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("train", "--model", "resnet", "--name", "new"), "training a network of type 'resnet'"),
        (("train", "--ddp", "--name", "new"), "training with several learners (--ddp)"),
        (("benchmark", "tower", "--quick"), "keisei benchmark tower"),
    ],
)
def test_what_needs_torch_says_so(folder: Path, arguments: tuple[str, ...], what: str) -> None:
    done = keisei(folder, *arguments)
    assert done.returncode == 2
    advice = 'needs torch, which is not installed: python -m pip install "keisei[torch]"'
    assert done.stderr.splitlines() == [f"error: {what} {advice}"]
    assert not (folder / "runs" / "new").exists()
