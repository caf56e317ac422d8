"""The names that the packages of `keisei.shogi` export."""

import subprocess
import sys

import pytest

import keisei.shogi
import keisei.shogi.notation
import keisei.shogi.render
from keisei.shogi.features import BUILT_IN_OPTIONS


@pytest.mark.parametrize("package", [keisei.shogi, keisei.shogi.notation, keisei.shogi.render])
def test_every_exported_name_exists(package: object) -> None:
    names: list[str] = package.__all__  # type: ignore[attr-defined]
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    for name in names:
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"keisei\.shogi\.notation.*'read_pgn'"):
        _ = keisei.shogi.notation.read_pgn


def test_feature_specs_list_the_feature_sets() -> None:
    specs = keisei.shogi.FEATURE_SPECS
    for name in ["core46", "core46+all", *(f"core46+{option}" for option in BUILT_IN_OPTIONS)]:
        assert specs[name] is keisei.shogi.feature_spec(name)


@pytest.mark.parametrize("module", ["shogi.notation", "shogi.render", "shogi.render.html"])
def test_each_package_can_be_imported_first_and_without_heavy_ones(module: str) -> None:
    heavy = {"matplotlib", "pydantic", "rich", "torch"}
    program = f"import sys, keisei.{module}; print(sorted({heavy} & {{*sys.modules}}))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
