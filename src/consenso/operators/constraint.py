"""The constraint A x + B y = c of gradient ADMM, with B = -diag(scaling), and what follows from it alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.operators.blocks import is_separable
from consenso.operators.matrices import LinearMap
from consenso.regularizers import Regularizer


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A x - scaling * y = constant. Without `left` A is the identity and y a copy of x."""

    left: Any | None = None  # array, sparse matrix or LinearMap; kept as a LinearMap
    scaling: tuple[float, ...] | None = None
    constant: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.left is None:
            if self.scaling is not None or self.constant is not None:
                raise InputError(
                    "Constraint(left=None, scaling=..., constant=...): without a matrix y is a copy of x; give `left`, "
                    "or leave the others out."
                )
            return
        left = self.left if isinstance(self.left, LinearMap) else LinearMap(self.left)
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
        """Whether the prox of g can be taken in the coordinates of y with their scalings."""
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
        y = self._prox(g, (image - dual / penalty) / self._scaling, penalty)
        return y, dual - penalty * (image - self._scaling * y)

    def offset(self, y: Array) -> Array:
        """What A x is to be: c - B y."""
        moved: Array = self._constant + self._scaling * y
        return moved

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
