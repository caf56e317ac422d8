"""Mate problems on the board: the visitor plays the attacker, the longest defence answers."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from nicegui import events, run, ui

from keisei.errors import KeiseiError
from keisei.play.mate_problems import (
    BUILTIN_PROBLEMS,
    MateProblem,
    ProblemSession,
    read_problems,
)
from keisei.play.move_text import move_texts
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import SQUARE_NAMES, Color, Move
from keisei.web.languages import mark, tr, trn
from keisei.web.play.board import BoardView, add_pieces, announcement, step_buttons
from keisei.web.play.error_wording import error_text
from keisei.web.play.look import Look
from keisei.web.play.wording import PIECES, spoken_last_move, square_text
from keisei.web.server import serve
from keisei.web.theme import add_style, frame

_MAX_DIGITS: Final = 6
"""Digits of a problem's number in an address, at most."""

_ANSWERS: Final = {
    "right": mark("Right. Go on."),
    "solved": mark("Mate! The problem is solved."),
    "no check": mark("Every move of the attacker has to give check."),
    "escape": mark("After this move the king escapes."),
    "slower": mark("This mates, but there is a shorter mate."),
}
"""What is said after a move, by `keisei.play.mate_problems.Answer`."""


def serve_problems(path: Path | None = None) -> None:
    """Serve a page with the problems of a file, or of the package, until Ctrl-C.

    Raises:
        KeiseiError: The file cannot be read, or is not one of problems.
    """
    problems = read_problems(path or BUILTIN_PROBLEMS)

    def build() -> None:
        @ui.page("/")
        def index(problem: str = "1") -> None:
            ProblemsPage(problems, problem, address="/")

    serve(build, title="Keisei tsume")


def piece_hint(move: Move) -> str:
    """Return which piece is to be moved, or dropped."""
    if move.from_square is not None:
        return tr("Look at {square}.", square=square_text(SQUARE_NAMES[move.from_square]))
    assert move.drop is not None
    return tr("Drop a piece: {piece}.", piece=tr(PIECES[move.drop]))


def move_hint(session: ProblemSession, move: Move, lettering: Lettering) -> str:
    """Return the move to play in the position of the session."""
    (text,) = move_texts(session.game.diagram, [move], lettering)
    return tr("The move is {move}.", move=text)


def solution_text(problem: MateProblem, lettering: Lettering) -> str:
    """Return all moves of the solution."""
    texts = move_texts(parse_sfen(problem.sfen), problem.solution, lettering)
    return tr("Solution: {moves}", moves=" ".join(texts))


class ProblemsPage:
    """The page as one visitor sees it."""

    def __init__(self, problems: Sequence[MateProblem], number: str, *, address: str) -> None:
        """Build the page.

        Args:
            problems: all problems, the shortest first.
            number: of the first problem, as the page's address has it; what is not valid is 1.
            address: of the page.
        """
        self._problems, self._address = problems, address
        self._look = Look.of_visitor("kanji")
        self._solved: set[int] = set()
        self._is_busy = False
        """Whether a thread reads or changes the session's game."""

        self._arrows: list[tuple[str, float]] = []
        self._is_given_up = False
        """Whether the solution is shown, and can be stepped through."""

        is_number = number.isdecimal() and len(number) <= _MAX_DIGITS
        is_valid = is_number and 1 <= int(number) <= len(problems)
        self._index = int(number) - 1 if is_valid else 0
        self._session = ProblemSession(problems[self._index])
        add_style("play.css")
        add_pieces()
        with frame(tr("Mate problems")), ui.element("div").classes("kp"):
            with ui.element("div").classes("kp-main"), ui.element("div").classes("kp-board"):
                self._board = BoardView(on_move=self._move, on_command=self._command)
            with ui.element("div").classes("kp-side"):
                self._build_side()
        self._open(self._index)

    def _build_side(self) -> None:
        with ui.element("div").classes("k-card"):
            self._title = ui.label("").classes("kp-status")
            self._title.tag = "h2"
            self._title.style("font-size: 18px; line-height: 1.4; margin: 0")
            self._status = ui.label("").props('role="status" aria-live="polite"')
            self._status.style("min-height: 2.6em; margin: 6px 0").mark("answer")
            self._announcement = announcement()
            with ui.element("div").classes("kp-buttons"):
                self._button("lightbulb", tr("Hint"), self._hint)
                self._button("replay", tr("Start again"), self._restart)
                self._button("visibility", tr("Solution"), self._solution)
            with ui.element("div").classes("kp-nav") as self._navigation:
                step_buttons(self._command)
        with ui.element("div").classes("k-card"):
            lengths = {
                problem.plies: tr("Mate in {plies} plies", plies=problem.plies)
                for problem in self._problems
            }
            self._length = ui.select(lengths, label=tr("Length"), on_change=self._choose_length)
            self._length.props("outlined dense options-dense behavior=menu").mark("length")
            with ui.element("div").classes("kp-buttons").style("margin-top: 8px"):
                self._button("chevron_left", tr("Previous problem"), partial(self._step, -1))
                self._button("chevron_right", tr("Next problem"), partial(self._step, 1))
            self._count = ui.label("").classes("k-soft").style("margin-top: 8px")

    def _button(self, icon: str, text: str, act: Any) -> None:
        button = ui.button(text, icon=icon, on_click=act)
        button.props('flat no-caps no-wrap color=primary padding="4px 8px"')

    # ---- choosing ----

    def _open(self, index: int) -> None:
        self._index = index % len(self._problems)
        self._session = ProblemSession(self._problems[self._index])
        self._arrows, self._is_given_up = [], False
        side = tr("Black") if self._session.game.turn is Color.BLACK else tr("White")
        self._status.text = tr("{side} mates. Every move gives check.", side=side)
        if self._length.value != self._session.problem.plies:
            self._length.value = self._session.problem.plies
        ui.navigate.history.replace(f"{self._address}?problem={self._index + 1}")
        self._draw()

    def _step(self, by: int) -> None:
        self._open(self._index + by)

    def _choose_length(self, event: events.ValueChangeEventArguments[Any]) -> None:
        lengths = [problem.plies for problem in self._problems]
        if event.value in lengths and event.value != self._session.problem.plies:
            self._open(lengths.index(event.value))

    def _restart(self) -> None:
        self._open(self._index)
        self._board.refuse()  # a first move that has no answer yet

    # ---- solving ----

    def _move(self, usi: str) -> None:
        if self._is_busy or self._is_over:
            self._board.refuse()
            return
        self._is_busy = True
        # Searching takes up to a second, during which other pages have to be answered.
        ui.timer(0.0, partial(self._answer, usi), once=True)

    async def _answer(self, usi: str) -> None:
        session = self._session
        try:
            answer = await run.io_bound(session.answer, Move.from_usi(usi))
        except KeiseiError as error:
            self._status.text = error_text(error)
            self._board.refuse()
            return
        finally:
            self._is_busy = False
        if answer is None or session is not self._session:  # closing, or another problem was opened
            return
        self._arrows = []
        self._status.text = tr(_ANSWERS[answer])
        if answer == "solved":
            self._solved.add(self._index)
            self._board.play_sound("end")
        elif answer == "right":
            self._announce()
        else:
            self._board.refuse()
        self._draw()

    async def _hint(self) -> None:
        """Point out the piece to move, then the move."""
        if self._is_busy or self._is_over:
            return
        session, self._is_busy = self._session, True
        try:
            move = await run.io_bound(lambda: session.hint)
        finally:
            self._is_busy = False
        if move is None or session is not self._session:
            return
        session.hints += 1
        is_second = bool(self._arrows) or session.hints > 1
        self._status.text = (
            move_hint(session, move, self._look.lettering) if is_second else piece_hint(move)
        )
        self._arrows = [(move.usi, 1.0)] if is_second else []
        self._draw()

    def _solution(self) -> None:
        """Play the rest of the solution on the board."""
        if self._is_busy:
            return
        self._is_given_up = True
        self._session.hints += 1
        self._status.text = solution_text(self._session.problem, self._look.lettering)
        self._arrows = []
        self._step_to(self._session.problem.plies)

    def _command(self, name: str) -> None:
        plies, ply = self._session.problem.plies, len(self._session.game.moves)
        steps = {"first": 0, "back": ply - 1, "forward": ply + 1, "last": plies}
        if self._is_given_up and name in steps:
            self._step_to(max(0, min(steps[name], plies)))
            self._announce()
        elif name in ("first", "back"):
            self._restart()

    def _step_to(self, ply: int) -> None:
        """Show the position after some moves of the solution."""
        self._session.restart()
        for move in self._session.problem.solution[:ply]:
            self._session.game.push(move)
        self._draw()

    @property
    def _is_over(self) -> bool:
        """Whether there is nothing to solve any more."""
        return self._session.is_solved or self._is_given_up

    def _announce(self) -> None:
        """Tell screen readers the move that has led to the position on the board."""
        game = self._session.game
        self._announcement.text = spoken_last_move(game.start, game.moves) if game.moves else ""

    def _draw(self) -> None:
        session = self._session
        problem = session.problem
        stars = "★" * problem.grade
        self._title.text = f"{tr('Mate in {plies} plies', plies=problem.plies)} {stars}"
        position = tr(
            "Problem {number} of {total}", number=self._index + 1, total=len(self._problems)
        )
        solved = trn("{number} solved", "{number} solved", len(self._solved))
        self._count.text = tr(", ").join([position, solved])
        self._navigation.visible = self._is_given_up
        self._board.show(
            session.game,
            legal=not self._is_over,
            flip=problem.attacker is Color.WHITE,
            look=self._look,
            arrows=self._arrows,
            over=session.is_solved,
        )
