"""How many cases are tried: kernels as plain Python are a thousand times slower than compiled."""

import numba

IS_COMPILED = not numba.config.DISABLE_JIT
CHECKS_BOUNDS = bool(numba.config.BOUNDSCHECK)
_FEW = 10


def sample(compiled: int, interpreted: int) -> int:
    """The number of cases to try in the mode that the tests run in.

    With bounds checks a third of them will do: their values are judged without.
    """
    if not IS_COMPILED:
        return interpreted
    return compiled // 3 if CHECKS_BOUNDS and compiled >= _FEW else compiled
