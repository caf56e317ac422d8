"""The page with mate problems, without a browser: its words, and one thread at a time."""

import asyncio
import threading
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

pytest.importorskip("nicegui")

from nicegui import Client, ui
from nicegui.testing.user_simulation import user_simulation

from keisei.play.mate_problems import MateProblem, ProblemSession, read_problems
from keisei.shogi.types import Move
from keisei.web import languages
from keisei.web.play import error_wording
from keisei.web.play.problems_page import ProblemsPage, move_hint, piece_hint, solution_text

if TYPE_CHECKING:
    from nicegui.testing import User


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


def test_illegal_moves_are_explained_in_japanese(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (languages, error_wording):
        monkeypatch.setattr(module, "page_language", lambda: "ja")
    page = ProblemsPage.__new__(ProblemsPage)
    page._session, page._status, page._board = ProblemSession(PROBLEM), Mock(), Mock()
    asyncio.run(page._answer("R*5b"))
    assert page._status.text == "R*5b: 先手は飛を持っていません"
    page._board.refuse.assert_called_once()


async def until_set(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 60)


async def story_of(user: "User", monkeypatch: pytest.MonkeyPatch) -> None:
    problem = read_problems()[0]
    entered, leave = threading.Event(), threading.Event()
    inside: list[str] = []
    answer = ProblemSession.answer

    def slowly(name: str) -> None:
        inside.append(name)
        entered.set()
        assert leave.wait(60)

    def slow_answer(session: ProblemSession, move: Move) -> str:
        slowly("answer")
        return answer(session, move)

    def slow_hint(_: ProblemSession) -> Move:
        slowly("hint")
        return problem.solution[0]

    monkeypatch.setattr(ProblemSession, "answer", slow_answer)
    monkeypatch.setattr(ProblemSession, "hint", property(slow_hint))
    pages: list[ProblemsPage] = []
    ui.page("/")(lambda: pages.append(ProblemsPage([problem], "1", address="/")))
    await user.open("/")
    (page,) = pages

    user.find("Hint").click()
    await until_set(entered)
    with page._board:
        page._move(problem.solution[0].usi)
    user.find("Solution").click()
    await asyncio.sleep(0.05)
    assert page._session.game.moves == [], "the hint's thread reads the position"
    leave.set()
    await user.should_see("Look at" if problem.solution[0].from_square is not None else "Drop")

    entered.clear()
    leave.clear()
    with page._board:
        page._move(problem.solution[0].usi)
    await until_set(entered)
    user.find("Hint").click()
    user.find("Solution").click()
    await asyncio.sleep(0.05)
    assert inside == ["hint", "answer"]
    assert page._session.game.moves == [], "the answer's thread changes the position"
    leave.set()
    await user.should_see("The problem is solved" if problem.plies == 1 else "Right. Go on.")
    user.find("Solution").click()
    await user.should_see("Solution: ")


def test_only_one_thread_works_on_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with user_simulation() as user:
            try:
                await story_of(user, monkeypatch)
            finally:
                Client.page_routes.clear()  # else the modules of the pages were unloaded

    asyncio.run(asyncio.wait_for(story(), 120))
