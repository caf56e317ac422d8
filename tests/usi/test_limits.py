"""Limits of ``go``: never more than the clock has, and garbage is reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.shogi.types import Color
from keisei.usi.limits import FIRST_COST, AnswerCost, SearchLimits, TimePlan, parse_go

MS = st.integers(0, 3_600_000)


def seconds(text: str, *, turn: Color = Color.BLACK, ply: int = 0, delay: float = 0.1) -> float:
    plan = parse_go(text.split())[0].time_plan(turn, ply=ply, delay=delay)
    assert plan is not None
    return plan.usual


def test_all_arguments_are_parsed() -> None:
    text = (
        "btime 1 wtime 2 byoyomi 3 binc 4 winc 5 movetime 6 nodes 7 depth 8 infinite ponder mate "
        "searchmoves 7g7f P*5e"
    )
    limits, unknown = parse_go(text.split())
    assert unknown == []
    assert limits == SearchLimits(
        black_time=1,
        white_time=2,
        byoyomi=3,
        black_increment=4,
        white_increment=5,
        move_time=6,
        nodes=7,
        depth=8,
        infinite=True,
        ponder=True,
        mate=True,
        moves=("7g7f", "P*5e"),
    )


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("nodes", ["nodes"]),
        ("nodes x", ["nodes", "x"]),
        ("btime 1e3 hello", ["btime", "1e3", "hello"]),
        ("nodes ١٢", ["nodes", "١٢"]),
        ("", []),
    ],
)
def test_unknown_arguments_are_returned(text: str, unknown: list[str]) -> None:
    assert parse_go(text.split()) == (SearchLimits(), unknown)


def test_mates_have_their_own_clock() -> None:
    assert parse_go(["mate", "infinite"])[0] == SearchLimits(mate=True, infinite=True)
    assert parse_go(["mate", "5000"])[0] == SearchLimits(mate=True, move_time=5000)
    assert parse_go(["mate"])[0] == SearchLimits(mate=True)


def test_an_overdrawn_clock_is_an_empty_one() -> None:
    assert parse_go(["btime", "-500"])[0] == SearchLimits(black_time=0)


@given(
    st.sampled_from(list(Color)),
    st.tuples(MS, MS, MS, MS, MS),
    st.integers(0, 1000),
    st.floats(0.0, 2.0),
)
def test_no_more_is_used_than_there_is(
    turn: Color, clock: tuple[int, int, int, int, int], ply: int, delay: float
) -> None:
    limits = SearchLimits(
        black_time=clock[0],
        white_time=clock[1],
        byoyomi=clock[2],
        black_increment=clock[3],
        white_increment=clock[4],
    )
    plan = limits.time_plan(turn, ply=ply, delay=delay)
    assert plan is not None
    left = (clock[0 if turn is Color.BLACK else 1] + clock[2]) / 1000
    increment = clock[3 if turn is Color.BLACK else 4] / 1000
    there_is = left if left > 2 * delay else left + increment
    assert 0.0 <= plan.usual <= plan.most <= max(there_is - delay, there_is / 2) + 1e-9


def test_times() -> None:
    assert seconds("byoyomi 1000") == pytest.approx(0.9)
    assert seconds("btime 0 wtime 0 byoyomi 100") == pytest.approx(0.05)
    assert seconds("movetime 500") == pytest.approx(0.4)
    assert seconds("btime 40000 wtime 80000") == pytest.approx(1.0)
    assert seconds("btime 40000 wtime 80000", turn=Color.WHITE) == pytest.approx(2.0)
    assert seconds("btime 40000 wtime 0", ply=200) == pytest.approx(2.0)
    assert seconds("btime 0 wtime 0 binc 1000 winc 0") == pytest.approx(0.8)
    assert seconds("btime 0 wtime 0 byoyomi 0") == 0.0


def test_close_moves_may_take_longer_where_there_is_main_time() -> None:
    def plan(text: str) -> TimePlan | None:
        return parse_go(text.split())[0].time_plan(Color.BLACK, ply=0, delay=0.1)

    assert plan("btime 40000 byoyomi 1000") == TimePlan(2.0, 4.0, is_saved=True)
    assert plan("btime 0 byoyomi 1000") == TimePlan(0.9, 0.9, is_saved=False)
    assert plan("movetime 1000") == TimePlan(0.9, 0.9, is_saved=False)


def test_without_a_clock_there_is_no_end_or_a_usual_one() -> None:
    for text in ("infinite", "nodes 5", "depth 5", "mate infinite"):
        assert parse_go(text.split())[0].time_plan(Color.BLACK, ply=0, delay=0.1) is None
    assert seconds("") == 1.0


def test_what_answers_cost_is_kept_for_the_moves_to_come() -> None:
    """By the clock of the GUI, which counts what the engine does not see."""
    cost = AnswerCost()
    left = 10.0
    for ply in range(0, 60, 2):
        cost.asked(Color.BLACK, ply, left, 0.0)
        cost.answered(Color.BLACK, ply, left, elapsed=0.10, cost=0.02)
        left -= 0.15  # 0.05 seconds are lost on the way
    assert cost.reserve(60) == pytest.approx(70 * 0.07 + 0.07, rel=0.02)
    assert cost.reserve(400) == pytest.approx(50 * 0.07 + 0.07, rel=0.02)


def test_the_reserve_is_for_clocks_to_which_nothing_is_added() -> None:
    def usual(text: str, reserve: float) -> float:
        limits = parse_go(text.split())[0]
        plan = limits.time_plan(Color.BLACK, ply=0, delay=0.0, reserve=reserve)
        assert plan is not None
        return plan.usual

    assert usual("btime 10000", 0.0) == pytest.approx(0.25)
    assert usual("btime 10000", 6.0) == pytest.approx(0.1)
    assert usual("btime 10000", 12.0) == 0.0
    assert usual("btime 10000 byoyomi 1000", 12.0) == pytest.approx(1.25)


def test_outliers_are_bounded_and_other_games_say_nothing() -> None:
    cost = AnswerCost()
    cost.asked(Color.BLACK, 0, 10.0, 0.0)
    cost.answered(Color.BLACK, 0, 10.0, elapsed=0.1, cost=0.02)
    cost.asked(Color.BLACK, 8, 1.0, 0.0)  # another game: the clock says nothing of the answer
    assert cost.reserve(0) == pytest.approx(101 * FIRST_COST)
    cost.answered(Color.BLACK, 8, 10.0, elapsed=0.1, cost=3600.0)
    cost.asked(Color.BLACK, 10, 9.0, 0.0)
    assert cost.reserve(400) < 50 * 2.0
