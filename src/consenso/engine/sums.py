"""The sum of what the parties of a round send, in the order of the parties, whichever engine carries the messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.engine.fixed_point import GridColumn, decode, encode_rows, grids_of
from consenso.engine.step import forget
from consenso.planning.plan import Plan
from consenso.privacy.releaser import Record, SumTerm, open_sum, silent_share
from consenso.privacy.run_spec import largest_bounds
from consenso.public_facts import PublicFacts


class RoundSum:
    """Adds messages up one after the other; sums of terms are opened when all are there.

    `on_grid`: where the trust is a secure sum, it adds whole steps of the grids that masked sums have, and so gives
    what a deployment gives, bit for bit. Values have their noise by then. Discrete noise lies on the grid, and nothing
    is rounded; a seeded simulation is rounded as its deployment rounds it.
    """

    def __init__(self, plan: Plan, facts: PublicFacts, record: Record = forget, *, on_grid: bool = False) -> None:
        self.plan, self.facts, self._record = plan, facts, record  # facts of everyone, at this round
        self.terms: dict[str, SumTerm] = {}  # by field, as it was last added
        self._kind: type[Any] | None = None
        self._fields: dict[str, _Total] = {}
        self._grids = grids_of(plan, plan.algorithm.releases, facts.round) if on_grid else None

    def add(self, up: Any, cohort: IntArray, weight: float = 1.0) -> None:
        """The message of a cohort."""
        self._kind = type(up)
        for each in dataclasses.fields(up):
            value = getattr(up, each.name)
            if isinstance(value, SumTerm):
                self.terms[each.name], value = value, value.value
            self.add_row_values(each.name, value, cohort, weight)

    def add_row_values(self, name: str, values: Array, cohort: IntArray, weight: float = 1.0) -> None:
        """What a cohort adds to one field."""
        if name not in self._fields:
            self._fields[name] = _Total(self._column(name, values), self.sum_rows)
        self._fields[name].add(values, cohort, weight)

    def add_silence(self, cohort: IntArray) -> None:
        """The noise shares of parties that were not sampled."""
        facts = dataclasses.replace(self.facts, cohort=self.draws_as(cohort), degrees=None)
        for name, part in self.terms.items():
            self.add_row_values(name, silent_share(self.plan, facts, part, self.largest), cohort)

    def open(self) -> Any:
        """The summed message, each sum of terms opened."""
        assert self._kind is not None
        summed = {name: total.value() for name, total in self._fields.items()}
        for name, part in self.terms.items():
            summed[name] = self.open_part(part, summed[name])
        return self._kind(**summed)

    def sum_rows(self, values: Any, cohort: IntArray) -> Any:
        """The sum over a cohort's parties."""
        return values.sum(axis=0)

    def draws_as(self, cohort: IntArray) -> IntArray:
        """Under which numbers parties draw noise."""
        return cohort

    def open_part(self, part: SumTerm, total: Array) -> Array:
        """What is heard of a sum of terms."""
        return open_sum(self.plan, self.facts, part.change(total[None]), largest=self.largest, record=self._record)

    @property
    def largest(self) -> dict[str, float]:
        """The largest bound of each release of the round over all parties."""
        return largest_bounds(self.plan, self.plan.algorithm.releases, self.facts.round)

    def _column(self, name: str, value: Array) -> GridColumn | None:
        """How a field is summed in whole steps; None where it is summed as it is."""
        if self._grids is None or not np.issubdtype(value.dtype, np.floating):
            return None
        return self._grids.column(name, value, self.terms.get(name))


class _Total:
    """The sum of one field over parties: of numbers, or of whole steps of a grid."""

    def __init__(self, column: GridColumn | None, sum_rows: Callable[[Any, IntArray], Any]) -> None:
        self._column, self._sum_rows = column, sum_rows
        self._sum: Any = None

    def add(self, values: Array, cohort: IntArray, weight: float = 1.0) -> None:
        """Values (parties, ...), each counted `weight` times."""
        if self._column is None:
            summed = weight * self._sum_rows(values, cohort)
        else:
            summed = self._sum_rows(encode_rows(weight * values, self._column), cohort)
        self._sum = summed if self._sum is None else self._sum + summed

    def value(self) -> Array:
        """What all of it adds up to."""
        total: Array = self._sum if self._column is None else decode(self._sum, self._column)
        return total
