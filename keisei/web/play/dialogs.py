"""The questions that the page with the board asks."""

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
from keisei.web.play.catalogue import SeatPicker
from keisei.web.play.game_room import Table
from keisei.web.play.game_setup import PERSON, Setup

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
    "180+10": ("3 minutes, then 10 seconds a move", TimeLimit(180, byoyomi=10)),
    "600+30": ("10 minutes, then 30 seconds a move", TimeLimit(600, byoyomi=30)),
    "1800+60": ("30 minutes, then 60 seconds a move", TimeLimit(1800, byoyomi=60)),
    "300i5": ("5 minutes, 5 seconds more for each move", TimeLimit(300, increment=5)),
    "0+10": ("10 seconds a move", TimeLimit(0, byoyomi=10)),
}
_SIDES: Final = {"black": "Black", "white": "White", "both": "Both", "watch": "Watch"}
_KEYS: Final = (
    ("← →", "one move back or on"),
    ("Home End", "first or last position"),
    ("u", "take back"),
    ("n", "new game"),
    ("f", "turn the board"),
    ("k", "kanji or letters"),
    ("h", "arrows of the network's candidates"),
    ("m", "type a move: 7g7f, 8h2b+, P*5e"),
    ("Space", "pause or go on, when machines play"),
    ("Tab", "onto the board: arrows and Enter move pieces, P L N S G B R take one from the hand, "
            "+ promotes, = does not, Esc lets go"),
)  # fmt: skip


@contextmanager
def _dialog(title: str) -> Iterator[ui.dialog]:
    with ui.dialog() as dialog, ui.card().classes("kp-dialog"):
        ui.html(f"<h2>{title}</h2>", sanitize=False)
        yield dialog
    # A closed dialog is of no use any more.
    dialog.on_value_change(lambda event: None if event.value else dialog.delete())
    dialog.open()


def _buttons(dialog: ui.dialog, text: str, act: Callable[[], object]) -> None:
    with ui.row().style("width: 100%; justify-content: flex-end; gap: 8px"):
        ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
        ui.button(text, on_click=act).props("unelevated no-caps color=primary")


def new_game_dialog(table: Table, begin: Callable[[Setup], bool]) -> None:
    """Ask who plays, from where, with which clock; `begin` says whether that could be begun."""
    setup = table.setup
    seats = [seat for seat in (setup.white, setup.black) if seat.key is not None]
    side = {0: "black", 2: "watch"}.get(len(seats), "white" if setup.black.key else "black")
    with _dialog("New game") as dialog:
        ui.label("You play").classes("kp-heading")
        sides = ui.toggle(_SIDES, value=side).props("no-caps unelevated spread")
        sides.style("width: 100%")
        with ui.column().style("width: 100%; gap: 6px") as opponents:
            first = SeatPicker(table.catalogue, seats[0] if seats else PERSON, label="Opponent")
            with ui.column().style("width: 100%; gap: 6px") as second_place:
                second = SeatPicker(
                    table.catalogue, seats[-1] if seats else PERSON, label="plays Black against it"
                )
        opponents.bind_visibility_from(sides, "value", lambda value: value != "both")
        second_place.bind_visibility_from(sides, "value", lambda value: value == "watch")
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
                "black": (PERSON, first.seat),
                "white": (first.seat, PERSON),
                "both": (PERSON, PERSON),
                "watch": (second.seat, first.seat),
            }[str(sides.value)]
            wanted = Setup(
                black,
                white,
                (text or STARTPOS_SFEN) if chosen == _OWN_START else format_sfen(HANDICAPS[chosen]),
                _CLOCKS[str(clock.value)][1],
            )
            if begin(wanted):
                dialog.close()

        _buttons(dialog, "Begin", act)


def open_dialog(show: Callable[[GameSession], bool]) -> None:
    """Ask for a game, as a file or as text; `show` says whether it could be shown."""

    async def read(data: bytes, name: str) -> None:
        try:
            # A long game takes seconds: other pages must not wait for it.
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
        uploader.props('accept=".kif,.kifu,.ki2,.ki2u,.csa,.sfen,.usi,.txt"')
        uploader.classes("kp-uploader")
        choose = ui.button("Choose a file: KIF, KI2, CSA or SFEN", icon="upload_file")
        choose.props("outline no-caps color=primary").style("width: 100%")
        # In the browser alone: it opens its file dialog only as the answer to a click.
        choose.on("click", js_handler=f"() => runMethod({uploader.id}, 'pickFiles', [])")
        pasted = ui.textarea("or paste it here").props("outlined input-style='height: 120px'")
        pasted.props(f"maxlength={MAX_GAME_BYTES}").style("width: 100%")
        _buttons(dialog, "Open", read_pasted)


def ask_sure(question: str, text: str, act: Callable[[], object]) -> None:
    """Ask before something that can't be undone by accident."""

    def sure() -> None:
        dialog.close()
        act()

    with _dialog(question) as dialog:
        _buttons(dialog, text, sure)


def help_dialog() -> None:
    """Show what keys do."""
    with _dialog("Keys") as dialog:
        with ui.element("div").classes("kp-keys"):
            for key, meaning in _KEYS:
                ui.html(f"<kbd>{key}</kbd>", sanitize=False)
                ui.label(meaning)
        with ui.row().style("width: 100%; justify-content: flex-end"):
            ui.button("Close", on_click=dialog.close).props("flat no-caps")
