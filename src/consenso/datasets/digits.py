"""Optical digits of 8 x 8 cells, as scikit-learn carries them."""

from __future__ import annotations

import numpy as np

from consenso.datasets.description import Dataset, Description

DESCRIPTION = Description(
    name="digits",
    title="Optical digits: 8 x 8 cells, 10 classes",
    task="multiclass",
    rows=1_797,
    test_rows=0,
    features=64,
    licence="CC BY 4.0 (UCI Machine Learning Repository), as far as known; package BSD-3",
    origin="scikit-learn, sklearn.datasets.load_digits (E. Alpaydin, C. Kaynak, 1998; the test part of the UCI set)",
    notes="Cells count 0 to 16 dark pixels, a public range, and are divided by 16.",
)


def load_digits() -> Dataset:
    """Digits with features within [0, 1]; y is the digit."""
    from sklearn import datasets

    bunch = datasets.load_digits()
    return Dataset(
        description=DESCRIPTION,
        X=bunch.data / 16.0,
        y=bunch.target.astype(np.int64),
        names=tuple(str(name) for name in bunch.feature_names),
    )
