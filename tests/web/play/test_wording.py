"""Words of the page with the board: sides, results, moves that are heard, strength."""

import re
from dataclasses import replace

import pytest

pytest.importorskip("nicegui")

from keisei.evaluation import level_ratings
from keisei.evaluation.level_ratings import level_bound, level_rating
from keisei.levels import LEVELS, MAX_LEVEL
from keisei.play.session import End, GameSession
from keisei.shogi.notation.japanese import HANDICAPS
from keisei.shogi.notation.record import Ending, Replay
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.types import Color, Move
from keisei.web import languages
from keisei.web.play.catalogue import BUILTIN_ENTRY, NETWORK_LEVELS
from keisei.web.play.wording import (
    end_text,
    result_text,
    side_texts,
    spoken_move,
    strength_text,
)

EVEN, TWO_PIECES = HANDICAPS["平手"], HANDICAPS["二枚落ち"]


def test_the_sides_of_a_handicap_game(monkeypatch: pytest.MonkeyPatch) -> None:
    assert side_texts(EVEN) == side_texts(TWO_PIECES) == ["Black", "White"]
    monkeypatch.setattr(languages, "page_language", lambda: "ja")
    assert side_texts(EVEN) == ["先手", "後手"]
    assert side_texts(TWO_PIECES) == ["下手", "上手"]
    end = End(Ending.RESIGNATION, Color.WHITE)
    assert end_text(end, EVEN) == "後手の勝ちです（投了）"
    assert end_text(end, TWO_PIECES) == "上手の勝ちです（投了）"
    assert end_text(End(Ending.INTERRUPTED, None), EVEN) == "勝敗なし（中断）"
    move = Move.from_usi("5a6b")
    assert spoken_move(TWO_PIECES, Replay(TWO_PIECES), move) == "上手、6二玉。"


def test_a_handicap_game_without_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "page_language", lambda: "ja")
    session = GameSession(format_sfen(TWO_PIECES), people=())
    session.finish(Ending.RESIGNATION)
    assert result_text(session) == "下手の勝ちです（投了）"


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_says_how_strong_it_is_and_whom_it_beats(level: int) -> None:
    text = strength_text(BUILTIN_ENTRY, NETWORK_LEVELS[level - 1])
    rating, bound = level_rating(level), level_bound(level)
    if rating is not None:
        assert text.startswith(f"Elo {rating}: ")
    elif bound is not None:
        assert text.startswith(f"above the scale: {bound} or more; nearly always beats the bot ")
    else:
        assert level == MAX_LEVEL
        assert text.startswith(f"all that the network has, above Elo {level_rating(level - 1)}: ")
    assert re.search("(nearly always beats|of 10 games against) the bot “.+”$", text)


def test_what_is_said_of_the_highest_level(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: dict[str, dict[str, int]] = {"ratings": {"9": 3438}}
    monkeypatch.setattr(level_ratings, "_figures", lambda: figures)
    strongest, weakest = NETWORK_LEVELS[-1], NETWORK_LEVELS[0]
    assert strength_text(BUILTIN_ENTRY, strongest) == (
        "all that the network has, above Elo 3438: wins 9 or more of 10 games against the bot "
        "“4 plies ahead”"
    )
    assert strength_text(BUILTIN_ENTRY, weakest) == ""
    figures["bounds"] = {"10": 4105}
    assert strength_text(BUILTIN_ENTRY, strongest) == (
        "above the scale: 4105 or more; nearly always beats the bot “4 plies ahead”"
    )
    another = replace(BUILTIN_ENTRY, spec="run:mine")
    assert strength_text(another, strongest) == "all that the network has"
    figures.clear()
    figures["ratings"] = {}
    assert strength_text(BUILTIN_ENTRY, strongest) == "all that the network has"
