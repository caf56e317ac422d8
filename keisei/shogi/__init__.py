"""The game of Shogi: rules, notation, encodings, thousands of games at once. No torch here."""

from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.diagram import Diagram
from keisei.shogi.features import FeatureSpec, feature_spec, register_feature
from keisei.shogi.game import ShogiGame
from keisei.shogi.moves import Move
from keisei.shogi.pieces import Color, Piece, PieceKind
from keisei.shogi.rules import DeclarationRule, Outcome, Termination
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
