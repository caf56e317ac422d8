"""`keisei train` as a user runs it, with tiny numbers."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from typer.testing import CliRunner, Result

from keisei import metric_names as names
from keisei.checkpoints.rotation import UNFINISHED
from keisei.checkpoints.store import list_checkpoints
from keisei.cli import app
from keisei.config import ConfigError, load_config, load_saved_config, save_config
from keisei.errors import KeiseiError
from keisei.network.loading import read_network
from keisei.ppo.learner import Ranks, scheduled
from keisei.run_files import LOCK
from keisei.training.run import _locked, resume_run, start_run
from tests.threaded_ranks import make_ranks, run_all
from tests.tiny import TINY


def train(root: Path, *arguments: str) -> Result:
    settings = [part for setting in (*TINY, f"run.root={root}") for part in ("--set", setting)]
    return CliRunner().invoke(app, ["train", *settings, *arguments], catch_exceptions=False)


def test_opponents_that_do_not_exist_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(KeiseiError, match="kasparov"):
        train(tmp_path, "--set", "evaluation.opponents=[random, kasparov]")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("parallel.compression=gzip", "compression needs parallel.backend=ray"),
        ("parallel.inference=server", "needs workers: set parallel.num_workers"),
    ],
)
def test_settings_without_effect_are_refused_at_the_start_but_read_in_earlier_runs(
    tmp_path: Path, setting: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        train(tmp_path, "--set", setting)
    assert list(tmp_path.iterdir()) == []
    saved = tmp_path / "run" / "config.json"
    saved.parent.mkdir()
    save_config(load_config(overrides=[setting, f"run.root={tmp_path}", "run.name=run"]), saved)
    load_saved_config(saved)
    with pytest.raises(ConfigError, match=problem):
        resume_run(load_saved_config(saved), saved.parent)


def test_a_run_that_memory_cannot_hold_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, this ended in a traceback and left a directory without settings."""
    monkeypatch.setattr("keisei.training.run.physical_memory", lambda: 16 * 10**9)
    sizes = ("env.num_games=1048576", "selfplay.rollout_plies=1024")  # the most that is allowed
    config = load_config(None, [*TINY, *sizes, f"run.root={tmp_path}"])
    with pytest.raises(KeiseiError, match=r"num_games \(1,048,576\) times selfplay.rollout_plies"):
        start_run(config)
    assert list(tmp_path.iterdir()) == []


def test_a_run_leaves_everything_behind(tmp_path: Path, family: str) -> None:
    result = train(tmp_path, "--name", "first", "--tower_width", "12", "--set", family)
    assert result.exit_code == 0
    assert "finished: 192 plies" in result.stdout
    assert "against random:" in result.stdout
    run = tmp_path / "first"
    assert load_saved_config(run / "config.json").model.tower_width == 8, "--set wins over a flag"
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert sum("losses/policy" in str(line) for line in lines) >= 3
    assert (run / "report.html").stat().st_size > 1_000
    assert list((run / "plots").glob("*.png"))
    assert list((run / "games").glob("*.kif"))
    assert list((run / "games").glob("*.csa"))
    assert list((run / "tensorboard").iterdir())
    assert len(list_checkpoints(run / "checkpoints")) == 3


LEARNING_METRICS = (
    names.LEARNING_RATE, names.MINIBATCH_SIZE, names.GRAD_NORM, names.APPROX_KL,
    names.CLIP_FRACTION, names.ENTROPY, names.EXPLAINED_VARIANCE,
)  # fmt: skip


def test_the_log_has_every_setting_and_each_step_what_learning_did(
    tmp_path: Path, family: str
) -> None:
    train(tmp_path, "--name", "run", "--set", family)
    log = (tmp_path / "run" / "run.log").read_text("utf-8")
    config = load_saved_config(tmp_path / "run" / "config.json").model_dump()
    for section, settings in config.items():
        (line,) = re.findall(rf" {section}: (.*)$", log, re.M)
        assert all(f"{field}={value}" in line for field, value in settings.items())
    (facts,) = re.findall(r" facts: (.*)$", log, re.M)
    for fact in ("parameters", "planes", "features", "model", "device", "precision", "compile"):
        assert f"{fact}=" in facts
    journal = (tmp_path / "run" / "metrics.jsonl").read_text("utf-8").splitlines()
    steps = [
        metrics for line in journal if names.SPS in (metrics := json.loads(line).get("metrics", {}))
    ]
    assert len(steps) == 3
    assert all(metrics[name] is not None for metrics in steps for name in LEARNING_METRICS)
    ppo = config["ppo"]
    assert [metrics[names.LEARNING_RATE] for metrics in steps] == pytest.approx(
        [
            scheduled("linear", ppo["learning_rate"], ppo["learning_rate_end"], step / 3)
            for step in range(3)
        ]
    )


def test_a_run_is_resumed_and_extended(tmp_path: Path, family: str) -> None:
    train(tmp_path, "--name", "run", "--set", family)
    answer = CliRunner().invoke(
        app,
        ["train", "--resume", str(tmp_path / "run"), "--set", "run.total_timesteps=256", "--json"],
        catch_exceptions=False,
    )
    assert json.loads(answer.stdout.splitlines()[-1])["timestep"] == 256
    assert load_saved_config(tmp_path / "run" / "config.json").run.total_timesteps == 256


def test_a_run_that_another_process_trains_is_not_resumed(tmp_path: Path) -> None:
    """It would remove the checkpoint that the other one is writing."""
    train(tmp_path, "--name", "run")
    run = tmp_path / "run"
    unfinished = run / "checkpoints" / f"{UNFINISHED}1"
    unfinished.mkdir()
    log = (run / "run.log").read_bytes()
    resumed = ["train", "--resume", str(run)]
    with (
        FileLock(run / LOCK),
        pytest.raises(KeiseiError, match=f"another process trains {re.escape(str(run))}"),
    ):
        CliRunner().invoke(app, resumed, catch_exceptions=False)
    assert unfinished.exists()
    assert (run / "run.log").read_bytes() == log
    CliRunner().invoke(app, resumed, catch_exceptions=False)
    assert not unfinished.exists()


def test_all_learners_hear_that_another_process_trains(tmp_path: Path) -> None:
    def learn(rank: Ranks) -> str:
        with pytest.raises(KeiseiError) as caught, _locked(tmp_path, rank):
            pass
        return str(caught.value)

    with FileLock(tmp_path / LOCK):
        first, second = run_all(make_ranks(2), learn)
    assert first == second
    assert first.startswith("another process trains")


def test_mistakes_are_explained(tmp_path: Path) -> None:
    train(tmp_path, "--name", "run")
    with pytest.raises(KeiseiError, match=r"there is a run in .* already"):
        train(tmp_path, "--name", "run")
    with pytest.raises(KeiseiError, match="there is no run in"):
        train(tmp_path, "--resume", str(tmp_path / "nothing"))
    with pytest.raises(KeiseiError, match=r"there is no run in .*; did you mean run\?$"):
        train(tmp_path, "--resume", str(tmp_path / "rnu"))
    with pytest.raises(KeiseiError, match="clip_range"):
        train(tmp_path, "--set", "ppo.clip_range=3")


def test_a_finished_run_that_is_resumed_is_not_measured_again(tmp_path: Path) -> None:
    train(tmp_path, "--name", "run")
    journal = tmp_path / "run" / "metrics.jsonl"
    before = journal.read_text().count('"event":"evaluation"')
    again = CliRunner().invoke(
        app, ["train", "--resume", str(tmp_path / "run")], catch_exceptions=False
    )
    assert "against random:" in again.stdout, "it is known from the checkpoint"
    assert f"keisei play {tmp_path / 'run'}" in again.stdout.replace("\n", "")
    assert journal.read_text().count('"event":"evaluation"') == before == 1


def test_a_profile_is_made_when_asked_for(tmp_path: Path, family: str) -> None:
    train(tmp_path, "--name", "run", "--profile", "--set", family)
    assert (tmp_path / "run" / "profile" / "summary.txt").stat().st_size > 100


def test_a_run_can_start_from_the_weights_of_another(tmp_path: Path) -> None:
    """Also when it reads other planes; the rest of the weights is as it was."""
    train(tmp_path, "--name", "old")
    result = train(
        tmp_path,
        *("--name", "new", "--input_features", "core46+check+last2ply"),
        *("--set", f"run.start_from={tmp_path / 'old'}", "--set", "ppo.learning_rate=1e-30"),
        *("--set", "ppo.learning_rate_end=0"),
    )
    assert result.exit_code == 0
    log = (tmp_path / "new" / "run.log").read_text()
    assert "trunk.stem.weight: 28 planes adapted to 32" in log
    assert "trunk.constants.weight: 18 planes adapted to 19" in log
    old, new = (read_network(tmp_path / name).weights for name in ("old", "new"))
    planes_read = {"trunk.stem.weight": 28, "trunk.constants.weight": 18}
    for name, planes in planes_read.items():
        assert np.allclose(new[name][:, :planes], old[name])
        assert float(np.abs(new[name][:, planes:]).max()) < 1e-20
    assert all(np.allclose(new[name], old[name]) for name in old if name not in planes_read)


def test_a_sparse_run_can_start_from_the_weights_of_another(tmp_path: Path) -> None:
    sparse = ("--set", "model.type=sparse", "--set", "ppo.ema_decay=0.9")
    train(tmp_path, "--name", "old", *sparse)
    start = ("--set", f"run.start_from={tmp_path / 'old'}")
    result = train(
        tmp_path,
        *("--name", "new", *sparse, *start, "--set", "ppo.learning_rate=1e-30"),
        *("--set", "ppo.learning_rate_end=0"),
    )
    assert result.exit_code == 0
    assert "starting with the weights of" in (tmp_path / "new" / "run.log").read_text()
    old, new = (read_network(tmp_path / name).weights for name in ("old", "new"))
    assert all(np.allclose(new[name], old[name]) for name in old)
    for other, message in (
        ("model.accumulators=24", "position_table: the weights have shape"),
        ("model.type=resnet", "the weights belong to another model"),
    ):
        with pytest.raises(KeiseiError, match=message):
            train(tmp_path, "--name", other.partition(".")[2], *sparse, *start, "--set", other)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("model.type=resnet", "model.tower_width=16"),
        ("model.type=sparse", "model.accumulators=24"),
        ("model.type=sparse", "model.type=resnet"),
    ],
)
def test_a_resumed_run_keeps_its_network(tmp_path: Path, kind: str, other: str) -> None:
    train(tmp_path, "--name", "run", "--set", kind)
    before = load_saved_config(tmp_path / "run" / "config.json")
    settings = ["--set", other, "--set", "run.total_timesteps=256"]
    with pytest.raises(KeiseiError, match=r"a run keeps its network.*run\.start_from"):
        CliRunner().invoke(
            app, ["train", "--resume", str(tmp_path / "run"), *settings], catch_exceptions=False
        )
    assert load_saved_config(tmp_path / "run" / "config.json") == before
