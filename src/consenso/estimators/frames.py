"""Frames as features of a public schema: a scikit-learn transformer that looks at no second record."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.reading import check_names

if TYPE_CHECKING:
    from consenso.schema import Schema


class BoundedRows(np.ndarray[Any, np.dtype[np.float64]]):
    """Rows whose 2-norm is at most `row_bound` by the public rule that made them; what is computed of them has none.

    names: of the features.
    """

    row_bound: float | None = None
    names: tuple[str, ...] | None = None

    def __array_finalize__(self, made_of: object) -> None:
        self.row_bound = self.names = None


class SchemaTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Maps a frame to features by a schema (docs/data.md): public bounds and categories, rules for missing values.

    schema: a Schema, or the path of one; a draft is refused. Columns that the schema calls a label, a target or a user
    may be absent and become no features. A private model after it, in a pipeline or not, takes its row bound over, so
    that nothing has to be found or declared. Rows cannot be dropped here: fill missing values by a rule.

    Fitted: schema_, row_bound_, n_features_in_, feature_names_in_. No cell is looked at in fit.
    """

    def __init__(self, schema: Schema | str | Path) -> None:
        self.schema = schema

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the schema and compare the names of the columns."""
        from consenso.schema import Ignore, Label, Schema, TargetColumn, User  # a fit without a schema needs none

        read = self.schema if isinstance(self.schema, Schema) else Schema.load(self.schema)
        schema = read.require_public()
        rules = [column.name for column in schema.feature_columns if getattr(column, "missing", None) == "drop-row"]
        if rules:
            raise InputError(
                f"SchemaTransformer(schema=...): columns.{rules[0]}.missing = 'drop-row' drops records, and a "
                "transformer keeps them; name a value that fills in."
            )
        kept = tuple(
            Ignore(name=column.name) if isinstance(column, User | Label | TargetColumn) else column
            for column in schema.columns
        )
        self.schema_ = dataclasses.replace(schema, columns=kept, intercept=False)
        self.row_bound_ = self.schema_.bound
        names = _names_of(X)
        _compare_names(names, self.schema_)
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        return self

    def transform(self, X: Any) -> BoundedRows:
        """Features (records, names) of at most row_bound_."""
        from consenso.schema import Ignore
        from consenso.tables import Table

        check_is_fitted(self)
        schema = self.schema_
        _compare_names(_names_of(X), schema)
        absent = {column.name for column in schema.columns if isinstance(column, Ignore)} - set(_names_of(X))
        present = dataclasses.replace(
            schema, columns=tuple(column for column in schema.columns if column.name not in absent)
        )
        table = Table.from_arrays({name: _values(X[name]) for name in _names_of(X)}, source="SchemaTransformer")
        found = present.features(table, targets=False)
        rows = _shorten(found.X, self.row_bound_).view(BoundedRows)
        rows.row_bound, rows.names = self.row_bound_, tuple(schema.feature_names)
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """A name for each feature."""
        check_is_fitted(self)
        return np.array(self.schema_.feature_names, dtype=object)


def bound_of(X: Any) -> float | None:
    """The bound of rows that a schema made; None for all others."""
    return X.row_bound if isinstance(X, BoundedRows) else None


def feature_names_of(X: Any) -> tuple[str, ...] | None:
    """The names of features that a schema made; None for all others."""
    return X.names if isinstance(X, BoundedRows) else None


def take_columns(owner: str, X: Any, y: Any, users: Any) -> tuple[Any, Any, Any]:
    """Rows, targets and ids of people of a frame of pandas or polars, where texts name columns for the last two.

    What is no text stays as it is.
    """
    named = {argument: name for argument, name in (("y", y), ("users", users)) if isinstance(name, str)}
    if not named:
        return X, y, users
    is_frame = hasattr(X, "columns")
    known = [str(name) for name in X.columns] if is_frame else []
    for argument, name in named.items():
        if name not in known:
            columns = f"columns are {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}; name one of them"
            missing = f"X is none; pass the cells themselves, {argument}=frame[{name!r}]"
            raise InputError(
                f"{owner}.fit({argument}={name!r}): a text names a column of a frame, and "
                f"{columns if is_frame else missing}."
            )
    check_names(X.columns, f"{owner}.fit(X=...)")
    if len({*named.values()}) < len(named):
        raise InputError(f"{owner}.fit(y={y!r}, users={users!r}): targets and ids are two columns; name one for each.")
    rest = X[[name for name in X.columns if str(name) not in named.values()]]
    return rest, X[y] if "y" in named else y, X[users] if "users" in named else users


def _shorten(X: Array, bound: float) -> Array:
    from consenso.shards.intake import bound_rows

    rows: Array = bound_rows(np.ascontiguousarray(X), bound, "SchemaTransformer")[0]
    return rows


def _names_of(X: Any) -> list[str]:
    if not hasattr(X, "columns") or not hasattr(X, "__getitem__"):
        raise InputError(
            f"SchemaTransformer(X=...): a frame with named columns is needed, and a {type(X).__name__} was given; use "
            "pandas or polars."
        )
    check_names(X.columns, "SchemaTransformer(X=...)")
    return [str(name) for name in X.columns]


def _compare_names(names: list[str], schema: Schema) -> None:
    """Refuse a frame with columns that the schema does not describe, or without some that become features."""
    described = {column.name for column in schema.columns}
    others = [name for name in names if name not in described]
    lacking = [column.name for column in schema.feature_columns if column.name not in names]
    if others:
        raise InputError(
            f"SchemaTransformer(X=...): {_list(others)} not in the schema; describe what it means, if only by kind = "
            '"ignore", or leave it out.'
        )
    if lacking:
        raise InputError(
            f"SchemaTransformer(X=...): {_list(lacking)} not in the frame, and the schema describes it; check names."
        )


def _list(names: list[str]) -> str:
    return f"{', '.join(map(repr, names))} {'is' if len(names) == 1 else 'are'}"


def _values(column: Any) -> NDArray[Any]:
    found: NDArray[Any] = column.to_numpy()
    if found.dtype.kind == "M":
        found = np.where(np.isnat(found), "", found.astype("datetime64[D]").astype(np.str_))
    return found
