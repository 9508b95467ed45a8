"""Threefry4x64-20 and the noise of simulations, compiled by Numba: imported when noise is drawn, since it loads slowly.

A counter-based generator is a keyed bijection of counters: word `coordinate % 4` of block `coordinate // 4` is a
function of (seed, party, round, release, stream, repetition, purpose, coordinate) and of nothing else. So the noise
of a party is the same bit for bit in every cohort, in every order and on every number of threads.

All loops run over blocks side by side, without a branch or a call, which makes them vector instructions; Threefry has
nothing but sums, rotations and exclusive ors, of which vector units do twice as many as of the products of Philox.
Where a product and a sum are one instruction it is written out (`multiply_add`) rather than left to the compiler, who
might do it in the body of a loop and not in what is left over: then bits would depend on the cohort.

Reference: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.kernels.compiled import compile_inlined, run_pieces
from consenso.losses.kernels import multiply_add
from consenso.speedups import branchless

Word: TypeAlias = np.uint64

# What a stream is for; part of the counter, so that the same key never gives the same bits to two laws.
GAUSSIAN, LAPLACE, GAMMA_NORM, RADIUS, UNIFORM = 0, 1, 2, 3, 4

# Blocks that are encrypted together: enough to keep a processor busy, and few enough for its nearest cache.
COLUMNS = 128
# Numbers that one thread draws before it looks for more.
PIECE = 1 << 17

_PARITY = np.uint64(0x1BD11BDAA9FC1A22)
_ULP = 2.0**-53
_QUARTER_TURN = math.pi / 2
_SQRT_HALF = int(np.float64(math.sqrt(0.5)).view(np.int64))
_EXPONENT = int(np.float64(2.0**52).view(np.int64))
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")

# Minimax polynomials of fdlibm (Sun Microsystems, freely distributable), each to 2^-58: for 2 atanh(s)/s - 2 in s^2 on
# |s| <= 3 - 2 sqrt 2, and for sine and cosine to an eighth of a turn.
_L1, _L2, _L3, _L4 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
)
_L5, _L6, _L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01
_S1, _S2, _S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
_S4, _S5, _S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
_C1, _C2, _C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
_C4, _C5, _C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11


# --- words ----------------------------------------------------------------------------------------------------------


# Numba compiles a kernel anew for each number that is written into its call, and once for all that are turned into a
# NumPy number there, as below. All kernels that draw then take half as long to compile.


@compile_inlined
def _mix(left: Any, right: Any, turn: Any) -> tuple[Any, Any]:
    """Half of a round: a sum, a rotation, an exclusive or."""
    left = left + right
    return left, ((right << turn) | (right >> (np.uint64(64) - turn))) ^ left


@compile_inlined
def _four_rounds(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """The first four of eight rounds that are repeated."""
    a, b = _mix(a, b, np.uint64(14))
    c, d = _mix(c, d, np.uint64(16))
    a, d = _mix(a, d, np.uint64(52))
    c, b = _mix(c, b, np.uint64(57))
    a, b = _mix(a, b, np.uint64(23))
    c, d = _mix(c, d, np.uint64(40))
    a, d = _mix(a, d, np.uint64(5))
    c, b = _mix(c, b, np.uint64(37))
    return a, b, c, d


@compile_inlined
def _next_rounds(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    a, b = _mix(a, b, np.uint64(25))
    c, d = _mix(c, d, np.uint64(33))
    a, d = _mix(a, d, np.uint64(46))
    c, b = _mix(c, b, np.uint64(12))
    a, b = _mix(a, b, np.uint64(58))
    c, d = _mix(c, d, np.uint64(22))
    a, d = _mix(a, d, np.uint64(32))
    c, b = _mix(c, b, np.uint64(32))
    return a, b, c, d


@compile_inlined
def encrypt(places: Any, rest: tuple[Any, Any, Any], keys: Any, seed: Any, last: Any, words: Any, columns: Any) -> None:
    """Threefry4x64-20: the words (4, columns) for counters (places[i], *rest) and keys (seed, *keys[:, i], last)."""
    common = seed ^ last ^ _PARITY
    one, two, three, four, five = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(5)
    for i in range(columns):
        k1, k2 = keys[0, i], keys[1, i]
        k4 = common ^ k1 ^ k2
        a, b, c, d = places[i] + seed, rest[0] + k1, rest[1] + k2, rest[2] + last
        a, b, c, d = _four_rounds(a, b, c, d)
        a, b, c, d = a + k1, b + k2, c + last, d + (k4 + one)
        a, b, c, d = _next_rounds(a, b, c, d)
        a, b, c, d = a + k2, b + last, c + k4, d + (seed + two)
        a, b, c, d = _four_rounds(a, b, c, d)
        a, b, c, d = a + last, b + k4, c + seed, d + (k1 + three)
        a, b, c, d = _next_rounds(a, b, c, d)
        a, b, c, d = a + k4, b + seed, c + k1, d + (k2 + four)
        a, b, c, d = _four_rounds(a, b, c, d)
        a, b, c, d = a + seed, b + k1, c + k2, d + (last + five)
        words[0, i], words[1, i], words[2, i], words[3, i] = a, b, c, d


@branchless
def block(counter: tuple[Word, Word, Word, Word], key: tuple[Word, Word, Word, Word]) -> tuple[Word, Word, Word, Word]:
    """The four words for a counter and a key."""
    places, keys, words = np.full(1, counter[0]), np.empty((2, 1), dtype=np.uint64), np.empty((4, 1), dtype=np.uint64)
    keys[0, 0], keys[1, 0] = key[1], key[2]
    encrypt(places, (counter[1], counter[2], counter[3]), keys, key[0], key[3], words, np.int64(1))
    return words[0, 0], words[1, 0], words[2, 0], words[3, 0]


# --- unit draws -----------------------------------------------------------------------------------------------------


@compile_inlined
def unit(word: Any) -> float:
    """A uniform double of 53 bits in (0, 1): the zero is moved to half a step."""
    return max(np.float64(word >> np.uint64(11)), 0.5) * _ULP


@compile_inlined
def _log(x: float) -> float:
    """log(x) to a unit in the last place, for x in (0, 1): a call into the C library would keep the loop scalar."""
    shifted = np.float64(x).view(np.int64) - _SQRT_HALF
    exponent = np.int64(((shifted >> 52) + 2048) | _EXPONENT).view(np.float64) - (2.0**52 + 2048.0)
    # x = 2^exponent * (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), and log(1 + f) = 2 atanh(s) with s = f / (2 + f).
    f = np.int64((shifted & 0x000FFFFFFFFFFFFF) + _SQRT_HALF).view(np.float64) - 1.0
    s = f / (2.0 + f)
    q = s * s
    tail = multiply_add(q, multiply_add(q, _L7, _L6), _L5)
    tail = q * multiply_add(q, multiply_add(q, multiply_add(q, multiply_add(q, tail, _L4), _L3), _L2), _L1)
    # 2 s = f - s f, so that the leading term is f, exact.
    log: float = multiply_add(exponent, _LOG_2_HIGH, f - multiply_add(s, f - tail, -exponent * _LOG_2_LOW))
    return log


@compile_inlined
def _normals(first: Any, second: Any) -> tuple[float, float]:
    """Box-Muller: two independent standard normals from two words."""
    # All 64 bits make the radius: the tail of the law then ends at 9.5. It is never 0: a direction must not be lost.
    radius = math.sqrt(-2.0 * _log(min(multiply_add(np.float64(first), 2.0**-64, 2.0**-65), 1.0 - _ULP)))
    # Two bits choose the quadrant, 52 more an angle within an eighth of a turn, never 0.
    fraction = multiply_add(np.float64((second << np.uint64(2)) >> np.uint64(12)), 2.0 * _ULP, _ULP - 0.5)
    angle = _QUARTER_TURN * fraction
    q = angle * angle
    sine = multiply_add(
        q, multiply_add(q, multiply_add(q, multiply_add(q, multiply_add(q, _S6, _S5), _S4), _S3), _S2), _S1
    )
    sine = multiply_add(angle * q, sine, angle)
    cosine = multiply_add(
        q, multiply_add(q, multiply_add(q, multiply_add(q, multiply_add(q, _C6, _C5), _C4), _C3), _C2), _C1
    )
    cosine = multiply_add(q, multiply_add(q, cosine, -0.5), 1.0)
    turned = (second >> np.uint64(62)) & np.uint64(1)
    radius = -radius if second >> np.uint64(63) else radius
    return radius * (-sine if turned else cosine), radius * (cosine if turned else sine)


@compile_inlined
def _laplace(word: Any) -> float:
    """A standard Laplace: the inverse CDF of its modulus from the high bits, its sign from the lowest."""
    modulus = -_log(unit(word))
    return modulus if word & np.uint64(1) else -modulus


@branchless
def draw_units(
    purpose: Any,
    seed: Any,
    parties: IntArray,
    round_: int,
    stride: Any,
    upper: tuple[Any, Any],
    work: tuple[Any, Any, Any],
    units: Array,
) -> None:
    """Unit draws of parties[k] in round round_ + k * stride, in the first rows of units (rows, 4 * blocks).

    upper: what else tells the draw, two words. work and units: from `room`, for at least as many draws.
    """
    places, keys, words = work
    blocks, zero = units.shape[1] // 4, np.uint64(0)
    columns = len(parties) * blocks
    for k in range(len(parties)):
        party, own_round, start = np.uint64(parties[k]), np.uint64(round_ + k * stride), k * blocks
        for b in range(blocks):
            keys[0, start + b], keys[1, start + b] = party, own_round
    encrypt(places, (upper[1] | np.uint64(purpose), zero, zero), keys, seed, upper[0], words, columns)
    # A flat array: the compiler has to see that the numbers of a block lie side by side.
    flat = units.reshape(units.size)
    if purpose in (GAUSSIAN, GAMMA_NORM):
        for i in range(columns):
            flat[4 * i], flat[4 * i + 1] = _normals(words[0, i], words[1, i])
            flat[4 * i + 2], flat[4 * i + 3] = _normals(words[2, i], words[3, i])
    elif purpose == LAPLACE:
        for i in range(columns):
            flat[4 * i], flat[4 * i + 1] = _laplace(words[0, i]), _laplace(words[1, i])
            flat[4 * i + 2], flat[4 * i + 3] = _laplace(words[2, i]), _laplace(words[3, i])
    else:
        for i in range(columns):
            flat[4 * i], flat[4 * i + 1] = unit(words[0, i]), unit(words[1, i])
            flat[4 * i + 2], flat[4 * i + 3] = unit(words[2, i]), unit(words[3, i])


@branchless
def room(dim: Any) -> tuple[tuple[Any, Any, Any], Array]:
    """Where `draw_units` works, and the units of as many draws of `dim` numbers as are worth making together."""
    blocks = (dim + 3) // 4
    rows = max(1, COLUMNS // max(1, blocks))
    columns = rows * blocks
    places = np.empty(columns, np.uint64)
    for k in range(rows):
        for b in range(blocks):
            places[k * blocks + b] = b
    return (places, np.empty((2, columns), np.uint64), np.empty((4, columns), np.uint64)), np.empty((rows, 4 * blocks))


# --- noise ----------------------------------------------------------------------------------------------------------


@branchless
def _add(
    purpose: int,
    seed: Any,
    parties: IntArray,
    counter: tuple[Any, Any, Any],
    values: Array,
    scales: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """Parties first to last: their values plus noise, or uniforms."""
    dim, upper = values.shape[1], (counter[1], counter[2])
    work, units = room(dim)
    radii = np.empty_like(units)
    for start in range(first, last, len(units)):
        rows = min(len(units), last - start)
        own = parties[start : start + rows]
        draw_units(purpose, seed, own, counter[0], np.int64(0), upper, work, units)
        if purpose == GAMMA_NORM:
            draw_units(np.int64(RADIUS), seed, own, counter[0], np.int64(0), upper, work, radii)
        for k in range(rows):
            i, drawn, scale = start + k, units[k], scales[start + k]
            if purpose == GAMMA_NORM:
                # A Gamma(dim) radius is a sum of dim exponentials; the direction is that of a normal vector.
                exponentials, radius, square = radii[k], 0.0, 0.0
                for j in range(dim):
                    radius -= _log(exponentials[j])
                    square += drawn[j] * drawn[j]
                scale = scale * radius / math.sqrt(square)
            if purpose == UNIFORM:
                for j in range(dim):
                    out[i, j] = drawn[j]
            else:
                for j in range(dim):
                    out[i, j] = values[i, j] + scale * drawn[j]


def draw(
    purpose: int,
    seed: int,
    parties: IntArray,
    counter: tuple[int, int, int],
    values: Array,
    scales: Array,
    *,
    piece: int = PIECE,
) -> Array:
    """Values (parties, dim) plus scales (parties,) times unit noise; for UNIFORM the uniforms alone.

    `counter` has the upper three words of the counter, the lowest three bits of the last one free for the purpose.
    A thread does about `piece` numbers at a time.
    """
    out = np.empty_like(values)
    if values.size:
        round_, *upper = counter
        key = (round_, *(np.uint64(word) for word in upper))
        run_pieces(
            _add,
            len(values),
            max(1, piece // values.shape[1]),
            purpose,
            np.uint64(seed),
            parties,
            key,
            values,
            np.require(scales, requirements="W"),  # one type, and nothing is written
            out,
        )
    return out
