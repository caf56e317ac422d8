"""The page that analyses a game or position: draws an `AnalysisRoom`, passes on what people do."""

from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import quote, urlencode

from nicegui import ui
from nicegui.events import GenericEventArguments

from keisei.analysis import SearchInfo, SearchStatus
from keisei.errors import KeiseiError
from keisei.shogi.notation.game_tree import GameTree
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color
from keisei.web.analysis.analysis_room import DEPTHS, MAX_COMMENT, AnalysisRoom
from keisei.web.analysis.analysis_routes import ADDRESS, EDITOR
from keisei.web.analysis.elements import (
    EvaluationGraph,
    MoveTree,
    SearchLines,
    arrows_of,
    facts_text,
    percent_text,
    score_text,
)
from keisei.web.analysis.tree_rows import grade
from keisei.web.languages import mark, tr
from keisei.web.play.board import BoardView, ValueBar, add_pieces, step_buttons
from keisei.web.play.dialogs import open_dialog
from keisei.web.play.error_wording import error_text
from keisei.web.play.look import Look
from keisei.web.play.wording import entry_text, side_text
from keisei.web.room_page import RoomPage
from keisei.web.rooms import Rooms
from keisei.web.theme import STATIC, add_style, frame, toast, tool_button

POLL_INTERVAL: Final = 0.25
"""Seconds between two looks at the search."""

COPIES: Final = (
    ("position.sfen", mark("Position as SFEN"), "text/plain"),
    ("game.kif", mark("Game as KIF"), "text/plain"),
    ("game.csa", mark("Game as CSA"), "text/plain"),
    ("game.usi", mark("Game as USI moves"), "text/plain"),
    ("board.png", mark("Picture of the board"), "image/png"),
)
FILES: Final = (
    ("game.kif", mark("KIF, with variations")),
    ("game.ki2", mark("KI2, with variations")),
    ("game.csa", mark("CSA, main line only")),
    ("board.png", mark("Picture: PNG")),
    ("board.svg", mark("Picture: SVG")),
    ("game.gif", mark("Animation: GIF")),
    ("game.apng", mark("Animation: APNG")),
)
_STATUS: Final = {
    SearchStatus.STOPPED: mark("stopped"),
    SearchStatus.PROVEN: mark("the result is proven"),
    SearchStatus.FULL: mark("the memory is full"),
    SearchStatus.OVER: mark("the game is over here"),
}


class AnalysisPage(RoomPage[AnalysisRoom]):
    """One browser's view of an analysis room."""

    def __init__(
        self, room: AnalysisRoom, rooms: Rooms[AnalysisRoom], *, lettering: Lettering,
        flip: bool = False, play_address: str = "/",
    ) -> None:  # fmt: skip
        super().__init__(room, rooms)
        self._look = Look.of_visitor(lettering)
        self._flip = flip
        self._play_address = play_address
        self._shown: tuple[AnalysisRoom, GameTree, int, Lettering] | None = None
        self._info: SearchInfo | None = None

    # ---- building ----

    def build(self) -> None:
        """Build the page."""
        add_style("play.css")
        add_style("analysis.css")
        add_pieces()
        script = (STATIC / "share.js").read_text(encoding="utf-8")
        ui.add_body_html(f"<script>{script}</script>")
        ui.on("keisei-copied", self._copied)
        links = {tr("Play"): self._play_address}
        with frame(tr("Analysis"), links=links), ui.element("div").classes("kp ka"):
            with ui.element("div").classes("kp-main"), ui.element("div").classes("kp-board"):
                self._bar = ValueBar()
                self._board = BoardView(on_move=self._move, on_command=self._command)
            with ui.element("div").classes("kp-side"):
                self._build_side()
        ui.timer(POLL_INTERVAL, self._poll)
        self._draw()

    def _build_side(self) -> None:
        with ui.element("div").classes("k-card"):
            with ui.element("div").classes("ka-tools"):
                self._build_tools()
            with ui.element("div").classes("ka-head"):
                self._build_search()
            self._facts = ui.label().classes("ka-facts").props('role="status"')
            self._problem = ui.label().classes("kp-problem").props('role="alert"')
            self._lines = SearchLines(on_play=self._play_line, on_keep=self._keep_line)
        with ui.element("div").classes("k-card"):
            self._graph = EvaluationGraph(self._room.go_to_ply)
            self._build_review()
        with ui.element("div").classes("k-card"):
            self._tree = MoveTree(self._room.go_to_number)
            with ui.element("div").classes("kp-nav"):
                step_buttons(self._command)
                self._promote = tool_button(
                    "vertical_align_top", tr("Make this the main line"),
                    lambda: self._try(self._room.promote), "promote",
                )  # fmt: skip
                self._remove = tool_button(
                    "delete", tr("Delete from here on"),
                    lambda: self._try(self._room.remove), "remove",
                )  # fmt: skip
            with ui.element("div").classes("kp-buttons"):
                self._restore = self._build_undo(tr("Back to the game before"), self._room.restore)
                self._put_back = self._build_undo(
                    tr("Bring back what was deleted"), self._room.put_back
                )
            self._comment = ui.textarea(tr("Comment"), on_change=self._change_comment)
            self._comment.props(f"outlined dense autogrow maxlength={MAX_COMMENT}")
            self._comment.classes("ka-comment")

    def _build_undo(self, text: str, act: Callable[[], None]) -> ui.button:
        button = ui.button(text, icon="restore", on_click=lambda: self._try(act))
        return button.props("flat no-caps color=primary")

    def _build_tools(self) -> None:
        tool_button("folder_open", tr("Open a game: KIF, CSA, SFEN …"), self._open, "open")
        tool_button("edit", tr("Edit the position"), self._edit, "edit")
        with tool_button("content_copy", tr("Copy"), lambda: None, "copy"), ui.menu() as menu:
            menu.classes("kp-menu")
            for name, text, kind in COPIES:
                item = ui.menu_item(tr(text)).props(f'role=menuitem data-copy="{name}"')
                # In the browser: it may write to the clipboard only in response to a click.
                item.on(
                    "click", js_handler=f"() => keiseiCopy({self._address_script(name)}, '{kind}')"
                )
        with tool_button("download", tr("Save"), lambda: None, "save"), ui.menu() as menu:
            menu.classes("kp-menu")
            for name, text in FILES:
                item = ui.menu_item(tr(text), partial(self._save, name))
                item.props(f'role=menuitem data-save="{name}"')
        tool_button("sports_esports", tr("Play on from here"), self._play_on, "play-on")
        tool_button("swap_vert", tr("Flip the board (f)"), self._flip_board, "flip")

    def _build_search(self) -> None:
        self._run = ui.button(on_click=self._toggle).props("unelevated no-caps color=primary")
        self._run.props('data-tool="run"')
        self._score = ui.label().classes("ka-score").props('data-part="score"')
        ui.element("div").classes("ka-break")
        self._analyst = ui.select(
            {entry.key: entry_text(entry) for entry in self._room.entries()},
            value=self._room.analyst,
            label=tr("Analysis by"),
            on_change=lambda event: self._analyse_with(str(event.value)),
        )
        self._analyst.props("dense options-dense").classes("ka-analyst")
        self._fewer = tool_button(
            "remove", tr("Fewer lines"), partial(self._more_lines, -1), "fewer"
        )
        tool_button("add", tr("More lines"), partial(self._more_lines, 1), "more-lines")

    def _build_review(self) -> None:
        with ui.element("div").classes("kp-row"):
            self._reviewed = ui.label().classes("ka-facts kp-grow").props('role="status"')
            with (
                ui.button(tr("Review the game"), icon="query_stats") as self._review_button,
                ui.menu() as menu,
            ):
                menu.classes("kp-menu")
                for depth in DEPTHS:
                    text = (
                        tr("{number} simulations a move", number=f"{depth:,}")
                        if depth else tr("The network alone")
                    )  # fmt: skip
                    item = ui.menu_item(text, partial(self._room.start_review, depth))
                    item.props("role=menuitem")
            self._review_button.props('flat no-caps dense color=primary data-tool="review"')

    # ---- drawing ----

    def draw(self) -> None:
        """Show the room as it is now."""
        with self._client:  # texts are in its language, also if a task calls
            self._draw()

    def _draw(self) -> None:
        room, lettering = self._room, self._look.lettering
        shown = room, room.tree, room.revision, lettering
        if shown != self._shown:
            self._shown = shown
            self._tree.show(room, lettering)
        else:
            self._tree.show_current(room)
        if self._comment.value != room.node.comment:
            self._comment.value = room.node.comment
        self._promote.set_enabled(not room.node.is_main)
        self._remove.set_enabled(room.node.parent is not None)
        self._restore.visible = room.offers_restore
        self._put_back.visible = room.tree.removed is not None
        self._draw_search()
        self._graph.show(room, lettering)
        self._reviewed.text = self._review_text()
        self._review_button.set_enabled(room.pending_depth is None and bool(room.tree.main_line()))

    def _draw_search(self) -> None:
        room, info = self._room, self._room.info
        self._info = info
        black = None if info is None else info.chances(Color.BLACK)
        self._bar.show(black, visible=True, flip=self._flip)
        self._lines.show(info, room.lines, self._look.lettering)
        self._board.show(
            room.game, legal=True, flip=self._flip, look=self._look,
            arrows=arrows_of(info, room.lines) if self._look.has_hints else (),
        )  # fmt: skip
        score = ""
        if info is not None and info.lines and black is not None:
            best = info.lines[0]
            value = score_text(best.value, best.mate, info.turn)
            score = tr("Black {percent}", percent=f"{percent_text(black)} ({value})")
        self._score.text = score
        self._facts.text = self._facts_text(info)
        self._run.text = tr("Stop") if room.is_running else tr("Analyse")
        self._run.props(f"icon={'pause' if room.is_running else 'play_arrow'}")
        self._problem.text = error_text(KeiseiError(room.problem)) if room.problem else ""
        self._problem.visible = bool(room.problem)
        self._fewer.set_enabled(room.lines > 1)

    def _facts_text(self, info: SearchInfo | None) -> str:
        if self._room.is_loading:
            return tr("Loading …")
        if info is None:
            game = self._room.game
            return tr("{side} to move.", side=side_text(game.turn, game.start))
        if info.status is SearchStatus.RUNNING:
            return facts_text(info) if info.lines else tr("Loading …")
        reason = tr(_STATUS[info.status])
        return tr(", ").join([facts_text(info), reason]) if info.lines else reason

    def _review_text(self) -> str:
        room = self._room
        if room.pending_depth is not None:
            return tr("Reviewing the game …")
        if room.review is None:
            return ""
        signs = [grade(loss) for loss in room.losses().values()]
        return tr(
            "Blunders ??: {blunders}, mistakes ?: {mistakes}",
            blunders=signs.count("??"),
            mistakes=signs.count("?"),
        )

    # ---- what people do ----

    def _poll(self) -> None:
        """Show what the search has found since the last time."""
        room = self._room
        room.poll()
        if room.info is not self._info:
            self._draw_search()
            self._graph.show(room, self._look.lettering)
        if self._shown is not None and self._shown[2] != room.revision:
            self._draw()

    def _move(self, usi: str) -> None:
        try:
            self._room.move(usi)
        except KeiseiError as error:
            self._board.refuse()
            self._warn(error)

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except KeiseiError as error:
            self._warn(error)

    def _command(self, name: str) -> None:
        """Run the command of a key or of its button."""
        if name in ("first", "back", "forward", "last"):
            self._room.step(name)
            return
        act: Callable[[], object] | None = {
            "flip": self._flip_board,
            "hints": self._toggle_arrows,
            "pieces": self._change_pieces,
            "pause": self._toggle,
        }.get(name)
        if act is not None:
            with self._client:
                act()

    def _toggle(self) -> None:
        self._room.run(not self._room.is_running)

    def _play_line(self, index: int) -> None:
        info = self._room.info
        if info is not None and 0 <= index < len(info.lines):
            self._try(lambda: self._room.move(info.lines[index].moves[0]))

    def _keep_line(self, index: int) -> None:
        self._try(lambda: self._room.add_line(index))

    def _more_lines(self, step: int) -> None:
        self._room.show_lines(self._room.lines + step)

    async def _analyse_with(self, key: str) -> None:
        try:
            await self._room.analyse_with(key)
        except KeiseiError as error:
            self._warn(error)

    def _change_comment(self) -> None:
        self._room.comment(str(self._comment.value or ""))

    def _flip_board(self) -> None:
        self._flip = not self._flip
        self._show_view()
        self.draw()

    def _toggle_arrows(self) -> None:
        self._look = self._look.with_choice("hints", "off" if self._look.has_hints else "on")
        self.draw()

    def _change_pieces(self) -> None:
        other = "letters" if self._look.lettering == "kanji" else "kanji"
        self._look = self._look.with_choice("pieces", other)
        self._show_view()
        self.draw()

    def _open(self) -> None:
        def show(tree: GameTree) -> bool:
            self._room.open(tree)
            return True

        open_dialog(show, GameTree.from_record, variations=True)

    def _edit(self) -> None:
        ui.navigate.to(f"{EDITOR}?sfen={quote(self._sfen)}")

    def _play_on(self) -> None:
        ui.navigate.to(f"{self._play_address}?start={quote(self._sfen)}")

    @property
    def _sfen(self) -> str:
        return format_sfen(self._room.game.diagram)

    # ---- files ----

    def _view(self) -> str:
        """Return how pictures are to look, for their address."""
        labels = "letters" if self._look.lettering == "letters" else "japanese"
        return urlencode({"flip": int(self._flip), "labels": labels})

    def _show_view(self) -> None:
        ui.run_javascript(f"window.keiseiView = '{self._view()}'")

    def _address(self, name: str) -> str:
        return f"{ADDRESS}/{self._room.id}/{name}?{self._view()}"

    def _address_script(self, name: str) -> str:
        """Return the script that makes the address of a text or picture to copy."""
        base = f"{ADDRESS}/{self._room.id}/{name}?as_text=1&"
        return f"'{base}' + (window.keiseiView || '{self._view()}')"

    def _save(self, name: str) -> None:
        ui.download.from_url(self._address(name))
        if name == "game.csa" and self._room.tree.record().variations:
            toast(tr("CSA has no place for variations: the main line is saved."))

    def _copied(self, event: GenericEventArguments) -> None:
        with self._client:
            if event.args == "copied":
                toast(tr("Copied."), kind="positive")
            else:
                toast(tr("The browser did not allow it; save a file instead."))
