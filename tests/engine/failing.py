"""A plan whose step some rows keep from its end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM
from consenso.arrays import Array
from consenso.losses import Hinge
from consenso.planning.plan import Plan
from consenso.schedules import Everyone
from consenso.testing.plans import plan_example

# With steps this long the scores of all of them are 1, on the kink of the hinge; and they are dependent.
TIED = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
Table = tuple[Array, Array]


def plan_failing() -> Plan:
    """No solver certifies a prox of a loss with kinks on which dependent rows lie."""
    example = ConsensusADMM.example()
    problem = replace(example.problem, loss=Hinge())
    algorithm = replace(example.algorithm, step=4.0 * int(problem.sizes[0]))
    changed = replace(example, problem=problem, algorithm=algorithm, schedules=(Everyone(),), rounds=1)
    return plan_example(changed, trust="local")


def make_tables(made: Plan) -> tuple[list[Table], list[Table]]:
    """Of each party: tied rows, and none."""
    tied = [(np.resize(TIED, (int(size), 3)), np.ones(size)) for size in made.problem.sizes]
    return tied, [(np.zeros_like(rows), targets) for rows, targets in tied]
