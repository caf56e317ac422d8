"""A line of play while it is read from a file."""

from collections.abc import Iterable

from keisei.errors import IllegalMoveError, IllegalPositionError, NotationError
from keisei.shogi.notation.reader import Replay, SourceLine
from keisei.shogi.notation.record import (
    MAX_SECONDS,
    Ending,
    RecordedMove,
    Result,
)
from keisei.shogi.types import (
    Color,
    Diagram,
    Move,
)


class LineBuilder:
    """Collects moves and what is said about them; every move is played at once.

    A move that the rules forbid becomes a `NotationError` at its place in the file, unless the
    game ends there because of it. Remarks go to what came last: the start, a move, or the end.
    """

    def __init__(self, start: Diagram, source: SourceLine, stem: Iterable[Move] = ()) -> None:
        try:
            self.replay = Replay(start, stem)
        except IllegalPositionError as error:
            raise source.error(f"no game can start here: {error}") from None
        self.start = start
        self.ending: Ending | None = None
        self._notes = [_Notes()]
        """About the start, each move, the illegal move if there is one, and the end if reached."""
        self._moves: list[Move] = []
        self._foul: NotationError | None = None
        """The fault of an illegal move that was read last."""

    def play(self, move: Move, source: SourceLine, column: int, written: str) -> None:
        """Add a move; `written` is how the file puts it.

        An illegal one is not played. It is forgiven if the next thing read is that the game
        ended by it; `require_legal` has to be asked before anything else is read.
        """
        self._notes.append(_Notes())
        try:
            self.replay.play(move)
        except IllegalMoveError as error:
            self._foul = source.error(f"{written} is illegal: {error}", column)
            self.add_comment(f"illegal move {error}")
        else:
            self._moves.append(move)

    def end(self, ending: Ending) -> None:
        """Note how the line ended; no move can follow."""
        if self._foul is not None:
            own_foul = (Ending.BLACK_FOUL, Ending.WHITE_FOUL)[self.replay.turn]
            if ending not in (Ending.ILLEGAL_MOVE, own_foul):
                raise self._foul
            ending, self._foul = Ending.ILLEGAL_MOVE, None
        self.ending = ending
        self._notes.append(_Notes())

    def require_legal(self) -> None:
        """Raise if the last move was illegal."""
        if self._foul is not None:
            raise self._foul

    def require_open(self, source: SourceLine, column: int) -> None:
        """Raise if the line has ended already."""
        if self.ending is not None:
            raise source.error(
                f"the game ended before this ({self.ending.value}); nothing can follow", column
            )

    def set_seconds(self, seconds: float, source: SourceLine, column: int) -> None:
        """Note the time used by the last move, or before the end."""
        if seconds > MAX_SECONDS:
            raise source.error(
                f"{seconds:.0f} seconds; no move takes longer than {MAX_SECONDS}", column
            )
        self._notes[-1].seconds = seconds

    def add_comment(self, text: str) -> None:
        """Add a line to the comment on what came last."""
        self._notes[-1].comment.append(text)

    def add_bookmark(self, text: str) -> None:
        """Name the position after what came last."""
        self._notes[-1].bookmark = text

    @property
    def comment(self) -> str:
        """What was said before the first move."""
        return "\n".join(self._notes[0].comment)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a move nor an end yet."""
        return len(self._notes) == 1

    @property
    def length(self) -> int:
        """How many moves there are so far, an illegal last one included."""
        return len(self._moves) + (self._foul is not None)

    @property
    def turn(self) -> Color:
        """Whose turn it is in the file, where an illegal last move counts as made."""
        return self.replay.turn if self._foul is None else self.replay.turn.opponent

    @property
    def moves(self) -> list[RecordedMove]:
        """The moves so far."""
        return [
            RecordedMove(move, notes.seconds, "\n".join(notes.comment), notes.bookmark)
            for move, notes in zip(self._moves, self._notes[1:], strict=False)
        ]

    @property
    def result(self) -> Result | None:
        """How the line ended, if it did."""
        if self.ending is None:
            return None
        notes = self._notes[len(self._moves) + 1 :]  # of an illegal move too, if there was one
        times = [note.seconds for note in notes if note.seconds is not None]
        comment = "\n".join(line for note in notes for line in note.comment)
        return Result(self.ending, times[0] if times else None, comment)


class _Notes:
    """What was written about one move."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self.comment: list[str] = []
        self.bookmark = ""
