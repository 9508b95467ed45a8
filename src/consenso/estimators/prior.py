"""What an earlier fit released and a later one starts from: post-processing, so that using it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from consenso.arrays import Array
from consenso.estimators.row_map import RowMap


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """A released model in the units of the columns, with the map of its rows.

    coefficients: (features, outputs). intercepts: (outputs,). target_bound: around middle, None for labels. records:
    how many it has learnt from, a public or released number.
    """

    rows: RowMap
    coefficients: Array
    intercepts: Array
    target_bound: float | None
    middle: float
    records: int

    def predict(self, X: Any) -> Array:
        """Predictions of a model with one output, (rows,)."""
        scores: Array = self.rows.score(X, self.coefficients, self.intercepts)[:, 0]
        return scores

    def in_units_of_rows(self) -> tuple[Array, Array]:
        """Coefficients and intercepts for rows after their map."""
        columns = self.rows.columns
        if columns is None:
            return self.coefficients, self.intercepts
        return self.coefficients * columns.scale[:, None], self.intercepts + columns.center @ self.coefficients

    def average(self, other: Prior) -> Prior:
        """The mean of two models, each with the weight of the records that it has learnt from."""
        whole = self.records + other.records
        part = other.records / whole
        return replace(
            self,
            coefficients=(1 - part) * self.coefficients + part * other.coefficients,
            intercepts=(1 - part) * self.intercepts + part * other.intercepts,
            records=whole,
        )
