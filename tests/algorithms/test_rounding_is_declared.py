"""A sum over records in floating point moves further than an exact one, and what is released declares by how much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consenso.algorithms import discover
from consenso.testing.plans import plan_example

# Their releases are no sums of floating-point numbers: minimisers that are certified to a tolerance, or exact sums.
CERTIFIED = {
    *("ConsensusADMM", "DistributedADMM", "DualPerturbation", "GeneralADMM", "ObjectivePerturbation", "PADMM"),
    *("PrimalPerturbation", "RecycledADMM", "StatelessWalk"),
}
EXACT = {"DualAveraging", "PreconditionedFixedPoint", "PreconditionedGossip"}
SUMS = sorted(set(discover()) - CERTIFIED - EXACT)
FEW, MANY = 2**4, 2**22


def bound_of_one(name: str, records: int) -> float:
    """How far replacing one record moves the first release of a party, in units of a record's weight."""
    example = discover()[name].example()
    problem = replace(example.problem, sizes=np.full(example.problem.parties, records))
    made = plan_example(replace(example, problem=problem))
    release = made.algorithm.releases(made.facts.only(np.array([0])))[0]
    return float(np.max(release.bounds.record_replace_one)) * records


@pytest.mark.parametrize("name", SUMS)
def test_the_rounding_of_sums_over_records_is_declared(name) -> None:
    # Of a sum of n rows of length B it is about n^2 2^-52 B, beside the 2 B by which one record moves it.
    assert bound_of_one(name, MANY) / bound_of_one(name, FEW) >= 1 + 0.99 * MANY**2 * 2.0**-53
