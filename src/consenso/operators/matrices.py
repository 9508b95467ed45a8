"""Public matrices, dense, sparse or given by their products, with certified singular values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError
from consenso.metric import Metric

# Singular values are computed from the dense matrix: 1 GB of it at most.
LARGEST = 1 << 27


class Proximable(Protocol):
    """A convex function with a prox. Every regularizer is one."""

    @property
    def strong_convexity(self) -> float:
        """The largest known m for which the function minus m/2 |x|^2 is convex."""
        ...

    def prox(self, v: Array, step: float) -> Array:
        """The minimiser of step * f(x) + |x - v|^2 / 2."""
        ...


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x -> A x, for A (rows, columns) an array, a scipy sparse matrix or a scipy LinearOperator.

    Two maps with the same entries have the same `repr`, so that a plan is known by what it computes.
    """

    matrix: Any = field(repr=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        matrix = self.matrix
        if sparse.issparse(matrix):
            matrix = sparse.csr_array(matrix, dtype=np.float64)
        elif not isinstance(matrix, LinearOperator):
            matrix = np.array(matrix, dtype=np.float64)
        if len(matrix.shape) != 2 or 0 in matrix.shape or matrix.shape[0] * matrix.shape[1] > LARGEST:
            raise InputError(
                f"LinearMap of shape {matrix.shape}: a matrix of rows and columns with at most {LARGEST} entries is "
                "needed, since its singular values are computed; split the problem otherwise."
            )
        object.__setattr__(self, "matrix", matrix)
        if not np.isfinite(self.dense).all():
            raise InputError("LinearMap: the matrix has entries that are not finite; give finite numbers.")
        if isinstance(matrix, LinearOperator):
            _check_adjoint(matrix, self.dense)
        content = str(matrix.shape).encode() + np.ascontiguousarray(self.dense).tobytes()
        object.__setattr__(self, "digest", hashlib.sha256(content).hexdigest()[:16])

    @property
    def dense(self) -> Array:
        """The entries (rows, columns)."""
        if sparse.issparse(self.matrix):
            return np.asarray(self.matrix.toarray())
        if isinstance(self.matrix, LinearOperator):
            return np.asarray(self.matrix @ np.eye(self.columns), dtype=np.float64)
        return np.asarray(self.matrix)

    @property
    def rows(self) -> int:
        """Length of A x."""
        return int(self.matrix.shape[0])

    @property
    def columns(self) -> int:
        return int(self.matrix.shape[1])

    def apply(self, x: Array) -> Array:
        """A x."""
        return np.asarray(self.matrix @ x, dtype=np.float64)

    def adjoint(self, y: Array) -> Array:
        """A' y."""
        return np.asarray(self.matrix.T @ y, dtype=np.float64)

    @cached_property
    def opposite(self) -> LinearMap:
        """The map x -> -A x."""
        return LinearMap(-self.matrix)

    @cached_property
    def _range(self) -> tuple[float, float]:
        values = np.linalg.svd(self.dense, compute_uv=False)
        # The error of a computed singular value; a value below it is the zero of a rank-deficient matrix.
        slack = float(values[0]) * max(self.rows, self.columns) * float(np.finfo(np.float64).eps)
        smallest = float(values[-1]) - slack if self.rows >= self.columns else 0.0
        return max(0.0, smallest), float(values[0]) + slack

    @property
    def smallest(self) -> float:
        """At most the smallest singular value; positive exactly when A is seen to be injective."""
        return self._range[0]

    @property
    def largest(self) -> float:
        """At least the largest singular value."""
        return self._range[1]

    @cached_property
    def smallest_transposed(self) -> float:
        """At most the smallest singular value of A'; positive exactly when A is seen to be surjective."""
        return self.smallest if self.rows == self.columns else LinearMap(self.dense.T).smallest

    @cached_property
    def squared_scale(self) -> float | None:
        """The s for which A'A = s I exactly; None for all other matrices."""
        gram = self._gram
        scale = float(gram[0, 0])
        return scale if scale > 0 and np.array_equal(gram, scale * np.eye(self.columns)) else None

    @cached_property
    def _gram(self) -> Array:
        dense = self.dense
        return dense.T @ dense

    @cached_property
    def _metric(self) -> Metric:
        values, vectors = np.linalg.eigh(self._gram)
        return Metric(vectors, values)

    def solve(self, y: Array) -> Array:
        """The x with the least |A x - y|."""
        return self._metric.apply(self.adjoint(y), -1.0)

    def argmin(self, function: Proximable, v: Array, step: float) -> Array:
        """argmin_x f(x) + |A x - v|^2 / (2 step), for an injective A and a public f."""
        if self.squared_scale is not None:
            return function.prox(self.adjoint(v) / self.squared_scale, step / self.squared_scale)
        if self.smallest == 0.0:
            raise InputError(f"{self!r}.argmin: the matrix must have full column rank; use another splitting.")
        return self._metric.prox(function, self.solve(v), step)  # type: ignore[arg-type]


def require_injective(linear: LinearMap, needed_by: str) -> float:
    """The smallest singular value, or a PreconditionError that says who needs it to be positive."""
    if linear.smallest == 0.0:
        raise PreconditionError(
            f"{needed_by}: the matrix of shape {linear.rows} x {linear.columns} must have full column rank, because "
            "otherwise one unit moves A x without bound; add rows, for instance an identity, or split differently."
        )
    return linear.smallest


def _check_adjoint(matrix: LinearOperator, dense: Array) -> None:
    """Certificates of private argmins rest on A', so an operator's own is compared with its columns."""
    try:
        transposed = np.asarray(matrix.T @ np.eye(matrix.shape[0]))
    except (NotImplementedError, TypeError):  # scipy raises either where there is none
        transposed = None
    if transposed is None or not np.allclose(transposed, dense.T, rtol=1e-10, atol=1e-12 * np.abs(dense).max()):
        raise InputError(
            "LinearMap(LinearOperator): its rmatvec must be the transpose of its matvec, and is missing or another; "
            "give a right one, or a dense or sparse matrix."
        )
