"""The constraint A x + B y = c of gradient ADMM, and what follows from it alone.

B is -diag(scaling) or any matrix `right` of full column rank. The y that minimises

    g(y) - <dual, B y> + penalty/2 |A x + B y - c|^2

is in closed form where g is quadratic, or where the columns of B are orthogonal: then it is a prox, in each coordinate
with the square of its column's length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.operators.blocks import is_separable
from consenso.operators.matrices import LinearMap
from consenso.regularizers import L2, NoPenalty, Regularizer


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A x - scaling * y = constant, or A x + B y = constant. Without `left` A is the identity and y a copy of x."""

    left: Any | None = None  # array, sparse matrix or LinearMap; kept as a LinearMap
    scaling: tuple[float, ...] | None = None
    constant: tuple[float, ...] | None = None
    right: Any | None = None  # B, in place of -diag(scaling)

    def __post_init__(self) -> None:
        if self.left is None:
            if (self.scaling, self.constant, self.right) != (None, None, None):
                raise InputError(
                    "Constraint(left=None, scaling=..., constant=...): without a matrix y is a copy of x; give `left`, "
                    "or leave the others out."
                )
            return
        left = self.left if isinstance(self.left, LinearMap) else LinearMap(self.left)
        self._check_right(left)
        scaling = (1.0,) * left.rows if self.scaling is None else tuple(float(entry) for entry in self.scaling)
        constant = (0.0,) * left.rows if self.constant is None else tuple(float(entry) for entry in self.constant)
        for name, value in (("left", left), ("scaling", scaling), ("constant", constant)):
            object.__setattr__(self, name, value)
        if not len(scaling) == len(constant) == left.rows:
            raise InputError(
                f"Constraint(scaling=..., constant=...): both have one entry for each of the {left.rows} rows of "
                f"`left`, and {len(scaling)} and {len(constant)} were given."
            )
        if not (np.isfinite(scaling).all() and np.isfinite(constant).all() and np.all(scaling)):
            raise InputError("Constraint(scaling=..., constant=...): all are finite and no scaling is 0.")

    def _check_right(self, left: LinearMap) -> None:
        if self.right is None:
            return
        right = self.right if isinstance(self.right, LinearMap) else LinearMap(self.right)
        object.__setattr__(self, "right", right)
        if self.scaling is not None and set(self.scaling) != {1.0}:
            raise InputError(
                "Constraint(scaling=..., right=...): B is either -diag(scaling) or `right`; give one of them."
            )
        if right.rows != left.rows or right.smallest == 0:
            raise InputError(
                f"Constraint(right=... of {right.rows} rows and {right.columns} columns): it has one row for each of "
                f"the {left.rows} rows of `left` and full column rank, so that y is unique; drop dependent columns."
            )

    @classmethod
    def independent(cls, left: Any, right: Any, constant: Any = None) -> Constraint:
        """A x + B y = c without the rows of (A B) that depend on others, which say nothing new."""
        A, B = np.atleast_2d(np.asarray(left, float)), np.atleast_2d(np.asarray(right, float))
        c = np.zeros(len(A)) if constant is None else np.asarray(constant, float)
        if not len(A) == len(B) == len(c):
            raise InputError(
                f"Constraint.independent: `left`, `right` and `constant` have {len(A)}, {len(B)} and {len(c)} rows; "
                "one each for every equation is needed."
            )
        whole = np.hstack([A, B])
        _, triangle, order = scipy.linalg.qr(whole.T, mode="economic", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        rank = int((sizes > 1e-12 * sizes[0]).sum())
        kept = np.sort(order[:rank])
        solution = np.linalg.lstsq(whole[kept], c[kept], rcond=None)[0]
        if not np.allclose(whole @ solution, c, rtol=1e-9, atol=1e-9 * (1 + np.abs(c).max())):
            raise InputError(
                "Constraint.independent(constant=...): equations with the same left side have different constants, so "
                "that nothing satisfies them; correct `constant`."
            )
        return cls(left=A[kept], right=B[kept], constant=tuple(c[kept].tolist()))

    @property
    def is_copy(self) -> bool:
        """Whether y is a copy of x."""
        return self.left is None

    def rows(self, dim: int) -> int:
        """Length of the dual, for a model of length `dim`."""
        return dim if self.left is None else int(self.left.rows)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest singular value of A', 0 unless A has full row rank, and the largest of A."""
        return (1.0, 1.0) if self.left is None else (self.left.smallest_transposed, self.left.largest)

    @property
    def injectivity(self) -> float:
        """The smallest singular value of A, 0 if A has a kernel."""
        return 1.0 if self.left is None else float(self.left.smallest)

    def fits(self, g: Regularizer) -> bool:
        """Whether the y of an iterate is in closed form."""
        if self.right is not None:
            weights = self._squares
            equal = np.allclose(weights, weights[0], rtol=1e-12)
            orthogonal = np.allclose(self._gram, np.diag(weights), rtol=0, atol=1e-12 * weights.max())
            return isinstance(g, NoPenalty | L2) or (orthogonal and (equal or is_separable(g, (1,) * len(weights))))
        return len(set(self.scaling or ())) <= 1 or is_separable(g, (1,) * len(self.scaling or ()))

    def apply(self, x: Array) -> Array:
        """A x."""
        return x if self.left is None else self.left.apply(x)

    def adjoint(self, y: Array) -> Array:
        """A' y."""
        return y if self.left is None else self.left.adjoint(y)

    def solve(self, v: Array, curvature: float) -> Array:
        """(I + curvature A'A)^-1 v, along the last axis."""
        if self.left is None:
            return v / (1 + curvature)
        values, vectors = self._spectrum
        solved: Array = (v @ vectors / (1 + curvature * values)) @ vectors.T
        return solved

    def split(self, g: Regularizer, x: Array, dual: Array, penalty: float) -> tuple[Array, Array]:
        """The y that minimises g(y) - <dual, B y> + penalty/2 |A x + B y - c|^2, and dual - penalty (A x + B y - c)."""
        image = self.apply(x) - self._constant
        if self.right is not None:
            y = self._closest(g, dual / penalty - image, penalty)
            return y, dual - penalty * (image + self.right.apply(y))
        y = self._prox(g, (image - dual / penalty) / self._scaling, penalty)
        return y, dual - penalty * (image - self._scaling * y)

    def offset(self, y: Array) -> Array:
        """What A x is to be: c - B y."""
        moved: Array = (
            self._constant + self._scaling * y if self.right is None else self._constant - self.right.apply(y)
        )
        return moved

    def _closest(self, g: Regularizer, target: Array, penalty: float) -> Array:
        """The y that minimises g(y) + penalty/2 |B y - target|^2."""
        assert self.right is not None
        point: Array = self.right.adjoint(target)
        if isinstance(g, NoPenalty | L2):
            system = penalty * self._gram + g.strong_convexity * np.eye(len(self._gram))
            solved: Array = np.asarray(np.linalg.solve(system, penalty * point), dtype=np.float64)
            return solved
        y = np.empty_like(point)
        for weight in dict.fromkeys(self._squares.tolist()):
            alike = self._squares == weight
            y[alike] = g.prox(point[alike] / weight, 1 / (penalty * weight))
        return y

    def _prox(self, g: Regularizer, point: Array, penalty: float) -> Array:
        """prox_{g/(penalty scaling^2)}, of each group of coordinates that have their scaling in common."""
        scalings = set(self.scaling or (1.0,))
        if len(scalings) == 1:
            return g.prox(point, 1 / (penalty * scalings.pop() ** 2))
        y = np.empty_like(point)
        for scaling in scalings:
            alike = self._scaling == scaling
            y[alike] = g.prox(point[alike], 1 / (penalty * scaling**2))
        return y

    @cached_property
    def _gram(self) -> Array:
        """B'B."""
        assert self.right is not None
        gram: Array = self.right.dense.T @ self.right.dense
        return gram

    @cached_property
    def _squares(self) -> Array:
        """Squared lengths of the columns of B, those that differ by rounding made the same."""
        squares = np.diag(self._gram)
        alike: Array = np.array([squares[np.isclose(squares, each, rtol=1e-12)][0] for each in squares])
        return alike

    @cached_property
    def _scaling(self) -> Array:
        return np.array(1.0 if self.scaling is None else self.scaling)

    @cached_property
    def _constant(self) -> Array:
        return np.array(0.0 if self.constant is None else self.constant)

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of A'A."""
        assert self.left is not None
        dense = self.left.dense
        values, vectors = np.linalg.eigh(dense.T @ dense)
        return np.maximum(values, 0.0), vectors
