"""The game of Shogi: rules, notation, encodings, thousands of games at once. No torch here."""

from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.features import FeatureSpec, feature_spec, register_feature
from keisei.shogi.game import ShogiGame
from keisei.shogi.rules import DeclarationRule, Outcome, Termination
from keisei.shogi.types import Color, Diagram, Move, Piece, PieceKind
from keisei.shogi.vector import VectorShogi, VectorStep

__all__ = [
    "Color",
    "DeclarationRule",
    "Diagram",
    "FeatureSpec",
    "Move",
    "Outcome",
    "Piece",
    "PieceKind",
    "PolicyOutputMapper",
    "ShogiGame",
    "Termination",
    "VectorShogi",
    "VectorStep",
    "feature_spec",
    "register_feature",
]
