"""Proxes of a regularizer in the metric of a symmetric matrix: public computations on public matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.regularizers import NoPenalty, Regularizer


@dataclass(frozen=True, eq=False)
class Metric:
    """A symmetric positive definite matrix over features, V diag(values) V', shared by all outputs of a model."""

    vectors: Array  # (features, features)
    values: Array  # (features,)

    def apply(self, x: Array, power: float) -> Array:
        """The matrix to a power, times a flat model (features * outputs,)."""
        table = x.reshape(len(self.values), -1)
        product: Array = self.vectors @ (self.values[:, None] ** power * (self.vectors.T @ table))
        return product.ravel()

    def prox(self, regularizer: Regularizer, v: Array, step: float, *, tolerance: float = 1e-10) -> Array:
        """argmin_x r(x) + (x - v)' Q (x - v) / (2 step), by ADMM on the split x = y with Q kept diagonal."""
        if isinstance(regularizer, NoPenalty):
            return v
        curvature = self.values / step
        penalty = float(np.sqrt(curvature.min() * curvature.max()))
        outputs = v.size // len(self.values)
        target = curvature[:, None] * (self.vectors.T @ v.reshape(-1, outputs))
        y = regularizer.prox(v, 1.0 / penalty)
        dual = np.zeros_like(v)
        for _ in range(2000):
            pull = target + penalty * (self.vectors.T @ (y - dual).reshape(-1, outputs))
            x = (self.vectors @ (pull / (curvature[:, None] + penalty))).ravel()
            before, y = y, regularizer.prox(x + dual, 1.0 / penalty)
            dual = dual + x - y
            size = 1.0 + float(np.abs(y).max())
            if max(np.abs(x - y).max(), np.abs(y - before).max()) <= tolerance * size:
                break
        return y
