"""The expected excess risk of each solver, from public facts: what "auto" minimises and what can be told before a run.

    noise       what hides one record in a mean gradient over rows of length 1 and slopes at their bound:
                g = factor / (mu n),   factor 1 (add-remove) or 2 (replace-one), times sqrt(parties) for own noise
    score noise s = slope * g * d / curvature,   d = directions that rows fill (at most features; fewer if released)

    preconditioned          curvature/2 * s^2            whitened steps end around the optimum
    objective-perturbation  the same, 1.3 times the noise, all features as directions
    plain gradient steps    slope * g * d * reach        they stop before noise outweighs what is left to learn
    the constant model      curvature/2 * reach^2        nothing is learnt; log(classes) with a log loss

where `reach` is the size of scores that a model may call for: 4 for labels, the bound on targets times RESIDUAL for
numbers. Excess risk is in the units of the loss, above the best model of the problem, on average over draws of noise;
what sampling of the records costs is not in it. Nothing here reads data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consenso.algorithms.preconditioning import length_laws
from consenso.algorithms.preconditioning.noise_levels import FLATTENED, HINGE, LARGEST_SCORE, RESIDUAL, slope_limit
from consenso.privacy.calibrate import Target
from consenso.problem import Problem
from consenso.schedules import Schedule
from consenso.solvers.request import Request
from consenso.topology import Topology
from consenso.trust import Trust

# Noise of objective perturbation over that of one Gaussian release, at the published rule.
OBJECTIVE = 1.3
# Of the squared budget, what the gradients of the preconditioned solver have.
GRADIENTS = 0.85
# Of what labels have to tell, what a model of their rows may explain.
LEARNT = 0.5
# No more of the squared budget goes to counts of a hinge's labels, or of numbers: rows may tell more than is expected.
MOST_COUNTS, MOST_NUMBERS = 0.3, 0.5
# Parts of the budget of the gradients that measure the length of a model of labels.
LEAST_LENGTH, MOST_LENGTH = 0.02, 0.15
# Counts of numbers put their centre within 0.7 of the range over the records in standard deviations of noise: with so
# many of them within a quarter of the residuals that matter.
CENTRED = 16.0


@dataclass(frozen=True, kw_only=True)
class ExpectedExcess:
    """What noise is expected to cost: `excess` above the exact model, in the units of the loss."""

    solver: str
    excess: float
    score_noise: float  # standard deviation that noise gives to a typical score
    constant: float  # the excess of the constant model, at most: beyond it nothing is lost by asking for less
    candidates: tuple[tuple[str, float], ...]  # every solver that applies, best first

    @property
    def share_lost(self) -> float:
        """The part of what could be learnt that noise takes, from 0 to 1."""
        return min(1.0, self.excess / self.constant)


def expected_excess(
    problem: Problem,
    target: Target,
    *,
    trust: Trust | None = None,
    schedule: Schedule | None = None,
    topology: Topology | None = None,
    effective: float | None = None,
) -> ExpectedExcess:
    """The forecast of a fit of this problem within this target: records, features, bounds, unit, adjacency, parties.

    effective: how many directions the rows fill, if that is public or was released; None for all features.
    """
    from consenso.solvers.choose import compare

    request = Request(
        problem=problem, target=target, trust=trust, schedule=schedule, topology=topology, effective=effective
    )
    found = [(rules.NAME, excess) for excess, rules in compare(request)[0]]
    noise, most = score_noise(request), constant_excess(request)
    name, excess = found[0]
    return ExpectedExcess(
        solver=name,
        excess=min(excess, most),
        score_noise=min(noise, reach(request)),
        constant=most,
        candidates=tuple((name, min(excess, most)) for name, excess in found),
    )


def gradient_noise(request: Request) -> float:
    """g: noise of a mean over records with the whole budget, for contributions of length 1."""
    problem = request.problem
    most = problem.most if problem.unit == "party" else np.ones(problem.parties)
    factor = (1.0 if problem.adjacency == "add-remove" else 2.0) * float(np.max(most))
    own = math.sqrt(problem.parties) if request.adds_own_noise else 1.0
    return factor * own / (request.mu * problem.records)


def curvature(request: Request) -> float:
    """Mean curvature of the loss at a model that has learnt, in the units of its slopes."""
    loss = request.problem.loss
    if loss.targets == "real":
        kinks = math.isinf(loss.curvature_bound)
        return 1.0 / reach(request) if kinks else 1.0
    if loss.outputs > 1:
        return FLATTENED / loss.outputs
    return FLATTENED * min(loss.curvature_bound, HINGE if not loss.is_likelihood else math.inf)


def reach(request: Request) -> float:
    """The size of scores that a model may call for."""
    problem = request.problem
    if problem.loss.targets == "real":
        return RESIDUAL * float(problem.target_bound or 1.0)
    return LARGEST_SCORE


def slope(request: Request) -> float:
    """Where slopes are clipped once a model has learnt: their bound, or the size of residuals."""
    limit = slope_limit(request.problem)
    return min(limit, reach(request)) if request.problem.loss.targets == "real" else limit


def directions(request: Request) -> float:
    """How many directions rows fill, as far as is public."""
    return float(request.effective or request.problem.features)


def score_noise(request: Request) -> float:
    """s: what noise does to a typical score at the optimum, with whitened rows."""
    noise = gradient_noise(request) / math.sqrt(GRADIENTS)
    return slope(request) * noise * directions(request) / curvature(request)


def whitened_excess(request: Request) -> float:
    """Of steps in whitened directions."""
    return 0.5 * curvature(request) * request.problem.outputs * score_noise(request) ** 2


def exact_excess(request: Request) -> float:
    """Of an exact solution of a perturbed objective: noise in all columns, whether rows fill them or not."""
    noise = OBJECTIVE * slope(request) * gradient_noise(request) * request.problem.features
    return 0.5 * noise**2 / curvature(request)


def plain_excess(request: Request) -> float:
    """Of plain gradient steps that stop in time."""
    problem = request.problem
    each = slope(request) * gradient_noise(request) * directions(request) * math.sqrt(problem.outputs)
    return each * reach(request)


def constant_excess(request: Request) -> float:
    """Of learning nothing, at most."""
    loss, size = request.problem.loss, reach(request)
    if loss.is_likelihood:
        return math.log(max(loss.outputs, 2))
    return size if math.isinf(loss.curvature_bound) else 0.5 * curvature(request) * size**2


def counts_share(request: Request, least: float) -> float:
    """The share of the squared budget that counts of the labels of a hinge should have, at least `least`.

    Its constant model is the larger class, which counts tell at once and steps from zero late.

    It minimises what is lost in the constant part of the model, of which counts and gradients both tell, and in the
    rest, of which gradients alone tell, for rows whose spectrum falls as 1 / j and scores that explain LEARNT of what a
    constant model leaves. A part worth `gain` whose noise costs `lost` ends gain * lost / (gain + lost) above its best.
    """
    problem, noise = request.problem, gradient_noise(request) ** 2
    classes = max(problem.outputs, 2)
    gain = LEARNT * math.log(classes)
    constant = (request.constant or 0.0) ** 2 / problem.row_bound**2

    def find_loss(share: float) -> float:
        each, rest = _lose_rows(request, 1 - share)
        return 1 / (share / (noise * classes**2 / 2) + constant / each + 1 / gain) + rest

    return min((float(share) for share in np.linspace(least, MOST_COUNTS, 29)), key=find_loss)


def length_share(request: Request, share: float) -> float:
    """The part of the budget of the gradients, which is `share` of all, that measures the length of a model of labels.

    It minimises what is lost in the rows and in the length: with a curvature of half of what there is to gain, a length
    that is known up to a factor of e before is a part worth half of that curvature.
    """
    bends = 0.5 * LEARNT * math.log(max(request.problem.outputs, 2))
    reach = length_laws.SHORTEST * slope(request) * math.sqrt(len(length_laws.SCALES))
    noise = (reach * gradient_noise(request)) ** 2 / (2 * bends * share)

    def find_loss(part: float) -> float:
        return 1 / (part / noise + 2 / bends) + _lose_rows(request, share * (1 - part))[1]

    return min((float(part) for part in np.geomspace(LEAST_LENGTH, MOST_LENGTH, 25)), key=find_loss)


def _lose_rows(request: Request, share: float) -> tuple[float, float]:
    """What noise costs in one direction, and in all that rows tell of labels, if gradients have this share."""
    problem, classes = request.problem, max(request.problem.outputs, 2)
    gain, spectrum = LEARNT * math.log(classes), 1.0 / np.arange(1, problem.features + 1)
    spectrum /= spectrum.sum()
    each = (classes - 1) * gradient_noise(request) ** 2 / (2 * curvature(request) * share)
    return each, float(np.sum(gain * spectrum * each / (each + gain * spectrum**2)))


def numbers_share(request: Request, least: float) -> float:
    """The share of the squared budget that counts of real targets should have, at least `least`.

    A model of residuals starts at the centre of the targets and is damped by their spread, so that these come first.
    """
    return min(MOST_NUMBERS, max(least, (CENTRED * gradient_noise(request)) ** 2))
