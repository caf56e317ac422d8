"""The speed of training, and how much of it is the network's.

    python benchmarks/train.py [--quick] [--config F] [--set SECTION.FIELD=VALUE] [--json]

The same as ``keisei benchmark train``; ``docs/benchmarks.md`` says what is measured and how.
"""

import typer

from keisei.commands.benchmark import train

if __name__ == "__main__":
    typer.run(train)
