"""True totals of corrected runs, read from their cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.outcome import Spent


def of_card(
    run: str, content: Mapping[str, Any], *, nominal: float, unit: str | None = None, adjacency: str | None = None
) -> tuple[Spent, ...]:
    """What a card (its JSON) promises against each observer, for the problem's own unit and adjacency if left out."""
    unit, adjacency = unit or content["data"]["unit"], adjacency or content["data"]["adjacency"]
    return tuple(
        Spent(
            run=run,
            version="corrected",
            nominal=nominal,
            observer=entry["observer"],
            unit=entry["unit"],
            adjacency=entry["adjacency"],
            epsilon=float(entry["epsilon"]),
            delta=content["delta"],
            theorem=entry["theorem"]["kind"].rpartition(".")[2],
        )
        for entry in content["entries"]
        if entry["unit"] == unit and entry["adjacency"] == adjacency
    )
