"""Rows and targets as scikit-learn checks them, in words that repeat no cell, and work on them that says nothing.

What scikit-learn says of a table quotes the cell that it could not convert, and NumPy warns of numbers that overflow:
both are facts about single records. So an error names the place of a cell and the rule, and warnings that depend on
what the cells hold are not given.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array, check_X_y, validate_data

from consenso.errors import InputError

_FLOATS = [np.float64, np.float32]


class CellError(InputError, TypeError):
    """A cell of a table is not a number."""


def read_rows(estimator: Any, X: Any, **checks: Any) -> Any:
    """Rows as a float array or csr, by scikit-learn's rules for an estimator."""
    _check_cells(X, f"{type(estimator).__name__}(X=...)")
    return validate_data(estimator, X, dtype=_FLOATS, **checks)


def read_records(estimator: Any, X: Any, y: Any, *, real: bool, reset: bool = True) -> tuple[Any, Any]:
    """Rows as a float array or csr, and targets: real numbers, or labels. reset: whether columns may be others."""
    owner = type(estimator).__name__
    _check_cells(X, f"{owner}.fit(X=...)")
    if real:
        _check_cells(y, f"{owner}.fit(y=...)")
    checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": _FLOATS, "order": "C", "y_numeric": real}
    X, y = validate_data(estimator, X, y, reset=reset, **checks)
    if not real:
        check_labels(owner, y)
    return X, np.asarray(y, dtype=np.float64) if real else y


def read_arrays(owner: str, X: Any, y: Any = None) -> tuple[Any, Any]:
    """Rows as a float array or csr, and real targets if there are any, of a function."""
    _check_cells(X, f"{owner}(X=...)")
    if y is None:
        return check_array(X, accept_sparse="csr", dtype=_FLOATS), None
    _check_cells(y, f"{owner}(y=...)")
    found: tuple[Any, Any] = check_X_y(X, y, accept_sparse="csr", dtype=_FLOATS, y_numeric=True)
    return found


def check_labels(owner: str, y: NDArray[Any]) -> None:
    """Labels are whole numbers, truth values or texts; the labels themselves stay out of the message."""
    fine = y.dtype.kind in "biuUT" or (y.dtype.kind == "f" and bool(np.all(y == np.floor(y))))
    if y.dtype.kind == "O":
        fine = all(isinstance(label, str) for label in y.tolist())
    if not fine:
        kind = "continuous" if y.dtype.kind == "f" else "unknown"
        raise InputError(
            f"{owner}.fit(y=...): Unknown label type: {kind}. Labels are whole numbers, truth values or texts, and "
            "some are not; a classifier tells classes apart, use a regressor for real targets."
        )


@contextmanager
def without_warnings(private: bool = True) -> Iterator[None]:
    """Give no warnings that depend on cells; what is said of the shape of y is passed on.

    A fit that is not private may warn.
    """
    if not private:
        yield
        return
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        yield
    for one in caught:
        if issubclass(one.category, DataConversionWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _check_cells(given: Any, where: str) -> None:
    """Refuse a table or a list with a cell that is no number, by its place."""
    for column, cells in _columns_of_objects(given):
        for row, cell in enumerate(cells):
            if not _is_number(cell):
                place = f"row {row}" if column is None else f"row {row}, column {column}"
                raise CellError(
                    f"{where}: {place} is not a number; an argument must be a number or a string that spells a number, "
                    "so encode categories as numbers first, and drop or impute records that lack one."
                )


def _columns_of_objects(given: Any) -> Iterator[tuple[int | None, Any]]:
    """The columns whose cells are not known to be numbers by their type; None for the only one of a list."""
    if given is None or sparse.issparse(given) or isinstance(given, str):
        return
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):
        for position, name in enumerate(given.columns):
            column = given[name]
            if str(getattr(column, "dtype", "")).lower().startswith(("object", "str", "categor", "enum")):
                yield position, column.to_list()
        return
    if getattr(getattr(given, "dtype", None), "kind", None) in ("b", "i", "u", "f", "c"):
        return
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths, which scikit-learn refuses by their shapes
        return
    if array.dtype.kind in "OUST" and array.ndim == 1:
        yield None, array.tolist()
    elif array.dtype.kind in "OUST" and array.ndim == 2:
        for position in range(array.shape[1]):
            yield position, array[:, position].tolist()


def _is_number(cell: Any) -> bool:
    if isinstance(cell, complex):
        return True  # refused by its type, not by its value
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return cell is None or _is_missing(cell)
    return True


def _is_missing(cell: Any) -> bool:
    """pandas.NA and its relatives, which scikit-learn reports as missing."""
    return type(cell).__name__ in ("NAType", "NaTType")
