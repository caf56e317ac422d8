"""The look of the board, which each visitor chooses: board, wood and script of the pieces, sound.

Choices are kept in cookies, which any page of this host may have set: unknown values are ignored.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Final

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from keisei.shogi.render.glyphs import Lettering
from keisei.web.languages import mark, tr
from keisei.web.play.dialogs import close_button, dialog
from keisei.web.theme import read_cookie, set_cookie

BOARDS: Final = {"wood": mark("Wood"), "paper": mark("Paper"), "slate": mark("Slate")}
WOODS: Final = {"wood": mark("Boxwood"), "white": mark("White wood")}
LETTERINGS: Final = {"kanji": mark("Kanji"), "letters": mark("Letters")}
SWITCH: Final = {"on": mark("On"), "off": mark("Off")}

_CHOICES: Final[dict[str, Mapping[str, str]]] = {
    "board": BOARDS, "wood": WOODS, "pieces": LETTERINGS, "sound": SWITCH, "hints": SWITCH,
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """What a visitor has chosen; the values are keys of the tables above."""

    board: str = "wood"
    wood: str = "wood"
    pieces: str = "kanji"
    sound: str = "on"
    hints: str = "on"
    """Whether candidate moves are drawn as arrows where analysis is shown."""

    @classmethod
    def of_visitor(cls, lettering: Lettering) -> "Look":
        """Return the look that the visitor's cookies say; `lettering` where they do not."""
        look = cls(pieces=lettering)
        for field in fields(cls):
            value = read_cookie(f"keisei-{field.name}", "")
            if value in _CHOICES[field.name]:
                look = replace(look, **{field.name: value})
        return look

    def with_choice(self, name: str, value: str) -> "Look":
        """Return the look with another choice, which the visitor's browser keeps."""
        set_cookie(f"keisei-{name}", value)
        return replace(self, **{name: value})

    @property
    def lettering(self) -> Lettering:
        """The script on the pieces, and of the list of moves."""
        return "letters" if self.pieces == "letters" else "kanji"

    @property
    def has_sound(self) -> bool:
        """Whether moves are heard."""
        return self.sound == "on"

    @property
    def has_hints(self) -> bool:
        """Whether candidate moves are drawn as arrows."""
        return self.hints == "on"


def look_dialog(look: Look, change: Callable[[str, str], None]) -> None:
    """Let the visitor choose; `change` is called with the name of a choice and its value."""
    with dialog(tr("Board and pieces")) as box:
        for name, title in (
            ("board", tr("Board")), ("wood", tr("Pieces")), ("pieces", tr("Script")),
        ):  # fmt: skip
            ui.label(title).classes("kp-heading")
            options = {key: tr(text) for key, text in _CHOICES[name].items()}
            toggle = ui.toggle(options, value=getattr(look, name))
            toggle.on_value_change(partial(_choose, change, name))
            toggle.props(f'no-caps unelevated spread role=group aria-label="{title}"')
            toggle.style("width: 100%")
        close_button(box)


def _choose(
    change: Callable[[str, str], None], name: str, event: ValueChangeEventArguments[str | None]
) -> None:
    """Pass on what was chosen; what a page sends that is no choice has the value None."""
    if event.value is not None:
        change(name, str(event.value))
