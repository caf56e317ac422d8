"""Damaged checkpoints and damaged texts: an error that says so, never a crash or a long wait.

``KEISEI_SOAK_CHECKPOINTS`` is the number of mutated checkpoints (1,000), ``KEISEI_SOAK_INPUTS``
that of fuzzed inputs over all parsers (1,000,000).
"""

import copy
import json
import random
import shutil
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from keisei import run_files
from keisei.callbacks import PhaseProgress
from keisei.checkpoints.manifest import MANIFEST
from keisei.checkpoints.store import Checkpoint, load_checkpoint, load_model_weights
from keisei.config import load_config, load_saved_config
from keisei.errors import KeiseiError
from keisei.network import network_file
from keisei.network.network_file import NetworkFacts
from keisei.play.mate_problems import MateProblem, read_problems
from keisei.players.spec import PlayerSpecError, is_engine, make_player
from keisei.runs.artifacts import read_ratings
from keisei.runs.folder import RunsFolder
from keisei.runs.heartbeat import RunHeartbeat, parse_heartbeat
from keisei.runs.journal import parse_lines
from keisei.runs.notes import parse_notes
from keisei.runs.run_reader import read_live
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.csa import read_csa, write_csa
from keisei.shogi.notation.files import read_games, read_usi
from keisei.shogi.notation.game_tree import GameTree
from keisei.shogi.notation.ki2 import read_ki2, write_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.move_input import parse_move
from keisei.shogi.notation.sfen import parse_position, parse_sfen
from keisei.shogi.notation.western import read_western
from keisei.sweep.space import load_space, spaces
from keisei.usi.client import EngineOption
from keisei.usi.limits import parse_go
from keisei.usi.options import Settings
from tests.checkpoints.states import same
from tests.checkpoints.test_store import rewrite, sign
from tests.network.onnx.signatures import signed
from tests.shogi.notation.test_fuzz import SEEDS, SIGNS
from tests.soak.summary import note, setting
from tests.tiny import tiny_config, tiny_trainer

pytestmark = pytest.mark.soak

CHECKPOINTS = int(setting("CHECKPOINTS", 1_000))
INPUTS = int(setting("INPUTS", 1_000_000))
MAX_SECONDS = 2.0
"""Processor time that the slowest input may take; the machine may be busy with other tests."""

PARTS = 2
"""The inputs are parsed in so many tests, which can run side by side."""

SFEN = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"


# ---- checkpoints ----


def test_mutated_checkpoints(tmp_path: Path, family: str) -> None:
    start = time.monotonic()
    trainer = tiny_trainer(tmp_path / "run", family)
    trainer.train_step()
    good = trainer.save()
    expected = _content(load_checkpoint(good))
    choice = random.Random(5)
    refused = harmless = forged = 0
    number = CHECKPOINTS // 2  # of each family
    for _ in range(number):
        bad = tmp_path / "bad"
        shutil.copytree(good, bad)
        is_signed = _damage(bad, choice)
        try:
            found = load_checkpoint(bad)
            load_model_weights(bad)
            content = _content(found)
            trainer.restore(found)
        except KeiseiError:
            refused += 1
        else:
            if same(content, expected):
                harmless += 1
            else:  # only who signs it can change what is resumed from
                assert is_signed
                forged += 1
        shutil.rmtree(bad)
    assert same(_content(load_checkpoint(good)), expected)
    result = (
        f"{refused:,} refused with the reason, {harmless:,} harmless with the same content, "
        f"{forged:,} resumed from as a forger signed them, no other exception"
    )
    network = family.removeprefix("model.type=")
    note(f"mutated checkpoints, {network}", f"{number:,}", result, since=start)


def _content(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "update": checkpoint.update,
        "timestep": checkpoint.timestep,
        "config": json.loads(checkpoint.config_json),
        "state": copy.deepcopy(dict(checkpoint.state)),
    }


def _damage(directory: Path, choice: random.Random) -> bool:
    """Change a file; return whether the sums were made to fit."""
    path = choice.choice(sorted(directory.iterdir()))
    data = bytearray(path.read_bytes())
    match choice.randrange(9):
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
            return False
        case 4:
            data = bytearray(choice.randbytes(choice.randrange(2_000)))
        case 5:
            other = choice.choice(sorted(directory.iterdir()))
            data = bytearray(other.read_bytes())
        case _:
            _forge(directory, choice)
            return True
    path.write_bytes(data)
    return False


def _forge(directory: Path, choice: random.Random) -> None:
    """Change a file of JSON as a forger would: with sums that fit."""
    path = choice.choice(sorted(directory.glob("*.json")))
    data = _mutated_json(path.read_bytes(), choice)
    if path.name == MANIFEST:
        sign(directory, json.loads(data))
    else:
        rewrite(directory, path.name, data)


def _mutated_json(data: bytes, choice: random.Random) -> bytes:
    try:
        tree = json.loads(data)
    except ValueError:
        return data
    node: Any = tree
    for _ in range(choice.randrange(1, 8)):
        if not (isinstance(node, dict | list) and node):
            break
        key = choice.choice(sorted(node)) if isinstance(node, dict) else choice.randrange(len(node))
        if choice.random() < 0.3 or not isinstance(node[key], dict | list):
            if choice.random() < 0.3:
                del node[key]
            else:
                node[key] = choice.choice([None, -1, 1e300, "x" * 50, [], {}, 2**70, True])
            break
        node = node[key]
    return json.dumps(tree).encode()


# ---- texts ----


def _texts(directory: Path) -> dict[str, tuple[Callable[[str], object], list[str]]]:
    """All parsers of what strangers write, each with valid texts to damage."""
    csa, kif, ki2 = (
        [write(record) for record in SEEDS] for write in (write_csa, write_kif, write_ki2)
    )
    usi = f"position sfen {SFEN} moves 7g7f 3c3d 8h2b+ 3a2b B*4e"
    start = ShogiGame()
    beat = RunHeartbeat.now(PhaseProgress("playing", 1, 2), is_stopping=False).to_json()

    def any_file(text: str) -> object:
        return read_games(text.encode("utf-8", "surrogatepass"), "game.txt")

    def option(text: str) -> object:
        name, _, value = text.partition("=")
        return Settings().with_option(name, value)

    def setting_of_a_run(text: str) -> object:
        return load_config(None, (text,))

    def journal(text: str) -> object:
        return list(parse_lines(text.encode("utf-8", "surrogatepass")))

    def tree(text: str) -> object:
        return GameTree.from_record(read_kif(text)).record()

    def typed_move(text: str) -> object:
        return parse_move(start, text)

    def player(text: str) -> None:
        if is_engine(text):  # it would be started
            raise PlayerSpecError("engines are not started here")
        make_player(text, threads=1).close()

    def heartbeat(text: str) -> object:
        return parse_heartbeat(text.encode("utf-8", "surrogatepass"))

    def notes(text: str) -> object:
        return parse_notes(text.encode("utf-8", "surrogatepass"))

    def old_bytes(encoding: str) -> Callable[[str], object]:
        def parse(text: str) -> object:
            data = text.encode(encoding, "replace")
            cut = len(text) % (len(data) + 1)
            return read_games(data[:cut] + data[cut + 1 :], "game.txt")

        return parse

    def stored(name: str) -> Path:
        path = directory / "runs" / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def filed(name: str, read: Callable[[Path], object]) -> Callable[[str], object]:
        def parse(text: str) -> object:
            stored(name).write_bytes(text.encode("utf-8", "surrogatepass"))
            return read(stored(name))

        return parse

    stored(run_files.CONFIG).touch()
    folder = RunsFolder(directory / "runs")
    board = {"sfen": SFEN, "last_move": "7g7f"}
    ratings = {
        "scale": 1,
        "checkpoints": [{"timestep": 64, "elo": 1.0, "low": 0.5, "high": 2.0, "games": 8}],
        "opponents": [{"name": "greedy", "elo": 7.0}],
    }
    texts: dict[str, tuple[Callable[[str], object], list[str]]] = {
        "Shift-JIS": (old_bytes("cp932"), [*csa, *kif, *ki2]),
        "EUC-JP": (old_bytes("euc_jp"), [*csa, *kif, *ki2]),
        "sweeps": (
            filed("sweep.yaml", load_space),
            [spaces()[name].read_text() for name in spaces()],
        ),
        "saved settings": (
            filed("saved.json", load_saved_config),
            [tiny_config().model_dump_json(indent=2)],
        ),
        "live games": (
            filed(run_files.LIVE, lambda path: read_live(folder, path.parent.name)),
            [json.dumps({"time": 1.5, "update": 1, "games": [board]})],
        ),
        "ratings": (
            filed(run_files.STRENGTH, lambda path: read_ratings(folder, path.parent.name)),
            [json.dumps(ratings)],
        ),
        "facts of networks": (NetworkFacts.from_json, [_network_facts()]),
        **_web_texts(),
        **_onnx_texts(),
    }
    return texts | {
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
        "western": (read_western, ["1. P-7f P-3d 2. Bx2b+ Sx2b 3. B*4e resigns"]),
        "trees of variations": (tree, kif),
        "mate problems": (MateProblem.parse, [str(one) for one in read_problems()[:3]]),
        "options of engines": (
            EngineOption.parse,
            [
                "option name Hash size type spin default 16 min 1 max 4096",
                "option name Book type combo default none var none var a file.bin",
                "option name Log type check default false",
            ],
        ),
        "typed moves": (typed_move, ["7g7f", "P-7f", "７六歩", "76歩", "B*4e"]),
        "player specs": (
            player,
            ["alphabeta:2,quiet=4", "greedy,random=0.5", "usi:x", "no/run:search=4"],
        ),
        "heartbeat": (heartbeat, [beat.decode()]),
        "notes": (notes, ['{"text":"a run","tags":["good"],"is_archived":false}']),
        "journal": (journal, ['{"event":"step","update":1,"timestep":2,"time":1.5}\n' * 2]),
    }


def _network_facts() -> str:
    data, end = _keisei_file()
    facts: str = json.loads(data[8:end])["__metadata__"][network_file.METADATA]
    return facts


def _web_texts() -> dict[str, tuple[Callable[[str], object], list[str]]]:
    """What browsers send and keep, where the web server can run."""
    if find_spec("nicegui") is None:
        return {}
    from keisei.web.dashboard.overview_page import view_from
    from keisei.web.play.catalogue import GameSetup

    def view(text: str) -> object:
        return view_from(dict(parse_qsl(text)))

    return {
        "players of saved games": (GameSetup.from_json, [GameSetup().to_json()]),
        "addresses of views": (view, ["x=minutes&smooth=0.5&log=1", "x=timestep&smooth=9&log=0"]),
    }


def _onnx_texts() -> dict[str, tuple[Callable[[str], object], list[str]]]:
    """The metadata of ONNX files, where they can be read."""
    if find_spec("onnxruntime") is None:
        return {}
    import onnx

    from keisei.network.onnx.onnx_model import OnnxFacts

    proto = onnx.load_model_from_string(_onnx_file()[0])
    metadata = json.dumps({entry.key: entry.value for entry in proto.metadata_props})

    def facts(text: str) -> object:
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict):
            return None
        return OnnxFacts.from_metadata({name: str(value) for name, value in fields.items()})

    return {"facts of ONNX files": (facts, [metadata])}


SHARES = {
    **{"settings": 0.002, "any file": 0.05, "Shift-JIS": 0.02, "EUC-JP": 0.02, "sweeps": 0.002},
    **{"saved settings": 0.005, "live games": 0.005, "ratings": 0.005},
}
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


@pytest.mark.parametrize("part", range(PARTS))
def test_fuzzed_inputs(part: int, tmp_path: Path) -> None:
    start = time.monotonic()
    choice = random.Random(9 + part)
    parsers = _texts(tmp_path)
    slow = sum(SHARES.values())
    equal = (1 - slow) / (len(parsers) - len(SHARES))
    counts = {name: max(1, round(INPUTS / PARTS * SHARES.get(name, equal))) for name in parsers}
    slowest, read = (0.0, "", ""), 0
    for name, (parse, seeds) in parsers.items():
        for _ in range(counts[name]):
            text = _mutate(choice.choice(seeds), choice)
            begun = time.thread_time()
            try:
                parse(text)
                read += 1
            except KeiseiError:
                pass
            except Exception as error:
                (tmp_path / "input.txt").write_text(text, "utf-8", "surrogatepass")
                raise AssertionError(f"{name}: {text[:300]!r}") from error
            slowest = max(slowest, (time.thread_time() - begun, name, text))
    seconds, name, text = slowest
    total = sum(counts.values())
    head = repr(text[:40]).replace("|", "\\|")
    result = (
        f"{read:,} read, the others refused; the slowest {1000 * seconds:.0f} ms ({name}, "
        f"{len(text):,} characters: {head})"
    )
    (tmp_path / "slowest.txt").write_bytes(text.encode("utf-8", "surrogatepass"))
    what = f"fuzzed inputs, all parsers, part {part + 1} of {PARTS}"
    note(what, f"{total:,}", result, since=start)
    assert seconds < MAX_SECONDS, text[:2_000]


def _keisei_file() -> tuple[bytes, int]:
    """The network in the package, and the length of the part that is not just weights."""
    data = (Path(network_file.__file__).parent / "builtin.keisei").read_bytes()
    return data, 8 + int.from_bytes(data[:8], "little")


def _onnx_file() -> tuple[bytes, int]:
    """A small tower as a file."""
    pytest.importorskip("onnxruntime")
    from keisei.network.onnx.onnx_export import export_onnx
    from tests.network.onnx.stored import stored_network

    data = export_onnx(stored_network())
    return data, len(data)


def _signed_onnx(data: bytes) -> bytes:
    """The file as a forger would write it, with the digest of the changed graph, if it is one."""
    import onnx

    try:
        return bytes(signed(onnx.load_model_from_string(data)).SerializeToString())
    except Exception:  # noqa: BLE001 - protobuf has its own errors, and no types
        return data


def _read_onnx(path: Path) -> object:
    from keisei.network.onnx.onnx_model import load_onnx

    return load_onnx(path, threads=1)


@pytest.mark.parametrize(
    ("suffix", "make", "read"),
    [(".keisei", _keisei_file, network_file.read_network_file), (".onnx", _onnx_file, _read_onnx)],
)
def test_mutated_network_files(
    suffix: str,
    make: Callable[[], tuple[bytes, int]],
    read: Callable[[Path], object],
    tmp_path: Path,
) -> None:
    start = time.monotonic()
    good, delicate = make()
    choice = random.Random(3)
    number = max(10, CHECKPOINTS // 10)
    refused = 0
    for _ in range(number):
        data = bytearray(good)
        if choice.random() < 0.3:
            del data[choice.randrange(len(data)) :]
        else:
            for _ in range(choice.randrange(1, 4)):
                data[choice.randrange(delicate)] = choice.randrange(256)
        path = tmp_path / f"bad{suffix}"
        path.write_bytes(_signed_onnx(bytes(data)) if suffix == ".onnx" else data)
        try:
            read(path)
        except KeiseiError:
            refused += 1
    result = f"{refused:,} refused with the reason, {number - refused:,} harmless"
    note(f"mutated network files, {suffix}", f"{number:,}", result, since=start)
