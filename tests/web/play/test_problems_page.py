"""Words of the page with mate problems, in its language."""

import pytest

pytest.importorskip("nicegui")

from keisei.play.mate_problems import MateProblem, ProblemSession
from keisei.shogi.types import Move
from keisei.web import languages
from keisei.web.play.problems_page import move_hint, piece_hint, solution_text

PROBLEM = MateProblem("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", (Move.from_usi("G*5b"),))


def test_hints_and_solution_in_english() -> None:
    assert piece_hint(Move.from_usi("3c2b+")) == "Look at 3c."
    assert piece_hint(Move.from_usi("G*5b")) == "Drop a piece: gold."
    assert move_hint(ProblemSession(PROBLEM), Move.from_usi("G*5b"), "letters") == (
        "The move is G*5b."
    )


def test_hints_and_solution_in_japanese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "page_language", lambda: "ja")
    assert piece_hint(Move.from_usi("3c2b+")) == "3三に注目してください。"
    assert piece_hint(Move.from_usi("G*5b")) == "金を打ちます。"
    hint = move_hint(ProblemSession(PROBLEM), Move.from_usi("G*5b"), "kanji")
    assert hint == "正解は☗５二金です。"
    assert solution_text(PROBLEM, "kanji") == "解答：☗５二金"
