"""Takes the place of `keisei.sweep.trial`: writes a journal without training anything.

Its score is ``ppo.entropy``, so that the space of a test decides the result.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from filelock import FileLock

from keisei.run_files import CHECKPOINTS, CONFIG, METRICS
from keisei.runs import journal

TOTAL = 100


def main() -> None:
    last_resort = threading.Timer(60.0, os._exit, (3,))  # a test that forgets us must not hang
    last_resort.daemon = True
    last_resort.start()
    with FileLock(sys.argv[1], timeout=10.0):
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(0, 65_536)
        config = json.loads(line)
        sys.exit(pretend(Path(config["run"]["root"]) / config["run"]["name"], config))


def pretend(directory: Path, config: dict[str, dict[str, float]]) -> int:
    score = config["ppo"]["entropy"]
    behaviour = os.environ["STUB"]
    is_resumed = (directory / CHECKPOINTS).is_dir()
    with (directory / METRICS).open("ab", buffering=0) as file:

        def write(event: str, update: int, reason: str = "", measured: bool = False) -> None:
            metrics = {"eval/random/score": score, "eval/random/wins": 4.0} if measured else {}
            file.write(
                journal.JournalEntry(
                    event, update, update * TOTAL // 4, TOTAL, 0, 0.0, time.time(),
                    metrics=metrics, reason=reason,
                ).to_line()
            )  # fmt: skip

        write(journal.START, 0)
        (directory / CONFIG).write_text("{}", encoding="utf-8")
        match behaviour:
            case "fail":
                sys.stderr.write("Traceback ...\nno such network\n")
                return 1
            case "odd ones fail" if directory.name.endswith(("1", "3", "5")):
                return 1
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "no score":
                write(journal.END, 4, "finished")
                return 0
        for update in (1, 2, 3):
            write(journal.EVALUATION, update, measured=True)
        (directory / CHECKPOINTS / "step-000000000075").mkdir(parents=True, exist_ok=True)
        if (behaviour == "wait" or (behaviour == "wait if bad" and score < 0.5)) and not is_resumed:
            while os.read(0, 1):
                pass
            write(journal.END, 3, "interrupted")
            return 130
        write(journal.EVALUATION, 4, measured=True)
        write(journal.END, 4, "finished")
    return 0


if __name__ == "__main__":
    main()
