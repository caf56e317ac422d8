"""The packages of ``examples/plugins``, one for each kind, installed and trained with."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from keisei.shogi import features
from keisei.shogi.features import UnknownFeatureError, feature_spec
from tests.tiny import TINY

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "plugins"
KINDS = ("planes", "rows", "network", "callback")


def test_every_package_is_shown_in_full() -> None:
    assert sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()) == sorted(KINDS)
    page = (ROOT / "docs" / "plugins.md").read_text("utf-8")
    for path in (*EXAMPLES.glob("*/*.py"), *EXAMPLES.glob("*/*.toml")):
        assert f"```{{literalinclude}} ../{path.relative_to(ROOT).as_posix()}\n" in page


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the packages beside the others; returns the directory to add to PYTHONPATH."""
    source = tmp_path_factory.mktemp("source") / "plugins"
    shutil.copytree(EXAMPLES, source)  # building leaves files behind
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(target)]
    command += [str(source / kind) for kind in KINDS]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return target


def python_m(installed: Path, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join((str(installed), str(ROOT))))
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def train(installed: Path, root: Path, *overrides: str) -> None:
    settings = (*TINY, f"run.root={root}", "run.name=run", "run.total_timesteps=64", *overrides)
    flags = [part for setting in settings for part in ("--set", setting)]
    result = python_m(installed, "keisei", "train", *flags)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_planes_a_network_and_a_callback_of_packages_are_trained_with(
    installed: Path, tmp_path: Path
) -> None:
    train(
        installed,
        tmp_path,
        "model.type=one_convolution",
        "env.input_features=core46+pawn_files",
        "logging.plugins=[longest_games]",
    )
    assert (tmp_path / "run" / "longest-games.txt").read_text().startswith("1 ")


@pytest.mark.slow
def test_rows_of_a_package_are_trained_with_exported_and_searched(
    installed: Path, tmp_path: Path
) -> None:
    train(installed, tmp_path, "model.type=sparse", "model.position_rows=pieces+pieces_in_hand")
    saved = str(tmp_path / "run" / "config.json")
    described = python_m(installed, "keisei", "describe", "--config", saved)
    assert "pieces_in_hand" in described.stdout
    for suffix in (".keisei", ".onnx"):
        file = str(tmp_path / f"mine{suffix}")
        result = python_m(installed, "keisei", "export", str(tmp_path / "run"), "--output", file)
        assert result.returncode == 0, result.stderr
        result = python_m(installed, "keisei", "usi", file, said="position startpos\ngo nodes 20\n")
        assert result.returncode == 0, result.stderr
        *_, info, answer = result.stdout.splitlines()
        assert " nodes 20 " in info
        assert answer.startswith("bestmove ")


@pytest.mark.slow
def test_no_test_minds_that_plug_ins_are_installed(installed: Path) -> None:
    files = ("network/test_model_factory.py", "training/test_callbacks.py")
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    result = python_m(installed, "pytest", *options, *(f"tests/{file}" for file in files))
    assert result.returncode == 0, result.stdout


def test_planes_are_found_by_their_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry_points(*, group: str, name: str) -> list[EntryPoint]:
        module = {"pawn_files": "keisei_pawn_files", "broken": "no.such.module"}
        assert group == features.PLUGIN_GROUP
        return [EntryPoint(name, module[name], group)] if name in module else []

    monkeypatch.setattr(features, "entry_points", entry_points)
    monkeypatch.setattr(features, "_features", dict(features._features))
    monkeypatch.setattr(features, "FEATURE_SPECS", dict(features.FEATURE_SPECS))
    monkeypatch.syspath_prepend(str(EXAMPLES / "planes"))
    assert feature_spec("core46+pawn_files").num_planes == 48
    with pytest.raises(UnknownFeatureError, match="plug-in 'broken' cannot be loaded"):
        feature_spec("core46+broken")
    with pytest.raises(UnknownFeatureError, match="there is no option 'other'"):
        feature_spec("core46+other")
