"""Speed, memory and strength of the quick-start recipe, in one table.

    python scripts/benchmark.py [RUN] [--config F] [--games N] [--compare OLD.json] [--json]

The same as ``keisei benchmark strength``; ``docs/benchmarks.md`` describes the measurements.
"""

import typer

from keisei.commands.benchmark import strength

if __name__ == "__main__":
    typer.run(strength)
