"""The schema of a table and its feature map."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array
from consenso.errors import InputError, PrivacyError
from consenso.problem import LEAST_ROW_BOUND, MOST_ROW_BOUND
from consenso.schema.cells import CellFault, Cells, Scale, raise_faults
from consenso.schema.columns import ColumnKind, Feature, Label, TargetColumn, User
from consenso.schema.toml import parse_toml, write_toml
from consenso.tables import Table, read_table

INTERCEPT = "(intercept)"


class Features(NamedTuple):
    """What a schema makes of a table.

    X is (rows, features), y is (rows,) or None, and `users` are the identifiers (rows,) or None.
    """

    X: Array
    y: NDArray[Any] | None
    users: NDArray[Any] | None


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Public facts about the columns of a table, in the order of the features.

    scale: numbers go to [0, 1] ("unit") or to [-1, 1] ("signed").
    intercept: a constant last feature 1 is added.
    row_bound: the norm to which rows are scaled afterwards; without it `bound` is what the map guarantees.
    missing_values: texts that stand for a missing value besides the empty cell, such as "?".
    draft: bounds and categories were read from private data; `require_public` refuses such a schema.
    """

    columns: tuple[ColumnKind, ...]
    scale: Scale = "unit"
    intercept: bool = False
    row_bound: float | None = None
    missing_values: tuple[str, ...] = ()
    draft: bool = False

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise InputError("columns: names differ, and one name was given twice; rename one of the columns.")
        for kinds, told in (((Label, TargetColumn), "label or target"), (User, "party")):
            if sum(isinstance(column, kinds) for column in self.columns) > 1:
                raise InputError(f'columns: at most one column is a {told}; mark the others with kind = "ignore".')
        if not self.feature_columns:
            raise InputError("columns: a schema has at least one feature; add a numeric, category or binary column.")
        if self.row_bound is not None and not LEAST_ROW_BOUND <= self.row_bound <= MOST_ROW_BOUND:
            raise InputError(
                f"row_bound = {self.row_bound}: a row bound is positive and finite, between {LEAST_ROW_BOUND:g} and "
                f"{MOST_ROW_BOUND:g}; state 1.0, or leave it out."
            )
        if self.scale not in ("unit", "signed"):
            raise InputError(
                f'scale = {self.scale!r}: a scale is "unit" for [0, 1] or "signed" for [-1, 1]; choose one.'
            )
        listed = {item for column in self.columns for item in _list_names(column)}
        if listed & set(self.missing_values):
            raise InputError(
                "missing_values: a text that stands for a missing value is no category or class as well; "
                "remove it from one of the lists."
            )

    @staticmethod
    def parse(text: str, *, source: str = "schema") -> Schema:
        """The schema written as TOML; `source` names it in errors."""
        try:
            return Schema(**parse_toml(text))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None

    @staticmethod
    def load(path: str | Path) -> Schema:
        """The schema in a TOML file. For private training go on with `.require_public()`."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{path}: a schema is UTF-8 text; save it again as UTF-8.") from None
        except OSError as error:
            raise InputError(f"{path}: a schema cannot be read there ({error.strerror}); check the path.") from None
        return Schema.parse(text, source=str(path))

    def to_toml(self) -> str:
        """The canonical text: every key is written, so that equal schemas have equal texts."""
        return write_toml(self)

    def digest(self) -> str:
        """The SHA-256 of the canonical text."""
        return hashlib.sha256(self.to_toml().encode()).hexdigest()

    def require_public(self) -> Schema:
        """The schema itself, or a PrivacyError when it is a draft made from private data."""
        if self.draft:
            raise PrivacyError(
                "draft = true: the ranges and categories of a draft were read from private data; replace them by "
                "public ones and remove the line."
            )
        return self

    def without_intercept(self) -> Schema:
        """The same schema without a constant feature, for whoever adds one."""
        return dataclasses.replace(self, intercept=False)

    @property
    def feature_columns(self) -> tuple[Feature, ...]:
        """The columns that become features."""
        return tuple(column for column in self.columns if isinstance(column, Feature))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each column of X."""
        names = tuple(name for column in self.feature_columns for name in column.feature_names)
        return (*names, INTERCEPT) if self.intercept else names

    @property
    def n_features(self) -> int:
        """The number of columns of X."""
        return len(self.feature_names)

    @property
    def map_bound(self) -> float:
        """The largest norm of a row of X: each column adds one entry of size 1 at most, and one for an indicator."""
        indicators = sum(getattr(column, "indicator", False) for column in self.feature_columns)
        return float(np.sqrt(len(self.feature_columns) + indicators + int(self.intercept)))

    @property
    def bound(self) -> float:
        """The row bound that was stated, else the one that the map guarantees."""
        return self.map_bound if self.row_bound is None else self.row_bound

    @property
    def target_column(self) -> Label | TargetColumn | None:
        """The column to learn, if any."""
        return next((column for column in self.columns if isinstance(column, Label | TargetColumn)), None)

    @property
    def user_column(self) -> User | None:
        """The column that says whose record it is, if any."""
        return next((column for column in self.columns if isinstance(column, User)), None)

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The public classes of the label, if there is one."""
        return self.target_column.classes if isinstance(self.target_column, Label) else None

    def read(self, path: str | Path, *, targets: bool = True) -> Features:
        """The features of a file; see `features`."""
        return self.features(read_table(path, features=self.numbered_columns), targets=targets)

    @property
    def numbered_columns(self) -> int | None:
        """How many features a libsvm file has, which does not say so: the largest number that is a column's name."""
        return max((int(column.name) for column in self.columns if column.name.isdecimal()), default=None)

    def features(self, table: Table, *, targets: bool = True) -> Features:
        """Map each record by the schema alone; with `targets=False` y is None and its column may be absent.

        Every column of the table must be described, if only by kind = "ignore". Records with a missing value whose
        rule is "drop-row" are left out.
        """
        self._check_columns(table, targets)
        X = np.zeros((table.rows, self.n_features))
        drop = np.zeros(table.rows, dtype=np.bool_)
        start, faults = 0, list[CellFault]()
        for column in self.feature_columns:
            stop = start + len(column.feature_names)
            drop |= column.fill(X[:, start:stop], self._cells(table, column.name, faults), self.scale)
            start = stop
        if self.intercept:
            X[:, -1] = 1.0
        y = users = None
        if targets and self.target_column is not None:
            y, gone = self.target_column.targets(self._cells(table, self.target_column.name, faults))
            drop |= gone
        if self.user_column is not None:
            users, gone = self.user_column.identifiers(self._cells(table, self.user_column.name, faults))
            drop |= gone
        raise_faults(table, faults)
        if not drop.any():
            return Features(X, y, users)
        keep = ~drop
        return Features(X[keep], None if y is None else y[keep], None if users is None else users[keep])

    def _cells(self, table: Table, name: str, faults: list[CellFault]) -> Cells:
        return Cells(table=table, name=name, missing_values=frozenset(self.missing_values), faults=faults)

    def _check_columns(self, table: Table, targets: bool) -> None:
        described = {column.name for column in self.columns}
        for position, name in enumerate(table.columns, start=1):
            # The name is not repeated: in a file without a header it would be a cell.
            if name not in described:
                raise InputError(
                    f"{table.source}: column {position} is not in the schema; describe it, if only by "
                    'kind = "ignore", and check that the first line is a header.'
                )
        for column in self.columns:
            needed = column.kind != "ignore" and (targets or not isinstance(column, Label | TargetColumn))
            if needed and column.name not in table.columns:
                raise InputError(
                    f"{table.source}: the schema has a column {column.name!r}, and the table has not; check the header."
                )


def _list_names(column: ColumnKind) -> tuple[str, ...]:
    return tuple(name for key in ("categories", "classes", "levels") for name in getattr(column, key, ()))
