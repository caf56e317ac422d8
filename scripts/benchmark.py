"""The quick-start recipe as a whole: its speed, its memory, its strength, in one table.

    python scripts/benchmark.py [RUN] [--config F] [--games N] [--compare OLD.json] [--json]

The same as ``keisei benchmark strength``; ``docs/benchmarks.md`` says what is measured and how.
"""

import typer

from keisei.commands.benchmark import strength

if __name__ == "__main__":
    typer.run(strength)
