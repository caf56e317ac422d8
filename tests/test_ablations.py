"""``scripts/ablations.py``: its variants are valid settings, and its table says what differs."""

import json
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from keisei.config import load_config
from keisei.errors import KeiseiError
from tests.scripts import load_script


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load_script("ablations", monkeypatch)


def write_results(path: Path, scores: dict[str, tuple[float, ...]]) -> Path:
    lines = [
        json.dumps(
            {
                "variant": name,
                "seed": seed,
                "plies": 1000,
                "scores": {"alphabeta:2": score, "alphabeta:3": score - 0.1},
            }
        )
        for name, values in scores.items()
        for seed, score in enumerate(values)
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_each_variant_changes_the_recipe(script: ModuleType) -> None:
    for family in script.FAMILIES.values():
        recipe = load_config("quickstart", overrides=list(family.settings))
        changed = [
            load_config("quickstart", overrides=[*family.settings, *variant])
            for variant in family.variants.values()
        ]
        assert changed[0] == recipe
        assert all(config != recipe for config in changed[1:])


def test_only_clear_differences_have_a_verdict(script: ModuleType, tmp_path: Path) -> None:
    results = write_results(
        tmp_path / "results.jsonl",
        {
            "nothing": (0.79, 0.80, 0.81),
            "no threats": (0.69, 0.70, 0.71),
            "context 64": (0.80, 0.81, 0.82),
            "two epochs": (0.89, 0.90, 0.91),
        },
    )
    output = CliRunner().invoke(script.app, ["table", str(results)]).output
    rows = {cells[1].strip(): cells for cells in map(_cells, output.splitlines())}
    assert [cell.strip() for cell in rows["nothing"][2:5]] == ["3", "80.0%", "70.0%"]
    assert rows["no threats"][5].strip().startswith("-10.0 ±")
    verdicts = {name: rows[name][6].strip() for name in ("no threats", "context 64", "two epochs")}
    assert verdicts == {"no threats": "worse", "context 64": "", "two epochs": "better"}
    assert "hidden 64" not in rows, "without results there is no row"


def _cells(line: str) -> list[str]:
    return line.split("|")


def test_what_is_in_the_file_is_not_trained_again(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = write_results(tmp_path / "results.jsonl", {"nothing": (0.8,)})
    trained: list[tuple[tuple[str, ...], int]] = []

    def train_variant(settings: tuple[str, ...], seed: int, plies: int, root: Path) -> object:
        assert plies == 1000
        trained.append((settings, seed))
        return root

    monkeypatch.setattr(script, "train_variant", train_variant)
    monkeypatch.setattr(script, "measure", lambda *_: {"alphabeta:2": 0.5, "alphabeta:3": 0})
    options = [str(results), "--seeds", "2", "--only", "nothing", "--only", "two epochs"]
    options += ["--plies", "1000"]
    outcome = CliRunner().invoke(script.app, ["train", *options], catch_exceptions=False)
    assert outcome.exit_code == 0
    assert trained == [(("ppo.epochs=2",), 0), ((), 1), (("ppo.epochs=2",), 1)]
    assert len(script.read_results(results)) == 4
    trained.clear()
    for part in ("2/2", "1/2"):
        half = [*options, "--seeds", "3", "--part", part]
        assert CliRunner().invoke(script.app, ["train", *half]).exit_code == 0
    assert sorted(trained) == [((), 2), (("ppo.epochs=2",), 2)], "each by one of the two"


def test_networks_of_another_length_belong_in_another_file(
    script: ModuleType, tmp_path: Path
) -> None:
    results = write_results(tmp_path / "results.jsonl", {"nothing": (0.8,)})
    with pytest.raises(KeiseiError, match="holds networks of 1,000 plies"):
        script.train(results, plies=2000)


@pytest.mark.parametrize("part", ["0/2", "3/2", "2", "a/b"])
def test_a_part_that_is_none_is_refused(script: ModuleType, tmp_path: Path, part: str) -> None:
    with pytest.raises(KeiseiError, match="it must be like 1/2"):
        script.train(tmp_path / "results.jsonl", part=part)


def test_an_unknown_variant_is_named(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(KeiseiError, match="no variant more luck; there are: nothing, no threats"):
        script.train(tmp_path / "results.jsonl", only=["more luck"])
