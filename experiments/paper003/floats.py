"""Exponential, logarithm and noise in single precision, written so that loops over them become vector instructions.

Every lane has a generator of its own (xoshiro128++, Blackman and Vigna 2021), so that what a run draws does not depend
on the runs beside it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

compile_ = numba.njit(nogil=True, fastmath=True, error_model="numpy")
f32, i32, u32 = np.float32, np.int32, np.uint32


@compile_  # type: ignore[untyped-decorator]
def exponential(x: Any) -> Any:
    """For x in [-87, 87]; to 2e-7 (Cephes)."""
    n = np.floor(x * f32(1.44269504) + f32(0.5))
    x = x - n * f32(0.693359375) + n * f32(2.12194440e-4)
    p = f32(1.9875691500e-4)
    p = p * x + f32(1.3981999507e-3)
    p = p * x + f32(8.3334519073e-3)
    p = p * x + f32(4.1665795894e-2)
    p = p * x + f32(1.6666665459e-1)
    p = p * x + f32(5.0000001201e-1)
    p = p * x * x + x + f32(1)
    return p * i32((i32(n) + i32(127)) << i32(23)).view(f32)


@compile_  # type: ignore[untyped-decorator]
def logarithm(x: Any) -> Any:
    """For normal positive x; to 2e-7 (Cephes)."""
    bits = f32(x).view(i32) - i32(0x3F3504F3)  # the mantissa lies in [sqrt(1/2), sqrt(2))
    n = bits >> i32(23)
    m = i32((bits & i32(0x007FFFFF)) + i32(0x3F3504F3)).view(f32) - f32(1)
    p = f32(7.0376836292e-2)
    p = p * m - f32(1.1514610310e-1)
    p = p * m + f32(1.1676998740e-1)
    p = p * m - f32(1.2420140846e-1)
    p = p * m + f32(1.4249322787e-1)
    p = p * m - f32(1.6668057665e-1)
    p = p * m + f32(2.0000714765e-1)
    p = p * m - f32(2.4999993993e-1)
    p = p * m + f32(3.3333331174e-1)
    square = m * m
    whole = f32(n)
    return (m * square * p - whole * f32(2.12194440e-4) - f32(0.5) * square) + m + whole * f32(0.693359375)


@compile_  # type: ignore[untyped-decorator]
def next_bits(states: Any, lane: int) -> Any:
    """32 random bits of a lane; states is (4, lanes)."""
    a, b, c, d = states[0, lane], states[1, lane], states[2, lane], states[3, lane]
    total = u32(a + d)
    bits = u32(u32(u32(total << u32(7)) | u32(total >> u32(25))) + a)
    shifted = u32(b << u32(9))
    c = u32(c ^ a)
    d = u32(d ^ b)
    states[1, lane] = u32(b ^ c)
    states[0, lane] = u32(a ^ d)
    states[2, lane] = u32(c ^ shifted)
    states[3, lane] = u32(u32(d << u32(11)) | u32(d >> u32(21)))
    return bits


@compile_  # type: ignore[untyped-decorator]
def laplace_of(bits: Any) -> Any:
    """A Laplace draw of scale 1: the lowest bit is its sign, the others a uniform number above 0."""
    uniform = (f32(i32(bits >> u32(1))) + f32(0.5)) * f32(2.0**-31)
    size = -logarithm(uniform)
    return size if bits & u32(1) else -size


@compile_  # type: ignore[untyped-decorator]
def gaussian_of(bits: Any) -> Any:
    """A standard normal draw by the inverse error function of Giles (2012), to 1e-6."""
    # 1 - |x| is uniform: taking it as such keeps the tails.
    rest = (f32(i32(bits >> u32(1))) + f32(0.5)) * f32(2.0**-31)
    x = f32(1) - rest
    w = -logarithm(rest * (f32(1) + x))
    v = w - f32(2.5)
    p = f32(2.81022636e-08)
    p = p * v + f32(3.43273939e-07)
    p = p * v - f32(3.5233877e-06)
    p = p * v - f32(4.39150654e-06)
    p = p * v + f32(0.00021858087)
    p = p * v - f32(0.00125372503)
    p = p * v - f32(0.00417768164)
    p = p * v + f32(0.246640727)
    p = p * v + f32(1.50140941)
    v = np.sqrt(w) - f32(3)
    q = f32(-0.000200214257)
    q = q * v + f32(0.000100950558)
    q = q * v + f32(0.00134934322)
    q = q * v - f32(0.00367342844)
    q = q * v + f32(0.00573950773)
    q = q * v - f32(0.0076224613)
    q = q * v + f32(0.00943887047)
    q = q * v + f32(1.00167406)
    q = q * v + f32(2.83297682)
    size = f32(1.41421356) * x * (p if w < f32(5) else q)
    return size if bits & u32(1) else -size
