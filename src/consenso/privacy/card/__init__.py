"""The privacy card of a run: what is claimed, for whom, by which theorem, on which assumptions.

A card keeps parameters and what follows from them side by side. Every number on it can be computed again from the
theorem objects that it carries, which `consenso.privacy.verify` does.
"""

from __future__ import annotations

from consenso.privacy.card.document import FILE, SIMULATION, Card, is_simulation
from consenso.privacy.card.entry import Entry, Kind, Spread
from consenso.privacy.rounding import round_up

__all__ = ["FILE", "SIMULATION", "Card", "Entry", "Kind", "Spread", "is_simulation", "round_up"]
