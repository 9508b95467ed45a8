"""What a run tells about itself. Nothing is recorded unless it is asked for, and each column says who may see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Audience = Literal["hub", "private"]


@dataclass
class Trace:
    """Columns of numbers, one entry per round.

    `hub` columns follow from what the hub hears: the guarantee of the Server covers them, that of the Public may not.
    `private` columns are computed from the records without noise: diagnostics for whoever holds the data, never to be
    shown to anyone else.
    """

    columns: dict[str, list[float]] = field(default_factory=dict)
    audience: dict[str, Audience] = field(default_factory=dict)

    def add(self, name: str, value: float, audience: Audience) -> None:
        """Append a number to a column."""
        self.audience.setdefault(name, audience)
        self.columns.setdefault(name, []).append(value)

    def move_to(self, other: Trace) -> None:
        """Add everything to another trace and keep nothing."""
        for name, values in self.columns.items():
            for value in values:
                other.add(name, value, self.audience[name])
        self.columns.clear()
