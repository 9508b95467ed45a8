"""a9a and California housing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from consenso.datasets import load_a9a, load_california_housing
from consenso.datasets.california_housing import TARGET_BOUND
from consenso.errors import InputError


def test_a9a(data_dir: Path) -> None:
    data = load_a9a(data_dir)
    assert data.X.format == "csr"
    assert set(np.unique(data.X.data)) == {1.0}
    assert (data.y > 0).sum() == 7_841
    assert (data.y_test > 0).sum() == 3_846
    assert data.X_test[:, 122].nnz == 0


def test_california_housing(data_dir: Path) -> None:
    raw = load_california_housing(data_dir, preprocessing="raw")
    assert raw.X.shape == (20_640, 13)
    assert raw.X_test is None
    bedrooms = raw.names.index("total_bedrooms")
    assert np.isnan(raw.X[:, bedrooms]).sum() == 207
    assert not np.isnan(np.delete(raw.X, bedrooms, axis=1)).any()
    public = load_california_housing(data_dir)
    assert public.names == raw.names
    assert public.X.min() == 0
    assert public.X.max() == 1
    assert (public.X[np.isnan(raw.X)] == 0.5).all()
    np.testing.assert_array_equal(public.X[:, 8:].sum(axis=1), 1)
    assert public.y.min() > 0
    assert public.y.max() == TARGET_BOUND
    # Clipping counts to public ranges keeps what a linear model can learn: R^2 on raw columns is 0.64.
    model = LinearRegression().fit(public.X, public.y)
    assert model.score(public.X, public.y) > 0.6


def test_unknown_preprocessing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="choose 'public' or 'raw'"):
        load_california_housing(tmp_path, preprocessing="scaled")  # type: ignore[arg-type]
