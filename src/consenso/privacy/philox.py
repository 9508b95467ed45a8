"""Philox4x64-10 and the noise of simulations, compiled by Numba: imported when noise is drawn, since it loads slowly.

A counter-based generator is a keyed bijection of counters: word `coordinate % 4` of block `coordinate // 4` is a
function of (seed, party, round, release, stream, repetition, purpose, coordinate) and of nothing else. So the noise
of a party is the same bit for bit in every cohort, in every order and on every number of threads.

Reference: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic

from consenso.arrays import Array, IntArray

Word: TypeAlias = np.uint64

# What a stream is for; part of the counter, so that the same key never gives the same bits to two laws.
GAUSSIAN, LAPLACE, GAMMA_NORM, RADIUS, UNIFORM = 0, 1, 2, 3, 4

# Below this many entries the start of the threads costs more than they save.
PARALLEL_FROM = 1 << 17

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_ROUNDS = 10
_ULP = 2.0**-53
_QUARTER_TURN = math.pi / 2

# Taylor coefficients: on an eighth of a turn to either side the remainders are below 5e-17.
_SIN = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(8))
_COS = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(9))


@intrinsic
def _high(context: Any, left: Any, right: Any) -> Any:
    """The high 64 bits of the product of two 64-bit integers, which is one instruction."""
    word = numba.types.uint64

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return word(word, word), generate


@numba.njit(cache=True)
def block(c0: Word, c1: Word, c2: Word, c3: Word, k0: Word, k1: Word) -> tuple[Word, Word, Word, Word]:
    """The four words of Philox4x64-10 for a counter of four words and a key of two."""
    for _ in range(_ROUNDS):
        high0, low0 = _high(_MULTIPLIER_0, c0), _MULTIPLIER_0 * c0
        high1, low1 = _high(_MULTIPLIER_1, c2), _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 += _WEYL_0
        k1 += _WEYL_1
    return c0, c1, c2, c3


@numba.njit(cache=True)
def _unit(word: Word) -> float:
    """A uniform double of 53 bits in (0, 1): the zero is moved to half a step."""
    return max(np.float64(word >> np.uint64(11)), 0.5) * _ULP


@numba.njit(cache=True)
def _normals(first: Word, second: Word) -> tuple[float, float]:
    """Box-Muller: two independent standard normals from two words."""
    radius = math.sqrt(-2.0 * math.log(_unit(first)))
    # Two bits choose the quadrant; 52 more an angle within an eighth of a turn, where the series are exact, and
    # never 0, so that no normal is: a direction must not be lost.
    angle = _QUARTER_TURN * ((np.float64((second << np.uint64(2)) >> np.uint64(12)) + 0.5) * (2.0 * _ULP) - 0.5)
    square = angle * angle
    sine, cosine = _SIN[7], _COS[8]
    for k in range(7):
        sine = _SIN[6 - k] + square * sine
    for k in range(8):
        cosine = _COS[7 - k] + square * cosine
    sine *= angle
    if second >> np.uint64(62) & np.uint64(1):
        cosine, sine = -sine, cosine
    if second >> np.uint64(63):
        cosine, sine = -cosine, -sine
    return radius * cosine, radius * sine


@numba.njit(cache=True)
def _laplace(word: Word) -> float:
    """A standard Laplace: the inverse CDF of its modulus from the high bits, its sign from the lowest."""
    modulus = -math.log(_unit(word))
    return modulus if word & np.uint64(1) else -modulus


@numba.njit(cache=True)
def _fill(purpose: int, seed: Word, party: Word, c1: Word, c2: Word, c3: Word, out: Array) -> None:
    """Fill one party's row with unit draws."""
    dim = out.size
    c3 = c3 | np.uint64(purpose)
    for index in range((dim + 3) // 4):
        w0, w1, w2, w3 = block(np.uint64(index), c1, c2, c3, seed, party)
        if purpose in (GAUSSIAN, GAMMA_NORM):
            x0, x1 = _normals(w0, w1)
            x2, x3 = _normals(w2, w3)
        elif purpose == LAPLACE:
            x0, x1, x2, x3 = _laplace(w0), _laplace(w1), _laplace(w2), _laplace(w3)
        else:
            x0, x1, x2, x3 = _unit(w0), _unit(w1), _unit(w2), _unit(w3)
        start = 4 * index
        out[start] = x0
        if start + 1 < dim:
            out[start + 1] = x1
        if start + 2 < dim:
            out[start + 2] = x2
        if start + 3 < dim:
            out[start + 3] = x3


@numba.njit(cache=True)
def _row(
    purpose: int, seed: Word, party: Word, c1: Word, c2: Word, c3: Word, values: Array, scale: float, out: Array
) -> None:
    """One party: its values plus noise, or uniforms."""
    if purpose == GAMMA_NORM:
        # A Gamma(dim) radius is a sum of dim exponentials; the direction is that of a normal vector.
        _fill(RADIUS, seed, party, c1, c2, c3, out)
        radius = 0.0
        for j in range(out.size):
            radius -= math.log(out[j])
        _fill(purpose, seed, party, c1, c2, c3, out)
        square = 0.0
        for j in range(out.size):
            square += out[j] * out[j]
        scale = scale * radius / math.sqrt(square)
    else:
        _fill(purpose, seed, party, c1, c2, c3, out)
    if purpose != UNIFORM:
        for j in range(out.size):
            out[j] = values[j] + scale * out[j]


# Two functions, not one body compiled twice: Numba's cache does not tell the two apart.
@numba.njit(cache=True)
def _serial(
    purpose: int, seed: Word, parties: IntArray, c1: Word, c2: Word, c3: Word, values: Array, scales: Array, out: Array
) -> None:
    for i in range(parties.size):
        _row(purpose, seed, np.uint64(parties[i]), c1, c2, c3, values[i], scales[i], out[i])


@numba.njit(cache=True, parallel=True)
def _parallel(
    purpose: int, seed: Word, parties: IntArray, c1: Word, c2: Word, c3: Word, values: Array, scales: Array, out: Array
) -> None:
    for i in numba.prange(parties.size):
        _row(purpose, seed, np.uint64(parties[i]), c1, c2, c3, values[i], scales[i], out[i])


def draw(
    purpose: int,
    seed: int,
    parties: IntArray,
    counter: tuple[int, int, int],
    values: Array,
    scales: Array,
    *,
    parallel_from: int = PARALLEL_FROM,
) -> Array:
    """Values (parties, dim) plus scales (parties,) times unit noise; for UNIFORM the uniforms alone.

    `counter` has the upper three words of the counter, the lowest three bits of the last one free for the purpose.
    """
    out = np.empty_like(values)
    run = _parallel if values.size >= parallel_from and parties.size > 1 else _serial
    c1, c2, c3 = (np.uint64(word) for word in counter)
    run(purpose, np.uint64(seed), parties, c1, c2, c3, values, scales, out)
    return out
