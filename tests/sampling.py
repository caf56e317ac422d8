"""Sample sizes of tests: many cases with compiled kernels, few with plain Python ones."""

import os

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def sample(compiled: int, interpreted: int) -> int:
    """The number of cases to try in the mode that the tests run in."""
    return compiled if IS_COMPILED else interpreted
