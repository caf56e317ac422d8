"""``keisei benchmark train``, with tiny numbers. Times are not asserted."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from keisei import metric_names as metrics
from keisei.benchmark import train
from keisei.benchmark.harness import Machine, Rate, StepRecorder
from keisei.benchmark.network_speed import ExecutionPath
from keisei.benchmark.train import (
    BARE,
    HIDDEN,
    KEISEI,
    SHOWN,
    TrainEffort,
    TrainReport,
    bare_update,
    measure_training,
)
from keisei.commands.benchmark import benchmark_app
from keisei.config import load_config
from keisei.errors import KeiseiError
from keisei.network.towers.device import Probe
from keisei.ppo.losses import LossWeights
from tests.tiny import TINY, agent_of, tiny_config, tiny_trainer

LITTLE = TrainEffort(steps=1, repetitions=1, seconds=0.0, compiles=False)


@pytest.fixture(autouse=True)
def no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe starts a process, which takes seconds."""
    monkeypatch.setattr(train, "probe_precision", lambda *_: Probe(0.0, "not tried"))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "QUICK", LITTLE)
    monkeypatch.setattr(train, "FULL", LITTLE)
    monkeypatch.setattr(train, "DEFAULT_SETTINGS", TINY)


def test_steps_updates_and_paths_are_measured() -> None:
    reported: list[tuple[str, int, int]] = []
    report = measure_training(tiny_config(), LITTLE, lambda *progress: reported.append(progress))
    assert {name: len(rate.samples) for name, rate in report.steps.items()} == {SHOWN: 1, HIDDEN: 1}
    assert set(report.updates) == {KEISEI, BARE}
    assert all(rate.best > 0 for rate in (*report.steps.values(), *report.updates.values()))
    assert sum(report.shares.values()) == pytest.approx(1.0)
    assert 0.0 < report.network_share < 1.0
    assert report.network_share <= report.shares["inference"] + report.shares["learning"]
    assert [path.path.name for path in report.paths] == [
        "naive fp32",
        "inference_mode + channels_last",
    ]
    assert [done for _, done, _ in reported] == [0, 1, 2]


def test_a_precision_that_is_safe_is_measured_too(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[list[str]] = []

    def measure_paths(*_: object, paths: list[ExecutionPath], **__: object) -> list[object]:
        measured.append([path.name for path in paths])
        return []

    monkeypatch.setattr(train, "measure_paths", measure_paths)
    monkeypatch.setattr(train, "probe_precision", lambda *_: Probe(1.5, ""))
    measure_training(tiny_config("device.threads=2"), LITTLE)
    assert measured == [
        ["inference_mode + channels_last", "the same, one thread", "channels_last, bfloat16"]
    ]


def test_the_bare_loop_does_the_same_arithmetic(tmp_path: Path) -> None:
    """From the same weights and minibatch, one step of each leads to the same weights."""
    trainer = tiny_trainer(tmp_path, "selfplay.mate_plies=0")
    trainer.train_step()
    agent = agent_of(trainer)
    batch = train._minibatches(trainer)[0]
    weights = LossWeights(
        clip_range=agent.settings.clip_range,
        value=agent.settings.value_weight,
        entropy=agent.settings.entropy,
    )
    before = {name: value.clone() for name, value in agent.model.state_dict().items()}
    optimizer = torch.optim.SGD(agent.model.parameters(), lr=0.1)
    bare_update(agent.model, optimizer, [batch], agent.settings, agent.compute)
    bare = [value.detach().clone() for value in agent.model.parameters()]

    agent.model.load_state_dict(before)
    optimizer.zero_grad()
    deviation, mean = torch.std_mean(batch.advantages, correction=0)
    scaled = batch._replace(advantages=(batch.advantages - mean) / (deviation + 1e-8))
    terms = agent._loss(scaled, weights, float(len(batch.advantages)))
    terms.total.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(agent.model.parameters(), agent.settings.max_grad_norm)
    optimizer.step()
    for ours, theirs, start in zip(agent.model.parameters(), bare, before.values(), strict=True):
        # Nearly: one divides by the deviation over n samples, the other by that over n - 1.
        step = float((ours.detach() - start).abs().max())
        assert float((ours.detach() - theirs).abs().max()) <= 0.1 * step + 1e-7


def test_shares_are_of_the_time_of_all_steps() -> None:
    recorder = StepRecorder()
    for seconds, share in ((1.0, 0.5), (3.0, 0.9)):
        recorder.steps.append(
            {metrics.TIME_LEARNING: seconds, metrics.TIME_ENV: 0.0, metrics.NETWORK_SHARE: share}
        )
    assert recorder.share(metrics.TIME_LEARNING) == 1.0
    assert recorder.network_share == pytest.approx(0.8)


def make_report(
    *,
    network: float = 0.85,
    update: float = 0.95,
    display: float = 0.99,
    has_target_settings: bool = True,
) -> TrainReport:
    return TrainReport(
        machine=Machine("Abacus 3000", 2, 0.0, "CPython", {}),
        settings={"network": "resnet 4x64"},
        has_target_settings=has_target_settings,
        steps={HIDDEN: Rate((100.0,)), SHOWN: Rate((100.0 * display,))},
        shares={"env": 0.1, "inference": 0.3, "learning": 0.6, "other": 0.0},
        network_share=network,
        updates={BARE: Rate((1000.0,)), KEISEI: Rate((1000.0 * update,))},
        paths=(),
    )


def test_targets() -> None:
    assert [target.passed for target in make_report().targets] == [True, True, True]
    worse = make_report(network=0.7, update=0.8, display=0.9)
    assert [target.passed for target in worse.targets] == [False, False, False]
    assert [target.passed for target in make_report(has_target_settings=False).targets] == [
        None,
        True,
        True,
    ]


def test_targets_are_about_certain_settings() -> None:
    assert not train._has_target_settings(tiny_config())
    assert train._has_target_settings(tiny_config(*train.TARGET_SETTINGS))
    assert train._has_target_settings(load_config(None, train.DEFAULT_SETTINGS))
    assert not train._has_target_settings(tiny_config(*train.TARGET_SETTINGS, "model.type=sparse"))


def test_what_has_no_bare_loop_is_refused() -> None:
    with pytest.raises(KeiseiError, match=r"model\.type=resnet"):
        measure_training(tiny_config("model.type=sparse"), LITTLE)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("options", [[], ["--quick", "--set", "env.num_games=4"]])
def test_the_command_prints_tables(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(benchmark_app, ["train", *options])
    assert result.exit_code == 0, result.output
    for text in ("plies, display on", "bare loop", "in the network", "naive fp32", "at least"):
        assert text in result.stdout
    assert "…" not in result.stdout  # nothing is cut off


@pytest.mark.usefixtures("tiny")
def test_the_command_speaks_json() -> None:
    result = CliRunner().invoke(benchmark_app, ["train", "--json"])
    report = json.loads(result.stdout)
    assert report["samples_per_second"][BARE]["best"] > 0
    assert report["plies_per_second"][HIDDEN]["best"] > 0
    assert report["paths"][0]["path"] == "naive fp32"
    assert len(report["targets"]) == 3
