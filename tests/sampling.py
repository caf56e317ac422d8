"""How much a test tries: many cases compiled, few when the kernels run as plain Python."""

import os

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def sample(compiled: int, interpreted: int) -> int:
    """The number of cases to try in the mode that the tests run in."""
    return compiled if IS_COMPILED else interpreted
