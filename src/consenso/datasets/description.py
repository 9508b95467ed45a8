"""What is known of a data set before it is loaded, and what a loader returns."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, Literal

from consenso.arrays import Array, IntArray
from consenso.errors import InputError


@dataclass(frozen=True, kw_only=True)
class File:
    """A file by content: it is accepted under its name when its SHA-256 is this one.

    `url` serves exactly these bytes; None means that they are not served anywhere in this form.
    """

    name: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One file that a loader needs, in the forms in which it accepts it; the first is looked for first."""

    forms: tuple[File, ...]


@dataclass(frozen=True, kw_only=True)
class Description:
    """A data set: sizes as its loader returns them by default, licence, origin, and what to know before using it."""

    name: str
    title: str
    task: Literal["binary", "multiclass", "regression"]
    rows: int
    test_rows: int
    features: int
    licence: str
    origin: str
    notes: str
    resources: tuple[Resource, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Rows and targets, ready for a Problem.

    X: (rows, features), dense or SciPy CSR. y: (rows,), -1.0 and +1.0, class indices (int64) or real numbers.
    X_test, y_test: the test part that belongs to the data set, else None.
    names: a name for each feature.
    users, users_test: (rows,) the writer or node of each record, where the data set has them.
    truth: (features,) the model that generated y, and `structure`: (k, features) the matrix of a generalised Lasso,
    both for synthetic data only.
    """

    description: Description
    X: Any = field(repr=False)
    y: Any = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    X_test: Any = field(default=None, repr=False)
    y_test: Any = field(default=None, repr=False)
    users: IntArray | None = field(default=None, repr=False)
    users_test: IntArray | None = field(default=None, repr=False)
    truth: Array | None = field(default=None, repr=False)
    structure: Array | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The name in the catalogue."""
        return self.description.name

    @property
    def licence(self) -> str:
        """The terms of the data, as far as known."""
        return self.description.licence

    @property
    def notes(self) -> str:
        """What to know before using it."""
        return self.description.notes

    def frame(self) -> tuple[Any, Any]:
        """The rows as a frame of pandas, or of Polars where that is not there, with a name for each column; and y."""
        rows = self.X.toarray() if hasattr(self.X, "toarray") else self.X
        for library in ("pandas", "polars"):
            try:
                frames = importlib.import_module(library)
            except ImportError:
                continue
            return frames.DataFrame(dict(zip(self.names, rows.T, strict=True))), self.y
        raise InputError("Dataset.frame: neither pandas nor Polars is installed; run `pip install consenso[data]`.")
