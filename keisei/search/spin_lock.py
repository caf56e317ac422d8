"""A lock between kernels that run in several threads: Numba has none for the CPU.

It is held for a microsecond or so at a time, much less than it would take to put a thread to sleep.
If it is not free for longer, its holder does not run at the moment: the waiting thread then gives
way to others, by a function of the system whose address is passed to the kernels.
"""

import ctypes
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from keisei.shogi.jit import jit_inner
from keisei.shogi.position import Array

SPINS: Final = 100
"""Attempts before a waiting thread gives way: about 2 us."""

if TYPE_CHECKING or numba.config.DISABLE_JIT:

    def _exchange(locks: Array, index: int, value: int) -> int:
        """Write `value` into ``locks[index]`` and return what was there, as one step."""
        before = int(locks[index])
        locks[index] = value
        return before

    def _call(address: int) -> None:
        """Call the function at `address`, which takes nothing."""

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
            return builder.atomic_rmw("xchg", pointer, arguments[2], "seq_cst")

        return types.int64(locks, types.int64, types.int64), generate

    @intrinsic
    def _call(typing_context: Any, address: Any) -> Any:
        """Call the function at `address`, which takes nothing."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [])
            return context.get_dummy_value()

        return types.void(types.int64), generate


@cache
def yield_address() -> int:
    """Address of the function by which a thread gives way to others; 0: the system has none."""
    try:
        if sys.platform == "win32":
            function = ctypes.WinDLL("kernel32").SwitchToThread
        else:
            function = ctypes.CDLL(None).sched_yield
    except (AttributeError, OSError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@jit_inner
def acquire(locks: Array, index: int, address: int) -> None:
    """Wait until ``locks[index]`` is free, and take it; `address` is `yield_address`."""
    spins = 0
    while _exchange(locks, index, 1) != 0:
        spins += 1
        if spins == SPINS:
            spins = 0
            give_way(address)


@jit_inner
def release(locks: Array, index: int) -> None:
    """Free ``locks[index]``, after which all that was written before is seen by others."""
    _exchange(locks, index, 0)


@jit_inner
def give_way(address: int) -> None:
    """Let other threads run; `address` is `yield_address`."""
    if address != 0:
        _call(address)
