"""A line of play while it is being read from a file."""

from collections.abc import Iterable

from keisei.errors import IllegalMoveError, IllegalPositionError
from keisei.shogi.diagram import Diagram
from keisei.shogi.moves import Move
from keisei.shogi.notation.record import Ending, RecordedMove, Result
from keisei.shogi.notation.replay import Replay
from keisei.shogi.notation.text import SourceLine


class LineBuilder:
    """Collects moves and what is said about them; every move is played at once.

    A move that the rules forbid becomes a `NotationError` at its place in the file. Remarks go
    to what came last: the start, a move, or the end.
    """

    def __init__(self, start: Diagram, source: SourceLine, stem: Iterable[Move] = ()) -> None:
        try:
            self.replay = Replay(start, stem)
        except IllegalPositionError as error:
            raise source.error(f"no game can start here: {error}") from None
        self.start = start
        self.ending: Ending | None = None
        self._notes = [_Notes()]
        """About the start, about each move, and about the end if there is one."""
        self._moves: list[Move] = []

    def play(self, move: Move, source: SourceLine, column: int, written: str) -> None:
        """Add a move; `written` is how the file puts it."""
        self.require_open(source, column)
        try:
            self.replay.play(move)
        except IllegalMoveError as error:
            raise source.error(f"{written} is illegal: {error}", column) from None
        self._moves.append(move)
        self._notes.append(_Notes())

    def end(self, ending: Ending) -> None:
        """Note how the line ended; no move can follow."""
        self.ending = ending
        self._notes.append(_Notes())

    def require_open(self, source: SourceLine, column: int) -> None:
        """Raise if the line has ended already."""
        if self.ending is not None:
            raise source.error(
                f"the game ended before this ({self.ending.value}); nothing can follow", column
            )

    def set_seconds(self, seconds: float) -> bool:
        """Note the time used by the last move, or before the end. False at the start."""
        self._notes[-1].seconds = seconds
        return len(self._notes) > 1

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
    def length(self) -> int:
        """How many moves there are so far."""
        return len(self._moves)

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
        notes = self._notes[-1]
        return Result(self.ending, notes.seconds, "\n".join(notes.comment))


class _Notes:
    """What was written about one move."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self.comment: list[str] = []
        self.bookmark = ""
