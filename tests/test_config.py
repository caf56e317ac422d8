"""The configuration: merged in one way, refused with good reasons, saved and read back the same."""

import ast
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given, reject, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from keisei import config_schema, constants
from keisei.config import (
    ConfigError,
    load_config,
    load_saved_config,
    recipes,
    save_config,
    sections,
)
from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError

CHECKOUT = Path(__file__).parents[1]
PATHS = [
    f"{name}.{field}" for name, section in sections().items() for field in section.model_fields
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for one file, the same for all examples of a test."""
    return tmp_path_factory.mktemp("config") / "config.yaml"


def load_text(file: Path, text: str) -> AppConfig:
    file.write_text(text, encoding="utf-8")
    return load_config(file)


def problems(file: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load_text(file, text)
    return caught.value.problems


def field_of(config: AppConfig, path: str) -> object:
    section, field = path.split(".")
    return getattr(getattr(config, section), field)


# Random configurations, made from the schema itself.


def values(schema: dict[str, Any]) -> st.SearchStrategy[object]:
    """Values that the JSON schema of a field allows."""
    if "anyOf" in schema:
        return st.one_of([values(choice) for choice in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    strategies: dict[str, st.SearchStrategy[object]] = {
        "boolean": st.booleans(),
        "integer": st.integers(
            schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1),
            schema.get("maximum", 10**12),
        ),
        "null": st.none(),
        "number": st.floats(
            schema.get("minimum", schema.get("exclusiveMinimum")),
            schema.get("maximum", schema.get("exclusiveMaximum")),
            exclude_min="exclusiveMinimum" in schema,
            exclude_max="exclusiveMaximum" in schema,
            allow_nan=False,
            allow_infinity=False,
        ),
        "string": st.text(st.characters(exclude_categories=("Cc", "Cs"))),
    }
    if schema["type"] == "array":
        return st.lists(values(schema["items"]), max_size=3)
    return strategies[schema["type"]]


NAMES_WITH_RULES = {
    "env.input_features": st.sampled_from(["core46", "core46+check", "core46+prom_zone+last2ply"]),
    "run.name": st.text("abc -._形勢", max_size=8),
}


FIELD_VALUES = {
    f"{name}.{field}": values(schema)
    for name, section in sections().items()
    for field, schema in section.model_json_schema()["properties"].items()
} | NAMES_WITH_RULES


@st.composite
def configs(draw: st.DrawFn) -> AppConfig:
    """Configurations that differ from the defaults in a few fields."""
    changed = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=8))
    try:
        return load_config(flags={path: draw(FIELD_VALUES[path]) for path in changed})
    except ConfigError:  # fields that are allowed one by one, but not together
        reject()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)
paths = st.sampled_from([*PATHS, *sections()]) | st.text()


# Merging.


def test_without_a_file_the_defaults_hold() -> None:
    assert load_config() == AppConfig()


numbers = st.none() | st.integers(1, 9)


@settings(deadline=None)
@given(numbers, numbers, numbers, numbers)
def test_sweeps_override_settings_override_flags_override_files_override_defaults(
    file: Path, in_file: int | None, flag: int | None, setting: int | None, sweep: int | None
) -> None:
    file.write_text("" if in_file is None else f"ppo: {{epochs: {in_file}, gamma: 0.5}}")
    config = load_config(
        file,
        [] if setting is None else [f"ppo.epochs={setting}"],
        flags={} if flag is None else {"ppo.epochs": flag},
        sweep={} if sweep is None else {"ppo.epochs": sweep},
    )
    default = AppConfig().ppo.epochs
    given_values = [v for v in (default, in_file, flag, setting, sweep) if v is not None]
    assert config.ppo.epochs == given_values[-1]
    assert config.ppo.gamma == (AppConfig().ppo.gamma if in_file is None else 0.5)


def test_of_two_overrides_the_later_wins() -> None:
    overrides = ["ppo.epochs=1", "ppo={epochs: 2, gamma: 0.5}", "ppo.epochs=3"]
    ppo = load_config(overrides=overrides).ppo
    assert (ppo.epochs, ppo.gamma) == (3, 0.5)


def test_values_are_judged_after_merging(file: Path) -> None:
    file.write_text("ppo: {epochs: nonsense, ema_kl: 0.1}")
    config = load_config(file, ["ppo.ema_decay=0.99"], sweep={"ppo.epochs": 2})
    assert (config.ppo.epochs, config.ppo.ema_kl) == (2, 0.1)


def test_overrides_do_not_hide_a_broken_section(file: Path) -> None:
    file.write_text("ppo: 3")
    with pytest.raises(ConfigError, match=r"^ppo: 3 is not allowed: should be settings"):
        load_config(file, ["ppo.epochs=2"])


@pytest.mark.parametrize("text", ["", "# nothing", "ppo:", "ppo:\n  # epochs: 3\nrun:", "---"])
def test_what_is_commented_out_changes_nothing(file: Path, text: str) -> None:
    assert load_text(file, text) == AppConfig()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("device.compile=on", "on"),
        ("device.mixed_precision=off", "off"),
        ("device.device=cuda:1", "cuda:1"),
        ("env.declaration=27", "27"),
        ("evaluation.opponents=[random, alphabeta:2]", ("random", "alphabeta:2")),
        ("evaluation.opponents=[]", ()),
        ("logging.tensorboard=false", False),
        ("ppo.learning_rate=6e-4", 6e-4),
        ("ppo.minibatch_size=auto", "auto"),
        ("ppo.minibatch_size=64", 64),
        ("ppo.target_kl=0.1", 0.1),
        ("ppo.target_kl=none", None),
        ("ppo.target_kl=", None),
        ("run.name=2024-01-01", "2024-01-01"),
        ("run.name='none'", "none"),
        ("run.root=a=b", "a=b"),
        ("run.total_timesteps=1_000", 1000),
    ],
)
def test_the_field_decides_what_a_text_means(file: Path, setting: str, value: object) -> None:
    path, text = setting.split("=", 1)
    section, field = path.split(".")
    assert field_of(load_config(overrides=[setting]), path) == value
    assert field_of(load_text(file, f"{section}:\n  {field}: {text}"), path) == value
    assert field_of(load_text(file, f"{path}: {text}"), path) == value


# Invalid settings and their messages.


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ppo: {clip_range: 3}", "ppo.clip_range: 3 is not allowed: should be less than 1"),
        ("ppo: {epochs: 2.5}", "ppo.epochs: 2.5 is not allowed: should be a whole number"),
        ("ppo: {epochs: true}", "ppo.epochs: true is not allowed: should be a whole number"),
        ("ppo: {gamma: x y}", "ppo.gamma: x y is not allowed: should be a number"),
        ("ppo: {value_weight: inf}", "ppo.value_weight: inf is not allowed: should be a finite"),
        ("ppo: {entropy: .nan}", "ppo.entropy: .nan is not allowed: should be a number"),
        ("ppo: {mirror: maybe}", "ppo.mirror: maybe is not allowed: should be true or false"),
        ("ppo: {gamma: }", "ppo.gamma: nothing is not allowed: should be a number"),
        (
            "ppo: {minibatch_size: big}",
            "ppo.minibatch_size: big is not allowed: should be a whole number or 'auto'",
        ),
        ("ppo: {ema_kl: 1}", "ppo: ema_kl needs averaged weights"),
        ("device: {compile: of}", "of is not allowed: should be 'off', 'on' or 'auto'"),
        *(
            (f"device: {{device: '{name}'}}", "is not allowed: should be auto, cpu, mps, cuda or")
            for name in ("gpu", "CUDA", "", "cuda:", "cuda:x", "cuda:-1", "cuda:01", "cuda:256")
        ),
        ("env: {input_features: core9}", "env.input_features: core9 is not allowed: feature set"),
        ("run: {name: a/b}", "run.name: a/b is not allowed: must be a plain directory name"),
        ("run: {name: [a]}", "run.name: ['a'] is not allowed: should be text"),
        ('run: {name: "\\a"}', "run.name: '\\x07' is not allowed: should be text without control"),
        ('run: {name: "\\ud800"}', "run.name: '\\ud800' is not allowed: should be valid Unicode"),
        (f"run: {{seed: {'9' * 5000}}}", f"run.seed: {'9' * 60}... is not allowed: should have"),
        ("evaluation: {opponents: me}", "me is not allowed: should be a list such as"),
        ("logging: {plugins: [a, [b]]}", "logging.plugins[1]: ['b'] is not allowed: should be"),
        ("ppo: {clip_rnge: 0.1}", "ppo.clip_rnge: unknown field: did you mean ppo.clip_range?"),
        ("ppo: {tower_depth: 1}", "unknown field: did you mean model.tower_depth?"),
        ("ppo: {qqq: 1}", "ppo.qqq: unknown field: the fields of ppo are epochs, learn_share"),
        ("evaluation: {'': 1}", "evaluation.: unknown field: the fields of evaluation are"),
        ("modle: {tower_depth: 1}", "modle: unknown section: did you mean model?"),
        ("clip_range: 0.1", "clip_range: unknown section: did you mean ppo.clip_range?"),
        ("mate_plies: 1", "did you mean selfplay.mate_plies or evaluation.mate_plies?"),
        ("qqq: 1", "qqq: unknown section: the sections are run, env, model"),
        ("~: 1", "None: unknown section"),
        ("[ppo, run]", "should be sections with settings"),
        ("ppo", "should be sections with settings"),
        ("ppo:\n  epochs: 1\n  epochs: 2", "config.yaml, line 3, column 3: duplicate key epochs"),
        ("ppo: {}\n'ppo': {}", "config.yaml, line 2, column 1: duplicate key ppo"),
        ("ppo:\n  epochs: [", "config.yaml, line 2, column 12: "),
        ("ppo: epochs: 3", "config.yaml, line 1, column 12: mapping values are not allowed"),
        ("ppo:\n  a: \x07", "config.yaml, line 2, column 6: character 7 is not allowed"),
        ('run: {name: "\\UFFFFFFFF"}', "config.yaml, line 1, column "),
        ("? [a]\n: b", "config.yaml, line 1, column 3: found unhashable key"),
        ("a: &a [*a]", "config.yaml, line 1, column 8: aliases (*name) are not supported"),
        ("--- 1\n--- 2", "config.yaml, line 2, column 1: "),
        ("[" * 1000, ": nested too deeply"),
    ],
)
def test_problems_are_explained(file: Path, text: str, problem: str) -> None:
    (found,) = problems(file, text)
    assert problem in found


def test_every_problem_is_listed(file: Path) -> None:
    text = "ppo: {clip_range: 3, epochs: 0}\nrun: {sed: 1}"
    assert set(problems(file, text)) == {
        "ppo.clip_range: 3 is not allowed: should be less than 1",
        "ppo.epochs: 0 is not allowed: should be greater than 0",
        "run.sed: unknown field: did you mean run.seed?",
    }
    with pytest.raises(KeiseiError, match=r"^3 problems in the configuration:\n  run\.sed: "):
        load_config(file)


@pytest.mark.parametrize("text", ["ppo.epochs", "", "=3"])
def test_an_override_without_name_or_value_is_explained(text: str) -> None:
    message = f"^'{text}' is not an override: write section.field=value$"
    with pytest.raises(ConfigError, match=message):
        load_config(overrides=[text])


def test_an_override_that_is_no_yaml_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^value of ppo\.epochs, line 1, column 3: "):
        load_config(overrides=["ppo.epochs=[1"])


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["parallel.backend=ray", "parallel.inference=server"], "can't be used with backend=ray"),
        (["parallel.ray_address=auto"], "ray_address needs backend=ray"),
    ],
)
def test_settings_of_workers_go_together(settings: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"^parallel: .*{problem}"):
        load_config(overrides=settings)


def test_files_in_other_encodings_are_refused(file: Path) -> None:
    file.write_bytes("run:\n  name: 形".encode("shift_jis"))
    with pytest.raises(ConfigError, match=r"config\.yaml, line 2, column 9: not UTF-8"):
        load_config(file)


def test_a_byte_order_mark_does_no_harm(file: Path) -> None:
    file.write_text("run: {name: 形勢}", encoding="utf-8-sig")
    assert load_config(file).run.name == "形勢"


def test_a_missing_file_names_the_recipes() -> None:
    with pytest.raises(KeiseiError, match=r"cannot read quickstrat: .*; the recipes are .*, quick"):
        load_config("quickstrat")
    with pytest.raises(KeiseiError, match=r"; did you mean quickstart\?"):
        load_config("quickstrat")


def test_tags_do_not_run_code(file: Path) -> None:
    (found,) = problems(file, "!!python/object/apply:os.system ['exit 1']")
    assert "should be sections" in found


yaml_like = st.text("abc:-[]{}#&*!|>'\"%@`,? \n\t\\0.e+~<=xUu")


@settings(deadline=None)
@given(st.text() | yaml_like)
@example("ppo: &x {epochs: 3}\nrun: *x")
def test_any_text_is_a_configuration_or_a_config_error(file: Path, text: str) -> None:
    file.write_bytes(text.encode())
    with suppress(ConfigError):
        load_config(file)


@settings(deadline=None)
@given(st.dictionaries(paths, anything), st.lists(st.text() | yaml_like))
def test_any_values_are_a_configuration_or_a_config_error(
    sweep: dict[str, object], overrides: list[str]
) -> None:
    with suppress(ConfigError):
        load_config(overrides=overrides, sweep=sweep)


# Recipes.


def test_the_recipes_can_be_called_by_name() -> None:
    assert {"gpu", "laptop", "overnight", "quickstart"} <= set(recipes())
    for name, path in recipes().items():
        assert load_config(name) == load_config(path) != AppConfig()


def test_recipes_end_in_time() -> None:
    minutes = [load_config(name).run.max_minutes for name in ("quickstart", "laptop", "overnight")]
    assert minutes == [5, 60, 600]


def test_wheels_carry_the_recipes() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = project["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"]["force-include"] == {"configs": "keisei/configs"}
    assert "configs" in targets["sdist"]["include"]


# Saving.


@settings(deadline=None)
@given(configs())
def test_what_is_saved_is_read_back(file: Path, config: AppConfig) -> None:
    save_config(config, file)
    assert load_saved_config(file) == config
    assert load_config(file) == config  # JSON is YAML: a run's settings are also a start
    text = yaml.safe_dump(config.model_dump(mode="json"))
    assume(not re.search(r"[:-] none$", text, re.M | re.I))  # a text that is null unless quoted
    file.write_text(text, encoding="utf-8")
    assert load_config(file) == config


def test_damaged_saves_are_explained(file: Path) -> None:
    for text, problem in {
        '{"ppo": {"epochs": 1': r"config.yaml: Invalid JSON: EOF",
        '{"ppo": {"epochs": 0}}': r"config.yaml: ppo.epochs: 0 is not allowed",
        "[]": r"config.yaml: \[\] is not allowed",
        '{"p.po": {}}': r"config.yaml: p\.po: unknown section: the sections are",
    }.items():
        file.write_text(text)
        with pytest.raises(ConfigError, match=problem):
            load_saved_config(file)


# The schema.


@pytest.mark.parametrize("path", PATHS)
def test_configurations_cannot_be_changed(path: str) -> None:
    config = AppConfig()
    section, field = path.split(".")
    with pytest.raises(ValidationError, match="frozen"):
        setattr(getattr(config, section), field, field_of(config, path))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(config, section, getattr(config, section))


def test_every_field_is_described_in_one_line() -> None:
    for section in sections().values():
        for name, field in section.model_fields.items():
            description = field.description or ""
            assert description.endswith("."), name
            assert "\n" not in description, name
            assert len(description) <= 100, name


def test_all_of_the_configuration_lies_in_sections() -> None:
    assert list(sections()) == list(AppConfig.model_fields)


def test_defaults_stand_in_the_schema() -> None:
    tree = ast.parse(Path(config_schema.__file__).read_text(encoding="utf-8"))
    defaults = [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Field" and node.args
    ]
    assert len(defaults) == len(PATHS), "each field has one"
    named = {
        name.id for default in defaults for name in ast.walk(default) if isinstance(name, ast.Name)
    }
    assert named == {"RUNS"}, "of the directory, which commands read without the configuration"


def test_no_constant_is_a_setting() -> None:
    fields = {field for section in sections().values() for field in section.model_fields}
    assert fields.isdisjoint(name.lower() for name in vars(constants) if name.isupper())


# Sizes.


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["model.tower_width=1000000000"], "model.tower_width: 1000000000 is not allowed: .* 4096"),
        (["model.tower_depth=200", "model.tower_width=4096"], "model: 200 blocks of 4096 channels"),
        (["env.num_games=1000000000"], "env.num_games: 1000000000 is not allowed: .* 1048576"),
        (["env.num_games=1048576", "selfplay.rollout_plies=65536"], "68,719,476,736 plies for an"),
        (["ppo.minibatch_size=1000000000"], "ppo.minibatch_size: 1000000000 is not allowed"),
        (["parallel.num_workers=1000000000"], "parallel.num_workers: 1000000000 is not allowed"),
        (["device.threads=1000000000"], "device.threads: 1000000000 is not allowed"),
        (["evaluation.games=1000000000"], "evaluation.games: 1000000000 is not allowed"),
        (["run.name=" + "x" * 5000], "run.name: x+... is not allowed: .* 4096 characters"),
    ],
)
def test_sizes_that_no_memory_holds_are_refused(overrides: list[str], problem: str) -> None:
    """Before, these ended in tracebacks, or in nothing for minutes."""
    with pytest.raises(ConfigError, match=problem):
        load_config(None, overrides)


def test_every_number_has_an_upper_bound() -> None:
    unbounded = [
        f"{section}.{field}"
        for section, schema in sections().items()
        for field, value in schema.model_json_schema()["properties"].items()
        for choice in value.get("anyOf", [value])
        if choice.get("type") == "integer" and not choice.keys() & {"maximum", "exclusiveMaximum"}
    ]
    assert unbounded == ["selfplay.mate_plies", "evaluation.mate_plies"]  # a list of values
