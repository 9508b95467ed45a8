"""Rounds of a random walk over parties of one record, compiled by Numba: import it inside functions, it loads slowly.

A round has a hop, the prox of one record, noise and the token's step. Hops and noise depend on coins alone, so they
come first: the noise of many rounds is drawn in vector instructions and in threads, and the rounds themselves, which
must wait for each other, are left with a few loops over the features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from consenso.arrays import Array, IntArray
from consenso.kernels import HINGE, LOGISTIC, RESIDUAL
from consenso.losses.kernels import solve_sigmoid
from consenso.privacy import philox
from consenso.subproblems.batch import ROUNDING
from consenso.subproblems.certificate import ON_KINK, STRONG

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

LINE = 8  # numbers in a cache line
FETCH = 2  # how many rounds ahead memory is asked for
TUBE = 3  # beside the kinds of `consenso.kernels`: the distance to an interval around the target


def _compiled(kernel: Kernel, *, inlined: bool = False, loose: frozenset[str] = frozenset()) -> Kernel:
    """Compile without the interpreter's lock; cache where a folder allows it.

    A product and a sum may be one instruction, with one rounding instead of two.
    """
    options: dict[str, Any] = {"fastmath": {"contract", *loose}, "forceinline": inlined, "nogil": True}
    try:
        return njit(error_model="numpy", cache=True, **options)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to cache in
        return njit(error_model="numpy", **options)(kernel)  # type: ignore[no-any-return]


def _inlined(kernel: Kernel) -> Kernel:
    """A part of a kernel. A call would cost more than most of them: Numba counts references to arrays around it."""
    return _compiled(kernel, inlined=True)


def _summed(kernel: Kernel) -> Kernel:
    """Leave the order of sums to the compiler, which takes them in vectors; bounds on rounding cover every order."""
    return _compiled(kernel, inlined=True, loose=frozenset({"reassoc", "nsz"}))


# --- hops -----------------------------------------------------------------------------------------------------------


@_compiled
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
    uniform = np.empty(1)
    for k in range(path.size):
        philox._fill(philox.UNIFORM, seed, coin, np.uint64(round_ + k), counter[0], counter[1], uniform)
        anywhere = neighbors.size == 0 or here < 0
        choices = parties if anywhere else pointers[here + 1] - pointers[here]
        chosen = min(int(uniform[0] * choices), choices - 1)
        here = chosen if anywhere else neighbors[pointers[here] + chosen]
        path[k] = here


# --- noise ----------------------------------------------------------------------------------------------------------

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_SIN_0, _SIN_1, _SIN_2, _SIN_3, _SIN_4, _SIN_5, _SIN_6, _SIN_7 = philox._SIN
_COS_0, _COS_1, _COS_2, _COS_3, _COS_4, _COS_5, _COS_6, _COS_7, _COS_8 = philox._COS
_SQRT_HALF = int(np.float64(math.sqrt(0.5)).view(np.int64))
_EXPONENT = int(np.float64(2.0**52).view(np.int64))
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# 2 atanh(s) / s - 2 as a polynomial in s^2 on |s| <= 3 - 2 sqrt 2: Taylor's series, whose next term is below 1e-17.
_A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10 = (2.0 / (2 * k + 1) for k in range(1, 11))


@_inlined
def _product(word: Any, multiplier: Any) -> tuple[Any, Any]:
    """High and low 64 bits of a product, from products of halves, which vector units can multiply."""
    low, high = word & _LOW, word >> _HALF
    times_low, times_high = multiplier & _LOW, multiplier >> _HALF
    bottom = low * times_low
    middle = high * times_low + (bottom >> _HALF)
    other = low * times_high + (middle & _LOW)
    return high * times_high + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (bottom & _LOW)


@_inlined
def _words(c1: Any, c2: Any, c3: Any, seed: Any, party: Any, out: Any) -> None:
    """`philox.block` for the counters (0, c1, c2, c3), (1, c1, c2, c3), ... side by side; out is (4, blocks)."""
    for index in range(out.shape[1]):
        out[0, index], out[1, index], out[2, index], out[3, index] = np.uint64(index), c1, c2, c3
    # Blocks in the inner loop: each instruction does several of them.
    for _ in range(philox._ROUNDS):
        for index in range(out.shape[1]):
            high0, low0 = _product(out[0, index], philox._MULTIPLIER_0)
            high1, low1 = _product(out[2, index], philox._MULTIPLIER_1)
            out[0, index], out[1, index] = high1 ^ out[1, index] ^ seed, low1
            out[2, index], out[3, index] = high0 ^ out[3, index] ^ party, low0
        seed += philox._WEYL_0
        party += philox._WEYL_1


@_inlined
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


@_inlined
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


@_compiled
def draw_noise(
    seed: Any, counter: tuple[Any, Any], path: IntArray, round_: int, out: Array, first: int, last: int
) -> None:
    """Write into out[k] (features,) the normals that the seeded sampler has for party path[k] in round round_ + k."""
    features = out.shape[1]
    words = np.empty((4, (features + 3) // 4), dtype=np.uint64)
    normals = np.empty((words.shape[1], 4))
    flat = normals.reshape(4 * words.shape[1])
    for k in range(first, last):
        c3 = counter[1] | np.uint64(philox.GAUSSIAN)
        _words(np.uint64(round_ + k), counter[0], c3, seed, np.uint64(path[k]), words)
        for i in range(words.shape[1]):
            normals[i, 0], normals[i, 1] = _normals(words[0, i], words[1, i])
            normals[i, 2], normals[i, 3] = _normals(words[2, i], words[3, i])
        for j in range(features):
            out[k, j] = flat[j]


# --- the prox of one record -----------------------------------------------------------------------------------------


@_inlined
def _prox_slope(kind: int, parameter: float, point: float, step: float, target: float) -> float:
    """The slope g of the loss at point - step * g."""
    if kind == LOGISTIC:
        return -target * solve_sigmoid(-target * point, step)
    if kind == RESIDUAL:
        return min(max((point - target) / (1.0 + step), -parameter), parameter)
    if kind == HINGE:
        shortfall = max(0.0, 1.0 - target * point)
        width = max(shortfall, parameter + step)
        return -target * shortfall / width if width > 0.0 else 0.0
    residual = point - target
    residual -= min(max(residual, -parameter), parameter)
    width = max(abs(residual), step)
    return residual / width if width > 0.0 else 0.0


@_inlined
def _slope(kind: int, parameter: float, score: float, target: float) -> float:
    """The slope of a smooth loss."""
    if kind == LOGISTIC:
        return -target / (1.0 + math.exp(target * score))
    return _prox_slope(kind, parameter, score, 0.0, target)


@_inlined
def _valid(kind: int, parameter: float, target: float, slope: float) -> tuple[float, float]:
    """The interval of scores at which a number is a subgradient of a loss with kinks."""
    if kind == HINGE:
        lowest, highest = min(-target, 0.0), max(-target, 0.0)
        return (-np.inf if slope <= lowest else target), (np.inf if slope >= highest else target)
    left, right = target - parameter, target + parameter
    low = -np.inf if slope <= -1.0 else (left if slope <= 0.0 else right)
    high = np.inf if slope >= 1.0 else (right if slope >= 0.0 else left)
    return low, high


@_inlined
def _distance(
    loss: tuple[int, float, float],
    target: float,
    weight: float,
    norm: float,
    slope: float,
    score: float,
    lengths: tuple[float, float],
    features: int,
) -> float:
    """The certificate of `consenso.subproblems` for one record: how far x = v - weight * slope * row is from the prox.

    score: that of x. lengths: of x and of v.
    """
    kind, parameter, curvature = loss
    length, start = lengths
    rest = ROUNDING * (length + start + weight * norm * abs(slope))
    if curvature < np.inf:
        gap = _slope(kind, parameter, score, target) - slope
        return weight * norm * abs(gap) + rest + ROUNDING * math.sqrt(weight * curvature) * norm * length / 2
    slack = ROUNDING * (1 + math.sqrt(features) / 8) * norm * length
    low, high = _valid(kind, parameter, target, slope)
    room = min(score - low, high - score)
    if norm == 0.0 or room > ON_KINK * slack:
        return rest
    jump = 1.0 if kind == HINGE else 2.0
    weak = rest + math.sqrt(weight * jump * (max(-room, 0.0) + slack))
    kink = low if score - low <= high - score else high
    return min(weak, STRONG * ((abs(kink - score) + slack) / norm + rest))


@_summed
def _measure(rows: Any, i: int, v: Array) -> tuple[float, float]:
    """The score of v and its squared length."""
    score, square = 0.0, 0.0
    for j in range(v.size):
        score += rows[i, j] * v[j]
        square += v[j] * v[j]
    return score, square


@_summed
def _pull(rows: Any, i: int, pull: float, v: Array, z: Array, residual: Array) -> tuple[float, float, float]:
    """Write x - z with x = v - pull * row; the score of x and the squared lengths of x and of x - z."""
    score, square, moved = 0.0, 0.0, 0.0
    for j in range(v.size):
        x = v[j] - pull * rows[i, j]
        residual[j] = x - z[j]
        score += rows[i, j] * x
        square += x * x
        moved += residual[j] * residual[j]
    return score, square, moved


@_inlined
def _residual(
    rows: Any,
    i: int,
    target: float,
    weight: float,
    norm: float,
    loss: tuple[int, float, float],
    v: Array,
    z: Array,
    residual: Array,
) -> tuple[float, float]:
    """Write x - z with x = prox_{weight phi}(v); its length, and how far x may be from the exact prox."""
    start, v_square = _measure(rows, i, v)
    slope = _prox_slope(loss[0], loss[1], start, weight * norm * norm, target)
    score, x_square, moved = _pull(rows, i, weight * slope, v, z, residual)
    lengths = math.sqrt(x_square), math.sqrt(v_square)
    return math.sqrt(moved), _distance(loss, target, weight, norm, slope, score, lengths, v.size)


@intrinsic
def _fetch(typing_context: Any, table: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of an entry, without waiting for it."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(table)(context, builder, arguments[0])
        entry = cgutils.get_item_pointer(context, builder, table, array, arguments[1:])
        address, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(
            function, [builder.bitcast(entry, address), number(0), number(3), number(1)]
        )  # to read, keep, data
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp), emit


@_inlined
def _fetch_row(table: Any, path: IntArray, k: int) -> None:
    """Ask for the row of the party of round k: the walk jumps about in memory, but where to is known beforehand."""
    if k < path.size:
        for j in range(0, table.shape[1], LINE):
            _fetch(table, path[k], j)


# --- rounds ---------------------------------------------------------------------------------------------------------


@_inlined
def _shrunk(value: float, threshold: float, factor: float, low: float, high: float) -> float:
    """The regularizer's prox of one coordinate: soft threshold, shrinkage, box."""
    value -= min(max(value, -threshold), threshold)
    return min(max(value * factor, low), high)


@_compiled
def consensus_rounds(
    rows: Any,
    records: tuple[Array, Array, Array],
    loss: tuple[int, float, float],
    shrinkage: tuple[Array, Array, Array, Array],
    tolerance: float,
    clip: float,
    relaxation: float,
    path: IntArray,
    stds: Array,
    noise: Array,
    token: tuple[Array, Array],
    u: Array,
) -> int:
    """ConsensusADMM at the parties of `path`, in place; how many rounds were done before one that is not certified.

    records: targets, weights and norms of the rows. loss: kind, parameter, largest curvature. token: mean and z.
    """
    targets, weights, norms = records
    thresholds, factors, lows, highs = shrinkage
    mean, z = token
    v, residual = np.empty_like(z), np.empty_like(z)
    share = 1.0 / u.shape[0]
    for k in range(path.size):
        i = path[k]
        _fetch_row(rows, path, k + FETCH)
        _fetch_row(u, path, k + FETCH)
        for j in range(z.size):
            v[j] = 2 * z[j] - u[i, j]
        length, distance = _residual(rows, i, targets[i], weights[i], norms[i], loss, v, z, residual)
        if not (distance <= tolerance and length < np.inf):  # nor is what is not a number certified
            return k
        kept = 1.0 if length <= clip else clip / length
        for j in range(z.size):
            increment = 2 * relaxation * (kept * residual[j] + stds[k] * noise[k, j])
            u[i, j] += increment
            mean[j] += share * increment
            z[j] = _shrunk(mean[j], thresholds[j], factors[j], lows[j], highs[j])
    return path.size


@_compiled
def stateless_rounds(
    rows: Any,
    records: tuple[Array, Array, Array],
    loss: tuple[int, float, float],
    shrinkage: tuple[Array, Array, Array, Array],
    tolerance: float,
    share: float,
    path: IntArray,
    stds: Array,
    noise: Array,
    z: Array,
) -> int:
    """StatelessWalk at the parties of `path`, in place; share = 2 relaxation / parties."""
    targets, weights, norms = records
    thresholds, factors, lows, highs = shrinkage
    residual = np.empty_like(z)
    for k in range(path.size):
        i = path[k]
        _fetch_row(rows, path, k + FETCH)
        length, distance = _residual(rows, i, targets[i], weights[i], norms[i], loss, z, z, residual)
        if not (distance <= tolerance and length < np.inf):  # nor is what is not a number certified
            return k
        for j in range(z.size):
            moved = z[j] + share * (residual[j] + stds[k] * noise[k, j])
            z[j] = _shrunk(moved, thresholds[j], factors[j], lows[j], highs[j])
    return path.size
