"""What coins decide of a walk, for many rounds at once: where the token goes, and the noise. Compiled by Numba.

The draws are those of `consenso.privacy.philox`, counter for counter. It draws for many parties in one round; a walk
has one party in each of many rounds, so here the loops run over the blocks of one vector of noise, without a branch or
a call, which makes them vector instructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

from consenso.arrays import Array, IntArray
from consenso.privacy import philox

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

AT_ONCE = 64  # coins that are drawn together

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_SIN_0, _SIN_1, _SIN_2, _SIN_3, _SIN_4, _SIN_5, _SIN_6, _SIN_7 = philox._SIN
_COS_0, _COS_1, _COS_2, _COS_3, _COS_4, _COS_5, _COS_6, _COS_7, _COS_8 = philox._COS
_SQRT_HALF = int(np.float64(math.sqrt(0.5)).view(np.int64))
_EXPONENT = int(np.float64(2.0**52).view(np.int64))
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# 2 atanh(s) / s - 2 as a polynomial in s^2 on |s| <= 3 - 2 sqrt 2: Taylor's series, whose next term is below 1e-17.
_A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10 = (2.0 / (2 * k + 1) for k in range(1, 11))


def compiled(kernel: Kernel, *, inlined: bool = False, loose: frozenset[str] = frozenset()) -> Kernel:
    """Compile without the interpreter's lock; cache where a folder allows it.

    A product and a sum may be one instruction, with one rounding instead of two.
    """
    options: dict[str, Any] = {"fastmath": {"contract", *loose}, "forceinline": inlined, "nogil": True}
    try:
        return njit(error_model="numpy", cache=True, **options)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to cache in
        return njit(error_model="numpy", **options)(kernel)  # type: ignore[no-any-return]


def inlined(kernel: Kernel) -> Kernel:
    """A part of a kernel. A call would cost more than most of them: Numba counts references to arrays around it."""
    return compiled(kernel, inlined=True)


@inlined
def _product(word: Any, multiplier: Any) -> tuple[Any, Any]:
    """High and low 64 bits of a product, from products of halves, which vector units can multiply."""
    low, high = word & _LOW, word >> _HALF
    times_low, times_high = multiplier & _LOW, multiplier >> _HALF
    bottom = low * times_low
    middle = high * times_low + (bottom >> _HALF)
    other = low * times_high + (middle & _LOW)
    return high * times_high + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (bottom & _LOW)


@inlined
def _encrypt(words: Any, seed: Any, party: Any) -> None:
    """`philox.block` in place, for every column of a table of counters (4, columns)."""
    # Columns in the inner loop: each instruction does several of them.
    for _ in range(philox._ROUNDS):
        for i in range(words.shape[1]):
            high0, low0 = _product(words[0, i], philox._MULTIPLIER_0)
            high1, low1 = _product(words[2, i], philox._MULTIPLIER_1)
            words[0, i], words[1, i] = high1 ^ words[1, i] ^ seed, low1
            words[2, i], words[3, i] = high0 ^ words[3, i] ^ party, low0
        seed += philox._WEYL_0
        party += philox._WEYL_1


@compiled
def hop(
    seed: Any,
    coin: Any,
    counter: tuple[Any, Any],
    pointers: IntArray,
    neighbors: IntArray,
    parties: int,
    here: int,
    round_: int,
    path: IntArray,
) -> None:
    """Write the parties of rounds round_, round_ + 1, ... into `path`.

    Each is uniform among the sorted neighbours of the one before, among all parties without neighbours or a party
    before (here = -1). `coin` and `counter` are the key of the schedule's coins.
    """
    words = np.empty((4, AT_ONCE), dtype=np.uint64)
    for k in range(path.size):
        column = k % AT_ONCE
        if column == 0:
            for ahead in range(AT_ONCE):
                words[0, ahead], words[1, ahead] = np.uint64(0), np.uint64(round_ + k + ahead)
                words[2, ahead], words[3, ahead] = counter[0], counter[1] | np.uint64(philox.UNIFORM)
            _encrypt(words, seed, coin)
        uniform = philox._unit(words[0, column])
        anywhere = neighbors.size == 0 or here < 0
        choices = parties if anywhere else pointers[here + 1] - pointers[here]
        chosen = min(int(uniform * choices), choices - 1)
        here = chosen if anywhere else neighbors[pointers[here] + chosen]
        path[k] = here


@inlined
def _log(x: float) -> float:
    """log(x) to a unit in the last place, for x in (0, 1): a call into the C library would keep the loop scalar."""
    shifted = np.float64(x).view(np.int64) - _SQRT_HALF
    exponent = np.int64(((shifted >> 52) + 2048) | _EXPONENT).view(np.float64) - (2.0**52 + 2048.0)
    # x = 2^exponent * (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), and log(1 + f) = 2 atanh(s) with s = f / (2 + f).
    f = np.int64((shifted & 0x000FFFFFFFFFFFFF) + _SQRT_HALF).view(np.float64) - 1.0
    s = f / (2.0 + f)
    q = s * s
    tail = _A8 + q * (_A9 + q * _A10)
    tail = _A5 + q * (_A6 + q * (_A7 + q * tail))
    tail = q * (_A1 + q * (_A2 + q * (_A3 + q * (_A4 + q * tail))))
    # 2 s = f - s f, so that the leading term is f, exact.
    return exponent * _LOG_2_HIGH + (f - (s * (f - tail) - exponent * _LOG_2_LOW))


@inlined
def _normals(first: Any, second: Any) -> tuple[float, float]:
    """`philox._normals` without branches and calls."""
    radius = math.sqrt(-2.0 * _log(max(np.float64(first >> np.uint64(11)), 0.5) * philox._ULP))
    fraction = (np.float64((second << np.uint64(2)) >> np.uint64(12)) + 0.5) * (2.0 * philox._ULP) - 0.5
    angle = philox._QUARTER_TURN * fraction
    q = angle * angle
    sine = _SIN_4 + q * (_SIN_5 + q * (_SIN_6 + q * _SIN_7))
    sine = angle * (_SIN_0 + q * (_SIN_1 + q * (_SIN_2 + q * (_SIN_3 + q * sine))))
    cosine = _COS_4 + q * (_COS_5 + q * (_COS_6 + q * (_COS_7 + q * _COS_8)))
    cosine = _COS_0 + q * (_COS_1 + q * (_COS_2 + q * (_COS_3 + q * cosine)))
    turned = (second >> np.uint64(62)) & np.uint64(1)
    radius = -radius if second >> np.uint64(63) else radius
    return radius * (-sine if turned else cosine), radius * (cosine if turned else sine)


@compiled
def draw_noise(seed: Any, counter: tuple[Any, Any], path: IntArray, round_: int, out: Array) -> None:
    """Write into out[k] (features,) the normals that the seeded sampler has for party path[k] in round round_ + k."""
    features = out.shape[1]
    words = np.empty((4, (features + 3) // 4), dtype=np.uint64)
    normals = np.empty((words.shape[1], 4))
    flat = normals.reshape(4 * words.shape[1])
    for k in range(path.size):
        for i in range(words.shape[1]):
            words[0, i], words[1, i] = np.uint64(i), np.uint64(round_ + k)
            words[2, i], words[3, i] = counter[0], counter[1] | np.uint64(philox.GAUSSIAN)
        _encrypt(words, seed, np.uint64(path[k]))
        for i in range(words.shape[1]):
            normals[i, 0], normals[i, 1] = _normals(words[0, i], words[1, i])
            normals[i, 2], normals[i, 3] = _normals(words[2, i], words[3, i])
        for j in range(features):
            out[k, j] = flat[j]
