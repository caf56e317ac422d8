"""Hypothesis strategies for diagrams that can be drawn, whether or not they can be played from."""

from hypothesis import strategies as st

from keisei.constants import HAND_LIMITS, NUM_SQUARES
from keisei.shogi.types import PIECE_BY_SYMBOL, Color, Diagram

_contents = st.sampled_from([None, *PIECE_BY_SYMBOL.values()])
_hands = st.tuples(*(st.integers(0, limit) for limit in HAND_LIMITS))

diagrams = st.builds(
    Diagram,
    board=st.lists(_contents, min_size=NUM_SQUARES, max_size=NUM_SQUARES).map(tuple),
    hands=st.tuples(_hands, _hands),
    turn=st.sampled_from(Color),
    move_number=st.integers(1, 30_000),
)
