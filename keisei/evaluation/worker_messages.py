"""What an evaluation in another process is asked, and what it answers: JSON, nothing is pickled."""

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from keisei.evaluation.measure import Measurement
from keisei.evaluation.score import Score
from keisei.shogi.notation.record import Ending, GameRecord, Result
from keisei.shogi.notation.sfen import format_sfen, parse_sfen

REQUEST: Final = "request.json"
ANSWER: Final = "answer.json"


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Request(_Message):
    """Which network to measure, and how. Whom it plays stands in the checkpoint's settings."""

    checkpoint: Path
    games: int
    """Against each opponent."""

    seed: int
    sample_games: int
    """Games of each match to be sent back."""


class GameMessage(_Message):
    """A game of a match."""

    start: str
    """SFEN."""

    moves: tuple[str, ...]
    """In USI notation."""

    headers: dict[str, str]
    ending: Ending | None

    @classmethod
    def of(cls, record: GameRecord) -> "GameMessage":
        """A record of moves and a result; times and comments it has none."""
        return cls(
            start=format_sfen(record.start),
            moves=tuple(move.usi for move in record.main_line),
            headers=record.headers,
            ending=None if record.result is None else record.result.ending,
        )

    @property
    def record(self) -> GameRecord:
        """The record, every move checked by the rules."""
        return GameRecord.from_moves(
            self.moves,
            start=parse_sfen(self.start),
            headers=self.headers,
            result=None if self.ending is None else Result(self.ending),
        )


class Answer(_Message):
    """What came out."""

    scores: dict[str, Score]
    games: tuple[GameMessage, ...]

    @classmethod
    def of(cls, measurement: Measurement) -> "Answer":
        """A measurement, ready to be sent."""
        return cls(
            scores=measurement.scores,
            games=tuple(GameMessage.of(record) for record in measurement.records),
        )

    @property
    def measurement(self) -> Measurement:
        """The measurement that was sent."""
        return Measurement(self.scores, tuple(game.record for game in self.games))
