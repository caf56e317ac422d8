"""Fingerprints of everything that a change of names and places must leave as it is.

    python scripts/fingerprints.py OUT.json [--compare OLD.json] [--only NAME ...]

Runs the ``keisei`` of the current directory through its command line alone, so that two checkouts
can be compared whatever their modules are called: perft, the weights after two updates of the
quick-start recipe (in one process and with two workers), seeded matches of bots and of networks by
policy and by search, the SVG of a position, a USI session at fixed nodes, and the outputs of an
exported ONNX file. Exits with 1 where two files differ.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

MIDDLE_GAME = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1"
ENDGAME = "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"
TINY_RUN = (
    "run.total_timesteps=32768",
    "run.max_minutes=0",
    "evaluation.interval=0",
    "evaluation.final_games=2",
    "evaluation.background=off",
    "device.threads=1",
    "logging.tensorboard=false",
    "logging.display=off",
)
USI_SESSION = (
    ("isready", "readyok"),
    ("usinewgame\nposition startpos\ngo nodes 200", "bestmove"),
    ("position startpos moves 7g7f 3c3d 8h2b+ 3a2b\ngo nodes 300", "bestmove"),
    (f"position sfen {MIDDLE_GAME}\ngo nodes 100", "bestmove"),
    (f"position sfen {ENDGAME}\ngo mate 5000", "checkmate"),
)
"""What the GUI says, and the word with which the answer to it begins."""


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path.cwd()), "OMP_NUM_THREADS": "1"}


def keisei(*arguments: str) -> str:
    """Run the command line of the checkout in the current directory; returns what it prints."""
    result = subprocess.run(
        [sys.executable, "-m", "keisei", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(),
    )
    if result.returncode:
        raise SystemExit(f"keisei {' '.join(arguments)}:\n{result.stderr}")
    return result.stdout


def digest(content: bytes | str) -> str:
    """The first half of a SHA-256, which is enough to tell two contents apart."""
    raw = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(raw).hexdigest()[:32]


def perft(work: Path) -> object:
    """Leaves of three positions, counted."""
    return {
        sfen: json.loads(keisei("perft", "--depth", depth, "--sfen", sfen, "--json"))["nodes"]
        for sfen, depth in (("startpos", "4"), (MIDDLE_GAME, "3"), (ENDGAME, "2"))
    }


def _train(work: Path, name: str, *settings: str) -> Path:
    run = work / name
    if not run.is_dir():
        chosen = [f"run.root={work}", *TINY_RUN, *settings]
        options = [part for setting in chosen for part in ("--set", setting)]
        keisei("train", "--config", "quickstart", "--name", name, *options)
    return run


def _weights(run: Path) -> str:
    import numpy as np
    from safetensors.numpy import load_file

    newest = sorted((run / "checkpoints").iterdir())[-1]
    tensors = load_file(newest / "weights.safetensors")
    return digest(b"".join(np.ascontiguousarray(tensors[key]).tobytes() for key in sorted(tensors)))


def weights(work: Path) -> object:
    """Weights after two updates, in one process."""
    return _weights(_train(work, "single"))


def weights_of_workers(work: Path) -> object:
    """Weights after two updates, with two workers that wait for the newest weights."""
    settings = ("parallel.num_workers=2", "parallel.max_lag=0")
    return _weights(_train(work, "workers", *settings))


def _match(one: str, other: str, games: int) -> object:
    arguments = ("--games", str(games), "--seed", "7", "--threads", "1", "--json")
    report = json.loads(keisei("match", one, other, *arguments))
    for volatile in ("seconds", "version", "machine"):
        report.pop(volatile, None)
    text = re.sub(r"/[^\"]*/", "", json.dumps(report, sort_keys=True))
    return digest(re.sub(r"#[0-9a-f]{12}", "", text))  # of a file, not of its weights


def match_of_bots(work: Path) -> object:
    """Forty games of alpha-beta against a greedy bot that errs."""
    return _match("alphabeta:2", "greedy,random=0.1", 40)


def match_by_policy(work: Path) -> object:
    """Twenty games of a network's policy against a bot."""
    return _match(f"{_train(work, 'single')}:policy", "greedy,random=0.5", 20)


def match_by_search(work: Path) -> object:
    """Ten games of a network's search against a bot."""
    return _match(f"{_train(work, 'single')}:search=16", "greedy", 10)


def picture(work: Path) -> object:
    """The SVG of a position after some moves, with both kinds of labels."""
    found = {}
    for style in ("kanji", "letters"):
        file = work / f"{style}.svg"
        moves = "startpos moves 7g7f 3c3d 8h2b+"
        keisei("show", moves, "--style", style, "--svg", str(file))
        found[style] = digest(file.read_bytes())
    return found


def usi(work: Path) -> object:
    """Best moves and mates of a USI session at fixed nodes."""
    run, answers = str(_train(work, "single")), []
    with subprocess.Popen(
        [sys.executable, "-m", "keisei", "usi", run, "--set", "Threads=1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=_environment(),
    ) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        for question, answer in USI_SESSION:
            engine.stdin.write(f"{question}\n")
            engine.stdin.flush()
            answers.append(next(line for line in engine.stdout if line.startswith(answer)).strip())
        engine.stdin.write("quit\n")
        engine.stdin.flush()
    return answers


def onnx(work: Path) -> object:
    """What an exported network answers to fixed planes."""
    import numpy as np
    import onnxruntime  # type: ignore[import-untyped]

    file = work / "single.onnx"
    keisei("export", str(_train(work, "single")), "--output", str(file))
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    inputs: dict[str, np.ndarray] = {}
    for node in session.get_inputs():
        shape = [size if isinstance(size, int) else 4 for size in node.shape]
        if "int" in node.type:
            inputs[node.name] = np.full(shape, 3, dtype=np.int64)
        else:
            inputs[node.name] = random.random(shape, dtype=np.float32)
    outputs = session.run(None, inputs)
    return [digest(np.ascontiguousarray(output).tobytes()) for output in outputs]


FINGERPRINTS: dict[str, Callable[[Path], object]] = {
    one.__name__: one
    for one in (
        perft, weights, weights_of_workers, match_of_bots, match_by_policy, match_by_search,
        picture, usi, onnx,
    )
}  # fmt: skip


def main() -> None:
    """Take the fingerprints, write them down, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--compare", type=Path, help="fingerprints of another checkout")
    parser.add_argument("--only", nargs="+", choices=FINGERPRINTS, default=list(FINGERPRINTS))
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        for name in options.only:
            found[name] = FINGERPRINTS[name](Path(directory))
            sys.stderr.write(f"{name}: {found[name]}\n")
    options.out.write_text(json.dumps(found, indent=2))
    if options.compare is None:
        return
    old = json.loads(options.compare.read_text())
    changed = [name for name in found if found[name] != old.get(name)]
    sys.stderr.write(f"changed: {', '.join(changed) or 'nothing'}\n")
    raise SystemExit(1 if changed else 0)


if __name__ == "__main__":
    main()
