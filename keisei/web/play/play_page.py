"""The page with the board: draws a `GameRoom`, and passes on what people do there."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from nicegui import Client, ui

from keisei.analysis import Candidate
from keisei.errors import KeiseiError
from keisei.evaluation.match import file_name
from keisei.play.move_text import move_texts
from keisei.play.session import GameSession
from keisei.play.transfer import FORMATS, write_session
from keisei.shogi.notation.record import Ending
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color
from keisei.web.play.board import (
    BoardView,
    MoveList,
    PlayerStrip,
    ValueBar,
    ValueGraph,
    add_pieces,
)
from keisei.web.play.catalogue import GameSetup, PlayerChoice
from keisei.web.play.dialogs import (
    confirm_dialog,
    help_dialog,
    new_game_dialog,
    open_dialog,
    strength_slider,
)
from keisei.web.play.game_room import GameRoom, Lobby
from keisei.web.theme import (
    add_style,
    frame,
    read_cookie,
    set_cookie,
)

_PIECES_COOKIE: Final = "keisei-pieces"
_HINTS_COOKIE: Final = "keisei-hints"
_CLOCK_INTERVAL: Final = 0.25
_MIN_PROBABILITY: Final = 0.005
"""Candidate moves below this would be shown as 0% and are left out."""


class PlayPage:
    """One browser's view of a game room."""

    def __init__(self, room: GameRoom, lobby: Lobby, *, lettering: Lettering) -> None:
        self._room = room
        self._lobby = lobby
        known = read_cookie(_PIECES_COOKIE, lettering)
        self._lettering: Lettering = "letters" if known == "letters" else "kanji"
        self._hints = read_cookie(_HINTS_COOKIE, "on") == "on"
        self._flip = room.session.people == {Color.WHITE}
        self._client: Client = ui.context.client
        self._setup_shown = room.setup

    # ---- building ----

    def build(self, *, ask_first: bool) -> None:
        """Build the page; with `ask_first` it opens with the dialog for a new game."""
        add_style("play.css")
        add_pieces()
        with frame("") as tools:
            with tools:
                self._tool("keyboard", "Keyboard shortcuts", help_dialog, "help")
            with ui.element("div").classes("kp"):
                with ui.element("div").classes("kp-main"):
                    self._build_board()
                with ui.element("div").classes("kp-side"):
                    self._build_side()
        self._client.on_delete(self._leave)
        self._client.on_connect(self._enter)
        ui.timer(_CLOCK_INTERVAL, self._update_clocks)
        self.draw()
        if ask_first:
            self._new_game()

    def _build_board(self) -> None:
        self._top = PlayerStrip()
        with ui.element("div").classes("kp-board"):
            self._bar = ValueBar()
            self._board = BoardView(on_move=self._move, on_command=self._command)
        self._bottom = PlayerStrip()

    def _build_side(self) -> None:
        with ui.element("div").classes("k-card"):
            self._status = ui.label().classes("kp-status").props('role="status" aria-live="polite"')
            self._problem = ui.label().classes("kp-problem").props('role="alert"')
            with ui.element("div").classes("kp-tools").style("margin-top: 8px"):
                self._build_tools()
        with ui.element("div").classes("k-card"):
            self._moves = MoveList(self._room.go_to)
            with ui.element("div").classes("kp-nav"):
                for icon, text, command in (
                    ("first_page", "First position", "first"),
                    ("chevron_left", "Previous move", "back"),
                    ("chevron_right", "Next move", "forward"),
                    ("last_page", "Last position", "last"),
                ):
                    self._tool(icon, text, partial(self._command, command), command)
                self._play_on = ui.button("Play on from here", on_click=self._play_from_here)
                self._play_on.props("flat dense no-caps color=primary")
        with ui.element("div").classes("k-card"):
            self._build_analysis()
        self._strengths = ui.element("div").classes("k-card")
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
            "undo", "Take back (u)", lambda: self._try(self._room.take_back), "take-back"
        )
        self._pause = self._tool("pause", "Pause (space)", self._toggle_pause, "pause")
        self._resign = self._tool("flag", "Resign", self._ask_resign, "resign")
        self._declare = self._tool(
            "emoji_events", "Declare a win by entering king",
            lambda: self._try(lambda: self._room.finish(Ending.DECLARATION)), "declare",
        )  # fmt: skip
        self._tool("swap_vert", "Flip the board (f)", self._flip_board, "flip")
        self._tool("translate", "Kanji or letters (k)", self._change_pieces, "pieces")
        self._tool("folder_open", "Open a game: KIF, CSA, SFEN", self._open, "open")
        with self._tool("download", "Save the game", lambda: None, "save"), ui.menu():
            for kind in FORMATS:
                ui.menu_item(kind.upper(), partial(self._save, kind))

    def _build_analysis(self) -> None:
        with ui.element("div").classes("kp-row"):
            ui.label("Analysis by").classes("kp-heading")
            self._analyst = ui.select(
                self._analysts(),
                value=self._room.analyst or "",
                on_change=lambda event: self._try(
                    lambda: self._room.analyse_with(event.value or None)
                ),
            )
            self._analyst.props('dense borderless options-dense aria-label="Analysis by"')
            self._analyst.classes("kp-grow")
            self._value = ui.label().classes("k-num k-soft")
            self._hints_button = self._tool("near_me", "Arrows (h)", self._toggle_hints, "hints")
        self._graph = ValueGraph(self._room.go_to)
        self._candidates = ui.element("div").classes("kp-candidates")

    def _analysts(self) -> dict[str, str]:
        """Return the networks to choose from, key to label, with the one that analyses now."""
        entries = [entry for entry in self._room.catalogue.entries() if entry.is_network]
        if self._room.analyst is not None:  # the catalogue may not have it any more
            entries.append(self._room.entry(self._room.analyst))
        return {"": "no network"} | {entry.key: entry.label for entry in entries}

    def _tool(self, icon: str, text: str, act: Callable[[], object], name: str) -> ui.button:
        button = ui.button(icon=icon, on_click=act).props("flat round dense color=primary")
        button.props(f'aria-label="{text}" data-tool="{name}"')
        with button:
            ui.tooltip(text)
        return button

    # ---- drawing ----

    def draw(self) -> None:
        """Show the room as it is now."""
        session, analyses = self._room.session, self._room.analyses
        bottom = Color.WHITE if self._flip else Color.BLACK
        self._top.show(self._room, bottom.opponent)
        self._bottom.show(self._room, bottom)
        analysis = analyses[session.cursor] if session.cursor < len(analyses) else None
        candidates = analysis.candidates if analysis is not None and self._hints else ()
        self._board.show(
            session.shown,
            legal=session.is_live and session.is_persons_turn,
            flip=self._flip,
            lettering=self._lettering,
            arrows=[(candidate.move.usi, candidate.probability) for candidate in candidates],
        )
        self._moves.show(
            session.moves(self._lettering),
            cursor=session.cursor,
            first=session.game.start.turn,
            end="" if session.end is None else str(session.end),
        )
        self._graph.show(
            [value.chances(Color.BLACK) for value in analyses],
            cursor=session.cursor,
            length=session.length,
        )
        self._draw_value(None if analysis is None else analysis.chances(Color.BLACK))
        self._draw_candidates(candidates)
        self._status.text = self._status_text()
        self._problem.text = self._room.problem
        self._problem.visible = bool(self._room.problem)
        self._draw_tools()
        if self._room.setup is not self._setup_shown or not self._strengths.default_slot.children:
            self._draw_strengths()

    def _status_text(self) -> str:
        room, session = self._room, self._room.session
        if session.end is not None:
            return _result_text(session)
        if room.paused and not session.is_persons_turn:
            return "Paused."
        side = session.turn.name.title()
        if session.is_persons_turn:
            check = " Check!" if session.game.in_check else ""
            return (
                f"Your move, {side}." if len(session.people) == 1 else f"{side} to move."
            ) + check
        return f"{session.name(session.turn)} is thinking …"

    def _draw_value(self, black: float | None) -> None:
        self._bar.show(black, visible=self._room.analyst is not None, flip=self._flip)
        self._graph.visible = self._room.analyst is not None
        self._value.text = "" if black is None else f"Black {black:.0%}"
        analyst = self._room.analyst or ""
        if self._analyst.value != analyst:
            self._analyst.set_options(self._analysts(), value=analyst)  # it may be a new run

    def _draw_candidates(self, candidates: Iterable[Candidate]) -> None:
        self._candidates.clear()
        self._candidates.visible = self._room.analyst is not None
        shown = self._room.session.shown
        with self._candidates:
            for candidate in candidates:
                if candidate.probability < _MIN_PROBABILITY:
                    continue
                text = move_texts(shown.diagram, [candidate.move], self._lettering)[0]
                with ui.element("span"):
                    ui.label(f"{text} {candidate.probability:.0%}").style("display: inline")

    def _draw_tools(self) -> None:
        session = self._room.session
        mine = session.is_persons_turn
        self._back.set_enabled(session.can_take_back)
        self._resign.set_enabled(mine)
        self._declare.visible = mine and session.game.can_declare
        self._play_on.visible = session.cursor < session.length or session.end is not None
        watching = not session.people
        self._pause.visible = (watching or self._room.paused) and session.end is None
        self._pause.props(f"icon={'play_arrow' if self._room.paused else 'pause'}")
        self._hints_button.props(f"color={'primary' if self._hints else 'grey'}")

    def _draw_strengths(self) -> None:
        """Draw the sliders for the strength of the computer players."""
        self._setup_shown = self._room.setup
        self._strengths.clear()
        computers = {
            color: player
            for color, player in self._room.setup.players.items()
            if player.key is not None
        }
        self._strengths.visible = bool(computers)
        with self._strengths:
            ui.label("Strength").classes("kp-heading")
            for color, player in computers.items():
                assert player.key is not None
                strength_slider(
                    self._room.entry(player.key),
                    player.level,
                    partial(self._change_strength, color, player.key),
                    title=color.name.title(),
                )

    # ---- what people do ----

    def _move(self, usi: str) -> None:
        """Play a move that was made on the board."""
        try:
            self._room.move(usi)
        except KeiseiError as error:
            self._board.refuse()
            self._warn(error)

    def _try(self, act: Callable[[], None]) -> bool:
        """Do something with the room; return whether it was possible, and show why if not."""
        try:
            act()
        except KeiseiError as error:
            self._warn(error)
            return False
        return True

    def _warn(self, error: KeiseiError) -> None:
        with self._client:
            ui.notify(str(error), type="warning", position="top")

    def _play_typed(self) -> None:
        typed, self._typed.value = str(self._typed.value or "").strip(), ""
        if typed:
            self._try(lambda: self._room.move(typed))

    def _command(self, name: str) -> None:
        """Run the command of a key or of its button."""
        session = self._room.session
        if name in ("first", "back", "forward", "last"):
            steps = {
                "first": 0, "back": session.cursor - 1, "forward": session.cursor + 1,
                "last": session.length,
            }  # fmt: skip
            self._room.go_to(steps[name])
            return
        act: Callable[[], object] | None = {
            "flip": self._flip_board,
            "take_back": lambda: self._try(self._room.take_back),
            "new": self._new_game,
            "hints": self._toggle_hints,
            "pieces": self._change_pieces,
            "pause": self._toggle_pause,
            "help": help_dialog,
        }.get(name)
        if act is not None:
            with self._strengths:  # dialogs need a parent on the page
                act()

    def _flip_board(self) -> None:
        self._flip = not self._flip
        self.draw()

    def _change_pieces(self) -> None:
        self._lettering = "letters" if self._lettering == "kanji" else "kanji"
        set_cookie(_PIECES_COOKIE, self._lettering)
        self.draw()

    def _toggle_hints(self) -> None:
        self._hints = not self._hints
        set_cookie(_HINTS_COOKIE, "on" if self._hints else "off")
        self.draw()

    def _toggle_pause(self) -> None:
        room = self._room
        if room.session.end is None and (room.paused or not room.session.is_persons_turn):
            room.pause(not room.paused)

    def _change_strength(self, color: Color, key: str, level: int) -> None:
        self._try(lambda: self._room.change_player(color, PlayerChoice(key, level)))

    def _ask_resign(self) -> None:
        def resign() -> None:
            self._try(lambda: self._room.finish(Ending.RESIGNATION))

        confirm_dialog("Resign this game?", "Resign", resign)

    def _play_from_here(self) -> None:
        self._try(self._room.play_on)

    def _new_game(self) -> None:
        def begin(setup: GameSetup) -> bool:
            if not self._try(lambda: self._room.begin(setup)):
                return False
            self._flip = self._room.session.people == {Color.WHITE}
            self._room.analyse_by_default()
            self.draw()
            return True

        new_game_dialog(self._room, begin)

    def _open(self) -> None:
        def show(session: GameSession) -> bool:
            return self._try(lambda: self._room.open(session))

        open_dialog(show)

    def _save(self, kind: str) -> None:
        session = self._room.session
        title = f"{session.name(Color.BLACK)} vs {session.name(Color.WHITE)}"

        def send() -> None:
            ui.download.content(write_session(session, kind), f"{file_name(title)}.{kind}")

        self._try(send)

    # ---- connecting ----

    def _update_clocks(self) -> None:
        self._room.check_clock()
        if self._room.session.limit is not None:
            bottom = Color.WHITE if self._flip else Color.BLACK
            self._top.show_clock(self._room, bottom.opponent)
            self._bottom.show_clock(self._room, bottom)

    def _enter(self) -> None:
        """Attach the page to its room when the browser connects, or connects again.

        Not earlier: a request for the page alone may come from something other than a browser, or
        from a page of another site, and must not make a player load.
        """
        if self._status.is_deleted:  # it was refused before
            return
        try:
            self._lobby.enter(self._room, self.draw)
        except KeiseiError as error:
            self._refuse(str(error))
            return
        self.draw()
        # A page that is reloaded finds its game by this address.
        self._client.run_javascript(
            f"history.replaceState(history.state, '', '?room={self._room.id}')"
        )

    def _refuse(self, reason: str) -> None:
        """Show why there is no game instead of the game."""
        self._client.content.clear()
        with self._client.content, frame(""), ui.element("div").classes("k-card"):
            ui.label(reason).props('role="alert"')

    async def _leave(self) -> None:
        await self._room.detach(self.draw)


def _result_text(session: GameSession) -> str:
    """Return how a game ended, as "You win" or "You lose" if one person played it."""
    assert session.end is not None
    text = str(session.end)
    if len(session.people) == 1 and session.end.winner is not None:
        (mine,) = session.people
        reason = text.partition(": ")[2]
        return f"You {'win' if session.end.winner is mine else 'lose'}: {reason}"
    return text
