"""A lock between kernels that run in several threads: Numba has none for the CPU.

It is held for a microsecond or so at a time, much less than it would take to put a thread to sleep.
"""

from typing import TYPE_CHECKING, Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from keisei.shogi.jit import jit_inner
from keisei.shogi.position import Array

if TYPE_CHECKING or numba.config.DISABLE_JIT:

    def _exchange(locks: Array, index: int, value: int) -> int:
        """Write `value` into ``locks[index]`` and return what was there, as one step."""
        before = int(locks[index])
        locks[index] = value
        return before

else:

    @intrinsic
    def _exchange(typing_context: Any, locks: Any, index: Any, value: Any) -> Any:
        """Write `value` into ``locks[index]`` and return what was there, as one step."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array_type = signature.args[0]
            array = context.make_array(array_type)(context, builder, arguments[0])
            pointer = cgutils.get_item_pointer(
                context, builder, array_type, array, [arguments[1]], wraparound=False
            )
            assert arguments[2].type == ir.IntType(64)
            return builder.atomic_rmw("xchg", pointer, arguments[2], "seq_cst")

        return types.int64(locks, types.int64, types.int64), generate


@jit_inner
def acquire(locks: Array, index: int) -> None:
    """Wait until ``locks[index]`` is free, and take it."""
    while _exchange(locks, index, 1) != 0:
        pass


@jit_inner
def release(locks: Array, index: int) -> None:
    """Free ``locks[index]``, after which all that was written before is seen by others."""
    _exchange(locks, index, 0)
