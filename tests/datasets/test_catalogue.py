"""The catalogue tells the truth about every loader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from consenso import datasets
from consenso.datasets import Dataset, catalogue, describe
from consenso.datasets.files import find
from consenso.errors import InputError

SMALL: dict[str, Callable[[], Dataset]] = {
    "breast_cancer": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
    "digits": datasets.load_digits,
    "generalised_lasso": lambda: datasets.make_generalised_lasso(seed=0),
    "graph": lambda: datasets.make_graph(seed=0),
    "lasso": lambda: datasets.make_lasso(seed=0),
    "sphere_lasso": lambda: datasets.make_sphere_lasso(seed=0),
}
FROM_FILES: dict[str, Callable[[Path], Dataset]] = {
    "a9a": datasets.load_a9a,
    "adult": datasets.load_adult,
    "california_housing": datasets.load_california_housing,
    "femnist": datasets.load_femnist,
    "mnist": datasets.load_mnist,
}


def check(loaded: Dataset, name: str) -> None:
    told = describe(name)
    assert loaded.description == told
    assert loaded.name == name
    assert loaded.licence
    assert loaded.notes
    assert loaded.X.shape == (told.rows, told.features)
    assert loaded.y.shape == (told.rows,)
    assert len(loaded.names) == told.features
    assert (loaded.X_test is None) == (told.test_rows == 0)
    if told.test_rows:
        assert loaded.X_test.shape == (told.test_rows, told.features)
        assert loaded.y_test.shape == (told.test_rows,)
    kinds = {"binary": np.float64, "multiclass": np.int64, "regression": np.float64}
    assert loaded.y.dtype == kinds[told.task]
    if told.task == "binary":
        assert set(np.unique(loaded.y)) == {-1.0, 1.0}
    # Arrays stay out of the representation.
    assert len(repr(loaded)) < 3000


def test_every_data_set_is_checked() -> None:
    assert set(catalogue()) == SMALL.keys() | FROM_FILES.keys()


@pytest.mark.parametrize("name", SMALL)
def test_small_sets(name: str) -> None:
    check(SMALL[name](), name)


@pytest.mark.parametrize("name", FROM_FILES)
def test_sets_from_files(name: str, data_dir: Path) -> None:
    check(FROM_FILES[name](data_dir), name)


def test_every_listed_file_is_there_with_its_checksum(data_dir: Path) -> None:
    for description in catalogue().values():
        for resource in description.resources:
            assert find(resource, folder=data_dir) is not None


def test_unknown_name() -> None:
    with pytest.raises(InputError, match="did you mean 'adult'"):
        describe("adlut")
    with pytest.raises(InputError, match="choose one of a9a"):
        describe("zzz")
