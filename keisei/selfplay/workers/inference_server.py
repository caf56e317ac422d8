"""One network for all workers: a process that judges their boards together, on a GPU where one is.

A worker puts its boards into memory that it shares with the server, and says so through a pipe.
While the server judges, the boards of others gather; the next call takes them all, so batches are
as large as the server is behind. New weights come to it as they come to workers.
"""

import logging
import multiprocessing
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import Client, Connection, Listener, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.shared_memory import SharedMemory
from typing import Final, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from keisei.config_schema import AppConfig
from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.model_factory import make_network
from keisei.network.predictor import Network, Prediction, padded_width
from keisei.selfplay.workers.messages import (
    Command,
    CommandKind,
    Failure,
    WorkersFailedError,
)
from keisei.selfplay.workers.model_sync import ModelSynchronizer
from keisei.selfplay.workers.shared_memory import attach_block, create_block, release_block
from keisei.shogi.packed import PACKED, Positions
from keisei.shogi.position import Records
from keisei.system import leave_signals_to_parent, spawn_context

logger = logging.getLogger(__name__)

STARTUP_TIMEOUT: Final = 300.0
"""How long the server may take to come up: a compiler may have to run first."""

SHUTDOWN_TIMEOUT: Final = 3.0
POLL_INTERVAL: Final = 0.05
"""How often the server looks for workers that have come."""


class ServerGoneError(WorkersFailedError):
    """The server has ended or could not be started."""


class PredictionBuffer:
    """Memory that a worker shares with the server: boards one way, predictions the other."""

    packed: Records
    legal_actions: npt.NDArray[np.uint16]
    legal_counts: npt.NDArray[np.int32]
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]

    def __init__(self, games: int, block: SharedMemory | None = None) -> None:
        shapes: dict[str, tuple[npt.DTypeLike, tuple[int, ...]]] = {
            "packed": (PACKED, (games,)),
            "log_probs": (np.float32, (games, MAX_LEGAL_MOVES)),
            "values": (np.float32, (games,)),
            "legal_counts": (np.int32, (games,)),
            "legal_actions": (np.uint16, (games, MAX_LEGAL_MOVES)),
        }
        sizes = {name: _aligned(dtype, shape) for name, (dtype, shape) in shapes.items()}
        self.games = games
        self._is_owner = block is None
        self._block = create_block(sum(sizes.values())) if block is None else block
        offset = 0
        for name, (dtype, shape) in shapes.items():
            array: npt.NDArray[np.generic] = np.ndarray(shape, dtype, self._block.buf, offset)
            setattr(self, name, array.view(np.recarray) if name == "packed" else array)
            offset += sizes[name]

    @classmethod
    def attach(cls, games: int, name: str) -> Self:
        """The memory that the learner has made for a worker."""
        return cls(games, attach_block(name))

    @property
    def name(self) -> str:
        """By which another process attaches it."""
        return self._block.name

    def close(self) -> None:
        """Let go of the memory; who made it removes it."""
        for name in ("packed", "log_probs", "values", "legal_counts", "legal_actions"):
            delattr(self, name)
        release_block(self._block, is_owner=self._is_owner)


def _aligned(dtype: npt.DTypeLike, shape: tuple[int, ...]) -> int:
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    return -(-size // 64) * 64


class ServerAddress(NamedTuple):
    """Where a worker asks: what it needs to know of the server."""

    address: str | tuple[str, int]
    key: bytes
    block: str
    games: int


class PredictRequest(NamedTuple):
    """Of a worker: judge the first boards of my block."""

    boards: int
    width: int


class RemotePredictor:
    """The network as a worker sees it: a `Predictor` whose answers come from the server."""

    def __init__(self, server_address: ServerAddress) -> None:
        self._block = PredictionBuffer.attach(server_address.games, server_address.block)
        try:
            self._pipe = Client(server_address.address, authkey=server_address.key)
            self._pipe.send(server_address)
        except (OSError, EOFError, multiprocessing.AuthenticationError) as error:
            raise ServerGoneError(f"the inference server cannot be reached: {error}") from error

    def predict(self, positions: Positions) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions."""
        packed, legal_actions, legal_counts = positions
        block, boards = self._block, len(packed)
        width = padded_width(legal_counts, legal_actions.shape[1])
        block.packed[:boards] = packed
        block.legal_actions[:boards, :width] = legal_actions[:, :width]
        block.legal_counts[:boards] = legal_counts
        try:
            self._pipe.send(PredictRequest(boards, width))
            self._pipe.recv()
        except (EOFError, OSError) as error:
            raise ServerGoneError("the inference server is gone") from error
        return Prediction(block.log_probs[:boards, :width].copy(), block.values[:boards].copy())


class ServerPlan(NamedTuple):
    """What the server is to do."""

    config_json: str
    weights_buffer: str
    """Name of the shared memory with the weights."""

    key: bytes


class _Server:
    """The server's own process: takes commands of the learner, answers the requests of workers."""

    def __init__(self, plan: ServerPlan, commands: Connection) -> None:
        config = AppConfig.model_validate_json(plan.config_json)
        self._network = make_network(config, config.device)
        self._weights_buffer = ModelSynchronizer.attach(
            self._network.weights(), plan.weights_buffer
        )
        self._commands = commands
        self._blocks: dict[Connection, PredictionBuffer] = {}
        self._new: list[Connection] = []

    def run(self, listener: Listener) -> None:
        """Serve until told to stop, or until the learner is gone."""
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        with self._weights_buffer, suppress(EOFError):
            while True:
                while self._new:
                    self._welcome(self._new.pop())
                ready = wait([self._commands, *self._blocks], POLL_INTERVAL)
                # Workers hear of new weights after the server, so no request overtakes them.
                while self._commands.poll():
                    command = Command(*self._commands.recv())
                    if command.kind == CommandKind.STOP:
                        return
                    self._load(command.argument)
                asking = [pipe for pipe in ready if pipe is not self._commands]
                # On Windows they are of another class, with the same methods.
                self._answer([cast("Connection", pipe) for pipe in asking])

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                self._new.append(listener.accept())
            except (multiprocessing.AuthenticationError, EOFError, ConnectionError):
                continue  # a worker that died while it came
            except OSError:  # the listener has been closed
                return

    def _welcome(self, pipe: Connection) -> None:
        try:
            server_address = ServerAddress(*pipe.recv())
            self._blocks[pipe] = PredictionBuffer.attach(server_address.games, server_address.block)
        except (EOFError, OSError):
            pipe.close()

    def _load(self, version: int) -> None:
        weights = self._weights_buffer.read(version)
        if weights is not None:  # else there is an order for newer ones already
            self._network.load_weights(weights)

    def _answer(self, asking: Sequence[Connection]) -> None:
        """Answer all waiting requests with one call of the network."""
        requests: list[tuple[Connection, PredictionBuffer, PredictRequest]] = []
        for pipe in asking:
            try:
                requests.append((pipe, self._blocks[pipe], PredictRequest(*pipe.recv())))
            except (EOFError, OSError):
                self._dismiss(pipe)
        if not requests:
            return
        ends = np.cumsum([request.boards for *_, request in requests])
        width = max(request.width for *_, request in requests)
        packed = np.empty(ends[-1], dtype=PACKED).view(np.recarray)
        legal_actions = np.empty((ends[-1], width), dtype=np.uint16)
        legal_counts = np.empty(ends[-1], dtype=np.int32)
        for end, (_, block, request) in zip(ends, requests, strict=True):
            rows = slice(end - request.boards, end)
            packed[rows] = block.packed[: request.boards]
            legal_actions[rows] = block.legal_actions[: request.boards, :width]
            legal_counts[rows] = block.legal_counts[: request.boards]
        prediction = self._network.predict(Positions(packed, legal_actions, legal_counts))
        for end, (pipe, block, request) in zip(ends, requests, strict=True):
            rows = slice(end - request.boards, end)
            columns = min(request.width, prediction.log_probs.shape[1])
            answer = block.log_probs[: request.boards, : request.width]
            answer[:, columns:] = -np.inf
            answer[:, :columns] = prediction.log_probs[rows, :columns]
            block.values[: request.boards] = prediction.values[rows]
            with suppress(OSError):
                pipe.send(True)

    def _dismiss(self, pipe: Connection) -> None:
        pipe.close()
        self._blocks.pop(pipe).close()


def server_main(plan: ServerPlan, commands: Connection) -> None:
    """What the process does; never raises, it tells."""
    leave_signals_to_parent()
    try:
        server = _Server(plan, commands)
        with Listener(authkey=plan.key) as listener:
            commands.send(listener.address)
            server.run(listener)
    except BaseException:  # noqa: BLE001 - whatever it is, the learner shall know
        with suppress(OSError):
            commands.send(Failure(traceback.format_exc()))
        sys.exit(1)


class InferenceServer:
    """The server from the learner's side; it is started by the first `server_address` that is asked for."""

    def __init__(
        self,
        config: AppConfig,
        network: Network,
        games: int,
        workers: int,
        weights_buffer: ModelSynchronizer,
    ) -> None:
        """Set it out for some workers with `games` each; it computes where the learner does."""
        own = {
            "device": network.device,
            "torch_threads": config.device.torch_threads or network.threads,
        }
        device_config = config.device.model_copy(update=own)
        self._config = config.model_copy(update={"device": device_config})
        self._weights_buffer = weights_buffer
        self.starts = 0
        """How often it was started: one that is gone takes with it all workers of before."""

        self._version = -1
        self._key = secrets.token_bytes(32)
        with ExitStack() as stack:
            self._blocks: list[PredictionBuffer] = []
            for _ in range(workers):
                self._blocks.append(PredictionBuffer(games))
                stack.callback(self._blocks[-1].close)
            self._free_memory = stack.pop_all()
        self._address: str | tuple[str, int] = ""
        self._process: SpawnProcess | None = None
        self._commands: Connection | None = None

    def take_weights(self, version: int) -> None:
        """Use the newest weights of the weights_buffer from now on."""
        self._version = version
        if self._commands is not None:
            with suppress(OSError):  # one that is gone is noticed by the workers
                self._commands.send(Command(CommandKind.WEIGHTS, version))

    def server_address(self, worker: int) -> ServerAddress:
        """Where a worker asks. A server that is gone is replaced.

        Raises:
            ServerGoneError: It cannot be started; the message holds its traceback.
        """
        if self._process is None or not self._process.is_alive():
            if self._process is not None:
                logger.error(
                    "the inference server is gone and is replaced: %s", self._exit_reason()
                )
            self._start()
        block = self._blocks[worker]
        return ServerAddress(self._address, self._key, block.name, block.games)

    def kill(self) -> None:
        """End its process, which hangs; the next `server_address` is at a new one."""
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
        self._process.start()
        other.close()
        deadline = time.monotonic() + STARTUP_TIMEOUT
        try:
            if not self._commands.poll(deadline - time.monotonic()):
                raise ServerGoneError(
                    f"the inference server did not start in {STARTUP_TIMEOUT:g} s"
                )
            answer = self._commands.recv()
        except (EOFError, OSError) as error:
            raise ServerGoneError("the inference server ended while it started") from error
        if isinstance(answer, Failure):
            raise ServerGoneError(f"the inference server failed: {answer.reason}")
        self._address = answer
        if self._version >= 0:
            self.take_weights(self._version)

    def _exit_reason(self) -> str:
        assert self._commands is not None
        with suppress(EOFError, OSError):
            while self._commands.poll():
                if isinstance(message := self._commands.recv(), Failure):
                    return message.reason
        return "it was killed"

    def _stop(self, seconds: float) -> None:
        if self._process is None or self._commands is None:
            return
        with suppress(OSError):
            self._commands.send(Command(CommandKind.STOP))
        self._process.join(seconds)
        self._process.kill()
        self._process.join()
        self._process.close()
        self._commands.close()
        self._process = self._commands = None


def is_served(config: AppConfig, network: Network) -> bool:
    """Whether workers ask a server: ``auto``, if the learner computes on a GPU."""
    if config.parallel.inference == "auto":
        return network.device != "cpu"
    return config.parallel.inference == "server"
