"""The panel with a network's opinion of the game: who gives it, the curve, the candidate moves."""

from collections.abc import Callable, Iterable
from typing import Final

from nicegui import ui

from keisei.analysis import Candidate
from keisei.play.move_text import move_texts
from keisei.shogi.types import Color
from keisei.web.languages import tr
from keisei.web.play.board import ValueGraph
from keisei.web.play.game_room import GameRoom
from keisei.web.play.look import Look
from keisei.web.play.wording import entry_text
from keisei.web.theme import tool_button

_MIN_PROBABILITY: Final = 0.005
"""Candidate moves below this would be shown as 0% and are left out."""


class ReviewPanel:
    """A card with the analysis of a game, shown while no person is playing against a computer."""

    def __init__(
        self,
        room: GameRoom,
        *,
        on_choose: Callable[[str | None], object],
        on_arrows: Callable[[], object],
    ) -> None:
        """Add the card.

        Args:
            room: the game.
            on_choose: called with the key of the network that was chosen; None: none.
            on_arrows: called when arrows are switched on or off.
        """
        self._room = room
        with ui.element("div").classes("k-card") as self._card:
            with ui.element("div").classes("kp-row"):
                label = tr("Analysis by")
                ui.label(label).classes("kp-heading")
                self._analyst = ui.select(
                    self._analysts(),
                    value=room.analyst or "",
                    on_change=lambda event: on_choose(event.value or None),
                )
                self._analyst.props(f'dense borderless options-dense aria-label="{label}"')
                self._analyst.classes("kp-grow")
                self._value = ui.label().classes("k-num k-soft")
                self._arrows = tool_button("near_me", tr("Arrows (h)"), on_arrows, "arrows")
            self._graph = ValueGraph(room.go_to)
            self._candidates = ui.element("div").classes("kp-candidates")

    def show(self, black: float | None, candidates: Iterable[Candidate], look: Look) -> None:
        """Draw the analysis of the position on the board.

        Args:
            black: Black's expected score, from 0 to 1; None: not known yet.
            candidates: the moves to list.
            look: what the visitor has chosen.
        """
        room, session = self._room, self._room.session
        self._card.visible = room.shows_analysis
        self._graph.visible = self._candidates.visible = room.analyst is not None
        self._graph.show(
            [analysis.chances(Color.BLACK) for analysis in room.analyses],
            cursor=session.cursor,
            length=session.length,
        )
        percent = "" if black is None else f"{black:.0%}"
        self._value.text = percent and tr("Black {percent}", percent=percent)
        self._arrows.props(f"color={'primary' if look.has_hints else 'grey'}")
        analyst = room.analyst or ""
        if self._analyst.value != analyst:
            self._analyst.set_options(self._analysts(), value=analyst)  # it may be a new run
        self._list(candidates, look)

    def _list(self, candidates: Iterable[Candidate], look: Look) -> None:
        self._candidates.clear()
        diagram = self._room.session.shown.diagram
        with self._candidates:
            for candidate in candidates:
                if candidate.probability < _MIN_PROBABILITY:
                    continue
                text = move_texts(diagram, [candidate.move], look.lettering)[0]
                with ui.element("span"):
                    ui.label(f"{text} {candidate.probability:.0%}").style("display: inline")

    def _analysts(self) -> dict[str, str]:
        """Return the networks to choose from, key to label, with the one that analyses now."""
        room = self._room
        entries = [entry for entry in room.catalogue.entries() if entry.is_network]
        if room.analyst is not None:  # the catalogue may not have it any more
            entries.append(room.entry(room.analyst))
        return {"": tr("no network")} | {entry.key: entry_text(entry) for entry in entries}
