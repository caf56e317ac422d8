"""Words about sample games, in the language of the page."""

import pytest

pytest.importorskip("nicegui")

from keisei.runs.artifacts import GameSummary, Opening
from keisei.shogi.notation.record import STARTPOS, Ending
from keisei.shogi.types import Move
from keisei.web import languages
from keisei.web.dashboard import components
from keisei.web.dashboard.games_page import _figures

SUMMARY = GameSummary(
    games=5,
    mean_plies=80.0,
    network_score=0.5,
    black_score=0.5,
    endings=((Ending.REPETITION, 3), (Ending.BLACK_FOUL, 1), (Ending.WHITE_FOUL, 1)),
    openings=((Opening(STARTPOS, (Move.from_usi("7g7f"), Move.from_usi("3c3d"))), 5),),
)


def test_figures_in_english() -> None:
    rows = {row["figure"]: row["r0"] for row in _figures([SUMMARY])}
    assert rows["endings"] == "the fourth repetition ×3, perpetual check ×2"
    assert rows["first moves"] == "P-7f P-3d ×5"
    assert rows["points of Black"] == "50 %"


def test_figures_in_japanese(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (languages, components):
        monkeypatch.setattr(module, "page_language", lambda: "ja")
    rows = {row["figure"]: row["r0"] for row in _figures([SUMMARY])}
    assert rows["対局数"] == "5"
    assert rows["終局理由"] == "千日手 ×3、連続王手の千日手 ×2"
    assert rows["最初の2手"] == "☗７六歩 ☖３四歩 ×5"
