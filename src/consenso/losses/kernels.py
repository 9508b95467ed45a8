"""Exponentials and logarithms for the compiled solvers of the two losses whose prox has no closed form.

Everything here is branch-free arithmetic on float64, so that LLVM turns the loops into vector instructions. That is
why the exponential is written out: a call into the C library would keep every loop scalar and cost five times as much.
The kernels (`logistic_kernels`, `softmax_kernels`) release the interpreter lock and do records first..last, for
`run_in_threads`. They check nothing: callers pass finite points, steps in [0, 1e12], targets in range and arrays of
matching shapes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from consenso.speedups import Kernel, branchless

_ROUND = 1.5 * 2.0**52  # adding this leaves the nearest integer in the low bits of a float64
_LOG2_E = 1.0 / math.log(2.0)
# log 2 in two parts; the first has 21 trailing zero bits, so that its product with an exponent is exact.
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))
# 2 atanh(s) / s - 2 in powers of s^2: on |s| <= 3 - 2 sqrt 2 the first term left out is below 1e-17.
_A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10 = (2.0 / (2 * k + 1) for k in range(1, 11))
_SQRT_HALF = int(np.float64(math.sqrt(0.5)).view(np.int64))
_LOWEST_LOG = -708.0  # below this, exp is subnormal: no loss can tell it from zero


def compile_part(kernel: Kernel) -> Kernel:
    """A part of a kernel, which becomes a piece of each that calls it."""
    return branchless(kernel, inline="always")


@intrinsic
def _bits_of(typing_context: Any, value: Any) -> Any:
    """The bits of a float64, as an int64."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), emit


@intrinsic
def _float_of(typing_context: Any, bits: Any) -> Any:
    """The float64 with the given bits."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), emit


@intrinsic
def multiply_add(typing_context: Any, left: Any, right: Any, added: Any) -> Any:
    """The product of the first two plus the third, with one rounding.

    Written out rather than left to the compiler, who might do it in the body of a loop and not in what is left over:
    then a record's bits would depend on who is beside it.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), emit


@compile_part
def exp(x: float) -> float:
    """The exponential to one or two units in the last place, for x <= 700; at least that of -708."""
    x = max(x, _LOWEST_LOG)
    shifted = multiply_add(x, _LOG2_E, _ROUND)
    exponent = shifted - _ROUND
    r = multiply_add(-exponent, _LOG_2_LOW, multiply_add(-exponent, _LOG_2_HIGH, x))
    # Taylor's series on |r| <= log(2)/2: the first term left out is below 5e-18. In pairs, which do not wait for each
    # other as the steps of Horner's scheme do.
    square = r * r
    fourth = square * square
    low = multiply_add(multiply_add(_C5, r, _C4), square, multiply_add(_C3, r, _C2))
    middle = multiply_add(multiply_add(_C9, r, _C8), square, multiply_add(_C7, r, _C6))
    high = multiply_add(multiply_add(_C13, r, _C12), square, multiply_add(_C11, r, _C10))
    p = multiply_add(high, fourth * fourth, multiply_add(middle, fourth, low))
    power: float = _float_of((_bits_of(shifted) + 1023) << 52)
    mantissa: float = multiply_add(p, square, r) + 1.0
    return mantissa * power


@compile_part
def log(x: float) -> float:
    """The logarithm to one or two units in the last place, for positive normal x."""
    shifted = _bits_of(x) - _SQRT_HALF
    exponent: float = _float_of(((shifted >> 52) + 2048) | 0x4330000000000000) - (2.0**52 + 2048.0)
    # x = 2^exponent * (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), and log(1 + f) = 2 atanh(s) with s = f / (2 + f).
    f: float = _float_of((shifted & 0x000FFFFFFFFFFFFF) + _SQRT_HALF) - 1.0
    s = f / (2.0 + f)
    q = s * s
    p = _A10
    p = p * q + _A9
    p = p * q + _A8
    p = p * q + _A7
    p = p * q + _A6
    p = p * q + _A5
    p = p * q + _A4
    p = p * q + _A3
    p = p * q + _A2
    p = p * q + _A1
    # 2 s = f - s f, so that the leading term is f, exact.
    return exponent * _LOG_2_HIGH + (f - (s * (f - q * p) - exponent * _LOG_2_LOW))


@compile_part
def _rough_log(x: float) -> float:
    """The logarithm to 0.007, for positive normal x: enough to start a cubic iteration."""
    bits = _bits_of(x)
    exponent: float = _float_of((bits >> 52) | 0x4330000000000000) - (2.0**52 + 1023.0)
    mantissa: float = _float_of((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
    return (exponent + (2.0 - mantissa * (1.0 / 3.0)) * mantissa - 5.0 / 3.0) * (1.0 / _LOG2_E)


@compile_part
def guess_log(level: float, step: float) -> float:
    """The root x of x + step * exp(x) = level, to about 0.2."""
    scaled = level + _rough_log(max(step, 1e-300))
    # step * exp(x) is Wright's omega function of `scaled`: its tail, its tangent at 0 and its asymptote.
    omega = max(scaled, 1.0) - _rough_log(max(scaled, 1.0))
    omega = 0.567143 + 0.361896 * scaled if scaled < 1.0 else omega
    return level if scaled < -1.0 else level - omega
