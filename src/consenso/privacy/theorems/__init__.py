"""Proved bounds, one object per theorem: public parameters in, one event out.

Statements, conditions, proofs and counterexamples to printed bounds: docs/privacy.md. Constructing a theorem checks its
preconditions; `strongest` picks the best one that applies and says why the others do not. A theorem is here if the
plan of some algorithm states it; bounds that composing the releases gives as well live in tests/privacy/oracles.
"""

from __future__ import annotations

from consenso.privacy.theorems.blocks import BlocksInTurn
from consenso.privacy.theorems.composition import Composition
from consenso.privacy.theorems.curator import PerturbedObjective
from consenso.privacy.theorems.dual_perturbation import DualPerturbedRounds
from consenso.privacy.theorems.gradient_admm import (
    GradientIteration,
    GradientRandomOrder,
    GradientRandomStopping,
    GradientVisits,
)
from consenso.privacy.theorems.graph_sum import SumsOnGraph
from consenso.privacy.theorems.sampling import FixedSizeWithoutMemory
from consenso.privacy.theorems.strongest import strongest
from consenso.privacy.theorems.theorem import Assumption, Theorem
from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates
from consenso.privacy.theorems.walk import WalkWithoutStates

__all__ = [
    "Assumption",
    "BlocksInTurn",
    "Composition",
    "DualPerturbedRounds",
    "FixedSizeWithoutMemory",
    "GradientIteration",
    "GradientRandomOrder",
    "GradientRandomStopping",
    "GradientVisits",
    "MeanOfNoisyStates",
    "PerturbedObjective",
    "SumsOnGraph",
    "Theorem",
    "WalkWithoutStates",
    "strongest",
]
