"""Rules of IPADMM: peers on a graph that hear their neighbours, each with its own noise.

Gradients at averages and averages of late iterates are free post-processing. The length of the run is set so that the
noise walks a fixed distance in units of the row bound (the rule whose results docs/peers.md tells). REACH and CLIP were
chosen by looking at Adult.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from consenso import theory
from consenso.public_facts import PublicFacts
from consenso.solvers import forecast
from consenso.solvers.request import Request

if TYPE_CHECKING:
    from consenso.algorithms.ipadmm import IPADMM

NAME = "gossip"
PLACE = 10
GOSSIPS = True
REACH = 14.0  # length of the noise walk at which to stop, in units of 1/row_bound
CLIP = 0.7  # of a record's Lipschitz constant: few records of a useful model have steeper losses
FEWEST, MOST = 10, 1000


def refusal(request: Request) -> str | None:
    """Peers that do not sum, and a loss with bounded slopes and curvature."""
    problem = request.problem
    if not request.gossips:
        louder = math.sqrt(problem.parties)
        if request.adds_own_noise:
            return "these peers sum along a tree, so that each step is made of all of them"
        return f"peers that sum add the noise of one curator, and gossip would add {louder:.3g} times as much"
    if not math.isfinite(problem.loss.slope_bound + problem.loss.curvature_bound):
        return (
            f"it needs a loss with bounded slopes and curvature, and the {problem.loss.name} loss has not; choose "
            "logistic, huber or smoothed-hinge, or name an algorithm"
        )
    return None


def excess(request: Request) -> float:
    """That of plain steps; every neighbour's noise is heard."""
    return forecast.plain_excess(request)


def recipe(request: Request) -> tuple[Any, int]:
    """Steps as long as the curvature allows, and as many rounds as the budget is worth."""
    from consenso.algorithms.ipadmm import IPADMM  # only the chosen solver's is needed

    problem, topology = request.problem, request.topology
    assert topology is not None
    step = 1 / float(np.mean(problem.smoothness))
    algorithm = IPADMM(
        penalty=1 / (2 * float(topology.degrees.mean()) * step),
        proximity=0.0,
        clip=CLIP * problem.loss.lipschitz(problem.row_bound),
        at_average=True,
        averaging=0.5,
    )
    return algorithm, _count_rounds(request, algorithm, step)


def _count_rounds(request: Request, algorithm: IPADMM, step: float) -> int:
    """The rounds after which Gaussian noise within the budget has walked the reach."""
    problem, topology = request.problem, request.topology
    assert topology is not None
    (release,) = algorithm.releases(PublicFacts.everyone(problem, rounds=1, degrees=topology.degrees))
    bounds = np.broadcast_to(release.bounds.at(problem.unit, problem.adjacency), (problem.parties,))
    rho = theory.zcdp_of(request.limit)
    std = math.sqrt(float(np.mean(bounds**2)) / problem.parties / (2 * rho))
    longest = REACH / (problem.row_bound * std * math.sqrt(problem.dim))
    return int(np.clip(math.ceil(longest / step), FEWEST, MOST))
