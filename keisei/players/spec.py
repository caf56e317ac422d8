"""Player specs: ``greedy``, ``alphabeta:2``, ``runs/mine:search=64``, ``usi:COMMAND,depth=3``.

A spec is a kind with its main setting, then further settings as ``,name=value``:

| spec | player |
|---|---|
| ``random`` | uniformly random legal moves: rating 0 |
| ``greedy`` | gains the most material at once; ``random=S``: a share S of its moves is random |
| ``alphabeta:D`` | searches D plies; ``quiet=N``, ``margin=N``, ``random=S`` |
| ``RUN``, ``RUN:policy`` | a run's network as its run measures it; ``temperature=T``, ``mate=N`` |
| ``RUN:search=N`` | the same with a tree search of N simulations; ``mate=N`` plies at the root, |
|  | ``temperature=T``: moves are drawn by their visits |
| ``RUN:level=N`` | the same at one of ten levels of strength |
| ``builtin`` | the network in the package, with the settings of a run: ``builtin:level=5`` |
| ``frozen:NAME`` | a network in the package that never changes, for references of the rating |
|  | scale; ``frozen:NAME:search=N`` and settings as those of a run |
| ``FILE.keisei`` | the network of an exported file, with the settings of a run; or ``FILE.onnx`` |
| ``usi:COMMAND`` | a USI engine; ``depth=N``, ``nodes=N``, ``byoyomi=MS`` are limits: the first |
|  | to be reached counts; ``name=N`` is for tables; ``processes=N`` engines play side by |
|  | side; others are the engine's own options |
"""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from keisei.config_schema import DeviceConfig
from keisei.constants import BUILTIN
from keisei.errors import KeiseiError, did_you_mean
from keisei.levels import LEVELS, MAX_LEVEL, Level
from keisei.network.loading import (
    FILE_SUFFIX,
    LoadedNetwork,
    StoredNetwork,
    device_config,
    load_network,
    read_network,
)
from keisei.players.bots import (
    AlphaBetaPlayer,
    GreedyPlayer,
    RandomizedPlayer,
    RandomPlayer,
)
from keisei.players.network import PolicyPlayer, SearchPlayer
from keisei.players.player import Player
from keisei.players.usi_player import UsiPlayer
from keisei.search.puct import SEARCH_VERSION
from keisei.system import require_possible, usable_cpus
from keisei.usi.client import Limit, UsiSettings

Value = TypeVar("Value")

KINDS: Final = (BUILTIN, "random", "greedy", "alphabeta", "frozen", "usi")
"""Players other than runs and files."""

_NETWORK_SPEC: Final = re.compile(
    r"(?P<which>.+?)(?::(?:policy|search=(?P<simulations>[^:]*)|level=(?P<level>[^:]*)))?"
)
_HELP: Final = (
    "a player is random, greedy, alphabeta:DEPTH, frozen:NAME, a run, checkpoint or exported file "
    "with :policy, :search=N or :level=N, builtin, or usi:COMMAND"
)

DEFAULT_BYOYOMI: Final = 1000
"""Milliseconds per move of a USI engine without a limit in its spec."""


MIN_TEMPERATURE: Final = 1e-6
"""Of a player, besides 0. Logarithms of small chances divided by less don't fit into float32."""

MAX_TEMPERATURE: Final = 1e6

MAX_SPEC_LENGTH: Final = 4096
"""Characters of a player spec: as many as the path of a file may have."""


class PlayerSpecError(KeiseiError, ValueError):
    """Invalid player spec; the message says what is valid."""


class _Spec(NamedTuple):
    """A parsed player spec."""

    text: str
    head: str
    """The part before the first comma."""

    settings: dict[str, str]

    @classmethod
    def parse(cls, text: str) -> "_Spec":
        """Split a spec into its head and its settings."""
        head, *settings = text.split(",")
        pairs = [setting.partition("=") for setting in settings]
        if bad := [name for name, equals, _ in pairs if not equals]:
            raise PlayerSpecError(f"{text}: {bad[0]!r} is not a setting; settings are name=value")
        return cls(text, head.strip(), {name.strip(): value.strip() for name, _, value in pairs})

    def take(self, name: str, read: Callable[[str], Value], default: Value) -> Value:
        """Return a setting, converted by `read`, and remove it; `default` if it is not given."""
        if name not in self.settings:
            return default
        text = self.settings.pop(name)
        try:
            return read(text)
        except ValueError:
            raise PlayerSpecError(f"{self.text}: {name}={text} is not understood") from None

    def require_empty(self, known: str) -> None:
        """Refuse settings that are left: `known` lists the valid ones."""
        if self.settings:
            raise PlayerSpecError(
                f"{self.text}: there is no setting {', '.join(self.settings)}; there is {known}"
            )


def is_engine(spec: str) -> bool:
    """Return whether a player spec starts a program."""
    return spec.partition(",")[0].strip().partition(":")[0] == "usi"


@contextmanager
def open_players(
    specs: Iterable[str], *, device: str = "cpu", threads: int = 0
) -> Iterator[list[Player]]:
    """Make the players of some specs; they are closed at the end of the ``with`` block."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(closing(make_player(spec, device=device, threads=threads)))
            for spec in specs
        ]


def make_player(spec: str, *, device: str = "cpu", threads: int = 0) -> Player:
    """Make the player of a spec.

    Args:
        spec: see the module's description.
        device: where networks compute.
        threads: for networks and searches; 0: one for each core.

    Raises:
        KeiseiError: The spec is invalid, or the player cannot be set up; the message says why.
    """
    if len(spec) > MAX_SPEC_LENGTH:
        raise PlayerSpecError(
            f"a player spec has at most {MAX_SPEC_LENGTH} characters, not {len(spec):,}: "
            f"{spec[:40]}..."
        )
    parsed = _Spec.parse(spec)
    kind, _, argument = parsed.head.partition(":")
    if parsed.head == "random":
        parsed.require_empty("none")
        return RandomPlayer()
    if parsed.head == "greedy":
        share = parsed.take("random", float, 0.0)
        parsed.require_empty("random (share of random moves)")
        return _randomized(GreedyPlayer(), share)
    if kind == "alphabeta":
        return _alphabeta(parsed, argument, threads or usable_cpus())
    if kind == "frozen":
        return _network(parsed, argument, lambda name: _load_frozen(parsed, name, threads))
    if is_engine(spec):
        return _usi(parsed, argument, threads or usable_cpus())
    return _network(parsed, parsed.head, lambda path: _load(parsed, Path(path), device, threads))


def _alphabeta(spec: _Spec, depth: str, threads: int) -> Player:
    if not depth.isdecimal():
        raise PlayerSpecError(f"{spec.text}: the depth is missing; alphabeta:2 searches two plies")
    quiet, margin = spec.take("quiet", int, 0), spec.take("margin", int, 0)
    share = spec.take("random", float, 0.0)
    spec.require_empty(
        "quiet (plies of captures), margin (hundredths of a pawn) and random (share of moves)"
    )
    return _randomized(
        AlphaBetaPlayer(int(depth), quiet_plies=quiet, margin=margin, threads=threads), share
    )


def _randomized(player: Player, share: float) -> Player:
    return player if share == 0.0 else RandomizedPlayer(player, share)


def _usi(spec: _Spec, command: str, processes: int) -> Player:
    # On Windows a backslash is part of a path, elsewhere it is an escape.
    try:
        arguments = tuple(part.strip('"') for part in shlex.split(command, posix=os.name != "nt"))
    except ValueError as error:
        raise PlayerSpecError(f"{spec.text}: {error}") from None
    if not arguments:
        raise PlayerSpecError(
            f"{spec.text}: the command is missing; for example usi:fairy-stockfish"
        )
    limits = {
        name: spec.take(name, int, 0)
        for name in ("depth", "nodes", "byoyomi")
        if name in spec.settings
    }
    processes = spec.take("processes", int, processes)
    name = spec.take("name", str, "") or None
    return UsiPlayer(
        UsiSettings(
            command=arguments,
            options=tuple(spec.settings.items()),
            limit=Limit(**limits or {"byoyomi": DEFAULT_BYOYOMI}),
        ),
        name=name,
        processes=processes,
    )


def _load_frozen(spec: _Spec, name: str, threads: int) -> LoadedNetwork:
    files = {Path(file.name).stem: file for file in frozen_networks()}
    if name not in files:
        raise PlayerSpecError(
            f"{spec.text}: there is no such network in the package; there is {', '.join(files)}"
        )
    with resources.as_file(files[name]) as path:
        network = read_network(path).loaded(device_config("cpu", threads))
    return network._replace(name=f"frozen:{name}")


def frozen_networks() -> list[Traversable]:
    """Return the files of the frozen networks, in the order of their training."""
    directory = resources.files("keisei.players").joinpath("frozen")
    return sorted(
        (file for file in directory.iterdir() if file.name.endswith(FILE_SUFFIX)),
        key=lambda file: file.name,
    )


def _load(spec: _Spec, path: Path, device: str, threads: int) -> LoadedNetwork:
    require_possible(path)
    try:
        return load_network(path, device=device, threads=threads)
    except KeiseiError as error:
        if os.sep in str(path) or path.exists():
            raise
        kind = did_you_mean(spec.head.partition(":")[0], KINDS)
        remedy = kind or ("" if "did you mean" in str(error) else f"; {_HELP}")
        raise PlayerSpecError(f"{spec.text}: {error}{remedy}") from None


def _network(spec: _Spec, text: str, load: Callable[[str], LoadedNetwork]) -> Player:
    """Make the player of ``WHICH``, with ``:policy``, ``:search=N`` or ``:level=N``."""
    match = _NETWORK_SPEC.fullmatch(text)
    if match is None:
        raise PlayerSpecError(f"{spec.text!r} is not a player; {_HELP}")
    network, simulations = load(match["which"]), match["simulations"]
    if match["level"] is not None:
        return _player_at_level(spec, network, match["level"])
    if simulations is None:
        return _policy_player(spec, network)
    return _search_player(spec, network, simulations)


def _policy_player(spec: _Spec, network: LoadedNetwork) -> Player:
    temperature = spec.take("temperature", _temperature, network.temperature)
    mate_plies = spec.take("mate", _mate_plies, network.mate_plies)
    spec.require_empty("temperature (0 or more) and mate (0, 1, 3 or 5 plies)")
    suffix = f",temperature={temperature:g}" if temperature != network.temperature else ""
    suffix += f",mate={mate_plies}" if mate_plies != network.mate_plies else ""
    return PolicyPlayer(
        network.predictor,
        name=network.name + suffix,
        identity=f"{network.identity}:policy,temperature={temperature:g},mate={mate_plies}",
        temperature=temperature,
        mate_plies=mate_plies,
    )


def policy_player(network: StoredNetwork, device: DeviceConfig) -> Player:
    """Make a player of a stored network: by its policy alone, as its run measures it."""
    return _policy_player(_Spec(network.name, network.name, {}), network.loaded(device))


def _search_player(spec: _Spec, network: LoadedNetwork, simulations: str) -> Player:
    if not simulations.isdecimal() or int(simulations) < 1:
        raise PlayerSpecError(f"{spec.text}: search={simulations}; it must be 1 or more")
    mate_plies = spec.take("mate", int, 3)
    temperature = spec.take("temperature", _temperature, 0.0)
    spec.require_empty("mate (plies of the mate search at the root) and temperature")
    suffix = f":search={simulations}" + (f",mate={mate_plies}" if mate_plies != 3 else "")
    suffix += f",temperature={temperature:g}" if temperature else ""
    return SearchPlayer(
        network.predictor,
        int(simulations),
        name=network.name + suffix,
        identity=f"{network.identity}{suffix},v{SEARCH_VERSION}",
        mate_plies=mate_plies,
        temperature=temperature,
    )


def _player_at_level(spec: _Spec, network: LoadedNetwork, number: str) -> Player:
    if not number.isdecimal() or int(number) not in LEVELS:
        raise PlayerSpecError(f"{spec.text}: level={number}; it must be from 1 to {MAX_LEVEL}")
    spec.require_empty("none with a level")
    return level_player(network, LEVELS[int(number)], name=f"{network.name}:level={int(number)}")


def level_player(network: LoadedNetwork, level: Level, *, name: str) -> Player:
    """Make a player of a network at a level of strength, which need not be one of `LEVELS`."""
    simulations, spread, mate_plies = level
    if simulations == 0:
        return PolicyPlayer(
            network.predictor,
            name=name,
            identity=f"{network.identity}:policy,spread={spread:g},mate={mate_plies}",
            spread=spread,
            mate_plies=mate_plies,
        )
    return SearchPlayer(
        network.predictor,
        simulations,
        name=name,
        identity=f"{network.identity}:search={simulations},mate={mate_plies},v{SEARCH_VERSION}",
        mate_plies=mate_plies,
    )


def _temperature(text: str) -> float:
    value = float(text)
    if value != 0.0 and not MIN_TEMPERATURE <= value <= MAX_TEMPERATURE:
        raise ValueError
    return value


def _mate_plies(text: str) -> int:
    if text not in ("0", "1", "3", "5"):
        raise ValueError
    return int(text)
