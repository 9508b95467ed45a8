"""Diabetes progression after one year, as scikit-learn carries it."""

from __future__ import annotations

import numpy as np

from consenso.datasets.description import Dataset, Description

DESCRIPTION = Description(
    name="diabetes",
    title="Diabetes: progression of the disease after one year",
    task="regression",
    rows=442,
    test_rows=0,
    features=10,
    licence="none stated (Efron, Hastie, Johnstone, Tibshirani 2004); package BSD-3",
    origin="scikit-learn, sklearn.datasets.load_diabetes",
    notes=(
        "scikit-learn centres the features and scales them to unit length by the data, which is not private; "
        "scaled=False gives raw measurements."
    ),
)


def load_diabetes(*, scaled: bool = True) -> Dataset:
    """Diabetes; with `scaled` the features are centred and of unit length, which used the data: NOT PRIVATE."""
    from sklearn import datasets

    bunch = datasets.load_diabetes(scaled=scaled)
    return Dataset(
        description=DESCRIPTION,
        X=bunch.data,
        y=bunch.target.astype(np.float64),
        names=tuple(bunch.feature_names),
    )
