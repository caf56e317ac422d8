"""The tree of moves as rows for the page: the main line downwards, variations below their moves."""

from dataclasses import dataclass, field
from typing import Any

from keisei.play.session import REASONS
from keisei.shogi.notation.game_tree import GameNode
from keisei.shogi.render.glyphs import Lettering
from keisei.web.analysis.analysis_room import BLUNDER, MISTAKE, AnalysisRoom
from keisei.web.languages import tr


@dataclass
class Row:
    """Moves side by side: one of the main line, or some of a variation."""

    depth: int
    """0: the main line; 1: a variation; 2: a variation of that; ..."""

    comment: str = ""
    """Comment before the moves."""

    moves: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the row as ``static/tree.js`` reads it."""
        return {"depth": self.depth, "comment": self.comment, "moves": self.moves}


def grade(loss: float) -> str:
    """Return the sign of a move that cost so much expected score: ``??``, ``?`` or nothing."""
    return "??" if loss >= BLUNDER else "?" if loss >= MISTAKE else ""


def tree_rows(room: AnalysisRoom, lettering: Lettering) -> list[dict[str, Any]]:
    """Return the rows of the tree in a room."""
    losses = room.losses()
    rows: list[Row] = []
    # Lines to be written, with depth and ply of their first node; the last one is the next.
    pending = [(child, 0, 1) for child in room.tree.root.children[:1]]
    while pending:
        node, depth, ply = pending.pop()
        row = Row(depth, node.starting_comment)
        rows.append(row)
        while True:
            row.moves.append(_move(room, node, ply, lettering, losses.get(node, 0.0)))
            parent = node.parent
            others = parent.children[1:] if parent is not None and node.is_first else []
            following = node.children[0] if node.children else None
            if others or (depth == 0 and following is not None):
                if following is not None:
                    pending.append((following, depth, ply + 1))
                pending += [(other, depth + 1, ply) for other in reversed(others)]
                break
            if following is None:
                break
            node, ply = following, ply + 1
    return [row.as_json() for row in rows]


def _move(
    room: AnalysisRoom, node: GameNode, ply: int, lettering: Lettering, loss: float
) -> dict[str, Any]:
    sign = grade(loss)
    return {
        "id": room.number_of(node),
        "ply": ply,
        "text": _text(room, node, lettering),
        "sign": sign,
        "hint": tr("costs {percent}", percent=f"{loss:.0%}") if sign else "",
        "comment": node.comment if node.result is None else node.result.comment,
    }


def _text(room: AnalysisRoom, node: GameNode, lettering: Lettering) -> str:
    if node.result is not None:
        return tr(REASONS[node.result.ending])
    return room.text_of(node, lettering)
