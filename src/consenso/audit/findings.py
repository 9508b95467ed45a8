"""What attacking a guarantee gave."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from consenso.audit.bounds import Evidence
from consenso.privacy.events import Event
from consenso.privacy.relations import Relation
from consenso.problem import Unit


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One guarantee, attacked."""

    algorithm: str
    observer: str
    unit: Unit
    adjacency: Relation
    party: int
    theorem: str
    delta: float
    claimed: float  # epsilon
    lower: float  # bound on epsilon
    method: str
    confidence: float
    trials: int  # of either world; 0 where nothing is claimed
    refuted: bool
    neighbours: str
    attack: str
    stacking: str
    event: Event = field(repr=False)
    evidence: Evidence | None = field(repr=False, default=None)

    @property
    def gap(self) -> float:
        """How much of the claimed epsilon the attack did not reach."""
        return self.claimed - self.lower

    def to_json(self) -> dict[str, Any]:
        """Numbers and names; an infinite claim is null."""
        names = (
            *("algorithm", "observer", "unit", "adjacency", "party", "theorem", "delta", "lower", "method"),
            *("confidence", "trials", "refuted", "neighbours", "attack", "stacking"),
        )
        finite = math.isfinite(self.claimed)
        return {name: getattr(self, name) for name in names} | {
            "claimed": self.claimed if finite else None,
            "gap": self.gap if finite else None,
        }

    def sentence(self) -> str:
        """The finding in one line."""
        who = f"{self.algorithm}, {self.observer}, {self.unit}, {self.adjacency}"
        if not self.trials:
            return f"{who}: nothing is claimed."
        verdict = "REFUTED" if self.refuted else "not refuted"
        return (
            f"{who}: claimed epsilon {self.claimed:.4g} at delta {self.delta:g} ({self.theorem}), attacked to at least "
            f"{self.lower:.4g} with confidence {self.confidence:g} ({self.neighbours}; {self.attack}; {self.method}): "
            f"{verdict}."
        )
