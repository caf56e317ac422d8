"""``keisei ladder``, as a user runs it."""

import json
from pathlib import Path

import pytest
from typer.testing import Result

from keisei.commands.ladder import ladder
from keisei.errors import KeiseiError
from keisei.evaluation.scale import current_scale
from keisei.run_files import LADDER
from tests.commands.invoke import invoke

SHORT = ("--ply-limit", "60", "--threads", "1")


def keisei_ladder(*arguments: str) -> Result:
    return invoke(ladder, *SHORT, *arguments)


def test_players_play_and_are_ranked(tmp_path: Path) -> None:
    path, picture = tmp_path / "ladder.sqlite3", tmp_path / "ladder.png"
    where = ("--store", str(path))
    text = keisei_ladder(
        "random", "greedy", "alphabeta:1", "--games", "6", *where, "--plot", str(picture)
    ).stdout
    for part in ("player", "Elo", "95 %", "games", "score", "better than next",
                 "fixed", "alphabeta:1", "first move ", "draws ", "Elo: random = 0; "):  # fmt: skip
        assert part in text, part
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = keisei_ladder("random", "greedy", "alphabeta:1", "--games", "6", *where).stdout
    assert again == text, "nothing was missing"
    assert keisei_ladder(*where).stdout == text, "it is stored"
    fewer = keisei_ladder("greedy", "alphabeta:1", "--games", "6", *where).stdout
    assert "random " not in fewer.split("first move")[0], "only the given players are shown"


def test_machines_get_json(tmp_path: Path) -> None:
    where = ("--store", str(tmp_path / "ladder.sqlite3"), "--json")
    found = json.loads(keisei_ladder("greedy", "alphabeta:1", "--games", "5", *where).stdout)
    assert found["scale"] == "greedy = 0"
    (note,) = found["notes"]
    assert note.startswith("rating 0 is greedy: the scale's games have 4 opening plies")
    assert [player["rank"] for player in found["players"]] == [1, 2]
    assert {player["games"] for player in found["players"]} == {5}
    grown = json.loads(keisei_ladder("greedy", "random", "--games", "8", *where).stdout)
    assert grown["scale"] == "random = 0"
    assert {player["games"] for player in grown["players"]} == {8, 13}
    everybody = json.loads(keisei_ladder(*where).stdout)
    assert len(everybody["players"]) == 3


def test_players_are_placed_on_the_scale(tmp_path: Path) -> None:
    where = ("--store", str(tmp_path / "ladder.sqlite3"), "--json")
    few = ("--games", "2", "--max-games", "16", "--threads", "1")
    result = invoke(ladder, "alphabeta:1,margin=50", "greedy", *few, *where)
    found = json.loads(result.stdout)
    assert found["scale"] == "scale 1"
    players = {player["name"]: player for player in found["players"]}
    assert players["greedy"]["is_fixed"]
    assert players["greedy"]["elo"] > 1000
    placed = players["alphabeta:1,margin=50"]
    assert placed["low"] < placed["elo"] < placed["high"]
    assert placed["games"] == 16
    alone = json.loads(invoke(ladder, "alphabeta:1,margin=50", *few, *where).stdout)
    assert [player["name"] for player in alone["players"]] == ["alphabeta:1,margin=50"]


def test_the_usual_place_is_next_to_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeiseiError, match=r"there are no results in runs.ladder\.sqlite3"):
        keisei_ladder()
    assert not (tmp_path / "runs").exists(), "looking leaves nothing behind"
    keisei_ladder("random", "greedy", "--games", "2")
    assert (tmp_path / LADDER).is_file()


def test_mistakes_are_explained(tmp_path: Path) -> None:
    where = ("--store", str(tmp_path / "ladder.sqlite3"))
    with pytest.raises(KeiseiError, match=r"other than those of the scale needs at least two"):
        keisei_ladder("random", "random", *where)
    with pytest.raises(KeiseiError, match="there is no run or checkpoint nobody"):
        keisei_ladder("random", "nobody", *where)
    with pytest.raises(KeiseiError, match="holds no games with"):
        keisei_ladder(*where)
    (tmp_path / "text").write_text("not a database, but long enough to be taken for one" * 20)
    with pytest.raises(KeiseiError, match="it is not a result store"):
        keisei_ladder("--store", str(tmp_path / "text"))


def test_the_scale_is_shown_as_one_table() -> None:
    text = keisei_ladder("--scale").stdout
    for part in ("scale 1", "Elo", "95 %", "reference", "alphabeta:1", "fixed",
                 "4 opening plies from startpos, ply limit 512"):  # fmt: skip
        assert part in text, part
    found = json.loads(keisei_ladder("--scale", "--json").stdout)
    scale = current_scale()
    assert found["scale"] == scale.version
    assert len(found["players"]) == len(scale.references) + len(scale.file.engines)
    ratings = [player["elo"] for player in found["players"]]
    assert ratings == sorted(ratings, reverse=True)
    with pytest.raises(KeiseiError, match="--scale shows the players of the scale"):
        keisei_ladder("--scale", "greedy")
