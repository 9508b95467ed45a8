"""Rows and targets as scikit-learn checks them, in words that repeat no cell, and work on them that says nothing.

What scikit-learn says of a table quotes the cell that it could not convert, and NumPy warns of numbers that overflow:
both are facts about single records. So an error names the place of a cell and the rule, and warnings that depend on
what the cells hold are not given.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array, check_X_y, validate_data

from consenso.errors import InputError, name_row

_FLOATS = [np.float64, np.float32]
# How scikit-learn begins to say that a cell is missing; the last of labels beside texts.
_MISSING = ("Input X contains", "Input y contains", "Input contains NaN")


_MISSING_CELL, _INFINITE_CELL = "NaN (a missing value)", "infinity or a number too large"


class CellError(InputError, TypeError):
    """A cell of a table is not a number."""


def read_rows(estimator: Any, X: Any, **checks: Any) -> Any:
    """Rows as a float array or csr, by scikit-learn's rules for an estimator."""
    where = f"{type(estimator).__name__}(X=...)"
    _check_cells(X, where)
    with _name_missing_cells(X, where):
        return validate_data(estimator, X, dtype=_FLOATS, **checks)


def read_records(estimator: Any, X: Any, y: Any, *, real: bool, reset: bool = True) -> tuple[Any, Any]:
    """Rows as a float array or csr, and targets: real numbers, or labels. reset: whether columns may be others."""
    owner = type(estimator).__name__
    _check_cells(X, f"{owner}.fit(X=...)")
    if real:
        _check_cells(y, f"{owner}.fit(y=...)")
    else:
        _refuse_complex(y, f"{owner}.fit(y=...)")
        y = _read_listed_labels(owner, _read_nullable_labels(owner, y))
    checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": _FLOATS, "order": "C", "y_numeric": real}
    with _name_missing_cells(X, f"{owner}.fit(X=...)", y):
        X, y = validate_data(estimator, X, y, reset=reset, **checks)
    if not real:
        check_labels(owner, y)
    return X, np.asarray(y, dtype=np.float64) if real else y


def read_arrays(owner: str, X: Any, y: Any = None) -> tuple[Any, Any]:
    """Rows as a float array or csr, and real targets if there are any, of a function."""
    _check_cells(X, f"{owner}(X=...)")
    with _name_missing_cells(X, f"{owner}(X=...)", y):
        if y is None:
            return check_array(X, accept_sparse="csr", dtype=_FLOATS), None
        _check_cells(y, f"{owner}(y=...)")
        found: tuple[Any, Any] = check_X_y(X, y, accept_sparse="csr", dtype=_FLOATS, y_numeric=True)
        return found


def check_labels(owner: str, y: NDArray[Any]) -> None:
    """Labels are whole numbers, truth values or texts; the labels themselves stay out of the message."""
    fine = y.dtype.kind in "biuUT" or (y.dtype.kind == "f" and bool(np.all(y == np.floor(y))))
    if y.dtype.kind == "O":
        wrong = [place for place, label in enumerate(y.tolist()) if not isinstance(label, str)]
        if wrong and len(wrong) < len(y):
            raise InputError(
                f"{owner}.fit(y=...): Unknown label type: {name_row(wrong[0])}{say_more(len(wrong))} has no text "
                "where others have one; drop records without a label, or give all labels one type."
            )
        fine = not wrong
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


# What a frame with texts, dates or missing values wants.
_ADVICE = (
    "describe the columns in a public schema (SchemaTransformer; `consenso data draft-schema` writes a first one), or "
    "leave them out"
)


def check_names(columns: Any, where: str) -> None:
    """Refuse a frame in which two columns have one name."""
    names = [str(name) for name in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        said = ", ".join(map(repr, twice))
        raise InputError(f"{where}: columns have names of their own, and several are called {said}; rename them.")


def _check_cells(given: Any, where: str) -> None:
    """Refuse a table or a list with cells that are no numbers: all columns in one error, by places."""
    if hasattr(given, "columns"):
        check_names(given.columns, where)
        if not len(given.columns):
            raise InputError(f"{where}: a frame with 0 feature(s) was given, and one column is needed at least.")
    _refuse_complex(given, where)
    faults = _say_dates(given)
    for column, cells in _columns_of_objects(given):
        wrong = [row for row, cell in enumerate(cells) if not _is_number(cell)]
        if wrong:
            place = name_row(wrong[0]) if column is None else f"{name_row(wrong[0])}, column {column!r}"
            faults.append(f"{place}{say_more(len(wrong))} is not a number")
    if faults:
        faults += _say_missing(given)
        advice = _ADVICE if "X=" in where else "drop these records, or give numbers, such as days since a public date"
        raise CellError(
            f"{where}: {'; '.join(faults)}. An argument must be a number or a string that spells a number: {advice}."
        )


def _refuse_complex(given: Any, where: str) -> None:
    """Refuse complex numbers, in scikit-learn's words but for the cells that it quotes."""
    types = (
        [given[name].dtype for name in given.columns] if hasattr(given, "columns") else [getattr(given, "dtype", "")]
    )
    of_objects = (cell for _, cells in _columns_of_objects(given) for cell in cells)
    if any(str(kind).startswith("complex") for kind in types) or any(isinstance(cell, complex) for cell in of_objects):
        raise InputError(f"{where}: Complex data not supported. Cells are real numbers: give both parts as columns.")


def _say_missing(given: Any) -> list[str]:
    """Columns of numbers of a pandas frame in which some are missing: to be told with what else has to be mended."""
    if not hasattr(given, "columns") or not hasattr(given, "isna"):
        return []
    gone = {name: np.flatnonzero(np.asarray(given[name].isna())) for name in given.columns}
    return [
        f"{name_row(rows[0])}, column {name!r}{say_more(len(rows))} is missing"
        for name, rows in gone.items()
        if len(rows)
    ]


def say_more(many: int) -> str:
    """How many there are beside the one that is named."""
    return f" (and {many - 1} more)" if many > 1 else ""


@contextmanager
def _name_missing_cells(X: Any, where: str, y: Any = None) -> Iterator[None]:
    """Say where a number is missing or infinite; scikit-learn only says that there is one, and advises imputers."""
    try:
        yield
    except ValueError as error:
        said = str(error)
        if isinstance(error, InputError) or not said.startswith(_MISSING):
            raise
        of_rows = said.startswith("Input X")
        places = _find_places(X) if of_rows else _find_targets(y, "NaN" in said)
    else:
        return
    if not of_rows:
        raise InputError(f"{where.replace('X=', 'y=')}: {places}; drop these records.") from None
    raise InputError(
        f'{where}: {places}. Fill in by a public rule (missing = "middle" in a schema, '
        "SimpleImputer(strategy='constant')), or drop these records; what is learnt from the data to fill in is "
        "covered by no guarantee."
    ) from None


def _find_targets(y: Any, missing: bool) -> str:
    """The first row whose target or label is missing, or infinite; labels may be texts beside a number that is none."""
    cells = np.ravel(np.asarray(y, dtype=object)).tolist()
    if missing:
        bad = [place for place, one in enumerate(cells) if one is None or _is_missing(one) or one != one]
    else:
        bad = [place for place, one in enumerate(cells) if not np.isfinite(one)]
    place = f"{name_row(bad[0])}{say_more(len(bad))}" if bad else "y"
    return f"{place} contains {_MISSING_CELL if missing else _INFINITE_CELL}"


def _to_numbers(given: Any) -> NDArray[np.float64]:
    if hasattr(given, "isna"):  # pandas, whose own missing values are no numbers to NumPy
        return np.asarray(given.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(given, dtype=np.float64)


def _find_places(X: Any) -> str:
    """The first row of each column with a cell that is missing, and of each with one that is infinite."""
    names = list(X.columns) if hasattr(X, "columns") else None
    rows: Any = sparse.coo_array(X) if sparse.issparse(X) else np.atleast_2d(_to_numbers(X))
    told = []
    for is_bad, what in ((np.isnan, _MISSING_CELL), (np.isinf, _INFINITE_CELL)):
        bad = is_bad(rows.data if sparse.issparse(rows) else rows)
        where = (rows.row[bad], rows.col[bad]) if sparse.issparse(rows) else np.nonzero(bad)
        places = []
        for column in np.unique(where[1]).tolist():
            own, name = where[0][where[1] == column], column if names is None else names[column]
            places.append(f"{name_row(own.min())}, column {name!r}{say_more(len(own))}")
        if places:
            told.append(f"{'; '.join(places)} contains {what}")
    return "; ".join(told)


def _read_nullable_labels(owner: str, y: Any) -> Any:
    """Truth values and whole numbers of pandas that may be missing: an array, or an error that names a row."""
    named = str(getattr(y, "dtype", "")) if hasattr(y, "isna") else ""  # types of Polars have the same names
    of_arrow, width = named.endswith("[pyarrow]"), named.removesuffix("[pyarrow]")
    is_whole = width.removeprefix("u").startswith("int") if of_arrow else width.removeprefix("U").startswith("Int")
    if not is_whole and named not in ("boolean", "bool[pyarrow]"):
        return y
    gone = np.flatnonzero(np.asarray(y.isna()))
    if len(gone):
        raise InputError(
            f"{owner}.fit(y=...): {name_row(gone[0])}{say_more(len(gone))} has no label; drop such records."
        )
    return y.to_numpy(dtype=width.lower() if is_whole else bool)


_TYPES: dict[str, type[Any]] = {"truth value": np.bool_, "whole number": np.int64, "number": np.float64}


def _read_listed_labels(owner: str, y: Any) -> Any:
    """Labels of a list, which has no type of its own, as an array whose type no single label decides.

    The type of `classes_` is that of the labels: NumPy would make all of them numbers for one that is not whole.
    """
    kinds = [_find_kind(cell) for cell in y] if isinstance(y, list | tuple) else []
    if not kinds or None in kinds:
        return y  # has a type, or is refused
    common = Counter(kinds).most_common(1)[0][0]
    others = [place for place, kind in enumerate(kinds) if kind != common]
    if others:
        raise InputError(
            f"{owner}.fit(y=...): Unknown label type: {name_row(others[0])}{say_more(len(others))} has no {common} "
            "where the rest of the list does; give all labels one type."
        )
    return np.array(y, dtype=_TYPES[str(common)]) if common in _TYPES else y


def _find_kind(label: Any) -> str | None:
    """What kind of label a cell of a list holds; None for what is none, or is missing."""
    if isinstance(label, bool | np.bool_):
        return "truth value"
    if isinstance(label, int | np.integer):
        return "whole number" if -(2**63) <= label < 2**63 else "whole number of 64 bits"
    if isinstance(label, float | np.floating):
        return None if np.isnan(label) else "number"
    return "text" if isinstance(label, str) else None


_DATES = ("datetime", "date", "timedelta", "period", "duration", "time")


def _say_dates(given: Any) -> list[str]:
    """Columns of a frame that hold days or times by their type, or all of an array."""
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):
        return [f"column {name!r} holds dates" for name in given.columns if _is_of_dates(given[name])]
    return ["it holds dates"] if _is_of_dates(given) else []


def _is_of_dates(column: Any) -> bool:
    return str(getattr(column, "dtype", "")).lower().startswith(_DATES)


def _columns_of_objects(given: Any) -> Iterator[tuple[int | str | None, Any]]:
    """Columns, by name or place, whose cells are not known to be numbers by their type; None for that of a list."""
    if given is None or sparse.issparse(given) or isinstance(given, str):
        return
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):
        for name in given.columns:
            column = given[name]
            if str(getattr(column, "dtype", "")).lower().startswith(("object", "str", "categor", "enum")):
                yield name, column.to_list()
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
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return cell is None or _is_missing(cell)
    return True


def _is_missing(cell: Any) -> bool:
    """pandas.NA and its relatives, which scikit-learn reports as missing."""
    return type(cell).__name__ in ("NAType", "NaTType")
