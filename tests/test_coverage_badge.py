"""The badge of the README that says how many lines the tests reach."""

import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.scripts import load_script

ROOT = Path(__file__).parents[1]
BADGE = ROOT / "docs" / "images" / "coverage.svg"


def test_the_badge_is_in_the_readme_and_was_drawn_by_the_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = load_script("coverage_badge", monkeypatch)
    assert "](docs/images/coverage.svg)" in (ROOT / "README.md").read_text("utf-8")
    drawn = BADGE.read_text("utf-8")
    found = re.search(r"<title>coverage: (\d+) %(?:, measured (.+))?</title>", drawn)
    assert found is not None, "make cover draws it"
    assert drawn == script.badge(int(found[1]), found[2] or "")
    assert int(found[1]) >= script.GATE


def test_the_gate_is_that_of_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("coverage_badge", monkeypatch)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["coverage"]["report"]["fail_under"] == script.GATE == 90


def run_script(monkeypatch: pytest.MonkeyPatch, *arguments: str, stdin: str) -> Result:
    script = load_script("coverage_badge", monkeypatch)
    app = script.typer.Typer()
    app.command()(script.main)
    return CliRunner().invoke(app, arguments, input=stdin)


@pytest.mark.parametrize(
    ("measured", "title"),
    [
        ("93\n", r"coverage: 93 %, measured \d{4}-\d\d-\d\d( at [0-9a-f]{7,})?"),
        ("", "coverage: not measured"),
    ],
)
def test_the_badge_says_what_was_measured_and_when(
    measured: str, title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_script(monkeypatch, str(tmp_path / "badge.svg"), stdin=measured)
    assert result.exit_code == 0, result.output
    assert re.search(f"<title>{title}</title>", (tmp_path / "badge.svg").read_text("utf-8"))


@pytest.mark.parametrize(
    ("measured", "is_accepted"),
    [("93", True), ("94", True), ("92", True), ("95", False), ("91", False), ("", False)],
)
def test_a_badge_that_is_more_than_a_point_off_is_refused(
    measured: str, is_accepted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    badge = tmp_path / "badge.svg"
    badge.write_text(load_script("coverage_badge", monkeypatch).badge(93), encoding="utf-8")
    before = badge.read_bytes()
    result = run_script(monkeypatch, str(badge), "--check", stdin=measured)
    assert result.exit_code == (0 if is_accepted else 1)
    assert badge.read_bytes() == before, "nothing is drawn"
    assert is_accepted or "shows 93 %" in result.output
