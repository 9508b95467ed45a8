"""Products of dense rows with a model in which no row depends on the others, to the last bit."""

from __future__ import annotations

import sys
from functools import lru_cache

import numpy as np

from consenso import whole_steps
from consenso.arrays import Array
from consenso.threads import run_in_threads

# Matrix products treat the last rows of a table apart unless their number is a multiple of this.
LANES = 8
MOST_AT_ONCE = 512
# What one of the products of `transform` takes.
NANOSECONDS = 0.07


def multiply(matrix: Array, x: Array) -> Array:
    """Rows times x (features,) or (features, outputs): what a row gives depends on that row only, to the last bit.

    Libraries for linear algebra have other kernels, with other roundings, for the edges of a table, and split products
    in other ways when they share them among threads. So every call has one shape, whatever the number of rows: the
    last rows are multiplied among rows of zeros, and columns of zeros fill up the outputs. Where a row still gives
    other bits in other places, rows are multiplied one by one.
    """
    rows, features = matrix.shape
    outputs = x.shape[1] if x.ndim == 2 else None
    length = rows_at_once(features, outputs)
    if not _is_the_same_everywhere(length, features, outputs):
        return _multiply_one_by_one(matrix, x)
    wide = x if outputs is None else _fill_up(x)
    whole = rows // length * length
    out = np.empty((rows, *wide.shape[1:]))
    np.matmul(matrix[:whole].reshape(-1, length, features), wide, out=out[:whole].reshape(-1, length, *wide.shape[1:]))
    if whole < rows:
        edge = np.zeros((length, features))
        edge[: rows - whole] = matrix[whole:]
        out[whole:] = np.matmul(edge, wide)[: rows - whole]
    return out if outputs is None else out[:, :outputs]


def transform(matrix: Array, x: Array) -> tuple[Array, Array]:
    """Rows times x (features, outputs), and their squared lengths: what a row gives depends on that row only.

    Products are added in the order of features, on every processor, for tables of any size and in any number of
    threads.
    """
    moved, squares = np.empty((len(matrix), x.shape[1])), np.empty(len(matrix))
    _transform(matrix, x, squares, moved)
    return moved, squares


def transformed_squares(matrix: Array, x: Array) -> Array:
    """The squared lengths of `transform`, without the rows that have them."""
    squares = np.empty(len(matrix))
    _transform(matrix, x, squares, np.empty((0, 0)))
    return squares


def _transform(matrix: Array, x: Array, squares: Array, moved: Array) -> None:
    features, outputs = x.shape
    loaded = "consenso.kernels.lanes" in sys.modules
    if matrix.size * outputs <= whole_steps.FEW_TRANSFORMED and not loaded:
        whole_steps.transform(matrix, x, squares, moved)
        return
    from consenso.kernels.lanes import dense_transform

    nanoseconds, matrix = NANOSECONDS * features * outputs, np.ascontiguousarray(matrix)
    run_in_threads(dense_transform, len(matrix), nanoseconds, matrix, split_columns(x), outputs, squares, moved)


def split_columns(x: Array) -> Array:
    """The columns of a matrix (features, outputs) as compiled loops take them, (panels, features, LANES).

    The last panel is filled up with zeros.
    """
    features, outputs = x.shape
    panels = -(-outputs // LANES)
    wide = np.zeros((features, panels * LANES))
    wide[:, :outputs] = x
    return np.ascontiguousarray(wide.reshape(features, panels, LANES).swapaxes(0, 1))


def _fill_up(x: Array) -> Array:
    """With columns of zeros, to a multiple of LANES where there are more than that."""
    missing = -x.shape[1] % LANES if x.shape[1] > LANES else 0
    if not missing:
        return x
    filled = np.zeros((len(x), x.shape[1] + missing))
    filled[:, : x.shape[1]] = x
    return filled


@lru_cache(maxsize=256)
def _is_the_same_everywhere(length: int, features: int, outputs: int | None) -> bool:
    """Whether a row gives the same bits wherever it stands among as many as are multiplied in one call.

    Kernels differ between processors and libraries, so this is asked where it matters. Additions in another order show
    in some of the numbers: of random rows and models, a third of them and more.
    """
    rng = np.random.default_rng(0)
    for _ in range(max(1, 32 // (outputs or 1))):
        x = rng.normal(size=features if outputs is None else (features, outputs))
        given = np.matmul(np.tile(rng.normal(size=features), (length, 1)), x if outputs is None else _fill_up(x))
        if np.any(given != given[0]):
            return False
    return True


def _multiply_one_by_one(matrix: Array, x: Array) -> Array:
    from consenso.kernels import products

    table = np.ascontiguousarray(x).reshape(1, matrix.shape[1], -1)
    out = np.empty((len(matrix), table.shape[2]))
    products.dense_scores_many(matrix, np.array([0, len(matrix)]), table, out, 0, 1)
    return out.reshape(len(matrix), *x.shape[1:])


def rows_at_once(features: int, outputs: int | None) -> int:
    """How many rows are multiplied in one call, a multiple of LANES; None for a vector.

    So few that one thread does it, as far as that is possible: OpenBLAS takes several from 2^18 products of a matrix
    on, and from 9,216 numbers that meet a vector. Square products are larger, and are not cut into pieces so small
    that threads spend their time waiting for each other.
    """
    width = features * (outputs or 1)
    alone = (1 << 13) // width if outputs is None else (1 << 18) // width
    if outputs is not None and alone < LANES:
        alone = (1 << 21) // features
    return min(max(alone // LANES, 1) * LANES, MOST_AT_ONCE)
