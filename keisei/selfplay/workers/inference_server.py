"""Inference server: one process that evaluates the positions of all workers, preferably on a GPU.

A worker writes its positions into memory that it shares with the server, and sends a request
through a pipe. While the server evaluates a batch, the requests of other workers queue up, and the
next batch takes all of them: batches grow with the load. The server gets new weights as workers do.
"""

import logging
import multiprocessing
import secrets
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import Client, Connection, Listener, wait
from multiprocessing.context import SpawnProcess
from typing import Final, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from keisei.config_schema import AppConfig
from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.model_factory import make_network
from keisei.network.predictor import Network, Prediction
from keisei.ppo.buffer import ArrayLayout
from keisei.selfplay.source import WorkersFailedError
from keisei.selfplay.workers.messages import Command, CommandKind, Failure
from keisei.selfplay.workers.model_sync import ModelSynchronizer
from keisei.shared_memory import SharedBlock
from keisei.shogi.packed import PACKED, Positions, padded_width
from keisei.shogi.position import Records
from keisei.system import ctrl_c_held_back, leave_signals_to_parent, spawn_context

logger = logging.getLogger(__name__)

STARTUP_TIMEOUT: Final = 300.0
"""Seconds that the server may take to start: kernels may have to be compiled first."""

SHUTDOWN_TIMEOUT: Final = 3.0
"""Seconds that the server may take to end by itself."""

POLL_INTERVAL: Final = 0.05
"""Seconds between two checks for workers that have connected."""


class InferenceServerError(WorkersFailedError):
    """The inference server has ended or could not be started."""


class PredictionBuffer:
    """Memory that a worker shares with the server: positions one way, predictions the other."""

    packed: Records
    """``[games]``: positions."""

    legal_actions: npt.NDArray[np.uint16]
    """``[games, MAX_LEGAL_MOVES]``."""

    legal_counts: npt.NDArray[np.int32]
    """``[games]``."""

    log_probs: npt.NDArray[np.float32]
    """``[games, MAX_LEGAL_MOVES]``."""

    values: npt.NDArray[np.float32]
    """``[games]``."""

    def __init__(self, games: int, block: SharedBlock | None = None) -> None:
        """Create the memory for up to `games` positions, or with a `block` attach it."""
        layout = ArrayLayout(
            {
                "packed": (PACKED, (games,)),
                "log_probs": (np.float32, (games, MAX_LEGAL_MOVES)),
                "values": (np.float32, (games,)),
                "legal_counts": (np.int32, (games,)),
                "legal_actions": (np.uint16, (games, MAX_LEGAL_MOVES)),
            }
        )
        self.games = games
        self._block = block or SharedBlock.create(layout.size)
        arrays = layout.views(self._block.memory)
        self._names = tuple(arrays)
        for name, array in arrays.items():
            setattr(self, name, array)

    @classmethod
    def attach(cls, games: int, name: str) -> Self:
        """Attach the memory that the learner created for a worker."""
        return cls(games, SharedBlock.attach(name))

    @property
    def name(self) -> str:
        """Name by which another process attaches the memory."""
        return self._block.name

    def close(self) -> None:
        """Release the memory; the process that created it removes it."""
        for name in self._names:
            delattr(self, name)
        self._block.close()


class ServerAddress(NamedTuple):
    """Address and key by which a worker connects to the server."""

    address: str | tuple[str, int]
    key: bytes
    """Authenticates the connection."""

    block: str
    """Name of the worker's `PredictionBuffer`."""

    games: int
    """Positions that the buffer holds."""


class PredictRequest(NamedTuple):
    """Request of a worker: evaluate the first positions of its buffer."""

    positions: int
    width: int
    """Width ``M`` of the legal lists, padding included."""


class RemotePredictor:
    """A `Predictor` whose predictions come from the inference server."""

    def __init__(self, server: ServerAddress) -> None:
        """Connect to the server.

        Raises:
            InferenceServerError: It cannot be reached.
        """
        self._buffer = PredictionBuffer.attach(server.games, server.block)
        try:
            self._pipe = Client(server.address, authkey=server.key)
            self._pipe.send(server)
        except (OSError, EOFError, multiprocessing.AuthenticationError) as error:
            raise InferenceServerError(
                f"the inference server cannot be reached: {error}"
            ) from error

    def predict(self, positions: Positions) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions.

        Raises:
            InferenceServerError: The server has ended.
        """
        packed, legal_actions, legal_counts = positions
        buffer, number = self._buffer, len(packed)
        width = padded_width(legal_counts, legal_actions.shape[1])
        buffer.packed[:number] = packed
        buffer.legal_actions[:number, :width] = legal_actions[:, :width]
        buffer.legal_counts[:number] = legal_counts
        try:
            self._pipe.send(PredictRequest(number, width))
            self._pipe.recv()
        except (EOFError, OSError) as error:
            raise InferenceServerError("the inference server has ended") from error
        return Prediction(buffer.log_probs[:number, :width].copy(), buffer.values[:number].copy())


class ServerPlan(NamedTuple):
    """Arguments of the server process."""

    config_json: str
    """The settings of the run, with the device of the server."""

    weights_buffer: str
    """Name of the shared memory with the weights."""

    key: bytes
    """Authenticates the connections of workers."""


class _Server:
    """The server in its own process: follows the learner's commands, answers workers' requests."""

    def __init__(self, plan: ServerPlan, commands: Connection) -> None:
        config = AppConfig.model_validate_json(plan.config_json)
        self._network = make_network(config, config.device)
        self._weights_buffer = ModelSynchronizer.attach(
            self._network.weights(), plan.weights_buffer
        )
        self._commands = commands
        self._buffers: dict[Connection, PredictionBuffer] = {}
        """The memory of each worker, by its connection."""

        self._new_connections: list[Connection] = []

    def run(self, listener: Listener) -> None:
        """Serve until the learner sends a stop command, or ends."""
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        with self._weights_buffer, suppress(EOFError):
            while True:
                while self._new_connections:
                    self._add_worker(self._new_connections.pop())
                ready = wait([self._commands, *self._buffers], POLL_INTERVAL)
                # Workers are sent new versions after the server, so no request overtakes them.
                while self._commands.poll():
                    command = Command(*self._commands.recv())
                    if command.kind == CommandKind.STOP:
                        return
                    self._load(command.argument)
                requesting = [pipe for pipe in ready if pipe is not self._commands]
                # On Windows they are of another class, with the same methods.
                self._answer([cast("Connection", pipe) for pipe in requesting])

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                self._new_connections.append(listener.accept())
            except (multiprocessing.AuthenticationError, EOFError, ConnectionError):
                continue  # a worker that died while it connected
            except OSError:  # the listener has been closed
                return

    def _add_worker(self, pipe: Connection) -> None:
        try:
            server = ServerAddress(*pipe.recv())
            self._buffers[pipe] = PredictionBuffer.attach(server.games, server.block)
        except (EOFError, OSError):
            pipe.close()

    def _remove_worker(self, pipe: Connection) -> None:
        pipe.close()
        self._buffers.pop(pipe).close()

    def _load(self, version: int) -> None:
        weights = self._weights_buffer.read(version)
        if weights is not None:  # else the command for newer ones is on its way
            self._network.load_weights(weights)

    def _answer(self, pipes: Sequence[Connection]) -> None:
        """Answer all waiting requests with one call of the network."""
        requests: list[tuple[Connection, PredictionBuffer, PredictRequest]] = []
        for pipe in pipes:
            try:
                requests.append((pipe, self._buffers[pipe], PredictRequest(*pipe.recv())))
            except (EOFError, OSError):
                self._remove_worker(pipe)
        if not requests:
            return
        ends = np.cumsum([request.positions for *_, request in requests])
        width = max(request.width for *_, request in requests)
        packed = np.empty(ends[-1], dtype=PACKED).view(np.recarray)
        legal_actions = np.empty((ends[-1], width), dtype=np.uint16)
        legal_counts = np.empty(ends[-1], dtype=np.int32)
        for end, (_, buffer, request) in zip(ends, requests, strict=True):
            rows = slice(end - request.positions, end)
            packed[rows] = buffer.packed[: request.positions]
            legal_actions[rows] = buffer.legal_actions[: request.positions, :width]
            legal_counts[rows] = buffer.legal_counts[: request.positions]
        prediction = self._network.predict(Positions(packed, legal_actions, legal_counts))
        for end, (pipe, buffer, request) in zip(ends, requests, strict=True):
            rows = slice(end - request.positions, end)
            predicted = min(request.width, prediction.log_probs.shape[1])
            log_probs = buffer.log_probs[: request.positions, : request.width]
            log_probs[:, predicted:] = -np.inf
            log_probs[:, :predicted] = prediction.log_probs[rows, :predicted]
            buffer.values[: request.positions] = prediction.values[rows]
            with suppress(OSError):
                pipe.send(True)


def server_main(plan: ServerPlan, commands: Connection) -> None:
    """Run the server process; any error is sent to the learner as a `Failure`."""
    leave_signals_to_parent()
    try:
        server = _Server(plan, commands)
        with Listener(authkey=plan.key) as listener:
            commands.send(listener.address)
            server.run(listener)
    except BaseException:  # noqa: BLE001 - whatever it is, the learner has to know
        with suppress(OSError):
            commands.send(Failure(traceback.format_exc()))
        sys.exit(1)


class InferenceServer:
    """The learner's side of the server; the process is started by the first call of `address`."""

    def __init__(
        self,
        config: AppConfig,
        network: Network,
        games: int,
        workers: int,
        weights_buffer: ModelSynchronizer,
    ) -> None:
        """Prepare a server on the device of the learner.

        Args:
            config: the settings of the run.
            network: the learner's network; the server uses its device and threads.
            games: games of each worker.
            workers: number of workers.
            weights_buffer: where the learner publishes weights.
        """
        own = {
            "device": network.device,
            "threads": config.device.threads or network.threads,
        }
        device_config = config.device.model_copy(update=own)
        self._config = config.model_copy(update={"device": device_config})
        self._weights_buffer = weights_buffer
        self.starts = 0
        """Number of times the process was started; if it ends, all workers connected to it fail."""

        self._version = -1
        self._key = secrets.token_bytes(32)
        with ExitStack() as stack:
            self._buffers: list[PredictionBuffer] = []
            for _ in range(workers):
                self._buffers.append(PredictionBuffer(games))
                stack.callback(self._buffers[-1].close)
            self._free_memory = stack.pop_all()
        self._address: str | tuple[str, int] = ""
        self._process: SpawnProcess | None = None
        self._commands: Connection | None = None

    def load_weights(self, version: int) -> None:
        """Predict with this version of the weights buffer from now on."""
        self._version = version
        if self._commands is not None:
            with suppress(OSError):  # if the server has ended, its workers notice
                self._commands.send(Command(CommandKind.WEIGHTS, version))

    def address(self, worker: int) -> ServerAddress:
        """Return where a worker connects; starts the process if it is not running.

        Raises:
            InferenceServerError: It cannot be started; the message holds its traceback.
        """
        if self._process is None or not self._process.is_alive():
            if self._process is not None:
                logger.error(
                    "the inference server has ended and is replaced: %s", self._exit_reason()
                )
            self._start()
        buffer = self._buffers[worker]
        return ServerAddress(self._address, self._key, buffer.name, buffer.games)

    def kill(self) -> None:
        """Kill the process, which hangs; the next call of `address` starts a new one."""
        self._stop(0.0)

    def close(self) -> None:
        """End the process and free the memory."""
        self._stop(SHUTDOWN_TIMEOUT)
        self._free_memory.close()

    def _start(self) -> None:
        self._stop(0.0)
        self.starts += 1
        context = spawn_context()
        self._commands, other = context.Pipe()
        plan = ServerPlan(self._config.model_dump_json(), self._weights_buffer.name, self._key)
        self._process = context.Process(
            target=server_main, args=(plan, other), name="keisei-inference-server", daemon=True
        )
        with ctrl_c_held_back():
            self._process.start()
        other.close()
        try:
            if not self._commands.poll(STARTUP_TIMEOUT):
                raise InferenceServerError(
                    f"the inference server did not start within {STARTUP_TIMEOUT:g} s"
                )
            answer = self._commands.recv()
        except (EOFError, OSError) as error:
            raise InferenceServerError("the inference server ended while it started") from error
        if isinstance(answer, Failure):
            raise InferenceServerError(f"the inference server failed: {answer.reason}")
        self._address = answer
        if self._version >= 0:
            self.load_weights(self._version)

    def _exit_reason(self) -> str:
        assert self._commands is not None
        with suppress(EOFError, OSError):
            while self._commands.poll():
                if isinstance(message := self._commands.recv(), Failure):
                    return message.reason
        return "it was killed"

    def _stop(self, timeout: float) -> None:
        if self._process is None or self._commands is None:
            return
        with suppress(OSError):
            self._commands.send(Command(CommandKind.STOP))
        self._process.join(timeout)
        self._process.kill()
        self._process.join()
        self._process.close()
        self._commands.close()
        self._process = self._commands = None


def uses_inference_server(config: AppConfig, network: Network) -> bool:
    """Return whether workers use an inference server; ``auto``: if the learner is on a GPU."""
    if config.parallel.inference == "auto":
        return network.device != "cpu"
    return config.parallel.inference == "server"
