"""Replaces `keisei.evaluation.measure_worker`, without torch; behaves as ``STUB`` demands."""

import os
import sys
import time
from pathlib import Path

ANSWERS = {
    "answers": '{"scores": {}, "placement": null, "met": {}, "games": [], "calibration":'
    ' {"log_loss": 0.5, "games": 1, "positions": 0, "bins": []}}',
    "lies": '{"scores": "all won"}',
}


def main() -> None:
    """Answer, or not."""
    behaviour = os.environ["STUB"]
    if behaviour == "hangs":
        time.sleep(60.0)
    if behaviour in ANSWERS:
        (Path(sys.argv[1]) / "answer.json").write_text(ANSWERS[behaviour], encoding="utf-8")


if __name__ == "__main__":
    main()
