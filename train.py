"""Train from a checkout, without installing anything but the dependencies.

    python train.py --config quickstart --name first

The same as ``keisei train``: see ``python train.py --help``.
"""

import sys

from keisei.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "train")
    main()
