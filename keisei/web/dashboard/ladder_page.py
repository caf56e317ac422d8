"""The ladder: the Elo ratings of all players, from the stored results of their games."""

from typing import TYPE_CHECKING, Any, Final

from nicegui import events, run, ui

from keisei.errors import KeiseiError
from keisei.formats import NOTHING, count, percent
from keisei.runs.artifacts import read_ladder
from keisei.runs.journal import EloEstimate
from keisei.web.dashboard import charts
from keisei.web.dashboard.components import (
    Chart,
    Dashboard,
    card,
    empty_page,
    page,
    plain_table,
)
from keisei.web.dashboard.run_messages import message_text
from keisei.web.languages import tr

if TYPE_CHECKING:
    from keisei.evaluation.ladder import Ladder, Standing
    from keisei.evaluation.results import Conditions

_POLL_INTERVAL: Final = 2.0
"""Seconds between two checks whether games were added."""

_ROW_PIXELS: Final = 30


def _columns() -> list[dict[str, Any]]:
    wide = {"classes": "d-wide-only", "headerClasses": "d-wide-only"}
    return [
        {"name": "rank", "label": tr("Rank"), "field": "rank", "align": "right"},
        {"name": "name", "label": tr("Player"), "field": "name", "align": "left",
         "style": "white-space: normal; overflow-wrap: anywhere"},
        {"name": "elo", "label": "Elo", "field": "elo", "align": "right"},
        {"name": "interval", "label": "95 %", "field": "interval", "align": "right"},
        {"name": "games", "label": tr("Games played"), "field": "games", "align": "right", **wide},
        {"name": "score", "label": tr("Score"), "field": "score", "align": "right", **wide},
        {"name": "better", "label": tr("Better than next"), "field": "better", "align": "right",
         **wide},
    ]  # fmt: skip


def ladder_page(dashboard: Dashboard) -> None:
    """Build the page of the ladder."""
    with page(tr("Ladder")):
        _LadderPage(dashboard)


class _LadderPage:
    """The ladder as one visitor sees it."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._store = dashboard.store
        self._conditions: Conditions | None = None
        self._known: list[Conditions] = []
        self._stamp: tuple[int, int] | None = None
        with card() as self._empty:
            empty_page(
                tr(
                    "There are no results in {file} yet. Put players on the ladder with",
                    file=self._store,
                ),
                f"keisei ladder random greedy alphabeta:1 --store {self._store}",
            )
        with card() as self._failed:
            self._reason = ui.label("").classes("d-problem")
        self._content = ui.element("div").classes("d-stack")
        with self._content:
            with card():
                self._select = ui.select([], label=tr("Conditions"), on_change=self._choose)
                self._select.props("outlined dense options-dense behavior=menu")
                self._chart = Chart(tr("Ladder"), tall=True)
                self._hint = ui.label("").classes("d-hint")
            with card():
                self._table = plain_table(_columns(), "identity", tr("Ladder"))
                self._notes = ui.label("").classes("d-hint")
        for element in (self._empty, self._failed, self._content):
            element.set_visibility(False)
        ui.timer(_POLL_INTERVAL, self._refresh, immediate=True)

    def _choose(self, event: events.ValueChangeEventArguments[Any]) -> None:
        chosen = next((known for known in self._known if str(known) == event.value), None)
        if chosen is not None and chosen != self._conditions:
            self._conditions, self._stamp = chosen, None

    async def _refresh(self) -> None:
        stamp = self._file_stamp()
        if stamp is None:
            self._show_only(self._empty)
            return
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            answer = await run.io_bound(read_ladder, self._store, self._conditions)
        except KeiseiError as error:
            self._reason.text = message_text(str(error))
            self._show_only(self._failed)
            return
        if answer is None:  # the server is shutting down
            return
        ladder, self._known = answer
        self._show(ladder)

    def _file_stamp(self) -> tuple[int, int] | None:
        try:
            status = self._store.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def _show_only(self, shown: ui.element) -> None:
        for element in (self._empty, self._failed, self._content):
            element.set_visibility(element is shown)

    def _show(self, ladder: "Ladder") -> None:
        self._show_only(self._content)
        self._select.set_options(
            {str(known): message_text(str(known)) for known in self._known},
            value=str(ladder.conditions),
        )
        self._select.set_visibility(len(self._known) > 1)
        draws = percent(ladder.ratings.draws, 1)
        self._hint.text = tr(
            "Elo from all stored games ({scale}). Bars are 95 % intervals. "
            "First move {first_move} Elo, draws {draws}. {conditions}.",
            scale=message_text(ladder.scale),
            first_move=f"{ladder.ratings.first_move:+.0f}",
            draws=draws,
            conditions=message_text(str(ladder.conditions)),
        )
        standings = ladder.standings
        self._chart.element.style(f"height: {max(160, 60 + _ROW_PIXELS * len(standings))}px")
        networks = {standing.name for standing in standings if "@" in standing.name}
        self._chart.show(
            charts.ladder_chart(
                [(place.name, _rating(place)) for place in standings], highlight=networks
            )
        )
        self._table.rows = [
            {
                "rank": place.rank,
                "identity": place.identity,
                "name": place.name,
                "elo": NOTHING if _rating(place).bound else f"{place.elo:+.0f}",
                "interval": _interval(place),
                "games": count(place.games),
                "score": percent(place.score, 1),
                "better": NOTHING if place.superiority is None else percent(place.superiority, 1),
            }
            for place in standings
        ]
        self._notes.text = " ".join(message_text(note) for note in ladder.notes)


def _rating(place: "Standing") -> EloEstimate:
    return EloEstimate(place.elo, place.low, place.high, place.position)


def _interval(place: "Standing") -> str:
    if place.is_fixed:
        return tr("fixed")
    return message_text(_rating(place).bound) or f"{place.low:+.0f} – {place.high:+.0f}"
