"""The words that name a player: ``greedy``, ``alphabeta:2``, ``runs/mine:search=64``, ``usi:...``.

A word is a kind with its main setting, then further settings as ``,name=value``:

| word | who it is |
|---|---|
| ``random`` | any legal move: rating 0 |
| ``greedy`` | takes the most material at once; ``random=S``: a share S of its moves is random |
| ``alphabeta:D`` | looks D plies ahead; ``quiet=N``, ``margin=N``, ``random=S`` |
| ``RUN``, ``RUN:policy`` | a run's network as its run measures it; ``temperature=T``, ``mate=N`` |
| ``RUN:search=N`` | the same with a tree search of N simulations; ``mate=N`` plies at the root |
| ``FILE.onnx`` | the network of an exported file, with the words and settings of a run |
| ``usi:COMMAND`` | an engine; ``depth=N``, ``nodes=N``, ``byoyomi=MS`` are limits, of which the |
|  | first that is reached counts; ``name=N`` is for tables; others are the engine's own options |
"""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from keisei.config_schema import DeviceConfig
from keisei.doctor import usable_cpus
from keisei.errors import KeiseiError
from keisei.network.loading import LoadedNetwork, load_network
from keisei.players.bots import (
    AlphaBetaPlayer,
    Careless,
    GreedyPlayer,
    RandomPlayer,
)
from keisei.players.network_players import PolicyPlayer, SearchPlayer
from keisei.players.player import Player
from keisei.players.usi_player import UsiPlayer
from keisei.usi.client import Limit, UsiSettings

if TYPE_CHECKING:
    from keisei.network.loading import StoredNetwork

Value = TypeVar("Value")

_NETWORK_WORD: Final = re.compile(r"(?P<path>.+?)(?::(?:policy|search=(?P<simulations>[^:]*)))?")
_HELP: Final = (
    "a player is random, greedy, alphabeta:DEPTH, a run, checkpoint or ONNX file with :policy or "
    ":search=N, or usi:COMMAND"
)


DEFAULT_BYOYOMI: Final = 1000
"""Milliseconds that an engine has for a move where nothing is said."""


class PlayerSpecError(KeiseiError, ValueError):
    """A word that names no player; the message says what would."""


class _Word(NamedTuple):
    """A player's word, taken apart."""

    text: str
    head: str
    """What comes before the first comma."""

    settings: dict[str, str]

    def take(self, name: str, read: Callable[[str], Value], default: Value) -> Value:
        """A setting, which is crossed out."""
        if name not in self.settings:
            return default
        text = self.settings.pop(name)
        try:
            return read(text)
        except ValueError:
            raise PlayerSpecError(f"{self.text}: {name}={text} is not understood") from None

    def require_empty(self, known: str) -> None:
        """Refuse settings that nobody has asked for."""
        if self.settings:
            raise PlayerSpecError(
                f"{self.text}: there is no setting {', '.join(self.settings)}; there is {known}"
            )


@contextmanager
def open_players(
    words: Iterable[str], *, device: str = "cpu", threads: int = 0
) -> Iterator[list[Player]]:
    """The players that some words name, which are closed at the end of the ``with`` block."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(closing(make_player(word, device=device, threads=threads)))
            for word in words
        ]


def make_player(word: str, *, device: str = "cpu", threads: int = 0) -> Player:
    """The player that a word names.

    Args:
        word: see the module's description.
        device: where networks compute.
        threads: for networks and searches; 0: one for each core.

    Raises:
        KeiseiError: There is no such player, or it cannot be set up; the message says why.
    """
    head, *settings = word.split(",")
    pairs = [setting.partition("=") for setting in settings]
    if bad := [name for name, equals, _ in pairs if not equals]:
        raise PlayerSpecError(f"{word}: {bad[0]!r} is no setting; settings are name=value")
    taken = _Word(word, head.strip(), {name.strip(): value.strip() for name, _, value in pairs})
    kind, _, argument = taken.head.partition(":")
    if taken.head == "random":
        taken.require_empty("none")
        return RandomPlayer()
    if taken.head == "greedy":
        share = taken.take("random", float, 0.0)
        taken.require_empty("random (share of random moves)")
        return _careless(GreedyPlayer(), share)
    if kind == "alphabeta":
        return _alphabeta(taken, argument, threads or usable_cpus())
    if kind == "usi":
        return _usi(taken, argument, threads or usable_cpus())
    return _network(taken, device, threads)


def _alphabeta(word: _Word, depth: str, threads: int) -> Player:
    if not depth.isdecimal():
        raise PlayerSpecError(f"{word.text}: how deep? alphabeta:2 looks two plies ahead")
    quiet, margin = word.take("quiet", int, 0), word.take("margin", int, 0)
    share = word.take("random", float, 0.0)
    word.require_empty(
        "quiet (plies of captures), margin (hundredths of a pawn) and random (share of moves)"
    )
    return _careless(
        AlphaBetaPlayer(int(depth), quiet_plies=quiet, margin=margin, threads=threads), share
    )


def _careless(player: Player, share: float) -> Player:
    return player if share == 0.0 else Careless(player, share)


def _usi(word: _Word, command: str, processes: int) -> Player:
    # On Windows a backslash is part of a path, elsewhere it is an escape.
    try:
        arguments = tuple(part.strip('"') for part in shlex.split(command, posix=os.name != "nt"))
    except ValueError as error:
        raise PlayerSpecError(f"{word.text}: {error}") from None
    if not arguments:
        raise PlayerSpecError(f"{word.text}: which program? For example usi:fairy-stockfish")
    limits = {
        name: word.take(name, int, 0)
        for name in ("depth", "nodes", "byoyomi")
        if name in word.settings
    }
    processes = word.take("processes", int, processes)
    name = word.take("name", str, "") or None
    return UsiPlayer(
        UsiSettings(
            command=arguments,
            options=tuple(word.settings.items()),
            limit=Limit(**limits or {"byoyomi": DEFAULT_BYOYOMI}),
        ),
        name=name,
        processes=processes,
    )


def _network(word: _Word, device: str, threads: int) -> Player:
    match = _NETWORK_WORD.fullmatch(word.head)
    if match is None:
        raise PlayerSpecError(f"{word.text!r} names no player; {_HELP}")
    path, simulations = Path(match["path"]), match["simulations"]
    try:
        network = load_network(path, device=device, threads=threads)
    except KeiseiError as error:
        if os.sep in str(path) or path.exists():
            raise
        raise PlayerSpecError(f"{word.text}: {error}; {_HELP}") from None
    if simulations is None:
        return _policy_player(word, network)
    return _search_player(word, network, simulations)


def _policy_player(word: _Word, network: LoadedNetwork) -> Player:
    temperature = word.take("temperature", _temperature, network.temperature)
    mate_plies = word.take("mate", _mate_plies, network.mate_plies)
    word.require_empty("temperature (0 or more) and mate (0, 1, 3 or 5 plies)")
    suffix = f",temperature={temperature:g}" if temperature != network.temperature else ""
    suffix += f",mate={mate_plies}" if mate_plies != network.mate_plies else ""
    return PolicyPlayer(
        network.predictor,
        name=network.name + suffix,
        identity=f"{network.identity}:policy,temperature={temperature:g},mate={mate_plies}",
        temperature=temperature,
        mate_plies=mate_plies,
    )


def policy_player(network: "StoredNetwork", device: DeviceConfig) -> Player:
    """A stored network as a player, by its policy alone, as its run measures it."""
    return _policy_player(_Word(network.name, network.name, {}), network.loaded(device))


def _search_player(word: _Word, network: LoadedNetwork, simulations: str) -> Player:
    if not simulations.isdecimal() or int(simulations) < 1:
        raise PlayerSpecError(f"{word.text}: search={simulations}; it must be 1 or more")
    mate_plies = word.take("mate", int, 3)
    temperature = word.take("temperature", _temperature, 0.0)
    word.require_empty("mate (plies of the mate search at the root) and temperature")
    suffix = f":search={simulations}" + (f",mate={mate_plies}" if mate_plies != 3 else "")
    suffix += f",temperature={temperature:g}" if temperature else ""
    return SearchPlayer(
        network.predictor,
        int(simulations),
        name=network.name + suffix,
        identity=network.identity + suffix,
        mate_plies=mate_plies,
        temperature=temperature,
    )


def _temperature(text: str) -> float:
    value = float(text)
    if not 0.0 <= value < float("inf"):
        raise ValueError
    return value


def _mate_plies(text: str) -> int:
    if text not in ("0", "1", "3", "5"):
        raise ValueError
    return int(text)
