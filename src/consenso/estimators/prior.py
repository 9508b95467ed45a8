"""What an earlier fit released and a later one starts from: post-processing, so that using it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from consenso.arrays import Array
from consenso.estimators.row_map import RowMap


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """A released model in the units of the columns, with the map of its rows.

    coefficients: (features, outputs). intercepts: (outputs,). target_bound: None for labels. records: how many it has
    learnt from, a public or released number.
    """

    rows: RowMap
    coefficients: Array
    intercepts: Array
    target_bound: float | None
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

    def average(self, coefficients: Array, intercepts: Array, records: int) -> Prior:
        """The mean of this model and another one, each with the weight of the records that it has learnt from."""
        whole = self.records + records
        part = records / whole
        return Prior(
            rows=self.rows,
            coefficients=(1 - part) * self.coefficients + part * coefficients,
            intercepts=(1 - part) * self.intercepts + part * intercepts,
            target_bound=self.target_bound,
            records=whole,
        )
