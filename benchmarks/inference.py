"""A network asked by torch and by onnxruntime: do they say the same, and who says it faster?

    python benchmarks/inference.py RUN

One thread, on the CPU. Both are asked as players ask them: planes are written, and the answer is
log-probabilities and values.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from keisei.benchmark.harness import new_table, print_header, side_by_side, this_machine
from keisei.network.loading import device_config, read_network
from keisei.network.onnx.onnx_export import export_onnx
from keisei.network.onnx.onnx_model import onnx_model
from keisei.network.predictor import Predictor
from keisei.shogi.vector import VectorShogi

POSITIONS = 1000
BATCHES = (1, 16, 256)
REPETITIONS = 7
SECONDS = 0.5


def ask(predictor: Predictor, env: VectorShogi, number: int) -> int:
    """Predictor the first positions; returns how many."""
    predictor.predict(env.observe().take(slice(number)))
    return number


def main() -> None:
    """Compare, measure, and print tables."""
    console = Console()
    print_header(console, this_machine(("torch", "onnxruntime", "numpy")))
    network = read_network(Path(sys.argv[1]))
    predictors: dict[str, Predictor] = {
        "torch": network.network(device_config("cpu", 1)),
        "onnxruntime": onnx_model(export_onnx(network), Path(network.name), threads=1),
    }
    env = VectorShogi(POSITIONS, network.spec, seed=1, opening_plies=60)
    answers = [predictor.predict(env.observe()) for predictor in predictors.values()]
    probabilities = [np.exp(answer.log_probs) for answer in answers]
    console.print(
        f"{network.name}, {POSITIONS:,} positions after 60 random plies, largest difference: "
        f"probabilities {np.abs(probabilities[0] - probabilities[1]).max():.1e}, "
        f"values {np.abs(answers[0].values - answers[1].values).max():.1e}"
    )
    table = new_table("positions per second, one thread")
    for heading in ("batch", *predictors, "ratio", "spread"):
        table.add_column(heading, justify="right")
    for batch in BATCHES:
        work = {name: partial(ask, predictor, env, batch) for name, predictor in predictors.items()}
        rates = side_by_side(work, repetitions=REPETITIONS, seconds=SECONDS)
        torch, onnxruntime = (rates[name] for name in predictors)
        table.add_row(
            str(batch),
            f"{torch.best:,.0f}",
            f"{onnxruntime.best:,.0f}",
            f"{onnxruntime.best / torch.best:.2f}",
            f"{max(torch.spread, onnxruntime.spread):.0%}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
