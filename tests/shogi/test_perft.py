"""Perft: published counts, and two other libraries on positions of our own."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from keisei.shogi.game import ShogiGame
from keisei.shogi.perft import perft
from tests.oracles.libraries import PERFTS
from tests.positions import random_endgames, random_games
from tests.sampling import IS_COMPILED

START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
MATSURI = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1"
PUBLISHED = {
    START: (30, 900, 25_470, 719_731, 19_861_490),
    MATSURI: (207, 28_684, 4_809_015, 516_925_165),
    "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1": (593, 105_677, 53_393_368),
    "l4S2l/4g1gs1/5p1p1/pr2N1pkp/4Gn3/PP3PPPP/2GPP4/1K7/L3r+s2L w BS2N5Pb 1": (
        98,
        15_850,
        1_114_656,
    ),
    "6n1l/2+S1k4/2lp4p/1np1B2b1/3PP4/1N1S3rP/1P2+pPP+p1/1p1G5/3KG2r1 b GSN2L4Pgs2p 1": (
        246,
        41_605,
        8_420_492,
    ),
    "lnsgkgsnl/1r7/p1ppp1bpp/1p3pp2/7P1/2P6/PP1PPPP1P/1B3S1R1/LNSGKG1NL b - 9": (
        31,
        1_177,
        37_189,
        1_307_221,
    ),
}
CASES = [
    (sfen, depth, nodes)
    for sfen, counts in PUBLISHED.items()
    for depth, nodes in enumerate(counts, 1)
    if IS_COMPILED or nodes <= 30_000
]


@pytest.mark.kernels
@pytest.mark.parametrize(("sfen", "depth", "nodes"), CASES)
def test_published_counts(sfen: str, depth: int, nodes: int) -> None:
    position = ShogiGame(sfen).position
    before = position.copy()
    assert perft(position, depth) == nodes
    assert position == before


@pytest.mark.kernels
@pytest.mark.parametrize(("sfen", "depth", "nodes"), [case for case in CASES if case[2] < 2e6])
def test_playing_every_leaf_counts_the_same(sfen: str, depth: int, nodes: int) -> None:
    if not IS_COMPILED and nodes > 1_000:
        pytest.skip("too slow as plain Python")
    assert perft(ShogiGame(sfen).position, depth, bulk=False) == nodes


def test_depth_zero_is_one_leaf() -> None:
    assert perft(ShogiGame().position, 0) == 1


@pytest.mark.parametrize("oracle", PERFTS)
@pytest.mark.parametrize("source", [random_games, random_endgames])
def test_two_libraries_count_the_same(
    oracle: Callable[[str, int], int], source: Callable[..., Iterator[ShogiGame]]
) -> None:
    """15 positions from each source, far apart, for each library."""
    step = 37 if source is random_games else 1
    for game in itertools.islice(source(seed=3), 0, 15 * step, step):
        sfen = game.sfen()
        assert perft(game.position, 2) == oracle(sfen, 2), sfen
