"""Bitboards, sets of squares in one number: bit `sq` is set if square `sq` is in the set.

With the JIT off a bitboard is a plain ``int``. Under Numba it is a type of its own, lowered to
LLVM's ``i128``, so that every operator is one instruction of the intermediate code (two or three
of the machine's). This is the only file that knows about Numba's internals.

In arrays a bitboard is a row of two ``uint64`` words, low word first: `load` and `store` convert
between the two. Two rules keep the same source correct with and without the JIT:

- Complement only inside an intersection (``a & ~b``), because a Python ``int`` has no width.
- After a shift to the left, intersect with something that lies on the board.
"""

import operator
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel import PrimitiveModel
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, register_model, type_callable

from keisei.constants import NUM_SQUARES

Bitboard: TypeAlias = int
Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

WORD_MASK = (1 << 64) - 1


def load(words: Words) -> Bitboard:
    """Read the bitboard stored in ``words[2]``."""
    return int(words[0]) | int(words[1]) << 64


def store(words: Words, board: Bitboard) -> None:
    """Write a bitboard into ``words[2]``."""
    words[0] = board & WORD_MASK
    words[1] = board >> 64


def bit(sq: int) -> Bitboard:
    """The set that contains one square."""
    return 1 << int(sq)


def lowest(board: Bitboard) -> int:
    """The lowest square of a non-empty set."""
    return (board & -board).bit_length() - 1


def highest(board: Bitboard) -> int:
    """The highest square of a non-empty set."""
    return board.bit_length() - 1


def without_lowest(board: Bitboard) -> Bitboard:
    """The set without its lowest square."""
    return board & (board - 1)


def count(board: Bitboard) -> int:
    """Number of squares in the set."""
    return board.bit_count()


def low_word(board: Bitboard) -> int:
    """Squares 0 to 63 as an unsigned 64-bit number."""
    return board & WORD_MASK


def squares_of(board: Bitboard) -> list[int]:
    """List the squares of a set in ascending order (plain Python, for tables and tests)."""
    return [sq for sq in range(NUM_SQUARES) if board >> sq & 1]


def as_words(boards: list[int]) -> Words:
    """Store bitboards in an array ``uint64[n, 2]``, as kernels read them (plain Python)."""
    return np.array([[board & WORD_MASK, board >> 64] for board in boards], dtype=np.uint64)


# ---- Numba ---------------------------------------------------------------------------------


class BitboardType(types.Type):  # type: ignore[misc]
    """The type of a bitboard inside kernels."""

    def __init__(self) -> None:
        super().__init__(name="bitboard")


BITBOARD = BitboardType()
I128 = ir.IntType(128)
I64 = ir.IntType(64)


@register_model(BitboardType)
class _BitboardModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, I128)


def _constant(number: int) -> Any:
    return ir.Constant(I128, number)


def _widen(builder: Any, number: Any) -> Any:
    return number if number.type == I128 else builder.zext(number, I128)


_OPERATORS: dict[Any, Any] = {
    operator.and_: lambda b, x, y: b.and_(x, y),
    operator.or_: lambda b, x, y: b.or_(x, y),
    operator.xor: lambda b, x, y: b.xor(x, y),
    operator.sub: lambda b, x, y: b.sub(x, y),
    operator.lshift: lambda b, x, y: b.shl(x, _widen(b, y)),
    operator.rshift: lambda b, x, y: b.lshr(x, _widen(b, y)),
}
_SHIFTS = (operator.lshift, operator.rshift)
_COMPARISONS = {operator.eq: "==", operator.ne: "!="}
_UNARY: dict[Any, Any] = {
    operator.invert: lambda b, x: b.not_(x),
    operator.neg: lambda b, x: b.neg(x),
}


def _register_binary(function: Any, emit: Any) -> None:
    right = types.int64 if function in _SHIFTS else BITBOARD
    in_place = getattr(operator, "i" + function.__name__.strip("_"))

    class BinaryOperator(AbstractTemplate):  # type: ignore[misc]
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            fits = isinstance(args[1], types.Integer) if function in _SHIFTS else args[1] == right
            return signature(BITBOARD, BITBOARD, right) if args[0] == BITBOARD and fits else None

    class InPlaceOperator(BinaryOperator):
        key = in_place

    infer_global(function)(BinaryOperator)
    infer_global(in_place)(InPlaceOperator)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return emit(builder, *args)

    lower_builtin(function, BITBOARD, right)(lower)
    lower_builtin(in_place, BITBOARD, right)(lower)


def _register_comparison(function: Any, sign: str) -> None:
    class Comparison(AbstractTemplate):  # type: ignore[misc]
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            fits = args == (BITBOARD, BITBOARD)
            return signature(types.boolean, BITBOARD, BITBOARD) if fits else None

    infer_global(function)(Comparison)

    @lower_builtin(function, BITBOARD, BITBOARD)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.icmp_unsigned(sign, *args)


def _register_unary(function: Any, emit: Any, result: Any = BITBOARD) -> None:
    class UnaryOperator(AbstractTemplate):  # type: ignore[misc]
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return signature(result, BITBOARD) if args == (BITBOARD,) else None

    infer_global(function)(UnaryOperator)

    @lower_builtin(function, BITBOARD)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return emit(builder, args[0])


for _function, _emit in _OPERATORS.items():
    _register_binary(_function, _emit)
for _function, _sign in _COMPARISONS.items():
    _register_comparison(_function, _sign)
for _function, _emit_one in _UNARY.items():
    _register_unary(_function, _emit_one)
_register_unary(bool, lambda b, x: b.icmp_unsigned("!=", x, _constant(0)), types.boolean)
_false = ir.Constant(ir.IntType(1), 0)
_register_unary(lowest, lambda b, x: b.trunc(b.cttz(x, _false), I64), types.int64)
_register_unary(
    highest, lambda b, x: b.trunc(b.sub(_constant(127), b.ctlz(x, _false)), I64), types.int64
)
_register_unary(without_lowest, lambda b, x: b.and_(x, b.sub(x, _constant(1))))
_register_unary(count, lambda b, x: b.trunc(b.ctpop(x), I64), types.int64)
_register_unary(low_word, lambda b, x: b.trunc(x, I64), types.uint64)


@type_callable(bit)
def _type_bit(context: Any) -> Any:
    return lambda sq: BITBOARD if isinstance(sq, types.Integer) else None


@lower_builtin(bit, types.Integer)
def _lower_bit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.shl(_constant(1), _widen(builder, args[0]))


def _is_words(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.ndim == 1 and kind.dtype == types.uint64


@type_callable(load)
def _type_load(context: Any) -> Any:
    return lambda words: BITBOARD if _is_words(words) else None


@lower_builtin(load, types.Array)
def _lower_load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_words_pointer(context, builder, sig, args), align=8)


@type_callable(store)
def _type_store(context: Any) -> Any:
    return lambda words, board: types.none if _is_words(words) and board == BITBOARD else None


@lower_builtin(store, types.Array, BITBOARD)
def _lower_store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[1], _words_pointer(context, builder, sig, args), align=8)
    return context.get_dummy_value()


def _words_pointer(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array = context.make_array(sig.args[0])(context, builder, value=args[0])
    return builder.bitcast(array.data, I128.as_pointer())
