"""The games of two runs side by side: figures of their sample games, and two boards."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from nicegui import events, run, ui

from keisei.formats import NOTHING, percent
from keisei.runs.artifacts import GameSummary, summarize_games
from keisei.web.dashboard.components import (
    GAMES_ADDRESS,
    Dashboard,
    card,
    empty_page,
    ending_text,
    heading,
    moves_text,
    page,
    plain_table,
    run_address,
)
from keisei.web.dashboard.game_viewer import GameViewer, games_of
from keisei.web.languages import tr
from keisei.web.server import PROBLEMS_ADDRESS


def games_page(dashboard: Dashboard, runs: str) -> None:
    """Build the page; `runs` comes from its address."""
    with page(tr("Games")):
        _GamesPage(dashboard, [name for name in runs.split("/") if name])


class _GamesPage:
    """The page as one visitor sees it."""

    def __init__(self, dashboard: Dashboard, wanted: Sequence[str]) -> None:
        self._folder = dashboard.watch.folder
        known = [overview.name for overview in dashboard.watch.overviews()]
        with_games = [name for name in known if games_of(self._folder, name)]
        chosen = [name for name in wanted if name in with_games][:2]
        chosen += [name for name in with_games if name not in chosen][: 2 - len(chosen)]
        self._viewers: list[GameViewer] = []
        with card(
            tr("The games of two runs"),
            tr("Sample games of their evaluations: logging.sample_games sets how many are kept."),
        ):
            ui.link(tr("Mate problems from games of self-play"), PROBLEMS_ADDRESS).classes("k-soft")
            if len(with_games) < 2:
                empty_page(tr("Two runs with sample games are needed."))
                return
            with ui.element("div").classes("d-row"):
                for place, name in enumerate(chosen):
                    select = ui.select(
                        with_games, value=name, label=[tr("Left"), tr("Right")][place]
                    )
                    select.props("outlined dense options-dense behavior=menu")
                    select.style("min-width: 150px").mark(f"run-{place}")
                    select.on_value_change(partial(self._choose, chosen, place))
                self._together = ui.checkbox(tr("Step both boards together"), value=True)
                self._together.props("dense").mark("together")
            self._table = plain_table([], "figure", tr("The games of two runs"))
            self._table.props('wrap-cells hide-pagination :rows-per-page-options="[0]"')
            self._table.set_visibility(False)
        with ui.element("div").classes("d-pair"):
            for place, name in enumerate(chosen):
                with card():
                    with (
                        ui.element("a").props(f'href="{run_address(name)}"').classes("d-plain-link")
                    ):
                        heading(name)
                    games = games_of(self._folder, name)
                    follow = partial(self._follow, place)
                    viewer = GameViewer(self._folder, name, games, on_ply=follow)
                    self._viewers.append(viewer)
                    viewer.choose(games[0].file)
        self._names = chosen
        ui.timer(0.0, self._show_figures, once=True)

    def _choose(
        self, chosen: list[str], place: int, event: events.ValueChangeEventArguments[Any]
    ) -> None:
        names = [*chosen]
        names[place] = str(event.value)
        ui.navigate.to(f"{GAMES_ADDRESS}?runs={'/'.join(quote(name, safe='') for name in names)}")

    def _follow(self, place: int, ply: int) -> None:
        """Show the same ply on the other board."""
        if self._together.value and len(self._viewers) == 2:
            self._viewers[1 - place].show_ply(ply)

    async def _show_figures(self) -> None:
        found = [await run.io_bound(summarize_games, self._folder, name) for name in self._names]
        if None in found:  # the server is shutting down
            return
        both = [summary for summary in found if summary is not None]
        self._table.columns = [
            {"name": "figure", "label": tr("Figure"), "field": "figure", "align": "left"},
            *(
                {"name": f"r{place}", "label": name, "field": f"r{place}", "align": "right"}
                for place, name in enumerate(self._names)
            ),
        ]
        self._table.rows = _figures(both)
        self._table.set_visibility(True)


def _figures(both: Sequence[GameSummary]) -> list[dict[str, Any]]:
    """Return the rows of the table."""
    rows: list[tuple[str, list[str]]] = [
        (tr("games played"), [str(found.games) for found in both]),
        (tr("mean length in plies"), [f"{found.mean_plies:.0f}" for found in both]),
        (tr("points of the network"), [_share(found.network_score) for found in both]),
        (tr("points of Black"), [_share(found.black_score) for found in both]),
        (tr("endings"), [_most(_named_endings(found)) for found in both]),
        (tr("first moves"), [_most(_named_openings(found)) for found in both]),
    ]
    return [
        {"figure": label} | {f"r{place}": text for place, text in enumerate(texts)}
        for label, texts in rows
    ]


def _share(value: float | None) -> str:
    return NOTHING if value is None else percent(value)


def _named_endings(found: GameSummary) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()  # endings of both sides can have one name
    for ending, number in found.endings:
        counts[ending_text(ending)] += number
    return counts.most_common()


def _named_openings(found: GameSummary) -> list[tuple[str, int]]:
    return [(moves_text(*opening), number) for opening, number in found.openings]


def _most(counts: Sequence[tuple[str, int]]) -> str:
    return tr(", ").join(f"{name} ×{number}" for name, number in counts[:3]) or NOTHING
