"""Choosing who plays, and how strongly."""

from collections.abc import Callable

from nicegui import ui

from keisei.web.catalogue import Catalogue, Entry
from keisei.web.setup import Seat


def strength_slider(
    entry: Entry, level: int | None, on_change: Callable[[int], None], *, title: str = ""
) -> None:
    """A slider over the levels of somebody's strength; nothing to slide where there is one."""
    name = f"{title}: {entry.label}" if title else ""
    if not entry.levels:
        if name:
            ui.label(name).classes("k-soft")
        return
    number = entry.usual_level if level is None else level
    label = ui.label()

    def show(stop: int) -> None:
        text = entry.level(stop).label
        label.text = f"{name} – {text}" if name else text

    show(number)
    slider = ui.slider(min=0, max=len(entry.levels) - 1, step=1, value=number)
    slider.props('snap markers aria-label="Strength"')
    slider.on_value_change(lambda event: show(int(event.value)))
    # Told when the hand lets go: a strong player is not made for every stop on the way.
    slider.on("change", lambda: on_change(int(slider.value)))


class SeatPicker:
    """A choice of player and strength."""

    def __init__(self, catalogue: Catalogue, seat: Seat, *, label: str) -> None:
        self._entries = {entry.key: entry for entry in catalogue.entries()}
        first = next(iter(self._entries))
        self._key = seat.key if seat.key in self._entries else first
        self._level = seat.level
        self._select = ui.select(
            {key: entry.label for key, entry in self._entries.items()},
            value=self._key,
            label=label,
            on_change=lambda event: self._choose(str(event.value)),
        )
        self._select.props("outlined dense options-dense").style("width: 100%")
        self._place = ui.element("div").style("width: 100%; padding: 0 8px")
        self._draw()

    @property
    def seat(self) -> Seat:
        """What was chosen."""
        return Seat(self._key, self._level)

    def _choose(self, key: str) -> None:
        self._key, self._level = key, None
        self._draw()

    def _draw(self) -> None:
        self._place.clear()
        with self._place:
            strength_slider(self._entries[self._key], self._level, self._set_level)

    def _set_level(self, level: int) -> None:
        self._level = level
