"""Search: alpha-beta over material, tree search over a network, and mates.

>>> from keisei.search import TreeSearch
"""

from keisei.search.alphabeta import AlphaBeta
from keisei.search.game_search import GameSearch
from keisei.search.mates import MateRule, MateSearch
from keisei.search.mcts import PrincipalVariation, SearchResult, SearchStoppedError, TreeSearch
from keisei.search.tsume import MateSolver, MateStatus

__all__ = [
    "AlphaBeta",
    "GameSearch",
    "MateRule",
    "MateSearch",
    "MateSolver",
    "MateStatus",
    "PrincipalVariation",
    "SearchResult",
    "SearchStoppedError",
    "TreeSearch",
]
