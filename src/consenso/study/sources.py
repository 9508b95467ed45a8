"""The records of a study: read through the public schema, or from the catalogue. Everything returned here is private.

What is made of a record depends on the record and on public facts alone.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import IntArray
from consenso.errors import InputError
from consenso.shards.constant import constant_for, with_constant
from consenso.study.data import DataSection
from consenso.study.model import ModelSection


class Records(NamedTuple):
    """Rows of features, targets as the loss takes them, and whose they are where the data say."""

    X: Any
    y: NDArray[Any]
    users: NDArray[Any] | None

    def take(self, rows: IntArray) -> Records:
        return Records(self.X[rows], self.y[rows], None if self.users is None else self.users[rows])


@lru_cache(maxsize=2)
def _load(name: str, seed: int) -> Any:
    from consenso import datasets

    maker: Any = getattr(datasets, f"load_{name}", None)
    return maker() if maker is not None else getattr(datasets, f"make_{name}")(seed=seed)


def load_catalogued(data: DataSection) -> Any:
    """The data set of the catalogue, loaded once."""
    return _load(str(data.dataset), data.seed)


def training_records(data: DataSection) -> Records:
    """All records of a catalogued set's training part."""
    loaded, rows = load_catalogued(data), data.public_rows
    users = None if loaded.users is None else loaded.users[:rows]
    return Records(loaded.X[:rows], code_targets(data, loaded.y[:rows]), users)


def evaluation_records(data: DataSection, folder: Path) -> Records | None:
    """The public test part: its file, the part that belongs to the set, or the records that were held out."""
    if data.test is not None:
        return file_records(data, folder / data.test)
    if data.dataset is None:
        return None
    loaded = load_catalogued(data)
    if data.holdout:
        X, y = loaded.X[-data.holdout :], loaded.y[-data.holdout :]
    elif loaded.X_test is not None:
        X, y = loaded.X_test, loaded.y_test
    else:
        return None
    return Records(X, code_targets(data, y), None)


def file_records(data: DataSection, path: Path) -> Records:
    """The records of a file, mapped by the schema."""
    assert data.schema is not None
    X, y, users = data.schema.require_public().without_intercept().read(path)
    if y is None or not len(y):
        raise InputError(f"{path}: no record is left to learn from; check the file and the rules for missing values.")
    return Records(X, code_targets(data, y), users)


def model_rows(X: Any, data: DataSection, model: ModelSection) -> Any:
    """Rows as the problem takes them: within the bound, with the constant column if the model has an intercept."""
    if not model.intercept:
        return X
    return with_constant(X, data.bound, constant_for(data.bound), "records")


def code_targets(data: DataSection, y: NDArray[Any]) -> NDArray[Any]:
    """Targets as the loss takes them: +1 for the positive classes where some are named."""
    if not data.positive:
        return y
    classes = data.raw_classes
    assert classes is not None
    # Two classes are -1 and +1 in their order, more are numbered.
    places = ((y + 1) / 2).astype(np.int64) if len(classes) == 2 else y.astype(np.int64)
    chosen = np.isin(np.asarray(classes), np.asarray(data.positive))
    coded: NDArray[Any] = np.where(chosen[places], 1.0, -1.0)
    return coded
