"""Tracker for Weights & Biases: curves, settings and checkpoints of a run.

Nothing here can block training: uploads run in a thread of their own, and the end of the run waits
for them only up to a timeout. The package ``wandb`` is an argument, so that tests can pass a fake.
"""

import inspect
import logging
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from keisei import run_files
from keisei.callbacks import (
    Callback,
    CheckpointSaved,
    EvaluationEnd,
    Progress,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)
from keisei.errors import KeiseiError
from keisei.runs.journal import evaluation_metrics, is_orderly_end
from keisei.system import read_bytes, write_atomically

logger = logging.getLogger(__name__)

UPLOAD_ATTEMPTS: Final = 5
FIRST_DELAY: Final = 1.0
"""Seconds before the second attempt; each further delay is twice as long."""

TIMESTEP: Final = "timestep"
"""Name of the x axis of all curves."""


def import_wandb() -> Any:
    """Return the wandb package; raises `KeiseiError` with instructions if it is missing."""
    missing = KeiseiError(
        "logging.wandb needs the package wandb, which is not installed: "
        'python -m pip install "keisei[wandb]"; or set logging.wandb to off'
    )
    try:
        import wandb
    except ImportError as error:
        raise missing from error
    # Python imports a folder as an empty package, and wandb leaves one wherever it is used.
    if isinstance(wandb, ModuleType) and not hasattr(wandb, "init"):
        raise missing
    return wandb


def require_key(wandb: Any) -> None:
    """Raise `KeiseiError` if there is no API key, for which wandb would ask during the run."""
    if not (os.environ.get("WANDB_API_KEY") or _has_credentials(wandb)):
        raise KeiseiError(
            "logging.wandb=online needs an API key: run `wandb login` or set WANDB_API_KEY; or set "
            "logging.wandb to offline"
        )


def _has_credentials(wandb: Any) -> bool:
    """Return whether wandb finds a key, or another credential, without asking for one."""
    if "prompt" in inspect.signature(wandb.login).parameters:
        return bool(wandb.login(prompt=False, verify=False))
    return bool(wandb.api.api_key)  # earlier releases cannot be kept from asking; later ones warn


class WandbTracker(Callback):
    """Sends a run to Weights & Biases or, offline, writes what ``wandb sync`` can send later.

    `wandb` is the package or a fake. `finish_timeout` is in seconds, and `sleep` waits between
    attempts to upload.
    """

    def __init__(
        self,
        wandb: Any,
        run_directory: Path,
        *,
        project: str,
        mode: Literal["offline", "online"],
        finish_timeout: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._wandb = wandb
        self._directory = run_directory
        self._project = project
        self._mode = mode
        self._finish_timeout = finish_timeout
        self._run: Any = None
        self._uploads = NewestUpload(self._upload, sleep)

    def on_training_start(self, event: TrainingStart) -> None:
        """Begin a run, or resume it: its id is stored in the run's directory."""
        self._run = self._wandb.init(
            project=self._project,
            name=self._directory.name,
            id=self._stored_id(),
            resume="allow",
            mode=self._mode,
            dir=str(self._directory),
            config={**event.config.model_dump(mode="json"), "facts": dict(event.facts)},
            # The terminal belongs to the display: wandb neither captures nor writes to it.
            settings={"console": "off", "silent": True},
        )
        # Over timesteps, not over calls: after a resume, timesteps repeat.
        self._run.define_metric(TIMESTEP)
        self._run.define_metric("*", step_metric=TIMESTEP)
        if self._mode == "online":
            logger.info("Weights & Biases: %s", self._run.url)

    def on_step_end(self, event: StepEnd) -> None:
        """Send the metrics of a step."""
        self._log(event.metrics, event.progress)

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Send the scores."""
        self._log(
            evaluation_metrics(event.scores, event.placement, event.calibration), event.progress
        )

    def on_checkpoint(self, event: CheckpointSaved) -> None:
        """Upload the checkpoint in the background."""
        if self._run is not None:
            self._uploads.submit(event.path)

    def on_training_end(self, event: TrainingEnd) -> None:
        """Finish uploads and run, within the timeout."""
        if self._run is None:
            return

        def finish() -> None:
            self._uploads.finish()
            self._run.finish(exit_code=0 if is_orderly_end(event.reason) else 1)

        # A thread rather than a signal works on every system; a daemon cannot block the exit.
        thread = threading.Thread(target=finish, name="wandb-finish", daemon=True)
        thread.start()
        timeout = 0.0 if event.is_urgent else self._finish_timeout
        thread.join(timeout)
        if thread.is_alive():
            problem = (
                "was not waited for"
                if event.is_urgent
                else f"did not finish within the timeout of {timeout:g} s"
            )
            logger.warning(
                "Weights & Biases %s; send what is missing with: wandb sync %s",
                problem,
                Path(self._run.dir).parent,
            )

    def _log(self, metrics: Mapping[str, float], progress: Progress) -> None:
        if self._run is not None:
            finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
            self._run.log({**finite, TIMESTEP: progress.timestep, "update": progress.update})

    def _stored_id(self) -> str:
        path = self._directory / run_files.WANDB_ID
        if not path.exists():
            write_atomically(path, secrets.token_hex(4).encode())
        return read_bytes(path).decode().strip()

    def _upload(self, path: Path) -> None:
        artifact = self._wandb.Artifact(f"checkpoint-{self._directory.name}", type="model")
        # Not add_dir, which writes to the terminal.
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.is_file():
                artifact.add_file(str(file), name=file.relative_to(path.parent).as_posix())
        logged = self._run.log_artifact(artifact)
        if self._mode == "online":
            logged.wait()  # this is where a failed upload is reported


class NewestUpload:
    """Uploads files in a thread; while one is uploaded, only the newest of the others waits.

    So a slow connection never piles up checkpoints. A failed upload is retried with increasing
    delays, and given up after `UPLOAD_ATTEMPTS`.
    """

    def __init__(self, upload: Callable[[Path], None], sleep: Callable[[float], None]) -> None:
        self._upload = upload
        self._sleep = sleep
        self._changed = threading.Condition()
        self._waiting: Path | None = None
        self._finishing = False
        self._thread: threading.Thread | None = None

    def submit(self, path: Path) -> None:
        """Queue a file for upload, and return at once."""
        with self._changed:
            self._waiting = path
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="wandb-upload", daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Wait until all uploads have succeeded or were given up."""
        with self._changed:
            self._finishing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting is not None or self._finishing)
                path, self._waiting = self._waiting, None
            if path is None:
                return
            self._try(path)

    def _try(self, path: Path) -> None:
        for attempt in range(1, UPLOAD_ATTEMPTS + 1):
            try:
                self._upload(path)
            except Exception as error:  # noqa: BLE001 - no upload may stop training
                logger.warning(
                    "upload of %s failed (attempt %d of %d): %s",
                    path.name,
                    attempt,
                    UPLOAD_ATTEMPTS,
                    error,
                )
            else:
                return
            if attempt < UPLOAD_ATTEMPTS:
                self._sleep(FIRST_DELAY * 2 ** (attempt - 1))
