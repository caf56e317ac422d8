"""The speed of the game core, side by side with cshogi and rsshogi.

    python benchmarks/env.py [--quick] [--threads N] [--json]

The same as ``keisei benchmark env``; ``docs/benchmarks.md`` says what is measured and how.
"""

import typer

from keisei.commands.benchmark import env

if __name__ == "__main__":
    typer.run(env)
