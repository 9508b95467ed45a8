"""Proved bounds, one object per theorem: public parameters in, one event out.

Statements, conditions, proofs and counterexamples to printed bounds: docs/privacy.md. Constructing a theorem checks its
preconditions; `strongest` picks the best one that applies and says why the others do not. A theorem is here if the
plan of some algorithm states it; bounds that composing the releases gives as well live in tests/privacy/oracles.
A new one is a file here and the algorithm that yields it; `consenso.registry` finds it.
"""

from __future__ import annotations

from consenso.privacy.theorems.composition import Composition
from consenso.privacy.theorems.strongest import strongest
from consenso.privacy.theorems.theorem import Assumption, Theorem

__all__ = ["Assumption", "Composition", "Theorem", "strongest"]
