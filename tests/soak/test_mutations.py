"""Damaged checkpoints and damaged texts: an error that says so, never a crash or a long wait.

``KEISEI_SOAK_CHECKPOINTS`` is the number of mutated checkpoints (1,000), ``KEISEI_SOAK_INPUTS``
that of fuzzed inputs over all parsers (1,000,000).
"""

import json
import random
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from keisei.checkpoints.store import load_checkpoint, load_model_weights
from keisei.config import load_config
from keisei.errors import KeiseiError
from keisei.network.network_file import NetworkFileError, read_network_file
from keisei.runs.journal import parse_lines
from keisei.shogi.notation.csa import read_csa, write_csa
from keisei.shogi.notation.files import read_games, read_usi
from keisei.shogi.notation.ki2 import read_ki2, write_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.sfen import parse_position, parse_sfen
from keisei.usi.limits import parse_go
from keisei.usi.options import Settings
from tests.shogi.notation.test_fuzz import SEEDS, SIGNS
from tests.soak.summary import note, setting
from tests.tiny import tiny_trainer

pytestmark = pytest.mark.soak

CHECKPOINTS = int(setting("CHECKPOINTS", 1_000))
INPUTS = int(setting("INPUTS", 1_000_000))
MAX_SECONDS = 2.0
"""Time that the slowest input may take, on a busy machine."""

SFEN = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"


# ---- checkpoints ----


def test_mutated_checkpoints(tmp_path: Path) -> None:
    start = time.monotonic()
    trainer = tiny_trainer(tmp_path / "run", "model.type=sparse")
    trainer.train_step()
    good = trainer.save()
    choice = random.Random(5)
    refused = harmless = 0
    for _ in range(CHECKPOINTS):
        bad = tmp_path / "bad"
        shutil.copytree(good, bad)
        _damage(bad, choice)
        outcomes = []
        for load in (load_checkpoint, load_model_weights):
            try:
                load(bad)
                outcomes.append("loaded")
            except KeiseiError:
                outcomes.append("refused")
        refused += "refused" in outcomes
        harmless += "refused" not in outcomes
        shutil.rmtree(bad)
    assert load_checkpoint(good).update == 1
    result = f"{refused:,} refused with the reason, {harmless:,} harmless, no other exception"
    note("mutated checkpoints", f"{CHECKPOINTS:,}", result, since=start)


def _damage(directory: Path, choice: random.Random) -> None:
    path = choice.choice(sorted(directory.iterdir()))
    data = bytearray(path.read_bytes())
    match choice.randrange(7):
        case 0 if data:
            for _ in range(choice.randrange(1, 5)):
                data[choice.randrange(len(data))] ^= 1 << choice.randrange(8)
        case 1:
            del data[choice.randrange(len(data) + 1) :]
        case 2:
            place = choice.randrange(len(data) + 1)
            data[place:place] = choice.randbytes(choice.randrange(1, 200))
        case 3:
            path.unlink()
            return
        case 4:
            data = bytearray(choice.randbytes(choice.randrange(2_000)))
        case 5:
            other = choice.choice(sorted(directory.iterdir()))
            data = bytearray(other.read_bytes())
        case _:  # a manifest that fits, as a forger would write it
            if path.suffix == ".json":
                data = bytearray(_mutated_json(bytes(data), choice))
    path.write_bytes(data)


def _mutated_json(data: bytes, choice: random.Random) -> bytes:
    try:
        tree = json.loads(data)
    except ValueError:
        return data
    node: Any = tree
    for _ in range(choice.randrange(1, 4)):
        if isinstance(node, dict) and node:
            key = choice.choice(sorted(node))
            if choice.random() < 0.4:
                node[key] = choice.choice([None, -1, 1e300, "x" * 50, [], {}, 2**70, True])
                break
            node = node[key]
    return json.dumps(tree).encode()


# ---- texts ----


def _texts() -> dict[str, tuple[Callable[[str], object], list[str]]]:
    """All parsers of what strangers write, each with valid texts to damage."""
    csa, kif, ki2 = (
        [write(record) for record in SEEDS] for write in (write_csa, write_kif, write_ki2)
    )
    usi = f"position sfen {SFEN} moves 7g7f 3c3d 8h2b+ 3a2b B*4e"

    def any_file(text: str) -> object:
        return read_games(text.encode("utf-8", "surrogatepass"), "game.kif")

    def option(text: str) -> object:
        name, _, value = text.partition("=")
        return Settings().with_option(name, value)

    def setting_of_a_run(text: str) -> object:
        return load_config(None, (text,))

    def journal(text: str) -> object:
        return list(parse_lines(text.encode("utf-8", "surrogatepass")))

    return {
        "CSA": (read_csa, csa),
        "KIF": (read_kif, kif),
        "KI2": (read_ki2, ki2),
        "any file": (any_file, [*csa, *kif, *ki2]),
        "USI records": (read_usi, [usi]),
        "SFEN": (parse_sfen, [SFEN]),
        "position": (parse_position, [usi.removeprefix("position ")]),
        "go": (lambda text: parse_go(text.split()), ["btime 1000 wtime 900 byoyomi 100", "mate 5"]),
        "options": (option, ["Threads=2", "EnteringKingRule=CSARule27"]),
        "settings": (setting_of_a_run, ["ppo.epochs=2", 'evaluation.opponents=["random"]']),
        "journal": (journal, ['{"event":"step","update":1,"timestep":2,"time":1.5}\n' * 2]),
    }


SHARES = {"settings": 0.002, "any file": 0.05}
"""Share of the inputs of slow parsers; the others share the rest equally."""


def _mutate(text: str, choice: random.Random) -> str:
    for _ in range(choice.randrange(1, 4)):
        place = choice.randrange(len(text) + 1)
        match choice.randrange(6):
            case 0:
                text = text[:place] + choice.choice(SIGNS) + text[place + 1 :]
            case 1:
                text = text[:place] + text[place + choice.randrange(1, 20) :]
            case 2:
                text = text[:place] + text[place - choice.randrange(20) : place] + text[place:]
            case 3:
                text = (
                    text[:place] + choice.choice(SIGNS) * choice.randrange(1, 2_000) + text[place:]
                )
            case 4:
                lines = text.splitlines(keepends=True)
                choice.shuffle(lines)
                text = "".join(lines)
            case _:
                text = text[:place] + "".join(choice.choices(SIGNS, k=8)) + text[place:]
    return text


def test_fuzzed_inputs(tmp_path: Path) -> None:
    start = time.monotonic()
    choice = random.Random(9)
    parsers = _texts()
    slow = sum(SHARES.values())
    counts = {
        name: max(1, round(INPUTS * SHARES.get(name, (1 - slow) / (len(parsers) - len(SHARES)))))
        for name in parsers
    }
    slowest, read = (0.0, "", ""), 0
    for name, (parse, seeds) in parsers.items():
        for _ in range(counts[name]):
            text = _mutate(choice.choice(seeds), choice)
            begun = time.perf_counter()
            try:
                parse(text)
                read += 1
            except KeiseiError:
                pass
            except Exception as error:
                (tmp_path / "input.txt").write_text(text, "utf-8", "surrogatepass")
                raise AssertionError(f"{name}: {text[:300]!r}") from error
            slowest = max(slowest, (time.perf_counter() - begun, name, text[:60]))
    seconds, name, text = slowest
    total = sum(counts.values())
    result = f"{read:,} read, the others refused; the slowest {1000 * seconds:.0f} ms ({name})"
    note("fuzzed inputs, all parsers", f"{total:,}", result, since=start)
    assert seconds < MAX_SECONDS, text


def test_mutated_network_files(tmp_path: Path) -> None:
    start = time.monotonic()
    from keisei.network import network_file

    good = (Path(network_file.__file__).parent / "builtin.keisei").read_bytes()
    choice = random.Random(3)
    number = max(10, CHECKPOINTS // 10)
    for _ in range(number):
        data = bytearray(good)
        header = 8 + int.from_bytes(good[:8], "little")
        if choice.random() < 0.3:
            del data[choice.randrange(len(data)) :]
        else:
            for _ in range(choice.randrange(1, 4)):
                data[choice.randrange(header)] = choice.randrange(256)
        path = tmp_path / "bad.keisei"
        path.write_bytes(data)
        with suppress(NetworkFileError):
            read_network_file(path)
    note("mutated network files", f"{number:,}", "refused or harmless", since=start)
