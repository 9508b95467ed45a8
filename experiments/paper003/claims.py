"""Noise scale and privacy as printed by Ryu and Kim. For comparison only: the scale depends on the private records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def printed_scale(rows: NDArray[np.float64], residuals: NDArray[np.float64], *, epsilon: float) -> float:
    """Equation (20): Laplace scale from the largest record of rows (I, J) with residuals h - y (I, K)."""
    norms = np.abs(rows).sum(axis=1) * np.abs(residuals).sum(axis=1)  # 1-norm of the outer product
    return float(norms.max() / (len(rows) * epsilon))


def printed_iteration_epsilon(epsilon: float) -> float:
    """What is claimed of every iteration; the paper claims nothing of a run."""
    return epsilon
