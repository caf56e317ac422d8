"""The dialogs of the page with the board, and the controls with which players are chosen."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from nicegui import events, ui

from keisei.errors import KeiseiError
from keisei.play.saved_games import SavedGame, SavedGames
from keisei.play.transfer import MAX_GAME_BYTES
from keisei.play.uploads import UploadReader
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.japanese import HANDICAPS
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.sfen import STARTPOS_SFEN, format_sfen
from keisei.web.events import event_number
from keisei.web.languages import mark, tr
from keisei.web.play.catalogue import PERSON, Catalogue, CatalogueEntry, GameSetup, PlayerChoice
from keisei.web.play.error_wording import error_text
from keisei.web.play.game_room import GameRoom
from keisei.web.play.wording import entry_text, game_text, stop_text, strength_text
from keisei.web.theme import toast

Game = TypeVar("Game")

_HANDICAPS: Final = {
    "平手": mark("Even game"),
    "香落ち": mark("White without a lance"),
    "角落ち": mark("White without the bishop"),
    "飛車落ち": mark("White without the rook"),
    "飛香落ち": mark("White without rook and lance"),
    "二枚落ち": mark("White without 2 pieces"),
    "四枚落ち": mark("White without 4 pieces"),
    "六枚落ち": mark("White without 6 pieces"),
    "八枚落ち": mark("White without 8 pieces"),
    "十枚落ち": mark("White without 10 pieces"),
}
_UPLOADS: Final = UploadReader()
"""All pages share its process, which the first one that opens a game starts."""

_OWN_START: Final = "SFEN"
_CLOCKS: Final = {
    "none": (mark("No clock"), None),
    "180+10": (mark("3 minutes, then 10 seconds per move"), TimeLimit(180, byoyomi=10)),
    "600+30": (mark("10 minutes, then 30 seconds per move"), TimeLimit(600, byoyomi=30)),
    "1800+60": (mark("30 minutes, then 60 seconds per move"), TimeLimit(1800, byoyomi=60)),
    "300i5": (mark("5 minutes, plus 5 seconds per move"), TimeLimit(300, increment=5)),
    "0+10": (mark("10 seconds per move"), TimeLimit(0, byoyomi=10)),
}
_OWN_CLOCK: Final = "own"
_MAX_MINUTES: Final = 600
_MAX_SECONDS: Final = 600
_SIDES: Final = {
    "black": mark("Black"), "white": mark("White"), "both": mark("Both"), "watch": mark("Watch"),
}  # fmt: skip
_KEYS: Final = (
    ("← →", mark("previous or next move")),
    ("Home End", mark("first or last position")),
    ("u", mark("take back a move")),
    ("n", mark("new game")),
    ("f", mark("flip the board")),
    ("k", mark("kanji or letters")),
    ("h", mark("hint; in review, show or hide the candidate moves")),
    ("m", mark("type a move: 7g7f, P-7f, 76歩")),
    ("v", mark("sound on or off")),
    ("Space", mark("pause or resume the computer players")),
    ("Tab", mark("focus the board: arrow keys and Enter move pieces, P L N S G B R pick one from "
                 "the hand, + promotes, = does not, Esc cancels")),
)  # fmt: skip
_MOUSE: Final = (
    (mark("right button"), mark("draws an arrow, or a circle on one square; red with Shift")),
    (
        mark("during the opponent's turn"),
        mark("a move entered waits, and is played if it is legal"),
    ),
)


_PAGE_UP: Final = 33
_PAGE_DOWN: Final = 34


def _press(key: int) -> str:
    """Return a handler in JavaScript that acts as if another key was pressed."""
    events = "['keydown', 'keyup'].map(name => new Event(name, {bubbles: true}))"
    return (
        f"e => {events}.forEach(n => e.target.dispatchEvent(Object.assign(n, {{keyCode: {key}}})))"
    )


class StrengthSlider:
    """A slider over a player's levels of strength; only its name if there are none."""

    def __init__(
        self,
        entry: CatalogueEntry,
        level: int | None,
        on_change: Callable[[int], None],
        *,
        title: str = "",
    ) -> None:
        """Add the slider; `on_change` is called with the stop when it is released."""
        self._entry = entry
        self._name = tr("{side}: {player}", side=title, player=entry_text(entry)) if title else ""
        self._slider: ui.slider | None = None
        if not entry.levels:
            if self._name:
                ui.label(self._name).classes("k-soft")
            return
        number = entry.default_level if level is None else level
        self._label = ui.label()
        self._details = ui.label().classes("k-soft kp-details")
        self._slider = slider = ui.slider(
            min=0, max=len(entry.levels) - 1, step=1, value=number,
            on_change=lambda event: self._describe(event.value),
        )  # fmt: skip
        slider.props(f'snap markers aria-label="{tr("Strength")}"')
        # When the slider is released: a strong player is not loaded for every stop on the way. Its
        # value comes with the event: `slider.value` may be a moment older.
        slider.on("change", lambda event: self._release(event_number(event), on_change))
        # Keys of sliders that Quasar's does not have; Page Down and Up move it by ten stops.
        for key, as_if in (("home", _PAGE_DOWN), ("end", _PAGE_UP)):
            slider.on(f"keydown.{key}.prevent", js_handler=_press(as_if))
        self._describe(number)

    def show(self, level: int | None) -> None:
        """Move to a stop that was chosen elsewhere, as on another page."""
        number = self._entry.default_level if level is None else level
        if self._slider is not None and self._slider.value != number:
            self._slider.value = number

    def _release(self, number: int, on_change: Callable[[int], None]) -> None:
        if 0 <= number < len(self._entry.levels):
            on_change(number)

    def _describe(self, number: object) -> None:
        if not isinstance(number, int) or not 0 <= number < len(self._entry.levels):
            return  # a page may send anything
        stop = self._entry.level(number)
        text = stop_text(stop)
        self._label.text = f"{self._name} – {text}" if self._name else text
        self._details.text = strength_text(self._entry, stop)
        self._details.visible = bool(self._details.text)


class PlayerPicker:
    """A control to choose a player and its strength."""

    def __init__(self, catalogue: Catalogue, player: PlayerChoice, *, label: str) -> None:
        self._entries = {entry.key: entry for entry in catalogue.entries()}
        first = next(iter(self._entries))
        self._key = player.key if player.key in self._entries else first
        self._level = player.level
        self._select = ui.select(
            {key: entry_text(entry) for key, entry in self._entries.items()},
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
        if key in self._entries:
            self._key, self._level = key, None
            self._draw()

    def _draw(self) -> None:
        self._slider.clear()
        with self._slider:
            StrengthSlider(self._entries[self._key], self._level, self._set_level)

    def _set_level(self, level: int) -> None:
        self._level = level


def new_game_dialog(room: GameRoom, begin: Callable[[GameSetup], bool]) -> None:
    """Ask for players, starting position and clock; `begin` returns whether the game began."""
    setup = room.setup
    computers = [player for player in (setup.white, setup.black) if player.key is not None]
    side = {0: "black", 2: "watch"}.get(len(computers), "white" if setup.black.key else "black")
    with dialog(tr("New game")) as box:
        ui.label(tr("You play")).classes("kp-heading")
        sides = ui.toggle({key: tr(text) for key, text in _SIDES.items()}, value=side)
        sides.props(f'no-caps unelevated spread role=group aria-label="{tr("You play")}"')
        sides.style("width: 100%")
        with ui.column().style("width: 100%; gap: 6px") as opponents:
            first = PlayerPicker(
                room.catalogue, computers[0] if computers else PERSON, label=tr("Opponent")
            )
            with ui.column().style("width: 100%; gap: 6px") as black_place:
                second = PlayerPicker(
                    room.catalogue,
                    computers[-1] if computers else PERSON,
                    label=tr("Plays Black against it"),
                )
        opponents.bind_visibility_from(sides, "value", lambda value: value != "both")
        black_place.bind_visibility_from(sides, "value", lambda value: value == "watch")
        start = _StartPicker()
        clock = _ClockPicker(setup.limit)

        def act() -> None:
            players = {
                "black": (PERSON, first.player),
                "white": (first.player, PERSON),
                "both": (PERSON, PERSON),
                "watch": (second.player, first.player),
            }.get(str(sides.value))
            if players is not None and begin(GameSetup(*players, start.sfen, clock.limit)):
                box.close()

        _buttons(box, tr("Begin"), act)


class _StartPicker:
    """A control to choose the starting position: even, a handicap, or an SFEN."""

    def __init__(self) -> None:
        starts = {key: tr(text) for key, text in _HANDICAPS.items()}
        starts[_OWN_START] = tr("Another position …")
        self._start = ui.select(starts, value="平手", label=tr("Start"))
        self._start.props("outlined dense options-dense").style("width: 100%")
        self._own = ui.input("SFEN").props("outlined dense").style("width: 100%")
        self._own.bind_visibility_from(self._start, "value", lambda value: value == _OWN_START)

    @property
    def sfen(self) -> str:
        """The position; whether there is such a position is not checked."""
        chosen = str(self._start.value)
        if chosen == _OWN_START:
            return str(self._own.value or "").strip() or STARTPOS_SFEN
        return format_sfen(HANDICAPS[chosen]) if chosen in HANDICAPS else STARTPOS_SFEN


class _ClockPicker:
    """A control to choose the clock: one of the usual ones, or own times."""

    def __init__(self, limit: TimeLimit | None) -> None:
        known = {usual: key for key, (_, usual) in _CLOCKS.items()}
        clocks = {key: tr(text) for key, (text, _) in _CLOCKS.items()}
        clocks[_OWN_CLOCK] = tr("Own times …")
        self._clock = ui.select(clocks, value=known.get(limit, _OWN_CLOCK), label=tr("Clock"))
        self._clock.props("outlined dense options-dense").style("width: 100%")
        own = limit or TimeLimit(600, byoyomi=30)
        with ui.element("div").classes("kp-times") as times:
            self._minutes = self._number(tr("Minutes"), own.main / 60, _MAX_MINUTES)
            self._byoyomi = self._number(tr("Byoyomi, seconds"), own.byoyomi, _MAX_SECONDS)
            self._increment = self._number(tr("Increment, seconds"), own.increment, _MAX_SECONDS)
        times.bind_visibility_from(self._clock, "value", lambda value: value == _OWN_CLOCK)

    def _number(self, label: str, value: float, most: int) -> ui.number:
        shown = int(value) if value == int(value) else value
        return ui.number(label, value=shown, min=0, max=most).props("outlined dense")

    @property
    def limit(self) -> TimeLimit | None:
        """The time limit; None: no clock, which own times without any time are, too."""
        if self._clock.value in _CLOCKS:
            return _CLOCKS[self._clock.value][1]
        main, byoyomi, increment = (
            max(0.0, min(float(field.value or 0), most))
            for field, most in (
                (self._minutes, _MAX_MINUTES),
                (self._byoyomi, _MAX_SECONDS),
                (self._increment, _MAX_SECONDS),
            )
        )
        limit = TimeLimit(round(60 * main), byoyomi=round(byoyomi), increment=round(increment))
        return limit if any(limit) else None


def open_dialog(
    show: Callable[[Game], bool],
    make_game: Callable[[GameRecord], Game],
    *,
    variations: bool = False,
    uploads: UploadReader = _UPLOADS,
) -> None:
    """Ask for a game as a file or as text; `show` returns whether it could be shown.

    Args:
        show: shows the game.
        make_game: makes it of a record: `GameSession.from_record`, or `GameTree.from_record`.
        variations: whether they are read.
        uploads: reads the game.
    """

    def make(data: bytes, name: str) -> Game:
        return make_game(uploads.read(data, name, variations=variations))

    async def read(data: bytes, name: str) -> None:
        try:
            # In a thread, which waits: a long game takes seconds, and other pages must not.
            game = await asyncio.to_thread(make, data, name)
        except KeiseiError as error:
            if not box.is_deleted:
                with box:
                    refuse(error_text(error))
            return
        if not box.is_deleted and show(game):  # it may have been cancelled meanwhile
            box.close()

    async def upload(event: events.UploadEventArguments) -> None:
        await read(await event.file.read(), event.file.name)

    async def read_pasted() -> None:
        await read(str(pasted.value or "").encode(), "")

    def refuse(reason: str) -> None:
        if not box.is_deleted:
            with box:
                toast(reason)

    uploads.prepare()
    with dialog(tr("Open a game")) as box:
        uploader = ui.upload(
            on_upload=upload,
            # By the browser, before it is sent:
            on_rejected=lambda: refuse(
                tr("A game has at most {size} kB.", size=MAX_GAME_BYTES >> 10)
            ),
            max_file_size=MAX_GAME_BYTES,
            auto_upload=True,
        )
        uploader.props('accept=".kif,.kifu,.ki2,.ki2u,.csa,.sfen,.usi,.psn,.txt"')
        uploader.classes("kp-uploader")
        choose = ui.button(tr("Choose a file: KIF, KI2, CSA or SFEN"), icon="upload_file")
        choose.props("outline no-caps color=primary").style("width: 100%")
        # In the browser: it opens its file dialog only in direct response to a click.
        choose.on("click", js_handler=f"() => runMethod({uploader.id}, 'pickFiles', [])")
        pasted = ui.textarea(tr("or paste it here")).props("outlined input-style='height: 120px'")
        pasted.props(f"maxlength={MAX_GAME_BYTES}").style("width: 100%")
        _buttons(box, tr("Open"), read_pasted)


def games_dialog(room: GameRoom, saved: SavedGames, reopen: Callable[[SavedGame], bool]) -> None:
    """List the saved games; `reopen` returns whether one could be opened."""

    async def fill() -> None:
        games = await asyncio.to_thread(saved.games)  # a hundred files are read
        if box.is_deleted:
            return
        waiting.delete()
        with rows:
            for game in games:
                row(game)
            if not games:
                ui.label(tr("No games yet."))

    def row(game: SavedGame) -> None:
        def act() -> None:
            if reopen(game):
                box.close()

        def delete() -> None:
            saved.delete(game.name)
            line.delete()

        def ask() -> None:
            confirm_dialog(tr("Delete this game?"), tr("Delete"), delete)

        with ui.element("div").classes("kp-game") as line:
            ui.button(game_text(room, game), on_click=act).props("flat no-caps align=left")
            remove = ui.button(icon="delete", on_click=ask).props("flat round")
            remove.props(f'aria-label="{tr("Delete")}"')

    with dialog(tr("Your games")) as box:
        ui.label(tr("Games are kept in {folder}.", folder=saved.directory)).classes("k-soft")
        with ui.element("div").classes("kp-games") as rows:
            waiting = ui.label(tr("Loading …"))
        close_button(box)
    ui.timer(0.01, fill, once=True)


def confirm_dialog(question: str, text: str, act: Callable[[], object]) -> None:
    """Ask before an action that cannot be undone; `text` is the label of its button."""

    def confirm() -> None:
        box.close()
        act()

    with dialog(question) as box:
        _buttons(box, text, confirm)


def help_dialog() -> None:
    """List the keyboard shortcuts."""
    with dialog(tr("Keyboard shortcuts")) as box:
        with ui.element("div").classes("kp-keys"):
            for key, meaning in _KEYS:
                ui.html(f"<kbd>{key}</kbd>", sanitize=False)
                ui.label(tr(meaning))
            for what, meaning in _MOUSE:
                ui.label(tr(what))
                ui.label(tr(meaning))
        close_button(box)


@contextmanager
def dialog(title: str) -> Iterator[ui.dialog]:
    """Open a dialog with what is made in the ``with`` block; it is deleted when it is closed."""
    with ui.dialog() as box, ui.card().classes("kp-dialog"):
        box.props(f'aria-label="{title}"')
        ui.html(f"<h2>{title}</h2>", sanitize=False)
        yield box
    box.on_value_change(lambda event: None if event.value else box.delete())
    box.open()


def close_button(box: ui.dialog) -> None:
    """Add a button that closes a dialog."""
    with ui.element("div").classes("kp-actions"):
        ui.button(tr("Close"), on_click=box.close).props("flat no-caps")


def _buttons(box: ui.dialog, text: str, act: Callable[[], object]) -> None:
    with ui.element("div").classes("kp-actions"):
        ui.button(tr("Cancel"), on_click=box.close).props("flat no-caps")
        ui.button(text, on_click=act).props("unelevated no-caps color=primary")
