"""The page with the board: draws a `Table`, and tells it what people do."""

from collections.abc import Callable
from functools import partial
from typing import Final

from nicegui import Client, ui

from keisei.errors import KeiseiError
from keisei.evaluation.match import file_name
from keisei.play.move_text import move_texts
from keisei.play.session import GameSession
from keisei.play.transfer import FORMATS, write_session
from keisei.shogi.notation.record import Ending
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color, Move
from keisei.web.play.board import (
    Board,
    ExpectationBar,
    Graph,
    MoveList,
    PlayerStrip,
    add_pieces,
)
from keisei.web.play.catalogue import strength_slider
from keisei.web.play.dialogs import (
    ask_sure,
    help_dialog,
    new_game_dialog,
    open_dialog,
)
from keisei.web.play.game_room import Table
from keisei.web.play.game_setup import Seat, Setup
from keisei.web.play.room_directory import Tables
from keisei.web.theme import (
    add_style,
    frame,
    remember,
    remembered,
)

_PIECES_COOKIE: Final = "keisei-pieces"
_HINTS_COOKIE: Final = "keisei-hints"
_CLOCK_SECONDS: Final = 0.25
_LEAST_SHARE: Final = 0.005
"""What rounds to 0% is no candidate."""


class PlayPage:
    """One browser's view of a table."""

    def __init__(self, table: Table, tables: Tables, *, lettering: Lettering) -> None:
        self._table = table
        self._tables = tables
        known = remembered(_PIECES_COOKIE, lettering)
        self._lettering: Lettering = "letters" if known == "letters" else "kanji"
        self._hints = remembered(_HINTS_COOKIE, "on") == "on"
        self._flip = table.session.people == {Color.WHITE}
        self._client: Client = ui.context.client
        self._setup_shown = table.setup

    # ---- what is on the page ----

    def build(self, *, ask_first: bool) -> None:
        """Make the page; with `ask_first` it begins with the question who is to play."""
        add_style("play.css")
        add_pieces()
        with frame("") as tools:
            with tools:
                self._tool("keyboard", "Keys and help", help_dialog, "help")
            with ui.element("div").classes("kp"):
                with ui.element("div").classes("kp-main"):
                    self._build_board()
                with ui.element("div").classes("kp-side"):
                    self._build_side()
        self._client.on_delete(self._leave)
        self._client.on_connect(self._arrive)
        ui.timer(_CLOCK_SECONDS, self._tick)
        self.draw()
        if ask_first:
            self._new_game()

    def _build_board(self) -> None:
        self._top = PlayerStrip()
        with ui.element("div").classes("kp-table"):
            self._bar = ExpectationBar()
            self._board = Board(on_move=self._move, on_command=self._command)
        self._bottom = PlayerStrip()

    def _build_side(self) -> None:
        with ui.element("div").classes("k-card"):
            self._status = ui.label().classes("kp-status").props('role="status" aria-live="polite"')
            self._problem = ui.label().classes("kp-problem").props('role="alert"')
            with ui.element("div").classes("kp-tools").style("margin-top: 8px"):
                self._build_tools()
        with ui.element("div").classes("k-card"):
            self._moves = MoveList(self._go_to)
            with ui.element("div").classes("kp-nav"):
                for icon, text, command in (
                    ("first_page", "First position", "first"),
                    ("chevron_left", "One move back", "back"),
                    ("chevron_right", "One move on", "forward"),
                    ("last_page", "Last position", "last"),
                ):
                    self._tool(icon, text, partial(self._command, command), command)
                self._play_on = ui.button("Play on from here", on_click=self._play_from_here)
                self._play_on.props("flat dense no-caps color=primary")
        with ui.element("div").classes("k-card"):
            self._build_opinion()
        self._seats = ui.element("div").classes("k-card")
        with ui.element("div").classes("k-card kp-row kp-slim"):
            self._typed = ui.input(placeholder="Type a move: 7g7f, 8h2b+, P*5e")
            self._typed.props('dense borderless aria-label="Type a move"').classes(
                "kp-grow kp-typed"
            )
            self._typed.on("keydown.enter", self._play_typed)

    def _build_tools(self) -> None:
        new = ui.button("New", icon="add", on_click=self._new_game)
        new.props("unelevated no-caps dense color=primary").style("padding: 2px 12px")
        self._back = self._tool(
            "undo", "Take back (u)", lambda: self._do(self._table.take_back), "take-back"
        )
        self._pause = self._tool("pause", "Pause (space)", self._toggle_pause, "pause")
        self._resign = self._tool("flag", "Resign", self._ask_resign, "resign")
        self._declare = self._tool(
            "emoji_events", "Declare a win: entering king",
            lambda: self._do(lambda: self._table.finish(Ending.DECLARATION)), "declare",
        )  # fmt: skip
        self._tool("swap_vert", "Turn the board (f)", self._turn_board, "flip")
        self._tool("translate", "Kanji or letters (k)", self._change_pieces, "pieces")
        self._tool("folder_open", "Open a game: KIF, CSA, SFEN", self._open, "open")
        with self._tool("download", "Save the game", lambda: None, "save"), ui.menu():
            for kind in FORMATS:
                ui.menu_item(kind.upper(), partial(self._save, kind))

    def _build_opinion(self) -> None:
        with ui.element("div").classes("kp-row"):
            ui.label("Opinion of").classes("kp-heading")
            self._adviser = ui.select(
                self._advisers(),
                value=self._table.adviser or "",
                on_change=lambda event: self._do(lambda: self._table.advise(event.value or None)),
            )
            self._adviser.props('dense borderless options-dense aria-label="Whose opinion"')
            self._adviser.classes("kp-grow")
            self._expectation = ui.label().classes("k-num k-soft")
            self._hints_button = self._tool("near_me", "Arrows (h)", self._toggle_hints, "hints")
        self._graph = Graph(self._go_to)
        self._candidates = ui.element("div").classes("kp-candidates")

    def _advisers(self) -> dict[str, str]:
        entries = [entry for entry in self._table.catalogue.entries() if entry.is_network]
        if self._table.adviser is not None:  # it may have gone from the catalogue
            entries.append(self._table.entry(self._table.adviser))
        return {"": "nobody"} | {entry.key: entry.label for entry in entries}

    def _tool(self, icon: str, text: str, act: Callable[[], object], name: str) -> ui.button:
        button = ui.button(icon=icon, on_click=act).props("flat round dense color=primary")
        button.props(f'aria-label="{text}" data-tool="{name}"')
        with button:
            ui.tooltip(text)
        return button

    # ---- drawing ----

    def draw(self) -> None:
        """Show the table as it is."""
        session = self._table.session
        bottom = Color.WHITE if self._flip else Color.BLACK
        self._top.show(self._table, bottom.opponent)
        self._bottom.show(self._table, bottom)
        opinions = self._table.opinions
        opinion = opinions[session.cursor] if session.cursor < len(opinions) else None
        self._board.show(
            session.shown,
            legal=session.is_live and session.is_persons_turn,
            flip=self._flip,
            lettering=self._lettering,
            arrows=opinion.candidates if opinion is not None and self._hints else (),
        )
        self._moves.show(
            session.moves(self._lettering),
            cursor=session.cursor,
            first=session.game.start.turn,
            end="" if session.end is None else str(session.end),
        )
        self._graph.show(
            [value.black for value in opinions], cursor=session.cursor, length=session.length
        )
        self._draw_opinion(None if opinion is None else opinion.black)
        self._draw_candidates(opinion.candidates if opinion is not None and self._hints else ())
        self._status.text = self._status_text()
        self._problem.text = self._table.problem
        self._problem.visible = bool(self._table.problem)
        self._draw_tools()
        if self._table.setup is not self._setup_shown or not self._seats.default_slot.children:
            self._draw_seats()

    def _status_text(self) -> str:
        table, session = self._table, self._table.session
        if session.end is not None:
            return _verdict(table)
        if table.paused and not session.is_persons_turn:
            return "Paused."
        side = session.turn.name.title()
        if session.is_persons_turn:
            check = " Check!" if session.game.in_check else ""
            return (
                f"Your move, {side}." if len(session.people) == 1 else f"{side} to move."
            ) + check
        return f"{session.name(session.turn)} is thinking …"

    def _draw_opinion(self, black: float | None) -> None:
        self._bar.show(black, visible=self._table.adviser is not None, flip=self._flip)
        self._graph.visible = self._table.adviser is not None
        self._expectation.text = "" if black is None else f"Black {black:.0%}"
        adviser = self._table.adviser or ""
        if self._adviser.value != adviser:
            self._adviser.set_options(self._advisers(), value=adviser)  # it may be a new run

    def _draw_candidates(self, candidates: tuple[tuple[str, float], ...]) -> None:
        self._candidates.clear()
        self._candidates.visible = self._table.adviser is not None
        shown = self._table.session.shown
        with self._candidates:
            for usi, share in candidates:
                if share < _LEAST_SHARE:
                    continue
                text = move_texts(shown.diagram, [Move.from_usi(usi)], self._lettering)[0]
                with ui.element("span"):
                    ui.label(f"{text} {share:.0%}").style("display: inline")

    def _draw_tools(self) -> None:
        session = self._table.session
        mine = session.is_persons_turn
        self._back.set_enabled(session.can_take_back)
        self._resign.set_enabled(mine)
        self._declare.visible = mine and session.game.can_declare
        self._play_on.visible = session.cursor < session.length or session.end is not None
        watching = not session.people
        self._pause.visible = (watching or self._table.paused) and session.end is None
        self._pause.props(f"icon={'play_arrow' if self._table.paused else 'pause'}")
        self._hints_button.props(f"color={'primary' if self._hints else 'grey'}")

    def _draw_seats(self) -> None:
        """Sliders for the machines at the table."""
        self._setup_shown = self._table.setup
        self._seats.clear()
        machines = {
            color: seat for color, seat in self._table.setup.seats.items() if seat.key is not None
        }
        self._seats.visible = bool(machines)
        with self._seats:
            ui.label("Strength").classes("kp-heading")
            for color, seat in machines.items():
                assert seat.key is not None
                strength_slider(
                    self._table.entry(seat.key),
                    seat.level,
                    partial(self._change_strength, color, seat.key),
                    title=color.name.title(),
                )

    # ---- what people do ----

    def _do(self, act: Callable[[], None]) -> bool:
        """Do something with the table; what can't be done is told."""
        try:
            act()
        except KeiseiError as error:
            with self._client:
                ui.notify(str(error), type="warning", position="top")
            return False
        return True

    def _move(self, usi: str) -> None:
        if not self._do(lambda: self._table.move(usi)):
            self._board.refuse()

    def _play_typed(self) -> None:
        typed, self._typed.value = str(self._typed.value or "").strip(), ""
        if typed:
            self._do(lambda: self._table.move(typed))

    def _go_to(self, ply: int) -> None:
        self._table.go_to(ply)

    def _command(self, name: str) -> None:
        """A key was pressed, or its button."""
        session = self._table.session
        if name in ("first", "back", "forward", "last"):
            steps = {
                "first": 0, "back": session.cursor - 1, "forward": session.cursor + 1,
                "last": session.length,
            }  # fmt: skip
            self._go_to(steps[name])
            return
        act: Callable[[], object] | None = {
            "flip": self._turn_board,
            "take_back": lambda: self._do(self._table.take_back),
            "new": self._new_game,
            "hints": self._toggle_hints,
            "pieces": self._change_pieces,
            "pause": self._toggle_pause,
            "help": help_dialog,
        }.get(name)
        if act is not None:
            with self._seats:  # dialogs need a place on the page
                act()

    def _turn_board(self) -> None:
        self._flip = not self._flip
        self.draw()

    def _change_pieces(self) -> None:
        self._lettering = "letters" if self._lettering == "kanji" else "kanji"
        remember(_PIECES_COOKIE, self._lettering)
        self.draw()

    def _toggle_hints(self) -> None:
        self._hints = not self._hints
        remember(_HINTS_COOKIE, "on" if self._hints else "off")
        self.draw()

    def _toggle_pause(self) -> None:
        table = self._table
        if table.session.end is None and (table.paused or not table.session.is_persons_turn):
            table.pause(not table.paused)

    def _change_strength(self, color: Color, key: str, level: int) -> None:
        self._do(lambda: self._table.seat(color, Seat(key, level)))

    def _ask_resign(self) -> None:
        ask_sure("Resign this game?", "Resign", lambda: self._do(self._resign_game))

    def _resign_game(self) -> None:
        self._table.finish(Ending.RESIGNATION)

    def _play_from_here(self) -> None:
        self._do(self._table.play_on)

    def _new_game(self) -> None:
        def begin(setup: Setup) -> bool:
            if not self._do(lambda: self._table.begin(setup)):
                return False
            self._flip = self._table.session.people == {Color.WHITE}
            self._table.advise_by_default()
            self.draw()
            return True

        new_game_dialog(self._table, begin)

    def _open(self) -> None:
        def show(session: GameSession) -> bool:
            return self._do(lambda: self._table.open(session))

        open_dialog(show)

    def _save(self, kind: str) -> None:
        session = self._table.session
        title = f"{session.name(Color.BLACK)} vs {session.name(Color.WHITE)}"

        def send() -> None:
            ui.download.content(write_session(session, kind), f"{file_name(title)}.{kind}")

        self._do(send)

    # ---- coming and going ----

    def _tick(self) -> None:
        self._table.tick()
        if self._table.session.limit is not None:
            bottom = Color.WHITE if self._flip else Color.BLACK
            self._top.show_clock(self._table, bottom.opponent)
            self._bottom.show_clock(self._table, bottom)

    def _arrive(self) -> None:
        """The browser shows the page, or does so again after its connection was lost.

        Not before is anybody to think: whoever asks for a page alone may be no browser, or one
        that a page of another site told to.
        """
        if self._status.is_deleted:  # it was refused before
            return
        try:
            self._tables.attach(self._table, self.draw)
        except KeiseiError as error:
            self._refuse(str(error))
            return
        self.draw()
        # Who loads the page again finds the game again.
        self._client.run_javascript(
            f"history.replaceState(history.state, '', '?table={self._table.id}')"
        )

    def _refuse(self, reason: str) -> None:
        """Show no game, but why not."""
        self._client.content.clear()
        with self._client.content, frame(""), ui.element("div").classes("k-card"):
            ui.label(reason).props('role="alert"')

    async def _leave(self) -> None:
        await self._table.detach(self.draw)


def _verdict(table: Table) -> str:
    """How the game ended, for the person who played it if there was one."""
    session = table.session
    assert session.end is not None
    text = str(session.end)
    if len(session.people) == 1 and session.end.winner is not None:
        (mine,) = session.people
        reason = text.partition(": ")[2]
        return f"You {'win' if session.end.winner is mine else 'lose'}: {reason}"
    return text
