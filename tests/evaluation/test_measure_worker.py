"""Results that travel between processes arrive as they were sent."""

import pytest

from keisei.evaluation.calibration import Calibration, CalibrationBin
from keisei.evaluation.measure import Measurement
from keisei.evaluation.measure_worker import Answer
from keisei.evaluation.placing import Placement
from keisei.evaluation.score import Score
from keisei.shogi.notation.record import Ending, GameRecord, Result
from keisei.shogi.notation.sfen import parse_sfen

CALIBRATION = Calibration(0.5, 2, 30, (CalibrationBin(0.25, 0.5, 30),))


@pytest.mark.parametrize("ending", [None, *Ending])
def test_an_answer_is_what_was_measured(ending: Ending | None) -> None:
    result = None if ending is None else Result(ending)
    records = (
        GameRecord.from_moves(["7g7f"], headers={"black": "网络\n", "white": "b"}, result=result),
        GameRecord.from_moves(
            ["G*5b"], start=parse_sfen("4k4/9/4P4/9/9/9/9/9/4K4 b G 31"), result=result
        ),
    )
    placement = Placement(1234.5, 1200.0, 1270.0, 400, "above")
    scores = {"random": Score((1, 2, 3), (4, 5, 6))}
    met = {"random v1": Score((7, 8, 9), (1, 2, 3))}
    sent = Measurement(scores, placement, met, CALIBRATION, records)
    assert Answer.model_validate_json(Answer.of(sent).model_dump_json()).measurement == sent


def test_a_game_with_an_illegal_move_is_refused() -> None:
    sent = Answer.of(Measurement({}, None, {}, CALIBRATION, (GameRecord.from_moves(["7g7f"]),)))
    text = sent.model_dump_json().replace("7g7f", "7g7e")
    with pytest.raises(ValueError, match="move 1, 7g7e"):
        Answer.model_validate_json(text).measurement  # noqa: B018
