"""Count the functions and files that Keisei runs through for one thing a user does.

    python scripts/trace.py click|train [--list]

``click``: from a click on the browser's board to the opponent's answer. A page is built without a
browser, its board reports a move, and the bot ``greedy`` answers. The trace begins with the page's
click handler and ends when the answer has been played in the game room and the page starts to
redraw itself. Printed are

- the distinct functions of Keisei that are entered, by module and qualified name, and the files
  they are in. Properties are counted apart. Left out are lambdas, comprehensions and kernels, the
  rules and notations below `ShogiGame` (``keisei.shogi``), and what `PlayPage.draw` calls;
- the chain: the longest sequence in which one of these functions calls the next, or hands over to
  it as a task or in a thread.

Counted is the second click of a game: the first one also loads the opponent.

``train``: from ``keisei train`` to the end of the first update, in one process. Printed are the
files of the functions that are entered, which is what a reader opens who follows the way. Left out
are the game (``keisei.shogi``) and what only looks on: display, logs, timers, trackers, journal.
Counted is the second run of a process, so that imports and compilers are not in it.
"""

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

PACKAGE: Final = Path(__file__).resolve().parent.parent / "keisei"
MAX_CLICK_FUNCTIONS: Final = 20
"""Functions from a click to the answer; it exits with 1 if there are more."""

MAX_TRAIN_FILES: Final = 25
"""Files from ``keisei train`` to the end of the first update; it exits with 1 if there are more."""

ONLOOKERS: Final = (
    "keisei.display.", "keisei.formats.", "keisei.runs.", "keisei.timing.",
    "keisei.training.trackers.", "keisei.training.writers.",
)  # fmt: skip
"""Modules that only watch training."""

TINY_RUN: Final = (
    "run.total_timesteps=64", "env.num_games=8", "selfplay.rollout_plies=8", "env.ply_limit=20",
    "evaluation.interval=0", "evaluation.final_games=1", "evaluation.final_within=0",
    "evaluation.background=off",
    "evaluation.ply_limit=20", "evaluation.opponents=[random]", "device.threads=1",
    "model.tower_width=8", "logging.display=plain",
)  # fmt: skip

_SETTLED: Final = "GameRoom.settled"
"""The function with which the trace itself waits for the answer."""

_depth: ContextVar[int | None] = ContextVar("depth", default=None)
"""Length of the chain of calls that led here, which tasks and threads inherit; None: not traced."""


class Call(NamedTuple):
    """A function that was entered."""

    module: str
    function: str
    depth: int
    """Its place in the chain of calls and hand-overs, from 1."""

    is_property: bool


class Tracer:
    """Records the functions of Keisei that a piece of code enters, also in tasks and threads.

    Followed are threads that inherit the context of their maker, as with ``asyncio.to_thread``, and
    are started while it is recording. Each `recording` begins with an empty list.
    """

    def __init__(self, leave_out: tuple[str, ...] = (), opaque: tuple[str, ...] = ()) -> None:
        """Make a tracer.

        Args:
            leave_out: prefixes of modules whose functions are not recorded.
            opaque: qualified names of functions that are recorded, but not what they call.
        """
        self.calls: list[Call] = []
        self._leave_out = leave_out
        self._opaque = opaque
        self._known: dict[CodeType, tuple[str, bool] | None] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what is called in the ``with`` block, and in what it starts."""
        self.calls = []
        token = _depth.set(0)
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            _depth.reset(token)

    def functions(self, *, properties: bool = False) -> list[tuple[str, str]]:
        """Return the distinct functions, or properties, as (module, qualified name) in order."""
        return list(
            dict.fromkeys(
                (call.module, call.function)
                for call in self.calls
                if call.is_property == properties
            )
        )

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        depth = _depth.get()
        if depth is None or event not in ("call", "return"):
            return
        code = frame.f_code
        if code not in self._known:
            self._known[code] = self._describe(frame)
        known = self._known[code]
        if known is None:
            return
        _depth.set(depth + (1 if event == "call" else -1))
        if event == "call" and not self._is_inside_opaque(frame):
            self.calls.append(Call(known[0], code.co_qualname, depth + 1, known[1]))

    def _is_inside_opaque(self, frame: FrameType) -> bool:
        caller = frame.f_back
        while caller is not None:
            if caller.f_code.co_qualname in self._opaque:
                return True
            caller = caller.f_back
        return False

    def _describe(self, frame: FrameType) -> tuple[str, bool] | None:
        """Return (module, whether it is a property) of a function; None if it does not count."""
        code = frame.f_code
        path = Path(code.co_filename)
        if code.co_name.startswith("<") or not path.is_relative_to(PACKAGE):
            return None
        if not code.co_flags & 1:  # the body of a class, while its module is imported
            return None
        module = frame.f_globals["__name__"]
        if f"{module}.".startswith(self._leave_out):
            return None
        owner = frame.f_globals.get(code.co_qualname.partition(".")[0])
        return module, isinstance(getattr(owner, code.co_name, None), property)


def traced(run: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the distinct functions, as (module, qualified name), that a call runs through."""
    tracer = Tracer()
    with tracer.recording():
        run()
    return tracer.functions()


def trace_click() -> Tracer:
    """Trace the second click on the board in a game against ``greedy``."""
    return asyncio.run(_trace_click())


async def _trace_click() -> Tracer:
    from nicegui import Client, ui
    from nicegui.testing.user_simulation import user_simulation

    from keisei.web.play.board import BoardView
    from keisei.web.play.catalogue import Catalogue, GameSetup, PlayerChoice
    from keisei.web.play.game_room import GameRoom, Lobby
    from keisei.web.play.play_page import PlayPage

    with tempfile.TemporaryDirectory() as runs:
        catalogue = Catalogue(Path(runs), ["greedy"])
    room = GameRoom(catalogue, GameSetup(white=PlayerChoice("named:greedy")), seed=1)
    lobby = Lobby()
    tracer = Tracer(leave_out=("keisei.shogi.",), opaque=("PlayPage.draw",))
    async with user_simulation() as user:

        @ui.page("/")
        def index() -> None:
            PlayPage(room, lobby, lettering="kanji").build(ask_first=False)

        await user.open("/")
        (board,) = user.find(BoardView).elements
        (listener,) = (each for each in board._event_listeners.values() if each.type == "move")
        for move in ("7g7f", "2g2f"):
            length = room.session.length
            with tracer.recording():
                board._handle_event({"listener_id": listener.id, "args": move})
                await room.settled()
            assert room.session.length == length + 2, room.problem
        await room.close()
        Client.page_routes.clear()  # otherwise the end of the simulation unloads the pages' modules
    ends = [place for place, call in enumerate(tracer.calls) if call.function == "PlayPage.draw"]
    tracer.calls = [call for call in tracer.calls[: ends[-1] + 1] if call.function != _SETTLED]
    return tracer


def trace_train() -> Tracer:
    """Trace ``keisei train`` from the command line to the end of the first update."""
    from keisei.cli import app
    from keisei.training.trainer import Trainer

    tracer = Tracer(leave_out=("keisei.shogi.", *ONLOOKERS))
    original = Trainer.train_step

    def train_step(self: Trainer) -> None:
        original(self)
        sys.setprofile(None)  # what follows is not traced

    with tempfile.TemporaryDirectory() as root:
        for name in ("untraced", "traced"):
            settings = (f"run.root={root}", *TINY_RUN)
            options = [part for setting in settings for part in ("--set", setting)]
            command = ["train", "--config", "quickstart", "--name", name, *options]
            if name == "untraced":
                app(command, standalone_mode=False)
                continue
            Trainer.train_step = train_step  # type: ignore[method-assign]
            try:
                with tracer.recording():
                    app(command, standalone_mode=False)
            finally:
                Trainer.train_step = original  # type: ignore[method-assign]
    return tracer


def main() -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["click", "train"])
    parser.add_argument("--list", action="store_true", help="list the calls, too")
    arguments = parser.parse_args()
    if arguments.what == "train":
        modules = {module for module, _ in trace_train().functions()}
        if arguments.list:
            sys.stdout.write("".join(f"{module}\n" for module in sorted(modules)))
        sys.stdout.write(f"train: {len(modules)} files\n")
        return int(len(modules) > MAX_TRAIN_FILES)
    tracer = trace_click()
    functions = tracer.functions()
    properties = tracer.functions(properties=True)
    files = {module for module, _ in functions + properties}
    if arguments.list:
        for call in tracer.calls:
            name = f"{call.module}.{call.function}" + " (property)" * call.is_property
            sys.stdout.write(f"{'  ' * (call.depth - 1)}{name}\n")
    sys.stdout.write(
        f"click: {len(functions)} functions and {len(properties)} properties in "
        f"{len(files)} files; the longest chain has {max(call.depth for call in tracer.calls)}\n"
    )
    return int(len(functions) > MAX_CLICK_FUNCTIONS)


if __name__ == "__main__":
    sys.exit(main())
