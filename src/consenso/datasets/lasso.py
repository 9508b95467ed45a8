"""Sparse regression of Cyffers, Bellet and Basu: as their text describes it, and as their public code draws it.

Reference: E. Cyffers, A. Bellet, D. Basu, "From noisy fixed-point iterations to private ADMM for centralized and
federated learning", ICML 2023, arXiv:2302.12559. The text puts the rows on the unit sphere; the code standardises
Gaussian rows, whose norm is then about the square root of their length, and splits 80/20. Both have label noise of
variance 0.01 and coefficients uniform on [0, 1] on a random support.
"""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array
from consenso.datasets.description import Dataset, Description
from consenso.errors import InputError

DESCRIPTION = Description(
    name="lasso",
    title="Sparse regression, standardised Gaussian rows (public code of Cyffers et al.)",
    task="regression",
    rows=800,
    test_rows=200,
    features=64,
    licence="generated; no terms",
    origin="law of the code of E. Cyffers, A. Bellet, D. Basu, ICML 2023; seed 18 is the paper's draw",
    notes="Columns are standardised by the data and row norms are about 8: clip or scale rows before private use.",
)
SPHERE = Description(
    name="sphere_lasso",
    title="Sparse regression, rows on the unit sphere (text of Cyffers et al.)",
    task="regression",
    rows=1_000,
    test_rows=1_000,
    features=64,
    licence="generated; no terms",
    origin="law of the text of E. Cyffers, A. Bellet, D. Basu, ICML 2023",
    notes="Rows have norm 1 by construction. The text states no law for the coefficients: uniform on [0, 1] here.",
)


def make_lasso(*, seed: int, records: int = 1000, features: int = 64, support: int = 8, noise: float = 0.1) -> Dataset:
    """Standardised Gaussian rows, 80 per cent for training; `noise` is the standard deviation of label noise."""
    from sklearn.model_selection import train_test_split

    _require_support("make_lasso", features, support)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(records, features))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    truth = _sparse(rng, features, support)
    y = X @ truth + noise * rng.normal(size=records)
    # The public code always splits with this seed, whatever the data.
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=0.8, random_state=42)
    return Dataset(
        description=DESCRIPTION,
        X=X_train,
        y=y_train,
        X_test=X_test,
        y_test=y_test,
        names=_names(features),
        truth=truth,
    )


def make_sphere_lasso(
    *,
    seed: int,
    records: int = 1000,
    test_records: int = 1000,
    features: int = 64,
    support: int = 8,
    noise: float = 0.1,
) -> Dataset:
    """Rows uniform on the unit sphere; `noise` is the standard deviation of label noise."""
    _require_support("make_sphere_lasso", features, support)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(records + test_records, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    truth = _sparse(rng, features, support)
    y = X @ truth + noise * rng.normal(size=records + test_records)
    return Dataset(
        description=SPHERE,
        X=X[:records],
        y=y[:records],
        X_test=X[records:],
        y_test=y[records:],
        names=_names(features),
        truth=truth,
    )


def _sparse(rng: np.random.Generator, features: int, support: int) -> Array:
    truth = np.zeros(features)
    # The places are drawn after the values, as in the public code, so that its seeds give its data.
    values = rng.uniform(size=support)
    truth[rng.choice(np.arange(features), replace=False, size=support)] = values
    return truth


def _names(features: int) -> tuple[str, ...]:
    return tuple(f"x{position}" for position in range(features))


def _require_support(maker: str, features: int, support: int) -> None:
    if not 1 <= support <= features:
        raise InputError(f"{maker}(support={support}): a support lies in 1..{features}, the number of features.")
