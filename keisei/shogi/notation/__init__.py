"""Read and write games and positions: CSA, KIF, KI2, SFEN, USI; read western ones.

>>> from keisei.shogi.notation import GameRecord, read_kif, write_kif
>>> record = GameRecord.from_moves(["7g7f", "3c3d"])
>>> read_kif(write_kif(record)).main_line
[Move.from_usi('7g7f'), Move.from_usi('3c3d')]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from keisei.shogi.notation.csa import read_csa, write_csa
    from keisei.shogi.notation.files import load_game, load_games, save_game, save_games
    from keisei.shogi.notation.game_tree import GameNode, GameTree
    from keisei.shogi.notation.headers import TimeLimit
    from keisei.shogi.notation.ki2 import read_ki2, write_ki2
    from keisei.shogi.notation.kif import read_kif, write_kif
    from keisei.shogi.notation.move_input import parse_move
    from keisei.shogi.notation.record import Ending, GameRecord, RecordedMove, Result, Variation
    from keisei.shogi.notation.sfen import (
        STARTPOS_SFEN,
        format_position,
        format_sfen,
        parse_position,
        parse_sfen,
    )
    from keisei.shogi.notation.western import format_western, read_western

__all__ = [
    "STARTPOS_SFEN",
    "Ending",
    "GameNode",
    "GameRecord",
    "GameTree",
    "RecordedMove",
    "Result",
    "TimeLimit",
    "Variation",
    "format_position",
    "format_sfen",
    "format_western",
    "load_game",
    "load_games",
    "parse_move",
    "parse_position",
    "parse_sfen",
    "read_csa",
    "read_ki2",
    "read_kif",
    "read_western",
    "save_game",
    "save_games",
    "write_csa",
    "write_ki2",
    "write_kif",
]

# `ShogiGame` reads SFENs and records play through a `ShogiGame`: names are imported at first use,
# so that neither package needs the other one to be complete.
_MODULES: Final = {
    "csa": ("read_csa", "write_csa"),
    "files": ("load_game", "load_games", "save_game", "save_games"),
    "game_tree": ("GameNode", "GameTree"),
    "headers": ("TimeLimit",),
    "ki2": ("read_ki2", "write_ki2"),
    "kif": ("read_kif", "write_kif"),
    "move_input": ("parse_move",),
    "record": ("Ending", "GameRecord", "RecordedMove", "Result", "Variation"),
    "sfen": ("STARTPOS_SFEN", "format_position", "format_sfen", "parse_position", "parse_sfen"),
    "western": ("format_western", "read_western"),
}
_MODULE_BY_NAME: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_BY_NAME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
