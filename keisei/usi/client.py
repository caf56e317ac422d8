"""One Shogi engine, run as a process of its own and spoken to in USI.

>>> settings = UsiSettings(command=("fairy-stockfish",), limit=Limit(nodes=1000))
>>> settings.limit.command
'go nodes 1000'

Whatever goes wrong with it becomes a `UsiEngineError`, with the process gone.
"""

import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from keisei.errors import KeiseiError
from keisei.usi.client_process import Deadline, EngineProcess, TroubleError

_NEED_NO_ANNOUNCEMENT: Final = ("USI_Hash", "USI_Ponder")


class WrongOptionError(Exception):
    """What is wrong with an option."""


@dataclass(frozen=True)
class Option:
    """An option as the engine announces it."""

    name: str
    kind: str
    least: int | None
    most: int | None
    choices: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> "Option | None":
        """Read an ``option`` line; names and choices may contain spaces."""
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
        """The value in the engine's spelling; raises if it does not take it."""
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
        too_low = self.least is not None and int(value) < self.least
        if too_low or (self.most is not None and int(value) > self.most):
            raise WrongOptionError(
                f"option {self.name!r} is {value}, it must be from {self.least} to {self.most}"
            )
        return value


def setting_command(announced: dict[str, Option], name: str, value: str) -> str:
    """The command that sets an option; names are found as GUIs do, whatever their case."""
    option = announced.get(name.casefold())
    if option is not None:
        name, value = option.name, option.checked(value)
    elif name not in _NEED_NO_ANNOUNCEMENT:
        known = ", ".join(option.name for option in announced.values()) or "none at all"
        raise WrongOptionError(f"it has no option {name!r}; it has {known}")
    return f"setoption name {name} value {value}" if value else f"setoption name {name}"


class UsiEngineError(KeiseiError):
    """An engine that can't be started, breaks off, keeps silent, or is asked for what it lacks."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much an engine thinks about a move. Of several limits, the first that is reached counts.

    >>> Limit(depth=2, nodes=5000).command
    'go depth 2 nodes 5000'
    """

    depth: int | None = None
    """Plies to look ahead."""

    nodes: int | None = None
    """Positions to visit."""

    byoyomi: int | None = None
    """Milliseconds to think. The moves then depend on the machine and on what else it does."""

    def __post_init__(self) -> None:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if not given:
            raise UsiEngineError("an engine needs a limit: depth, nodes or byoyomi")
        for name, value in given.items():
            if value < 1:
                raise UsiEngineError(f"{name} of an engine is {value}, it must be at least 1")

    @property
    def command(self) -> str:
        """The USI command that starts the search."""
        return f"go {self._in_words('btime 0 wtime 0 byoyomi {}')}"

    def __str__(self) -> str:
        return self._in_words("byoyomi {} ms")

    def _in_words(self, byoyomi: str) -> str:
        forms = (("depth {}", self.depth), ("nodes {}", self.nodes), (byoyomi, self.byoyomi))
        return " ".join(form.format(value) for form, value in forms if value is not None)


@dataclass(frozen=True, kw_only=True)
class UsiSettings:
    """Which engine, set up how."""

    command: tuple[str, ...]
    """The program and its arguments."""

    options: tuple[tuple[str, str], ...] = ()
    """Names and values of the engine's options, in the order in which they are set."""

    limit: Limit
    """How much it thinks about a move."""

    startup_seconds: float = 30.0
    """How long it may take to get ready."""

    move_seconds: float = 60.0
    """How long it may take for a move."""

    def __post_init__(self) -> None:
        if not self.command:
            raise UsiEngineError("an engine needs a command")
        if any(not text.isprintable() for option in self.options for text in option):
            raise UsiEngineError(f"{self.command[0]}: an option holds a control character")
        if (self.limit.byoyomi or 0) >= 1000 * self.move_seconds:
            raise UsiEngineError(
                f"{self.command[0]}: byoyomi {self.limit.byoyomi} ms leaves no time to answer "
                f"within {self.move_seconds:g} s"
            )


class UsiEngine:
    """A running engine that is ready to play. After any error its process is gone."""

    name: str
    """What it calls itself."""

    def __init__(self, settings: UsiSettings) -> None:
        """Start the program and wait until it is ready."""
        self.settings = settings
        self.name = Path(settings.command[0]).name
        try:
            self._process = EngineProcess(settings.command)
        except TroubleError as trouble:
            raise UsiEngineError(str(trouble)) from None
        # The threads know the process, not this object: forgotten engines end.
        self._finalizer = weakref.finalize(self, self._process.kill)
        with self._gone_after_an_error():
            self._get_ready(Deadline(settings.startup_seconds))

    @property
    def is_running(self) -> bool:
        """Whether it can be asked for a move."""
        return self._process.is_running

    @property
    def process_id(self) -> int:
        """The process, as the operating system numbers it."""
        return self._process.id

    def new_game(self) -> None:
        """Tell it that the next position is of another game."""
        with self._gone_after_an_error():
            self._process.send("usinewgame")

    def best_move(self, start: str, moves: Sequence[str]) -> str:
        """What it plays after `moves` from `start`, which is ``startpos`` or an SFEN.

        The answer is what the engine wrote: a move, ``resign``, ``win``, or any nonsense.
        """
        position = start if start == "startpos" else f"sfen {start}"
        played = f" moves {' '.join(moves)}" if moves else ""
        with self._gone_after_an_error():
            self._process.forget_answers()
            self._process.send(f"position {position}{played}")
            self._process.send(self.settings.limit.command)
            deadline = Deadline(self.settings.move_seconds)
            *_, answer = self._process.answer_until("bestmove", deadline)
        words = answer.split()
        return words[1] if len(words) > 1 else ""

    def close(self) -> None:
        """Ask it to end, and end it. May be called more than once, from any thread."""
        self._process.end()
        self._finalizer.detach()

    def kill(self) -> None:
        """End it at once."""
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
        announced: dict[str, Option] = {}
        for line in self._process.answer_until("usiok", deadline):
            if line.startswith("id name ") and (name := line[8:].strip()):
                self.name = name
            elif (option := Option.parse(line)) is not None:
                announced[option.name.casefold()] = option
        for name, value in self.settings.options:
            self._process.send(setting_command(announced, name, value))
        self._process.send("isready")
        self._process.answer_until("readyok", deadline)

    @contextmanager
    def _gone_after_an_error(self) -> Iterator[None]:
        """An interrupt counts, too: an answer that nobody waited for would come with the next."""
        try:
            yield
        except TroubleError as trouble:
            self._process.kill()
            raise UsiEngineError(f"{self.name}: {trouble}; {self._process.last_words}") from None
        except WrongOptionError as mistake:
            self._process.kill()
            raise UsiEngineError(f"{self.name}: {mistake}") from None
        except BaseException:
            self._process.kill()
            raise
