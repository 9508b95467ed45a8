"""Breast cancer Wisconsin (diagnostic), as scikit-learn carries it."""

from __future__ import annotations

import numpy as np

from consenso.datasets.description import Dataset, Description

DESCRIPTION = Description(
    name="breast_cancer",
    title="Breast cancer Wisconsin: benign or malignant, from images of cell nuclei",
    task="binary",
    rows=569,
    test_rows=0,
    features=30,
    licence="CC BY 4.0 (UCI Machine Learning Repository), as far as known; package BSD-3",
    origin="scikit-learn, sklearn.datasets.load_breast_cancer (W. Wolberg, N. Street, O. Mangasarian, 1995)",
    notes="Raw measurements; state public ranges before private use. +1 is benign, as in scikit-learn.",
)


def load_breast_cancer() -> Dataset:
    """Breast cancer with raw measurements; y is +1 for benign and -1 for malignant."""
    from sklearn import datasets

    bunch = datasets.load_breast_cancer()
    y = np.where(bunch.target == 1, 1.0, -1.0)
    return Dataset(description=DESCRIPTION, X=bunch.data, y=y, names=tuple(str(name) for name in bunch.feature_names))
