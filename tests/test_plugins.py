"""The plug-ins of ``examples/plugins``, installed as a package and trained with."""

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
EXAMPLE = ROOT / "examples" / "plugins"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package beside the others; returns the directory to add to PYTHONPATH."""
    pytest.importorskip("setuptools")
    source = tmp_path_factory.mktemp("source") / "plugins"
    shutil.copytree(EXAMPLE, source)  # building leaves files behind
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(target), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return target


def keisei(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join((str(installed), str(ROOT))))
    return subprocess.run(
        [sys.executable, "-m", "keisei", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def train(installed: Path, root: Path, *overrides: str) -> None:
    settings = (*TINY, f"run.root={root}", "run.name=run", "run.total_timesteps=64", *overrides)
    flags = [part for setting in settings for part in ("--set", setting)]
    result = keisei(installed, "train", *flags)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_planes_a_network_and_a_callback_of_a_package_are_trained_with(
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
def test_rows_of_a_package_are_trained_with(installed: Path, tmp_path: Path) -> None:
    train(installed, tmp_path, "model.type=sparse", "model.position_rows=pieces+pieces_in_hand")
    described = keisei(installed, "describe", "--config", str(tmp_path / "run" / "config.json"))
    assert "pieces_in_hand" in described.stdout


def test_planes_are_found_by_their_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry_points(*, group: str, name: str) -> list[EntryPoint]:
        module = {"pawn_files": "keisei_example_plugins.features", "broken": "no.such.module"}
        assert group == features.PLUGIN_GROUP
        return [EntryPoint(name, module[name], group)] if name in module else []

    monkeypatch.setattr(features, "entry_points", entry_points)
    monkeypatch.setattr(features, "_features", dict(features._features))
    monkeypatch.setattr(features, "FEATURE_SPECS", dict(features.FEATURE_SPECS))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    assert feature_spec("core46+pawn_files").num_planes == 48
    with pytest.raises(UnknownFeatureError, match="plug-in 'broken' cannot be loaded"):
        feature_spec("core46+broken")
    with pytest.raises(UnknownFeatureError, match="there is no option 'other'"):
        feature_spec("core46+other")
