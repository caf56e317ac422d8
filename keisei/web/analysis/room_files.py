"""Files of a game under analysis, by address: ``/analysis/ROOM/game.kif``, ``.../board.png``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from keisei.errors import KeiseiError
from keisei.evaluation.match import file_name
from keisei.play.transfer import write_record
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.csa import write_csa
from keisei.shogi.notation.ki2 import write_ki2
from keisei.shogi.notation.kif import write_kif
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.render.animation import animation_bytes
from keisei.shogi.render.layout import Labels
from keisei.shogi.render.raster import board_image, png_bytes
from keisei.shogi.render.svg import board_svg
from keisei.web.analysis.analysis_room import AnalysisRoom

PICTURE_SIZE: Final = 720
ANIMATION_SIZE: Final = 360

_TEXT: Final = "text/plain; charset=utf-8"
_TYPES: Final = {
    "kif": "application/x-kif", "ki2": "application/x-ki2", "csa": "application/x-csa",
    "sfen": _TEXT, "usi": _TEXT, "png": "image/png", "svg": "image/svg+xml", "gif": "image/gif",
    "apng": "image/apng",
}  # fmt: skip
_WRITERS: Final[dict[str, Callable[[GameRecord], str]]] = {
    "kif": write_kif, "ki2": write_ki2, "csa": write_csa,
}  # fmt: skip


@dataclass(frozen=True)
class Snapshot:
    """A game as it was when a file of it was asked for: files are made in another thread."""

    record: GameRecord
    game: ShogiGame
    """The game up to the position on the board."""

    @classmethod
    def of(cls, room: AnalysisRoom) -> "Snapshot":
        """Take the game of a room."""
        return cls(room.tree.record(), room.game.copy())

    @property
    def title(self) -> str:
        """The name of files, without suffix."""
        names = [name for name in (self.record.black, self.record.white) if name]
        return file_name(" vs ".join(names)) or "game"


def file_content(
    snapshot: Snapshot, name: str, *, as_text: bool, labels: str = "japanese", flip: bool = False
) -> tuple[bytes, str]:
    """Return content and media type of a file.

    Args:
        snapshot: the game.
        name: ``game.kif``, ``.ki2``, ``.csa``, ``.usi``, ``.gif``, ``.apng``; ``position.sfen``;
            ``board.png``, ``.svg``.
        as_text: records as UTF-8 text, to be copied, instead of a file as programs expect it.
        labels: of pictures.
        flip: whether White is at the bottom of pictures.

    Raises:
        KeiseiError: There is no such file.
    """
    stem, _, kind = name.partition(".")
    look: Labels = "letters" if labels == "letters" else "japanese"
    if stem == "board" and kind in ("png", "svg"):
        return _picture(snapshot.game, kind, look, flip), _TYPES[kind]
    if (stem, kind) == ("position", "sfen"):
        return format_sfen(snapshot.game.diagram).encode(), _TYPES[kind]
    if stem == "game" and kind == "usi":
        return snapshot.game.usi_position().encode(), _TYPES[kind]
    if stem == "game" and kind in ("gif", "apng"):
        content = animation_bytes(
            snapshot.record, kind, size=ANIMATION_SIZE, labels=look, flip=flip
        )
        return content, _TYPES[kind]
    if stem == "game" and kind in _WRITERS:
        if as_text:
            return _WRITERS[kind](snapshot.record).encode(), _TEXT
        return write_record(snapshot.record, kind), _TYPES[kind]
    raise KeiseiError(f"there is no file {name!r} of a game")


def _picture(game: ShogiGame, kind: str, labels: Labels, flip: bool) -> bytes:
    last, checked = game.last_move, game.checked_king
    if kind == "svg":
        return board_svg(
            game.diagram, last_move=last, check_square=checked, size=PICTURE_SIZE, labels=labels,
            flip=flip,
        ).encode()  # fmt: skip
    return png_bytes(
        board_image(
            game.diagram, last_move=last, check_square=checked, size=PICTURE_SIZE, labels=labels,
            flip=flip,
        )
    )  # fmt: skip
