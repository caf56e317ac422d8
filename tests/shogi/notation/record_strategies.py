"""Hypothesis strategies for records that hold everything a record can, up to its limits."""

import random
from dataclasses import replace

from hypothesis import strategies as st

from keisei.constants import MAX_MOVE_NUMBER
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.record import (
    MAX_SECONDS,
    STARTPOS,
    Ending,
    GameRecord,
    RecordedMove,
    Result,
    Variation,
)
from keisei.shogi.types import Diagram, Move
from tests.shogi.notation.random_records import crowded_start, handicap_start, random_moves

whole_seconds = st.integers(0, MAX_SECONDS).map(float) | st.just(float(MAX_SECONDS))
milliseconds = st.integers(0, 1000 * MAX_SECONDS).map(lambda number: number / 1000)
times = st.none() | whole_seconds | milliseconds

remarks = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=20)
"""Comments: every format breaks lines in its own way, but \\n they all give back."""

bookmarks = st.text(max_size=5).map(lambda text: "".join(text.split()))

endings = st.sampled_from(  # a foul of the mover himself is an illegal move in KIF and KI2
    [ending for ending in Ending if ending not in (Ending.BLACK_FOUL, Ending.WHITE_FOUL)]
)
results = st.none() | st.builds(Result, endings, times, remarks)

_parts = st.integers(0, 9_999_999)
time_limits = st.builds(TimeLimit, _parts, _parts, _parts)


@st.composite
def starts(draw: st.DrawFn) -> Diagram:
    """A start with moves to play, at any move number."""
    rng = random.Random(draw(st.integers(0, 1000)))
    kind = draw(st.sampled_from(["usual", "handicap", "crowded"]))
    usual = STARTPOS if kind == "usual" else handicap_start(rng)
    start = crowded_start(rng) if kind == "crowded" else usual
    numbers = st.just(1) | st.integers(1, MAX_MOVE_NUMBER) | st.just(MAX_MOVE_NUMBER)
    return replace(start, move_number=draw(numbers))


@st.composite
def records(draw: st.DrawFn) -> GameRecord:
    """A short game, with or without a variation."""
    rng = random.Random(draw(st.integers(0, 1000)))
    start = draw(starts())
    main = random_moves(rng, start, plies=draw(st.integers(0, 4)))
    variations = []
    if len(main) > 0 and draw(st.booleans()):
        ply = draw(st.integers(1, len(main)))
        branch = random_moves(rng, start, plies=ply + 2, stem=main[: ply - 1])
        moves = _recorded(draw, branch[ply - 1 :])
        variations.append(Variation(ply, moves, draw(results), draw(remarks)))
    return GameRecord(
        start,
        _recorded(draw, main),
        {"time": str(draw(time_limits))} if draw(st.booleans()) else {},
        draw(remarks),
        draw(results),
        variations,
    )


def _recorded(draw: st.DrawFn, moves: list[Move]) -> list[RecordedMove]:
    return [RecordedMove(move, draw(times), draw(remarks), draw(bookmarks)) for move in moves]


def kept(record: GameRecord, format_name: str) -> GameRecord:
    """The part of a record that a format can store."""
    if format_name == "CSA":
        moves = [replace(recorded, bookmark="") for recorded in record.moves]
        start = replace(record.start, move_number=1)
        result = record.result
        if result is not None and result.ending in (Ending.DEFAULT_WIN, Ending.DEFAULT_LOSS):
            result = replace(result, ending=Ending.INTERRUPTED)
        return replace(record, start=start, moves=moves, result=result, variations=[])
    variations = [
        replace(
            variation,
            moves=_retimed(variation.moves, format_name),
            result=_retimed_result(variation.result, format_name),
        )
        for variation in record.variations
    ]
    return replace(
        record,
        moves=_retimed(record.moves, format_name),
        result=_retimed_result(record.result, format_name),
        variations=variations,
    )


def _retimed(moves: list[RecordedMove], format_name: str) -> list[RecordedMove]:
    return [replace(recorded, seconds=_time(recorded.seconds, format_name)) for recorded in moves]


def _retimed_result(result: Result | None, format_name: str) -> Result | None:
    if result is None:
        return None
    return replace(result, seconds=_time(result.seconds, format_name))


def _time(seconds: float | None, format_name: str) -> float | None:
    return None if seconds is None or format_name == "KI2" else float(int(seconds))
