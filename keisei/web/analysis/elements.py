"""The parts of the analysis page with a script of their own in ``static/``."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from nicegui.element import Element

from keisei.analysis import SearchInfo, SearchLine
from keisei.formats import centipawns, short_count
from keisei.play.move_text import move_texts
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color
from keisei.web.analysis.analysis_room import AnalysisRoom, NodeValue
from keisei.web.analysis.tree_rows import grade, tree_rows
from keisei.web.events import event_number
from keisei.web.languages import tr
from keisei.web.theme import STATIC

_SHOWN_MOVES: Final = 12
"""Moves of a line that are shown."""


class MoveTree(Element, component=STATIC / "tree.js"):
    """A game with its variations; a click goes to a move."""

    def __init__(self, on_choose: Callable[[int], None]) -> None:
        """Make a tree; `on_choose` is called with the number of a node."""
        super().__init__()
        self._props["texts"] = {
            "moves": tr("Moves"),
            "start": tr("Start"),
            "none": tr("No moves yet. Play some on the board."),
        }
        self._props["rows"], self._props["root"] = [], {"id": 0, "comment": ""}
        self._props["current"] = 0
        self.on("choose", lambda event: on_choose(event_number(event)))

    def show(self, room: AnalysisRoom, lettering: Lettering) -> None:
        """Draw the tree of a room."""
        root = room.tree.root
        self._props["root"] = {"id": room.number_of(root), "comment": root.comment}
        self._props["rows"] = tree_rows(room, lettering)
        self.show_current(room)

    def show_current(self, room: AnalysisRoom) -> None:
        """Highlight the position that is on the board."""
        self._props["current"] = room.number_of(room.node)
        self.update()


class EvaluationGraph(Element, component=STATIC / "evaluation.js"):
    """Black's expected score over the main line, with a scale, blunders and a tooltip."""

    def __init__(self, on_choose: Callable[[int], None]) -> None:
        """Make a graph; `on_choose` is called with the number of the move pointed at."""
        super().__init__()
        self._props |= {"values": [], "signs": {}, "tips": [], "cursor": 0}
        self._props["label"] = tr("Expected score of Black by move")
        self.on("choose", lambda event: on_choose(event_number(event)), throttle=0.05)

    def show(self, room: AnalysisRoom, lettering: Lettering) -> None:
        """Draw the main line of a room."""
        curve, nodes, losses = room.curve(), room.tree.main_line(), room.losses()
        signs = {ply: grade(losses.get(node, 0.0)) for ply, node in enumerate(nodes, start=1)}
        texts = [tr("Start"), *(room.text_of(node, lettering) for node in nodes)]
        self._props["values"] = [None if value is None else value.black for value in curve]
        self._props["signs"] = {ply: sign for ply, sign in signs.items() if sign}
        self._props["tips"] = [
            _tip(ply, text, value)
            for ply, (text, value) in enumerate(zip(texts, curve, strict=True))
        ]
        line = {room.tree.root, *nodes}
        self._props["cursor"] = sum(node in line for node in room.node.line()) - 1
        self.update()


class SearchLines(Element, component=STATIC / "lines.js"):
    """The lines of a search; each can be played, or kept as a variation."""

    def __init__(self, *, on_play: Callable[[int], None], on_keep: Callable[[int], None]) -> None:
        """Make an empty list; the functions are called with the index of a line."""
        super().__init__()
        self._props["lines"] = []
        self._props["texts"] = {
            "lines": tr("Best moves"),
            "play": tr("Play the move"),
            "keep": tr("Keep as a variation:"),
        }
        self.on("play", lambda event: on_play(event_number(event)))
        self.on("keep", lambda event: on_keep(event_number(event)))

    def show(self, info: SearchInfo | None, number: int, lettering: Lettering) -> None:
        """Draw the best lines of a report."""
        lines = () if info is None else info.lines[:number]
        self._props["lines"] = [] if info is None else [
            _line(info, line, lettering) for line in lines
        ]  # fmt: skip
        self.update()


def score_text(value: float, mate: int | None, turn: Color) -> str:
    """Return a score in Black's view: centipawns, or the length of a mate.

    >>> score_text(0.5, None, Color.WHITE), score_text(1.0, 3, Color.BLACK)
    ('-659', '+mate 3')
    """
    sign = 1 if turn is Color.BLACK else -1
    if mate is not None:
        return ("+" if sign * mate > 0 else "-") + tr("mate {plies}", plies=abs(mate))
    return f"{sign * centipawns(value):+d}"


def percent_text(black: float) -> str:
    """Return an expected score in per cent."""
    return f"{black:.0%}"


def arrows_of(info: SearchInfo | None, number: int) -> Sequence[tuple[str, float]]:
    """Return the best moves of a report, each with the expected score of the side to move."""
    arrows: dict[str, tuple[str, float]] = {}
    for line in () if info is None else info.lines[:number]:
        usi = line.moves[0].usi  # with and without promotion it is one arrow, the better one's
        arrows.setdefault(usi.removesuffix("+"), (usi, (1.0 + line.value) / 2.0))
    return list(arrows.values())


def facts_text(info: SearchInfo) -> str:
    """Return how far a search has come."""
    speed = info.simulations / info.seconds if info.seconds > 0 else 0.0
    return tr(
        "depth {depth}, {simulations} simulations, {speed}/s",
        depth=max([info.depth, *(len(line.moves) for line in info.lines)], default=0),
        simulations=short_count(info.simulations),
        speed=short_count(speed),
    )


def _tip(ply: int, text: str, value: NodeValue | None) -> str:
    head = f"{ply} {text}" if ply else text
    if value is None:
        return head
    return f"{head}  {percent_text(value.black)} ({centipawns(2 * value.black - 1):+d})"


def _line(info: SearchInfo, line: SearchLine, lettering: Lettering) -> dict[str, Any]:
    texts = move_texts(info.game.diagram, line.moves[:_SHOWN_MOVES], lettering)
    value = line.value if info.turn is Color.BLACK else -line.value
    share = f"{percent_text((1 + value) / 2)} · {short_count(line.visits)}"
    return {
        "score": score_text(line.value, line.mate, info.turn),
        "side": "kl-black" if value >= 0 else "kl-white",
        "share": share if line.visits else percent_text((1 + value) / 2),
        "first": texts[0] if texts else "",
        "rest": texts[1:],
    }
