"""Analysis of positions and games by a network: values, candidate moves, blunders, comments.

Pictures are drawn by `keisei.analysis.game_plot`, which needs matplotlib.
"""

from keisei.analysis.analysis_session import (
    AnalysisSession,
    SearchInfo,
    SearchLine,
    SearchStatus,
)
from keisei.analysis.annotation import annotated
from keisei.analysis.game_analysis import GameAnalysis, MoveAnalysis, analyze_game
from keisei.analysis.position_analysis import (
    Candidate,
    PositionAnalysis,
    Reviewer,
    analyze_position,
)

__all__ = [
    "AnalysisSession",
    "Candidate",
    "GameAnalysis",
    "MoveAnalysis",
    "PositionAnalysis",
    "Reviewer",
    "SearchInfo",
    "SearchLine",
    "SearchStatus",
    "analyze_game",
    "analyze_position",
    "annotated",
]
