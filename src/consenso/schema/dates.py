"""Dates between public bounds: a cell is a day as ISO 8601 writes it, 2021-03-15. A time of day after it is ignored."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.schema.cells import Cells, Mask, Scale, name_with_indicator, require_filling

_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ]\d{2}:\d{2}.*)?")


@dataclass(frozen=True, kw_only=True)
class Date:
    """A day between two public days, scaled to [0, 1] or [-1, 1]; what lies outside is moved to the bound.

    indicator: whether a second feature is 1 where the day is missing, beside what fills it in.
    """

    kind: ClassVar[str] = "date"
    rules: ClassVar[tuple[str, ...]] = ("error", "low", "high", "middle", "drop-row")
    name: str
    low: str
    high: str
    missing: str = "error"
    indicator: bool = False

    def __post_init__(self) -> None:
        first, last = (read_day(given) for given in (self.low, self.high))
        if first is None or last is None or first >= last:
            raise InputError(
                f"columns.{self.name}: low and high are days such as 2021-03-15 with low < high, and low = "
                f"{self.low!r}, high = {self.high!r} were given; state a public range."
            )
        if self.missing not in self.rules:
            raise InputError(
                f"columns.{self.name}.missing: {self.missing!r} is no rule for this kind; choose one of "
                f"{', '.join(self.rules)}."
            )
        require_filling(self.name, self.missing, self.indicator)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of the column."""
        return name_with_indicator(self.name, self.indicator)

    def fill(self, block: Array, cells: Cells, scale: Scale) -> Mask:
        """Write how far between the two days each day lies."""
        found, gone = cells.identifiers()
        days = [None if empty else read_day(str(cell)) for cell, empty in zip(found.tolist(), gone, strict=True)]
        wrong = np.array([day is None for day in days], dtype=np.bool_) & ~gone
        cells.refuse(wrong, "a date column holds days such as 2021-03-15, and this cell is none; correct the cell")
        if self.missing == "error":
            cells.refuse(gone, 'a value is missing and the schema says missing = "error"; choose a rule')
        low, high = read_day(self.low), read_day(self.high)
        assert low is not None
        assert high is not None
        instead = {"low": 0.0, "high": 1.0}.get(self.missing, 0.5)
        share = np.array([instead if day is None else (day - low) / (high - low) for day in days], dtype=np.float64)
        share = np.clip(share, 0.0, 1.0)
        block[:, 0] = share if scale == "unit" else 2.0 * share - 1.0
        if self.indicator:
            block[:, 1] = gone
        return gone if self.missing == "drop-row" else np.zeros(gone.shape, dtype=np.bool_)


def read_day(given: Any) -> int | None:
    """The number of a day, or None where it is none: an infinite date, one that is not in the calendar."""
    matched = _DAY.fullmatch(given.strip()) if isinstance(given, str) else None
    try:
        return None if matched is None else datetime.date.fromisoformat(matched[1]).toordinal()
    except ValueError:
        return None
