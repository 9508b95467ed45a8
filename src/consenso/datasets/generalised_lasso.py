"""Generalised Lasso of Chan, Xie and Zhao: minimise |A x - b|^2 / (2 rows) + strength |D x|_1.

Reference: T.-H. H. Chan, H. Xie, M. Zhao, "Privacy amplification by iteration for ADMM with (strongly) convex
objective functions", 2023, arXiv:2312.08685. The paper states no data: here x is a step function, so D takes first
differences and D x is sparse, which is the fused Lasso.
"""

from __future__ import annotations

import numpy as np

from consenso.datasets.description import Dataset, Description
from consenso.errors import InputError

DESCRIPTION = Description(
    name="generalised_lasso",
    title="Generalised Lasso: a step function seen through random rows",
    task="regression",
    rows=500,
    test_rows=500,
    features=50,
    licence="generated; no terms",
    origin="chosen for T.-H. H. Chan, H. Xie, M. Zhao, 2023, which states no data",
    notes="Rows have norm 1. `structure` is D, the first differences; `truth` steps at random places.",
)


def make_generalised_lasso(
    *,
    seed: int,
    records: int = 500,
    test_records: int = 500,
    features: int = 50,
    pieces: int = 5,
    noise: float = 0.1,
) -> Dataset:
    """Rows on the unit sphere, a step function with `pieces` levels from a standard Gaussian, and D = differences.

    `noise` is the standard deviation of label noise; `structure` is D with shape (features - 1, features).
    """
    if not 1 <= pieces <= features:
        raise InputError(
            f"make_generalised_lasso(pieces={pieces}): pieces lie in 1..{features}, the number of features."
        )
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(records + test_records, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    jumps = np.sort(rng.choice(np.arange(1, features), size=pieces - 1, replace=False))
    lengths = np.diff(np.concatenate([[0], jumps, [features]]))
    truth = np.repeat(rng.normal(size=pieces), lengths)
    y = X @ truth + noise * rng.normal(size=records + test_records)
    return Dataset(
        description=DESCRIPTION,
        X=X[:records],
        y=y[:records],
        X_test=X[records:],
        y_test=y[records:],
        names=tuple(f"x{position}" for position in range(features)),
        truth=truth,
        structure=np.diff(np.eye(features), axis=0),
    )
