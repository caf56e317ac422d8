"""The flags of ``keisei train``: what they set, and where their help texts come from."""

from pathlib import Path

import pytest
import typer
from typer.main import get_command, get_group
from typer.testing import CliRunner

from keisei.cli import app as keisei_app
from keisei.commands.options import TRAIN_FLAGS, ConfigOptions, TrainCommand, with_config_options
from keisei.config import (
    ConfigError,
    load_config,
    load_saved_config,
    save_config,
    sections,
)
from keisei.config_schema import AppConfig


def app(saved: Path) -> typer.Typer:
    """A command with the options of ``keisei train`` that only saves its configuration."""
    application = typer.Typer(pretty_exceptions_enable=False)

    @application.command(cls=TrainCommand)
    @with_config_options(TRAIN_FLAGS)
    def train(options: ConfigOptions) -> None:
        save_config(options.load(), saved)

    return application


def saved_config(folder: Path, *arguments: str) -> AppConfig:
    saved = folder / "config.json"
    result = CliRunner().invoke(app(saved), arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return load_saved_config(saved)


def test_without_flags_the_defaults_are_saved(tmp_path: Path) -> None:
    assert saved_config(tmp_path) == AppConfig()


@pytest.mark.parametrize(
    ("arguments", "path", "value"),
    [
        (["--model", "transformer"], "model.type", "transformer"),
        (["--input_features", "core46+check"], "env.input_features", "core46+check"),
        (["--tower_depth", "7"], "model.tower_depth", 7),
        (["--tower_width", "96"], "model.tower_width", 96),
        (["--se_ratio", "0"], "model.se_ratio", 0.0),
        (["--mixed_precision"], "device.mixed_precision", "auto"),
        (["--mixed_precision", "off"], "device.mixed_precision", "off"),
        (["--mixed_precision", "bf16"], "device.mixed_precision", "bf16"),
        (["--mixed_precision=fp16"], "device.mixed_precision", "fp16"),
        (["--ddp"], "parallel.ddp", True),
        (["--name", "first"], "run.name", "first"),
        (["--seed", "0"], "run.seed", 0),
        (["--seed", "9"], "run.seed", 9),
        (["--set", "ppo.epochs=4"], "ppo.epochs", 4),
    ],
)
def test_a_flag_changes_the_saved_config_and_nothing_else(
    tmp_path: Path, arguments: list[str], path: str, value: object
) -> None:
    config = saved_config(tmp_path, *arguments)
    assert config == load_config(sweep={path: value})
    section, field = path.split(".")
    assert getattr(getattr(config, section), field) == value


def test_flags_override_the_file_and_settings_override_flags(tmp_path: Path) -> None:
    config = saved_config(
        tmp_path,
        *("--config", "laptop", "--tower_depth", "6", "--tower_width", "32"),
        *("--set", "model.tower_width=48", "--set", "run.seed=1"),
    )
    assert (config.model.tower_depth, config.model.tower_width) == (6, 48)
    assert config.run.seed == 1
    assert config.run.max_minutes == 60


def test_a_saved_config_is_a_start_for_another_run(tmp_path: Path) -> None:
    first = saved_config(tmp_path, "--tower_depth", "3", "--name", "first")
    second = saved_config(tmp_path, "--config", str(tmp_path / "config.json"), "--seed", "5")
    assert second == load_config(
        flags={"model.tower_depth": 3, "run.name": first.run.name, "run.seed": 5}
    )


def test_an_option_without_its_value_takes_nothing_from_the_next_one(tmp_path: Path) -> None:
    config = saved_config(tmp_path, "--mixed_precision", "--seed", "3")
    assert (config.device.mixed_precision, config.run.seed) == ("auto", 3)


def test_values_that_are_not_allowed_are_refused_by_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^model\.tower_depth: 0 is not allowed: should be gr"):
        saved_config(tmp_path, "--tower_depth", "0")
    with pytest.raises(ConfigError, match=r"^device\.mixed_precision: fp8 is not allowed"):
        saved_config(tmp_path, "--mixed_precision", "fp8")
    with pytest.raises(ConfigError, match=r"^run\.name: .* must be a plain directory name"):
        saved_config(tmp_path, "--name", "a/b")


def test_help_texts_are_the_descriptions_of_the_fields(tmp_path: Path) -> None:
    helps = {
        parameter.opts[0]: getattr(parameter, "help", None)
        for parameter in get_command(app(tmp_path)).params
    }
    for option, path in {
        "--model": "model.type",
        "--input_features": "env.input_features",
        "--tower_depth": "model.tower_depth",
        "--tower_width": "model.tower_width",
        "--se_ratio": "model.se_ratio",
        "--mixed_precision": "device.mixed_precision",
        "--name": "run.name",
        "--seed": "run.seed",
    }.items():
        section, field = path.split(".")
        description = sections()[section].model_fields[field].description
        assert description
        assert (helps[option] or "").startswith(description)
    assert {"--config", "--set"} < set(helps)
    assert all(helps.values())


def test_commands_share_the_flags_of_the_network() -> None:
    commands = {command.name: command for command in get_group(keisei_app).commands.values()}
    options = {
        name: [parameter.opts[0] for parameter in commands[name].params]
        for name in ("train", "describe")
    }
    flags = ["--model", "--input_features", "--tower_depth", "--tower_width", "--se_ratio"]
    assert options["describe"] == ["--config", *flags, "--set", "--json"]
    more = ["--mixed_precision", "--ddp", "--name", "--seed"]
    more += ["--set", "--resume", "--profile", "--json"]
    assert options["train"] == ["--config", *flags, *more]
