"""Settings from files start no program that the user has not named."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from keisei.commands.benchmark import strength
from keisei.commands.train import train
from keisei.config import ConfigError, load_config, save_config
from keisei.errors import KeiseiError
from keisei.players.spec import PlayerSpecError, is_engine, make_player
from keisei.sweep.check import checked, require_set_up
from keisei.sweep.space import load_space
from keisei.training import run
from keisei.training.run import (
    ProgramNotAllowedError,
    allowed_file,
    require_allowed,
    resume_run,
    start_run,
)
from tests.commands.invoke import invoke
from tests.sweep.small_sweeps import write_space

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The file that the program of the tests would make."""
    return tmp_path / "trace"


@pytest.fixture
def engine(trace: Path) -> str:
    script = trace.with_suffix(".py")
    script.write_text(f"open({str(trace)!r}, 'w').close()", encoding="utf-8")
    return f"usi:'{sys.executable}' '{script}'"


@pytest.fixture(autouse=True)
def own_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a list of the user for this test, which does not exist yet."""
    path = tmp_path / "config" / "allowed-programs.txt"
    monkeypatch.setattr(run, "allowed_file", lambda: path)
    return path


def write_list(path: Path, *lines: str) -> None:
    path.parent.mkdir()
    path.write_text("\n".join(lines), encoding="utf-8")
    path.chmod(0o600)


@pytest.mark.parametrize(
    ("spec", "starts"),
    [
        ("usi:x", True),
        (" usi:x", True),
        ("usi:x,depth=3", True),
        ("usi", True),
        ("random", False),
        ("runs/usi:search=3", False),
        ("greedy,usi:x=1", False),
    ],
)
def test_which_players_are_programs(spec: str, starts: bool) -> None:
    assert is_engine(spec) is starts


def test_engines_are_recognised_as_they_are_started(engine: str, trace: Path) -> None:
    for spec in (engine, f" {engine}", f"{engine},processes=1"):
        with pytest.raises(KeiseiError):
            make_player(spec).close()
        assert trace.exists()
        trace.unlink()
    with pytest.raises(PlayerSpecError, match="the command is missing"):
        make_player("usi")


def test_a_resumed_run_starts_no_engine_of_its_file(
    tmp_path: Path, engine: str, trace: Path
) -> None:
    """Before, this ran the command."""
    directory = tmp_path / "run"
    directory.mkdir()
    config = load_config(None, [f"evaluation.opponents={json.dumps(['random', engine])}"])
    save_config(config, directory / "config.json")
    with pytest.raises(ProgramNotAllowedError, match="name it on the command line too, --set"):
        invoke(train, "--resume", str(directory))
    with pytest.raises(ProgramNotAllowedError):
        resume_run(config, directory)
    assert not trace.exists()
    assert [path.name for path in directory.iterdir()] == ["config.json"]


def test_a_yaml_file_starts_no_engine(tmp_path: Path, engine: str, trace: Path) -> None:
    path = tmp_path / "stranger.yaml"
    path.write_text(json.dumps({"evaluation": {"opponents": [engine]}}), encoding="utf-8")
    with pytest.raises(ProgramNotAllowedError, match="that you have not named: usi:"):
        invoke(train, "--config", str(path), "--set", f"run.root={tmp_path}")
    with pytest.raises(ProgramNotAllowedError):
        start_run(load_config(path, [f"run.root={tmp_path}"]))
    assert not trace.exists()


def test_the_file_of_a_sweep_starts_no_engine(tmp_path: Path, engine: str, trace: Path) -> None:
    plan = write_space(
        tmp_path,
        set={"evaluation.opponents": ["random", engine]},
        space={"ppo.epochs": {"low": 1, "high": 2}},
    )
    with pytest.raises(ProgramNotAllowedError):
        require_set_up(checked(load_space(plan)))
    assert not trace.exists()


@pytest.mark.parametrize("command", [train, strength])
def test_what_is_named_on_the_command_line_is_started(
    command: Callable[..., None], tmp_path: Path, engine: str, trace: Path
) -> None:
    """Before, `keisei benchmark strength` refused every engine."""
    opponents = f"evaluation.opponents={json.dumps([engine])}"
    with pytest.raises(KeiseiError) as caught:  # the program speaks no USI
        invoke(command, "--set", opponents, "--set", f"run.root={tmp_path}")
    assert not isinstance(caught.value, ProgramNotAllowedError | ConfigError)
    assert trace.exists()


def test_the_list_of_the_user_allows(engine: str, own_list: Path) -> None:
    config = load_config(None, [f"evaluation.opponents={json.dumps([engine])}"])
    with pytest.raises(ProgramNotAllowedError):
        require_allowed(config)
    write_list(own_list, "# engines that I know", f"  {engine}  ", "usi:another")
    require_allowed(config)
    with pytest.raises(ProgramNotAllowedError):
        require_allowed(load_config(None, ["evaluation.opponents=['usi:another --option']"]))


@posix_only
def test_a_list_that_others_can_write_is_refused(engine: str, own_list: Path) -> None:
    write_list(own_list, engine)
    own_list.chmod(0o666)
    config = load_config(None, [f"evaluation.opponents={json.dumps([engine])}"])
    with pytest.raises(ProgramNotAllowedError, match="only you may write to it"):
        require_allowed(config)
    require_allowed(load_config())  # without programs nobody asks


def test_a_foreign_ray_cluster_needs_consent(own_list: Path) -> None:
    ray = ["parallel.backend=ray"]
    for local in ("", "auto"):
        require_allowed(load_config(None, [*ray, f"parallel.ray_address={local!r}"]))
    config = load_config(None, [*ray, "parallel.ray_address=example.org:6379"])
    with pytest.raises(ProgramNotAllowedError, match=r"ray example\.org:6379"):
        require_allowed(config)
    require_allowed(config, ["example.org:6379"])
    write_list(own_list, "ray example.org:6379")
    require_allowed(config)


def test_the_list_is_in_the_directory_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    path = allowed_file()
    assert path.is_absolute()
    assert path.name == "allowed-programs.txt"
    assert "keisei" in str(path)
