"""Networks out of checkpoints."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from keisei.checkpoints.store import CheckpointError, list_checkpoints, save_checkpoint
from keisei.errors import DeviceError
from keisei.network.loading import device_config, load_network, read_network
from keisei.network.towers.torch_predictor import TorchPredictor
from keisei.shogi.vector import VectorShogi
from keisei.training.trainer import Trainer
from tests.tiny import tiny_trainer


@pytest.fixture
def trainer(tmp_path: Path, family: str) -> Trainer:
    torch.set_num_threads(1)
    trainer = tiny_trainer(tmp_path / "run", family)
    for _ in range(2):
        trainer.train_step()
        trainer.save()
    return trainer


def is_the_same(trainer: Trainer, path: Path) -> bool:
    loaded, own = read_network(path).weights, trainer.learner.network.weights()
    assert loaded.keys() == own.keys()
    return all(np.array_equal(value, loaded[name]) for name, value in own.items())


def test_a_run_means_its_newest_checkpoint(trainer: Trainer) -> None:
    run = trainer.run_directory
    network = read_network(run)
    assert network.path == list_checkpoints(run / "checkpoints")[-1]
    assert (network.name, network.timestep) == ("run@128", 128)
    assert network.spec.name == "core46"
    assert network.config == trainer.config
    assert is_the_same(trainer, run)


def test_a_stored_network_is_set_up_to_play(trainer: Trainer) -> None:
    stored = read_network(trainer.run_directory)
    network = stored.network(device_config("cpu", 1))
    assert type(network) is type(trainer.learner.network)
    assert not isinstance(network, TorchPredictor) or not network.model.training
    assert (network.spec, network.device, network.threads) == (stored.spec, "cpu", 1)
    assert all(np.array_equal(network.weights()[k], array) for k, array in stored.weights.items())
    positions = VectorShogi(3, opening_plies=8).observe()
    for loaded in (stored.loaded(device_config("cpu", 1)), load_network(trainer.run_directory)):
        expected = trainer.learner.evaluation_network.predict(positions)
        assert (loaded.name, loaded.identity) == (stored.name, stored.identity)
        for got, wanted in zip(loaded.predictor.predict(positions), expected, strict=True):
            assert np.array_equal(got, wanted)


def test_a_checkpoint_can_be_named(trainer: Trainer) -> None:
    old, new = list_checkpoints(trainer.run_directory / "checkpoints")
    assert read_network(old).timestep == 64
    assert not is_the_same(trainer, old)
    assert is_the_same(trainer, new)
    assert is_the_same(trainer, new.parent), "the directory of checkpoints"


def test_a_run_can_be_named_without_its_directory(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = trainer.run_directory.parent / "runs"
    runs.mkdir()
    trainer.run_directory.rename(runs / "first")
    monkeypatch.chdir(runs.parent)
    assert read_network(Path("first")).timestep == 128


def test_averaged_weights_are_preferred(tmp_path: Path, family: str) -> None:
    trainer = tiny_trainer(tmp_path, family, "ppo.ema_decay=0.9")
    trainer.train_step()
    trainer.save()
    loaded, newest = read_network(tmp_path).weights, trainer.learner.network.weights()
    for name, value in trainer.learner.evaluation_network.weights().items():
        assert np.array_equal(value, loaded[name])
    assert not all(np.array_equal(value, loaded[name]) for name, value in newest.items())


def test_a_damaged_checkpoint_is_told_of_and_skipped(
    trainer: Trainer, caplog: pytest.LogCaptureFixture
) -> None:
    newest = list_checkpoints(trainer.run_directory / "checkpoints")[-1]
    (newest / "weights.safetensors").write_bytes(b"")
    assert read_network(trainer.run_directory).timestep == 64
    assert "truncated" in caplog.text
    with pytest.raises(CheckpointError, match="truncated"):
        read_network(newest)


def test_an_untrained_network_is_never_taken_instead(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no run or checkpoint"):
        read_network(tmp_path / "nothing")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="has no checkpoint yet"):
        read_network(tmp_path)


def test_a_wrong_device_is_not_blamed_on_the_checkpoint(
    trainer: Trainer, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DeviceError, match=r"'cuda:99' is not available|on the CPU, not on cuda:99"):
        load_network(trainer.run_directory, device="cuda:99")
    assert "skipping" not in caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"tower_width": 9, "accumulators": 24}}, "the weights have shape"),
        ({"future": {}}, "settings unknown here: future"),
        ({"model": {"type": "oracle"}}, "oracle"),
    ],
)
def test_settings_that_do_not_fit_are_explained(
    trainer: Trainer, tmp_path: Path, change: dict[str, dict[str, object]], message: str
) -> None:
    settings = json.loads(trainer.config.model_dump_json())
    for section, fields in change.items():
        settings.setdefault(section, {}).update(fields)
    save_checkpoint(
        tmp_path / "other" / "checkpoints",
        timestep=1,
        update=1,
        state={"model": trainer.learner.network.weights()},
        config_json=json.dumps(settings),
        keep=1,
    )
    with pytest.raises(CheckpointError, match=message):
        load_network(tmp_path / "other")


def test_a_run_with_a_similar_name_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "quickstart").mkdir()
    (tmp_path / "quickstart" / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"quikstart; did you mean quickstart\?"):
        load_network(tmp_path / "quikstart")


@pytest.mark.parametrize(
    ("family", "change"),
    [
        ("resnet", {"tower_width": 1024, "tower_depth": 20}),
        ("sparse", {"accumulators": 4096, "hidden": 4096, "context": 4096}),
    ],
    indirect=["family"],
)
def test_settings_that_claim_another_size_build_nothing(
    trainer: Trainer, change: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shapes of the file are compared before weights are read, or allocated."""
    path = list_checkpoints(trainer.run_directory / "checkpoints")[-1]
    config = trainer.config
    model = config.model.model_copy(update=change)
    claimed = config.model_copy(update={"model": model}).model_dump_json()
    forged = save_checkpoint(
        trainer.run_directory / "forged",
        timestep=1,
        update=1,
        state={"model": read_network(path).weights},
        config_json=claimed,
        keep=1,
    )
    for name in ("make_network", "load_model_weights"):
        monkeypatch.delattr(f"keisei.network.loading.{name}")
    with pytest.raises(CheckpointError, match=r"the weights have shape .*, the settings need"):
        load_network(forged)
