"""`UsiEngine`: another Shogi engine, run as a process and controlled by USI.

>>> settings = UsiSettings(command=("fairy-stockfish",), limit=Limit(nodes=1000))
>>> settings.limit.command
'go nodes 1000'

Any failure becomes a `UsiEngineError`, after which the process is gone.
"""

import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from keisei.errors import KeiseiError
from keisei.usi.client_process import Deadline, EngineProcess, EngineProcessError

_UNANNOUNCED: Final = ("USI_Hash", "USI_Ponder")


class WrongOptionError(Exception):
    """An unknown option, or an invalid value of one."""


@dataclass(frozen=True)
class EngineOption:
    """An option that an engine announces."""

    name: str
    kind: str
    minimum: int | None
    maximum: int | None
    choices: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> "EngineOption | None":
        """Parse an ``option`` line; names and choices may contain spaces."""
        match = re.match(r"option name (.+?) type (\w+)(.*)", line)
        if match is None:
            return None
        name, kind, rest = match.groups()
        limits = dict(re.findall(r" (min|max) (-?\d{1,30})", rest)) if kind == "spin" else {}
        choices = re.findall(r" var (.*?)(?= var |$)", rest) if kind == "combo" else []
        return cls(
            name,
            kind,
            int(limits["min"]) if "min" in limits else None,
            int(limits["max"]) if "max" in limits else None,
            tuple(choices),
        )

    def checked(self, value: str) -> str:
        """Return the value in the engine's spelling; raise if it is invalid."""
        if self.kind == "spin":
            return self._checked_number(value)
        choices = {"check": ("true", "false"), "combo": self.choices, "button": ("",)}
        if self.kind not in choices:
            return value
        for choice in choices[self.kind]:
            if choice.casefold() == value.casefold():
                return choice
        wanted = ", ".join(choices[self.kind]) or "no value"
        raise WrongOptionError(f"option {self.name!r} can't be {value!r}, it takes {wanted}")

    def _checked_number(self, value: str) -> str:
        if re.fullmatch(r"-?[0-9]{1,30}", value) is None:
            raise WrongOptionError(f"option {self.name!r} is {value!r}, it must be a whole number")
        too_low = self.minimum is not None and int(value) < self.minimum
        if too_low or (self.maximum is not None and int(value) > self.maximum):
            raise WrongOptionError(
                f"option {self.name!r} is {value}, it must be from {self.minimum} to {self.maximum}"
            )
        return value


def setting_command(announced: dict[str, EngineOption], name: str, value: str) -> str:
    """Return the command that sets an option; its name is case-insensitive, as in GUIs."""
    option = announced.get(name.casefold())
    if option is not None:
        name, value = option.name, option.checked(value)
    elif name not in _UNANNOUNCED:
        known = ", ".join(option.name for option in announced.values()) or "none at all"
        raise WrongOptionError(f"it has no option {name!r}; it has {known}")
    return f"setoption name {name} value {value}" if value else f"setoption name {name}"


class UsiEngineError(KeiseiError):
    """An engine that can't be started, dies, times out, or lacks an option."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Limits of the search for a move; the first one that is reached ends it.

    >>> Limit(depth=2, nodes=5000).command
    'go depth 2 nodes 5000'
    """

    depth: int | None = None
    """Search depth in plies."""

    nodes: int | None = None
    """Number of nodes."""

    byoyomi: int | None = None
    """Milliseconds per move. The moves then depend on the machine and its load."""

    def __post_init__(self) -> None:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if not given:
            raise UsiEngineError("an engine needs a limit: depth, nodes or byoyomi")
        for name, value in given.items():
            if value < 1:
                raise UsiEngineError(f"{name} of an engine is {value}, but must be at least 1")

    @property
    def command(self) -> str:
        """The ``go`` command that starts the search."""
        return f"go {self._text('btime 0 wtime 0 byoyomi {}')}"

    def __str__(self) -> str:
        return self._text("byoyomi {} ms")

    def _text(self, byoyomi: str) -> str:
        forms = (("depth {}", self.depth), ("nodes {}", self.nodes), (byoyomi, self.byoyomi))
        return " ".join(form.format(value) for form, value in forms if value is not None)


@dataclass(frozen=True, kw_only=True)
class UsiSettings:
    """Command, options and limits of an engine."""

    command: tuple[str, ...]
    """The program and its arguments."""

    options: tuple[tuple[str, str], ...] = ()
    """Names and values of the engine's options, in the order in which they are set."""

    limit: Limit
    """Limit of the search for each move."""

    startup_timeout: float = 30.0
    """Seconds to get ready."""

    move_timeout: float = 60.0
    """Seconds for a move."""

    def __post_init__(self) -> None:
        if not self.command:
            raise UsiEngineError("an engine needs a command")
        if any(not text.isprintable() for option in self.options for text in option):
            raise UsiEngineError(f"{self.command[0]}: an option contains a control character")
        if (self.limit.byoyomi or 0) >= 1000 * self.move_timeout:
            raise UsiEngineError(
                f"{self.command[0]}: byoyomi {self.limit.byoyomi} ms leaves no time to answer "
                f"within {self.move_timeout:g} s"
            )


class UsiEngine:
    """A running engine that is ready to play. After any error its process is gone."""

    name: str
    """Name that the engine reports."""

    def __init__(self, settings: UsiSettings) -> None:
        """Start the program and wait until it is ready."""
        self.settings = settings
        self.name = Path(settings.command[0]).name
        try:
            self._process = EngineProcess(settings.command)
        except EngineProcessError as failure:
            raise UsiEngineError(str(failure)) from None
        # The threads refer to the process, not to this object, so that it can be collected.
        self._finalizer = weakref.finalize(self, self._process.kill)
        with self._kill_on_error():
            self._get_ready(Deadline(settings.startup_timeout))

    @property
    def is_running(self) -> bool:
        """Whether the process is alive."""
        return self._process.is_running

    @property
    def process_id(self) -> int:
        """Process id."""
        return self._process.id

    def new_game(self) -> None:
        """Send ``usinewgame``."""
        with self._kill_on_error():
            self._process.send("usinewgame")

    def best_move(self, start: str, moves: Sequence[str]) -> str:
        """Return the best move after `moves` from `start`, which is ``startpos`` or an SFEN.

        It is returned as the engine wrote it: a move, ``resign``, ``win``, or nonsense.
        """
        position = start if start == "startpos" else f"sfen {start}"
        played = f" moves {' '.join(moves)}" if moves else ""
        with self._kill_on_error():
            self._process.forget_answers()
            self._process.send(f"position {position}{played}")
            self._process.send(self.settings.limit.command)
            deadline = Deadline(self.settings.move_timeout)
            *_, answer = self._process.answer_until("bestmove", deadline)
        words = answer.split()
        return words[1] if len(words) > 1 else ""

    def close(self) -> None:
        """End the engine. May be called more than once, from any thread."""
        self._process.end()
        self._finalizer.detach()

    def kill(self) -> None:
        """Kill the engine at once."""
        self._process.kill()
        self._finalizer.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, process {self.process_id}>"

    def _get_ready(self, deadline: Deadline) -> None:
        self._process.send("usi")
        announced: dict[str, EngineOption] = {}
        for line in self._process.answer_until("usiok", deadline):
            if line.startswith("id name ") and (name := line[8:].strip()):
                self.name = name
            elif (option := EngineOption.parse(line)) is not None:
                announced[option.name.casefold()] = option
        for name, value in self.settings.options:
            self._process.send(setting_command(announced, name, value))
        self._process.send("isready")
        self._process.answer_until("readyok", deadline)

    @contextmanager
    def _kill_on_error(self) -> Iterator[None]:
        """Kill the engine on any exception: its pending answer would be mistaken for the next."""
        try:
            yield
        except EngineProcessError as failure:
            self._process.kill()
            raise UsiEngineError(f"{self.name}: {failure}; {self._process.last_output}") from None
        except WrongOptionError as mistake:
            self._process.kill()
            raise UsiEngineError(f"{self.name}: {mistake}") from None
        except BaseException:
            self._process.kill()
            raise
