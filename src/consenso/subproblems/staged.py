"""Local problems that Newton's method cannot take in one go: losses with kinks, and very large steps.

Both go through envelopes that get narrower (`consenso.subproblems.envelope`). With kinks everything is polyhedral, so
the proximal point method ends after finitely many rounds on the exact solution. For a smooth loss the envelopes only
lead to a starting point that is near enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.losses import Loss
from consenso.subproblems import objectives
from consenso.subproblems.batch import Batch, lengths
from consenso.subproblems.certificate import certificate
from consenso.subproblems.envelope import MoreauEnvelope
from consenso.subproblems.pieces import pieces

# Widths of the envelopes over t * |row|^2. Narrow ones find the pieces on which the solution lies but magnify rounding
# by 1 / width; once the pieces no longer change, a wide one removes most of the remaining error in each round.
FINISHING, NARROWEST = 1e-3, 1e-8
NARROWING = (*(10.0**-k for k in range(1, 8)), NARROWEST)
SCHEDULE = np.array([*NARROWING, *(8 * (FINISHING, FINISHING, FINISHING, NARROWEST))])
# What rounding leaves of the accuracy of a round, times its width.
BLUR = 1e-14
NEAR = 1e-3
# Below this relative distance the pieces may be taken for the right ones.
CLOSE = 1e-4
# After this many rounds without gain a party is as close as it gets.
PATIENCE = 10


def solve_with_kinks(
    batch: Batch, loss: Loss, targets: Array, side: objectives.Side, tolerance: float
) -> tuple[Array, Array]:
    """The point of each party and the certified bound on its distance to the solution, for piecewise linear losses."""
    shape, layout, unit = pieces(loss, targets), batch.rows.layout, _unit(batch)
    x, residual = np.array(batch.points), np.full(layout.parties, np.inf)
    dual, at_kink = np.zeros(batch.rows.count), np.zeros(batch.rows.count, dtype=bool)
    stage, settled = np.zeros(layout.parties, dtype=np.int64), np.zeros(layout.parties, dtype=bool)
    stale, live = np.zeros(layout.parties, dtype=np.int64), np.arange(layout.parties)
    for _ in SCHEDULE:
        place, part = layout.place(live), batch.take(live)
        own = shape.take(place)
        width = np.where(settled[live], FINISHING, SCHEDULE[stage[live]])
        spread = part.rows.layout.repeat_per_row(width * unit[live])
        term = MoreauEnvelope(loss, targets[place], own, dual[place].copy(), spread)
        found, _ = objectives.solve(part.of(term), side, term.center, max(tolerance / 8, BLUR / width.max()))
        scores = part.rows.linear_predictor(found)
        weights, on_kink = term.slope(scores), term.curvature(scores) > 0
        found = part.points - part.weights[:, None] * part.rows.rmatvec(weights)
        reached = certificate(part, own, weights, found)
        gained = reached < residual[live] / 2
        unchanged = part.rows.layout.sums((on_kink != at_kink[place]).astype(np.float64)) == 0
        settled[live] = unchanged & gained & (reached < CLOSE * (1 + lengths(found)))
        stage[live] += ~settled[live]
        stale[live] = np.where(gained, 0, stale[live] + 1)
        closer = reached < residual[live]
        x[live[closer]], residual[live[closer]] = found[closer], reached[closer]
        dual[place], at_kink[place] = weights, on_kink
        live = np.flatnonzero((residual > tolerance) & (stale < PATIENCE))
        if not live.size:
            break
    return x, residual


def start_from_afar(batch: Batch, loss: Loss, targets: Any, side: objectives.Side, start: Array) -> Array:
    """Weights b, shaped like scores, for which v - t A'b is near the solution; for a smooth loss."""
    unit, dual = _unit(batch), start
    for width in NARROWING:
        # An envelope that is much narrower than the bends of the loss is the loss.
        if np.all(width * unit * loss.curvature_bound < NEAR):
            break
        term = MoreauEnvelope(loss, targets, None, dual, batch.rows.layout.repeat_per_row(width * unit))
        found, _ = objectives.solve(batch.of(term), side, dual, NEAR)
        dual = term.slope(batch.rows.linear_predictor(found))
    return dual


def _unit(batch: Batch) -> Array:
    """The weight t times the mean of |row|^2, (parties,); any number does for a party that has only rows of zeros."""
    mean = batch.rows.layout.sums(batch.norms**2) / batch.rows.layout.sizes
    return batch.weights * np.where(mean > 0, mean, 1.0)
