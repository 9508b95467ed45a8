"""Proved bounds, one object per theorem: public parameters in, one event out.

Statements, conditions, proofs and counterexamples to printed bounds: docs/privacy.md. Constructing a theorem checks its
preconditions; `strongest` picks the best one that applies and says why the others do not.
"""

from __future__ import annotations

from consenso.privacy.theorems.composition import Composition
from consenso.privacy.theorems.curator import (
    PerturbedObjective,
    PreconditionedSteps,
    SecondMoment,
    second_moment_sensitivity,
    whitened_sum_sensitivity,
)
from consenso.privacy.theorems.dual_perturbation import DualPerturbedRounds, jacobian_cost
from consenso.privacy.theorems.general import GeneralSplitting
from consenso.privacy.theorems.gradient_admm import (
    GradientIteration,
    GradientRandomOrder,
    GradientRandomStopping,
    GradientVisits,
    absorption,
    contraction,
    pair_constant,
)
from consenso.privacy.theorems.inexact import certified_distance, inexact_energy, prox_gap, residual_bound
from consenso.privacy.theorems.ipadmm import IPADMMSteps, MinibatchIPADMM, inner_step_sensitivity
from consenso.privacy.theorems.laplace import (
    LaplaceTotal,
    row_bound_1,
    softmax_gradient_gap,
    softmax_gradient_gap_2,
)
from consenso.privacy.theorems.local import LocalView
from consenso.privacy.theorems.networked import NetworkedSteps, projected_gradient_bound, stds_of_growing_budget
from consenso.privacy.theorems.record import RecordInParty
from consenso.privacy.theorems.sampling import (
    FixedSizeWithoutMemory,
    PoissonSampledSums,
    SamplingRevealed,
    fixed_size_with_memory,
    view_of_sampled_sum,
)
from consenso.privacy.theorems.shares import NoiseShares, discreteness, encoded_sensitivity, share_std
from consenso.privacy.theorems.strongest import strongest
from consenso.privacy.theorems.sums import DualSums, IncrementalSums, StateSums, state_growth
from consenso.privacy.theorems.theorem import Assumption, Theorem, Unit
from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates
from consenso.privacy.theorems.walk import WalkWithoutStates, uniform_walk

__all__ = [
    "Assumption",
    "Composition",
    "DualPerturbedRounds",
    "DualSums",
    "FixedSizeWithoutMemory",
    "GeneralSplitting",
    "GradientIteration",
    "GradientRandomOrder",
    "GradientRandomStopping",
    "GradientVisits",
    "IPADMMSteps",
    "IncrementalSums",
    "LaplaceTotal",
    "LocalView",
    "MeanOfNoisyStates",
    "MinibatchIPADMM",
    "NetworkedSteps",
    "NoiseShares",
    "PerturbedObjective",
    "PoissonSampledSums",
    "PreconditionedSteps",
    "RecordInParty",
    "SamplingRevealed",
    "SecondMoment",
    "StateSums",
    "Theorem",
    "Unit",
    "WalkWithoutStates",
    "absorption",
    "certified_distance",
    "contraction",
    "discreteness",
    "encoded_sensitivity",
    "fixed_size_with_memory",
    "inexact_energy",
    "inner_step_sensitivity",
    "jacobian_cost",
    "pair_constant",
    "projected_gradient_bound",
    "prox_gap",
    "residual_bound",
    "row_bound_1",
    "second_moment_sensitivity",
    "share_std",
    "softmax_gradient_gap",
    "softmax_gradient_gap_2",
    "state_growth",
    "stds_of_growing_budget",
    "strongest",
    "uniform_walk",
    "view_of_sampled_sum",
    "whitened_sum_sensitivity",
]
