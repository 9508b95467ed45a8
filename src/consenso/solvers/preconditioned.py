"""Rules of PreconditionedFixedPoint: how often to release the second moment, and what to do about kinks and residuals.

What depends on released values (steps, clip, damping) is decided while it runs: `preconditioning.noise_levels`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.algorithms.preconditioning import target_counts
from consenso.algorithms.preconditioning.noise_levels import RESIDUAL
from consenso.algorithms.preconditioning.settings import LENGTH_SHARE
from consenso.losses import Squared
from consenso.public_facts import PublicFacts
from consenso.solvers import forecast
from consenso.solvers.request import Request

NAME = "preconditioned"
PLACE = 1
TAKES_WEIGHTS = True
# Gaussian releases that share one mu: there is noise for any.
MEETS_ANY_MU = True
FEWEST_STEPS, MOST_STEPS = 6, 80
# A second moment of more columns costs more time than the fit.
MOST_FEATURES = 1200
# Shares of the squared budget for one release of the second moment, and for two.
ONE_MOMENT, TWO_MOMENTS = 0.1, 0.15
# Two releases pay when the noise of the second, over all directions, is at most this much of what it shows.
# Residuals are fitted closely, so that small directions are worth more: 5 was chosen on 500 diamonds and 353 diabetes
# patients, held on 1,000 flights and 1,500 rows of correlated columns, and did nothing for 500 rows of independent
# columns. Labels had nothing of it.
TWICE_BELOW, TWICE_BELOW_RESIDUAL = 1.5, 5.0
# One release pays when its noise is at most this much of the largest direction that there can be.
ONCE_BELOW = 1.6
# Steps before the size of residuals is measured, and at least so many after.
WARMUP_STEPS, AFTER_WARMUP = 2, 2
# A warm-up pays while the noise of all directions moves a score by less than so many residuals that matter.
WARMUP_PAYS = 0.3
# How wide the kink of a hinge is made: iterates wander further than that, which smooths it anyway.
HINGE_WIDTH = 0.1


def refusal(request: Request) -> str | None:
    """Slopes that are bounded, or can be clipped at the bound of the targets; everybody in every round."""
    loss = request.problem.loss
    if math.isinf(loss.slope_bound) and not isinstance(loss, Squared):
        return f"the slope of the {loss.name} loss is unbounded"
    if not request.takes_everyone:
        return "it needs every party in every round"
    return None


def excess(request: Request) -> float:
    """That of whitened steps; without a second moment, which takes long beyond some columns, no better than plain."""
    if request.problem.features > MOST_FEATURES:
        return 1.01 * forecast.plain_excess(request)
    return min(forecast.whitened_excess(request), forecast.plain_excess(request))


def recipe(request: Request) -> tuple[Any, int]:
    """As many releases of the second moment as can be told from noise, then steps."""
    problem, loss = request.problem, request.problem.loss
    moments = _moment_releases(request)
    smoothing = 0.0
    if math.isinf(loss.curvature_bound):
        smoothing = HINGE_WIDTH if problem.target_bound is None else problem.target_bound
    residuals = loss.targets == "real"
    warmup = _warmup_steps(request)
    fewest = (warmup + AFTER_WARMUP if warmup else 1) if residuals else FEWEST_STEPS
    counts = residuals or request.constant is not None
    share = target_counts.SHARE
    if residuals:
        share = forecast.numbers_share(request, share)
    elif counts and not loss.is_likelihood:
        # Steps on a log loss tell of the constant part, too, which is most of what counts could tell them.
        share = forecast.counts_share(request, share)
    measures = loss.targets != "real"
    algorithm = PreconditionedFixedPoint(
        counts=counts,
        counts_share=share,
        target_bins=target_counts.choose_bins(math.sqrt(share) / forecast.gradient_noise(request)),
        constant=request.constant or 0.0,
        moment_releases=moments,
        share=TWO_MOMENTS if moments == 2 else ONE_MOMENT,
        warmup_steps=warmup,
        fewest_steps=fewest,
        smoothing=smoothing,
        threshold=request.threshold,
        follows=request.penalty_follows,
        lengths=measures,
        length_share=forecast.length_share(request, 1 - counts * share - ONE_MOMENT) if measures else LENGTH_SHARE,
    )
    return algorithm, algorithm.other_rounds + MOST_STEPS


def _warmup_steps(request: Request) -> int:
    """Steps before slopes are counted by size; none where noise would be all that they have learnt."""
    loss = request.problem.loss
    adapts = loss.targets == "real" and (math.isinf(loss.slope_bound) or math.isinf(loss.curvature_bound))
    if adapts and residual_noise(request) < WARMUP_PAYS:
        return WARMUP_STEPS
    return 0


def _moment_releases(request: Request) -> int:
    """0, 1 or 2 by the noise of a mean second moment relative to the largest that it can be, in the spectral norm."""
    features = request.problem.features
    if features > MOST_FEATURES:
        return 0
    noise = moment_noise(request) * math.sqrt(2 * features)
    if noise > ONCE_BELOW:
        return 0
    if request.problem.outputs > 1:
        return 1  # what a second one shows is small, and noise in it costs as many times as there are classes
    # In the second release a typical whitened row has the squared length of as many directions as stand out.
    twice = TWICE_BELOW_RESIDUAL if request.problem.loss.targets == "real" else TWICE_BELOW
    return 2 if noise * features <= twice else 1


def residual_noise(request: Request) -> float:
    """How far noise will move a score if no direction is empty, in units in which residuals matter.

    Slopes as large as the targets and a curvature of 1, or slopes of 1 and kinks as wide as the targets: the same.
    """
    problem = request.problem
    return _relative_bound(request) * problem.features / (request.mu * problem.records * RESIDUAL)


def moment_noise(request: Request) -> float:
    """Noise of one entry of a mean second moment, over the squared bound on rows, if it gets its share."""
    return _relative_bound(request) / (request.mu * math.sqrt(ONE_MOMENT) * request.problem.records)


def _relative_bound(request: Request) -> float:
    """What the noise of a sum must hide, in units of one row's share of a second moment."""
    problem = request.problem
    (release,) = PreconditionedFixedPoint().releases(PublicFacts.everyone(problem, rounds=2))
    bounds = np.broadcast_to(release.bounds.at(problem.unit, problem.adjacency), (problem.parties,))
    # Where every party adds its own noise, the hub hears all of them.
    bound = float(np.linalg.norm(bounds)) if request.adds_own_noise else float(bounds.max())
    return bound / problem.row_bound**2
