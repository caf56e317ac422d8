"""The process that measures a network while training goes on.

``python -m keisei.evaluation.worker DIRECTORY`` reads ``request.json`` there and leaves
``answer.json``. If anything goes wrong there is no answer, but a traceback on stderr and an exit
code other than 0.

It lives no longer than the process that started it and holds the other end of its stdin: when that
closes, be it by a kill, it ends and removes the directory, which nobody needs any more.
"""

import _thread
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final

NICENESS: Final = 10
"""How far it steps back behind other processes, on systems that know niceness."""

GRACE_SECONDS: Final = 3.0
"""How long it may take to end its engines once nobody waits for its answer."""


def main() -> None:
    """Measure the network that the directory in the first argument asks for."""
    directory = Path(sys.argv[1])
    if sys.platform != "win32":  # there the priority is set by who starts the process
        os.nice(NICENESS)
    # Those who started a run in the background may have it ignore SIGINT, and so would we.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    is_orphan = threading.Event()
    try:
        threading.Thread(target=_end_with_parent, args=(directory, is_orphan), daemon=True).start()
        _answer(directory)
    except BaseException:  # an import that is interrupted may end by any error
        if not is_orphan.is_set():
            raise
        shutil.rmtree(directory, ignore_errors=True)
        sys.exit(1)


def _answer(directory: Path) -> None:
    # Imported this late: it takes seconds, in which the priority is low and stdin watched already.
    from keisei.checkpoints.network import load_network
    from keisei.config_schema import DeviceConfig
    from keisei.evaluation.judges import inference_of
    from keisei.evaluation.measure import measure
    from keisei.evaluation.worker_messages import ANSWER, REQUEST, Answer, Request
    from keisei.files import read_bytes, write_atomically

    request = Request.model_validate_json(read_bytes(directory / REQUEST))
    network = load_network(request.checkpoint)
    result = measure(
        inference_of(network, DeviceConfig(device="cpu", torch_threads=1)),
        network.config,
        games=request.games,
        seed=request.seed,
        sample_games=request.sample_games,
    )
    write_atomically(directory / ANSWER, Answer.of(result).model_dump_json().encode())


def _end_with_parent(directory: Path, is_orphan: threading.Event) -> None:
    """Wait until stdin is closed; then interrupt the main thread, so that it closes its players."""
    # Not by sys.stdin: a thread that waits there holds a lock which the end of Python needs.
    while os.read(0, 1):
        pass
    is_orphan.set()
    _thread.interrupt_main()
    time.sleep(GRACE_SECONDS)
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main()
