"""The dialogs of the page with the board, and the controls with which players are chosen."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from nicegui import events, ui

from keisei.errors import KeiseiError
from keisei.play.session import GameSession
from keisei.play.transfer import MAX_GAME_BYTES, TOO_LARGE, read_session
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.japanese import HANDICAPS
from keisei.shogi.notation.sfen import STARTPOS_SFEN, format_sfen
from keisei.web.play.catalogue import PERSON, Catalogue, CatalogueEntry, GameSetup, PlayerChoice
from keisei.web.play.game_room import GameRoom

_HANDICAPS: Final = {
    "平手": "Even game",
    "香落ち": "White without a lance",
    "角落ち": "White without the bishop",
    "飛車落ち": "White without the rook",
    "飛香落ち": "White without rook and lance",
    "二枚落ち": "White without 2 pieces",
    "四枚落ち": "White without 4 pieces",
    "六枚落ち": "White without 6 pieces",
    "八枚落ち": "White without 8 pieces",
    "十枚落ち": "White without 10 pieces",
}
_OWN_START: Final = "SFEN"
_CLOCKS: Final = {
    "none": ("No clock", None),
    "180+10": ("3 minutes, then 10 seconds per move", TimeLimit(180, byoyomi=10)),
    "600+30": ("10 minutes, then 30 seconds per move", TimeLimit(600, byoyomi=30)),
    "1800+60": ("30 minutes, then 60 seconds per move", TimeLimit(1800, byoyomi=60)),
    "300i5": ("5 minutes, plus 5 seconds per move", TimeLimit(300, increment=5)),
    "0+10": ("10 seconds per move", TimeLimit(0, byoyomi=10)),
}
_SIDES: Final = {"black": "Black", "white": "White", "both": "Both", "watch": "Watch"}
_KEYS: Final = (
    ("← →", "previous or next move"),
    ("Home End", "first or last position"),
    ("u", "take back a move"),
    ("n", "new game"),
    ("f", "flip the board"),
    ("k", "kanji or letters"),
    ("h", "show or hide the network's candidate moves"),
    ("m", "type a move: 7g7f, 8h2b+, P*5e"),
    ("Space", "pause or resume the computer players"),
    ("Tab", "focus the board: arrow keys and Enter move pieces, P L N S G B R pick one from the "
            "hand, + promotes, = does not, Esc cancels"),
)  # fmt: skip


def strength_slider(
    entry: CatalogueEntry, level: int | None, on_change: Callable[[int], None], *, title: str = ""
) -> None:
    """Add a slider over a player's levels of strength; only its name if there are none."""
    name = f"{title}: {entry.label}" if title else ""
    if not entry.levels:
        if name:
            ui.label(name).classes("k-soft")
        return
    number = entry.default_level if level is None else level
    label = ui.label()

    def show(stop: int) -> None:
        text = entry.level(stop).label
        label.text = f"{name} – {text}" if name else text

    show(number)
    slider = ui.slider(min=0, max=len(entry.levels) - 1, step=1, value=number)
    slider.props('snap markers aria-label="Strength"')
    slider.on_value_change(lambda event: show(int(event.value)))
    # When the slider is released: a strong player is not loaded for every stop on the way.
    slider.on("change", lambda: on_change(int(slider.value)))


class PlayerPicker:
    """A control to choose a player and its strength."""

    def __init__(self, catalogue: Catalogue, player: PlayerChoice, *, label: str) -> None:
        self._entries = {entry.key: entry for entry in catalogue.entries()}
        first = next(iter(self._entries))
        self._key = player.key if player.key in self._entries else first
        self._level = player.level
        self._select = ui.select(
            {key: entry.label for key, entry in self._entries.items()},
            value=self._key,
            label=label,
            on_change=lambda event: self._choose(str(event.value)),
        )
        self._select.props("outlined dense options-dense").style("width: 100%")
        self._slider = ui.element("div").style("width: 100%; padding: 0 8px")
        self._draw()

    @property
    def player(self) -> PlayerChoice:
        """The chosen player."""
        return PlayerChoice(self._key, self._level)

    def _choose(self, key: str) -> None:
        self._key, self._level = key, None
        self._draw()

    def _draw(self) -> None:
        self._slider.clear()
        with self._slider:
            strength_slider(self._entries[self._key], self._level, self._set_level)

    def _set_level(self, level: int) -> None:
        self._level = level


def new_game_dialog(room: GameRoom, begin: Callable[[GameSetup], bool]) -> None:
    """Ask for players, starting position and clock; `begin` returns whether the game began."""
    setup = room.setup
    computers = [player for player in (setup.white, setup.black) if player.key is not None]
    side = {0: "black", 2: "watch"}.get(len(computers), "white" if setup.black.key else "black")
    with _dialog("New game") as dialog:
        ui.label("You play").classes("kp-heading")
        sides = ui.toggle(_SIDES, value=side).props("no-caps unelevated spread")
        sides.style("width: 100%")
        with ui.column().style("width: 100%; gap: 6px") as opponents:
            first = PlayerPicker(
                room.catalogue, computers[0] if computers else PERSON, label="Opponent"
            )
            with ui.column().style("width: 100%; gap: 6px") as black_place:
                second = PlayerPicker(
                    room.catalogue,
                    computers[-1] if computers else PERSON,
                    label="Plays Black against it",
                )
        opponents.bind_visibility_from(sides, "value", lambda value: value != "both")
        black_place.bind_visibility_from(sides, "value", lambda value: value == "watch")
        start = ui.select({**_HANDICAPS, _OWN_START: "Another position …"}, value="平手")
        start.props('outlined dense options-dense label="Start"').style("width: 100%")
        sfen = ui.input("SFEN").props("outlined dense").style("width: 100%")
        sfen.bind_visibility_from(start, "value", lambda value: value == _OWN_START)
        clock = ui.select({key: name for key, (name, _) in _CLOCKS.items()}, value="none")
        clock.props('outlined dense options-dense label="Clock"').style("width: 100%")

        def act() -> None:
            text = str(sfen.value or "").strip()
            chosen = str(start.value)
            black, white = {
                "black": (PERSON, first.player),
                "white": (first.player, PERSON),
                "both": (PERSON, PERSON),
                "watch": (second.player, first.player),
            }[str(sides.value)]
            wanted = GameSetup(
                black,
                white,
                (text or STARTPOS_SFEN) if chosen == _OWN_START else format_sfen(HANDICAPS[chosen]),
                _CLOCKS[str(clock.value)][1],
            )
            if begin(wanted):
                dialog.close()

        _buttons(dialog, "Begin", act)


def open_dialog(show: Callable[[GameSession], bool]) -> None:
    """Ask for a game as a file or as text; `show` returns whether it could be shown."""

    async def read(data: bytes, name: str) -> None:
        try:
            # In a thread: a long game takes seconds, and other pages must not wait for it.
            session = await asyncio.to_thread(read_session, data, name)
        except KeiseiError as error:
            refuse(str(error))
            return
        if not dialog.is_deleted and show(session):  # it may have been cancelled meanwhile
            dialog.close()

    async def upload(event: events.UploadEventArguments) -> None:
        await read(await event.file.read(), event.file.name)

    async def read_pasted() -> None:
        await read(str(pasted.value or "").encode(), "")

    def refuse(reason: str) -> None:
        if not dialog.is_deleted:
            ui.notify(reason, type="warning", position="top", multi_line=True)

    with _dialog("Open a game") as dialog:
        uploader = ui.upload(
            on_upload=upload,
            on_rejected=lambda: refuse(TOO_LARGE),  # by the browser, before it is sent
            max_file_size=MAX_GAME_BYTES,
            auto_upload=True,
        )
        uploader.props('accept=".kif,.kifu,.ki2,.ki2u,.csa,.sfen,.usi,.psn,.txt"')
        uploader.classes("kp-uploader")
        choose = ui.button("Choose a file: KIF, KI2, CSA or SFEN", icon="upload_file")
        choose.props("outline no-caps color=primary").style("width: 100%")
        # In the browser: it opens its file dialog only in direct response to a click.
        choose.on("click", js_handler=f"() => runMethod({uploader.id}, 'pickFiles', [])")
        pasted = ui.textarea("or paste it here").props("outlined input-style='height: 120px'")
        pasted.props(f"maxlength={MAX_GAME_BYTES}").style("width: 100%")
        _buttons(dialog, "Open", read_pasted)


def confirm_dialog(question: str, text: str, act: Callable[[], object]) -> None:
    """Ask before an action that cannot be undone; `text` is the label of its button."""

    def confirm() -> None:
        dialog.close()
        act()

    with _dialog(question) as dialog:
        _buttons(dialog, text, confirm)


def help_dialog() -> None:
    """List the keyboard shortcuts."""
    with _dialog("Keyboard shortcuts") as dialog:
        with ui.element("div").classes("kp-keys"):
            for key, meaning in _KEYS:
                ui.html(f"<kbd>{key}</kbd>", sanitize=False)
                ui.label(meaning)
        with ui.row().style("width: 100%; justify-content: flex-end"):
            ui.button("Close", on_click=dialog.close).props("flat no-caps")


@contextmanager
def _dialog(title: str) -> Iterator[ui.dialog]:
    """Open a dialog with what is made in the ``with`` block; it is deleted when it is closed."""
    with ui.dialog() as dialog, ui.card().classes("kp-dialog"):
        ui.html(f"<h2>{title}</h2>", sanitize=False)
        yield dialog
    dialog.on_value_change(lambda event: None if event.value else dialog.delete())
    dialog.open()


def _buttons(dialog: ui.dialog, text: str, act: Callable[[], object]) -> None:
    with ui.row().style("width: 100%; justify-content: flex-end; gap: 8px"):
        ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
        ui.button(text, on_click=act).props("unelevated no-caps color=primary")
