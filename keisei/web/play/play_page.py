"""The page with the board: draws a `GameRoom`, and passes on what people do there."""

from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Final

from nicegui import ui
from nicegui.events import GenericEventArguments

from keisei.errors import KeiseiError
from keisei.evaluation.match import file_name
from keisei.play.saved_games import SavedGame
from keisei.play.session import GameSession
from keisei.play.transfer import FORMATS, write_session
from keisei.shogi.notation.record import Ending
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color
from keisei.web.languages import tr
from keisei.web.play.board import (
    BoardView,
    MoveList,
    PlayerStrip,
    ValueBar,
    add_pieces,
    announcement,
    step_buttons,
)
from keisei.web.play.catalogue import GameSetup, PlayerChoice
from keisei.web.play.dialogs import (
    StrengthSlider,
    confirm_dialog,
    games_dialog,
    help_dialog,
    new_game_dialog,
    open_dialog,
)
from keisei.web.play.error_wording import error_text
from keisei.web.play.game_room import GameRoom, Lobby
from keisei.web.play.look import Look, look_dialog
from keisei.web.play.review_panel import ReviewPanel
from keisei.web.play.wording import (
    end_text,
    side_text,
    spoken_last_move,
    status_text,
)
from keisei.web.room_page import RoomPage
from keisei.web.server import PROBLEMS_ADDRESS
from keisei.web.theme import add_style, frame, toast, tool_button

_CLOCK_INTERVAL: Final = 0.25
_LAST_SECONDS: Final = 5
"""Seconds of a person's time that are heard."""

_MAX_TYPED: Final = 64
"""Characters of a typed move that a page sends, which may send anything."""

_SEND_AND_CLEAR: Final = """(event) => {
    if (event.isComposing) return;  // this Enter ends the input of kanji
    emit(event.target.value);
    event.target.value = "";
    event.target.dispatchEvent(new Event("input"));
}"""
"""Sends what was typed. The server would empty the field too late, with the next move in it."""


class PlayPage(RoomPage[GameRoom]):
    """One browser's view of a game room."""

    def __init__(self, room: GameRoom, lobby: Lobby, *, lettering: Lettering) -> None:
        super().__init__(room, lobby)
        self._look = Look.of_visitor(lettering)
        self._flip = room.session.people == {Color.WHITE}
        self._sliders: dict[tuple[str, Color, str], StrengthSlider] = {}
        self._hinted: tuple[GameSession, int] | None = None
        self._told: tuple[GameSession, int] | None = None
        self._last_second = 0

    # ---- building ----

    def build(self, *, ask_first: bool) -> None:
        """Build the page; with `ask_first` it opens with the dialog for a new game."""
        add_style("play.css")
        add_pieces()
        with frame("") as tools:
            with tools:
                self._sound = tool_button("volume_up", tr("Sound (v)"), self._switch_sound, "sound")
                tool_button("keyboard", tr("Keyboard shortcuts"), help_dialog, "help")
            ui.html(f"<h1>{tr('Shogi')}</h1>", sanitize=False).classes("kp-sr")
            with ui.element("div").classes("kp"):
                with ui.element("div").classes("kp-main"):
                    self._build_board()
                with ui.element("div").classes("kp-side"):
                    self._build_side()
        ui.timer(_CLOCK_INTERVAL, self._update_clocks)
        self.draw()
        if ask_first:
            self._new_game()

    def _build_board(self) -> None:
        self._top = PlayerStrip("kp-top")
        with ui.element("div").classes("kp-board"):
            self._bar = ValueBar()
            self._board = BoardView(on_move=self._move, on_command=self._command)
        self._bottom = PlayerStrip("kp-bottom")

    def _build_side(self) -> None:
        with ui.element("div").classes("k-card"):
            self._status = ui.label().classes("kp-status").props('role="status" aria-live="polite"')
            self._announcement = announcement()
            self._problem = ui.label().classes("kp-problem").props('role="alert"')
            self._build_result()
            self._restore = ui.button(tr("Back to the game before"), icon="restore")
            self._restore.props("flat no-caps color=primary").on_click(
                lambda: self._try(self._room.restore)
            )
            with ui.element("div").classes("kp-tools").style("margin-top: 8px"):
                self._build_tools()
        with ui.element("div").classes("k-card"):
            self._moves = MoveList(self._room.go_to)
            with ui.element("div").classes("kp-nav"):
                step_buttons(self._command)
                self._play_on = ui.button(tr("Play on from here"), on_click=self._play_from_here)
                self._play_on.props("flat dense no-caps color=primary")
        self._review = ReviewPanel(
            self._room,
            on_choose=lambda key: self._try(lambda: self._room.analyse_with(key)),
            on_arrows=self._toggle_arrows,
        )
        self._strengths = ui.element("div").classes("k-card")
        with ui.element("div").classes("k-card kp-row kp-slim"):
            self._typed = ui.input(placeholder=tr("Type a move: 7g7f, P-7f, 76歩"))
            self._typed.props(f'dense borderless aria-label="{tr("Type a move")}"')
            self._typed.classes("kp-grow kp-typed")
            self._typed.on("keydown.enter", self._play_typed, js_handler=_SEND_AND_CLEAR)

    def _build_result(self) -> None:
        """Add what can be done after a game."""
        with ui.element("div").classes("kp-result") as self._result:
            rematch = ui.button(tr("Rematch"), icon="replay", on_click=self._rematch)
            rematch.props("unelevated no-caps color=primary")
            swap = ui.button(tr("Swap sides"), icon="swap_horiz")
            swap.props("outline no-caps color=primary")
            swap.on_click(lambda: self._begin(self._room.setup.swapped()))
            review = ui.button(tr("Review"), icon="query_stats")
            review.props("outline no-caps color=primary").on_click(self._analyse)

    def _build_tools(self) -> None:
        new = ui.button(tr("New"), icon="add", on_click=self._new_game)
        new.props("unelevated no-caps dense color=primary").style("padding: 2px 8px")
        self._back = tool_button(
            "undo", tr("Take back (u)"), lambda: self._try(self._room.take_back), "take-back"
        )
        self._hint = tool_button("lightbulb", tr("Hint (h)"), self._show_hint, "hint")
        self._pause = tool_button("pause", tr("Pause (space)"), self._toggle_pause, "pause")
        self._resign = tool_button("flag", tr("Resign"), self._ask_resign, "resign")
        self._declare = tool_button(
            "emoji_events", tr("Declare a win by entering king"),
            lambda: self._try(lambda: self._room.finish(Ending.DECLARATION)), "declare",
        )  # fmt: skip
        tool_button("swap_vert", tr("Flip the board (f)"), self._flip_board, "flip")
        with tool_button("more_vert", tr("More"), lambda: None, "more"), ui.menu() as menu:
            menu.classes("kp-menu")
            for text, act, name in (
                (tr("Board and pieces …"), self._choose_look, "look"),
                (tr("Analyse this game"), self._analyse, "analyse"),
                (tr("Your games …"), self._show_games, "games"),
                (tr("Open a game: KIF, CSA, SFEN …"), self._open, "open"),
                (tr("Mate problems"), partial(ui.navigate.to, PROBLEMS_ADDRESS), "problems"),
            ):
                ui.menu_item(text, act).props(f'role=menuitem data-tool="{name}"')
            for kind in FORMATS:
                save = ui.menu_item(
                    tr("Save as {format}", format=kind.upper()), partial(self._save, kind)
                )
                save.props(f'role=menuitem data-tool="save-{kind}"')

    # ---- drawing ----

    def draw(self) -> None:
        """Show the room as it is now."""
        with self._client:  # texts are in its language, also if a task calls
            self._draw()

    def _draw(self) -> None:
        room, session, analyses = self._room, self._room.session, self._room.analyses
        bottom = Color.WHITE if self._flip else Color.BLACK
        self._top.show(room, bottom.opponent)
        self._bottom.show(room, bottom)
        analysis = analyses[session.cursor] if session.cursor < len(analyses) else None
        candidates = analysis.candidates if analysis is not None and self._has_arrows else ()
        self._board.show(
            session.shown,
            legal=session.is_live and session.is_persons_turn,
            flip=self._flip,
            look=self._look,
            arrows=[(candidate.move.usi, candidate.probability) for candidate in candidates],
            premove=self._waiting_side,
            over=session.end is not None,
        )
        self._moves.show(
            session.moves(self._look.lettering),
            cursor=session.cursor,
            first=session.game.start.turn,
            end="" if session.end is None else end_text(session.end, session.game.start),
        )
        black = None if analysis is None else analysis.chances(Color.BLACK)
        has_value = room.analyst is not None and room.shows_analysis
        self._bar.show(black, visible=has_value, flip=self._flip)
        self._review.show(black, candidates, self._look)
        self._status.text = status_text(room)
        problems = [text for text in (room.problem, room.save_problem) if text]
        self._problem.text = " ".join(error_text(KeiseiError(text)) for text in problems)
        self._problem.visible = bool(problems)
        self._announce()
        self._draw_tools()
        self._draw_strengths()

    @property
    def _has_arrows(self) -> bool:
        """Whether candidate moves are shown: in review, or where a hint was asked for."""
        if self._room.shows_analysis:
            return self._look.has_hints
        session = self._room.session
        return self._hinted == (session, session.cursor)

    @property
    def _waiting_side(self) -> Color | None:
        """The side of a person who waits for the opponent, and may enter a move already."""
        session = self._room.session
        is_waiting = session.end is None and session.is_live and not session.is_persons_turn
        return next(iter(session.people)) if is_waiting and len(session.people) == 1 else None

    def _announce(self) -> None:
        """Tell screen readers the last move of the game, unless a person has just made it here."""
        session = self._room.session
        told, self._told = self._told, (session, session.length)
        if told is None or told[0] is not session or session.length != told[1] + 1:
            return
        if session.turn.opponent not in session.people:
            game = session.game
            self._announcement.text = spoken_last_move(game.start, game.moves)

    def _draw_tools(self) -> None:
        room, session = self._room, self._room.session
        mine = session.is_persons_turn
        self._back.set_enabled(session.can_take_back)
        self._resign.set_enabled(mine)
        self._hint.visible = not room.shows_analysis
        self._hint.set_enabled(mine)
        self._declare.visible = mine and session.game.can_declare
        self._play_on.visible = session.cursor < session.length or session.end is not None
        self._result.visible = session.end is not None and not room.reviewing
        self._restore.visible = room.offers_restore
        watching = not session.people
        self._pause.visible = (watching or room.paused) and session.end is None
        self._pause.props(f"icon={'play_arrow' if room.paused else 'pause'}")
        self._sound.props(f"icon={'volume_up' if self._look.has_sound else 'volume_off'}")

    def _draw_strengths(self) -> None:
        """Draw the sliders for the strength of the computer players.

        They are made again for other players only: a slider keeps the focus while it is moved.
        """
        players = self._room.setup.players
        start = self._room.session.game.start
        wanted = {(side_text(color, start), color, player.key): player.level
                  for color, player in players.items() if player.key is not None}  # fmt: skip
        if list(wanted) != list(self._sliders):
            self._strengths.clear()
            self._sliders = {}
            with self._strengths:
                ui.label(tr("Strength")).classes("kp-heading")
                for (title, color, key), level in wanted.items():
                    self._sliders[title, color, key] = StrengthSlider(
                        self._room.entry(key),
                        level,
                        partial(self._change_strength, color, key),
                        title=title,
                    )
        for place, slider in self._sliders.items():
            slider.show(wanted[place])
        self._strengths.visible = bool(wanted)

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

    def _play_typed(self, event: GenericEventArguments) -> None:
        if typed := str(event.args)[:_MAX_TYPED].strip():
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
            "hints": self._toggle_arrows if self._room.shows_analysis else self._show_hint,
            "pieces": self._change_pieces,
            "pause": self._toggle_pause,
            "sound": self._switch_sound,
            "help": help_dialog,
        }.get(name)
        if act is not None:
            with self._strengths:  # dialogs need a parent on the page
                act()

    def _flip_board(self) -> None:
        self._flip = not self._flip
        self.draw()

    def _change_look(self, name: str, value: str) -> None:
        self._look = self._look.with_choice(name, value)
        self.draw()

    def _choose_look(self) -> None:
        look_dialog(self._look, self._change_look)

    def _change_pieces(self) -> None:
        self._change_look("pieces", "letters" if self._look.lettering == "kanji" else "kanji")

    def _switch_sound(self) -> None:
        self._change_look("sound", "off" if self._look.has_sound else "on")

    def _toggle_arrows(self) -> None:
        self._change_look("hints", "off" if self._look.has_hints else "on")

    def _show_hint(self) -> None:
        """Show a network's candidate moves for this position, until the next move."""
        session = self._room.session
        if session.is_persons_turn:
            self._hinted = session, session.cursor
            self._try(self._room.find_hint)
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

        confirm_dialog(tr("Resign this game?"), tr("Resign"), resign)

    def _play_from_here(self) -> None:
        self._try(self._room.play_on)

    def _rematch(self) -> None:
        self._begin(self._room.setup)

    def _begin(self, setup: GameSetup) -> bool:
        if not self._try(lambda: self._room.begin(setup)):
            return False
        self._flip = self._room.session.people == {Color.WHITE}
        self._room.analyse_by_default()
        self.draw()
        return True

    def _new_game(self) -> None:
        new_game_dialog(self._room, self._begin)

    def _analyse(self) -> None:
        ui.navigate.to(f"/analysis?game={self._room.id}&flip={int(self._flip)}")

    def _open(self) -> None:
        def show(session: GameSession) -> bool:
            return self._try(lambda: self._room.open(session))

        open_dialog(show, GameSession.from_record)

    def _show_games(self) -> None:
        def reopen(game: SavedGame) -> bool:
            is_open = self._try(lambda: self._room.reopen(game, self._rooms))
            self._flip = self._room.session.people == {Color.WHITE}
            self.draw()
            return is_open

        if self._room.saved is None:
            toast(tr("Games are not kept here."))
        else:
            games_dialog(self._room, self._room.saved, reopen)

    def _save(self, kind: str) -> None:
        session = self._room.session
        title = f"{session.name(Color.BLACK)} vs {session.name(Color.WHITE)}"

        def send() -> None:
            ui.download.content(write_session(session, kind), f"{file_name(title)}.{kind}")

        self._try(send)

    # ---- clocks ----

    def _update_clocks(self) -> None:
        self._room.check_clock()
        if self._room.session.limit is not None:
            bottom = Color.WHITE if self._flip else Color.BLACK
            self._top.show_clock(self._room, bottom.opponent)
            self._bottom.show_clock(self._room, bottom)
            self._sound_clock()

    def _sound_clock(self) -> None:
        """Let a person hear each of the last seconds."""
        session = self._room.session
        left = session.time_left(session.turn)
        if left is None or not session.is_persons_turn:
            return
        seconds = ceil(left.main + left.byoyomi)
        if seconds != self._last_second and 0 < seconds <= _LAST_SECONDS:
            self._board.play_sound("clock")
        self._last_second = seconds
