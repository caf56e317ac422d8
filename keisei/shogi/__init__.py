"""The game of Shogi: rules, encodings and thousands of games at once, without torch.

Subpackages: `keisei.shogi.notation` reads and writes games, `keisei.shogi.render` draws positions,
`keisei.shogi.envs` has the Gymnasium and PettingZoo environments.
"""

from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.features import FEATURE_SPECS, FeatureSpec, feature_spec, register_feature
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions
from keisei.shogi.rules import DeclarationRule, Outcome, Termination
from keisei.shogi.types import Color, Diagram, Move, Piece, PieceKind
from keisei.shogi.vector import VectorShogi, VectorStep

__all__ = [
    "FEATURE_SPECS",
    "Color",
    "DeclarationRule",
    "Diagram",
    "FeatureSpec",
    "Move",
    "Outcome",
    "Piece",
    "PieceKind",
    "PolicyOutputMapper",
    "Positions",
    "ShogiGame",
    "Termination",
    "VectorShogi",
    "VectorStep",
    "feature_spec",
    "register_feature",
]
