"""Local problems that Newton's method cannot take in one go: losses with kinks, and very large steps.

Both go through envelopes that get narrower (`consenso.subproblems.envelope`). With kinks everything is polyhedral, so
the proximal point method ends after finitely many rounds on the exact solution. For a smooth loss the envelopes only
lead to a starting point that is near enough.
"""

from __future__ import annotations

from itertools import chain, cycle, islice

import numpy as np

from consenso.arrays import Array
from consenso.losses import Loss
from consenso.subproblems import newton
from consenso.subproblems.batch import Batch
from consenso.subproblems.certificate import certificate
from consenso.subproblems.envelope import Envelope
from consenso.subproblems.pieces import pieces

# Widths of the envelopes over t * |row|^2. Narrow ones find the pieces on which the solution lies but magnify rounding
# by 1 / width; wide ones then remove a fixed share of the remaining error in each round.
NARROWING = tuple(10.0**-k for k in range(1, 9))
FINISHING = (1e-3, 1e-3, 1e-3, 1e-8)
ROUNDS = 40
# What rounding leaves of the accuracy of a round, times its width.
BLUR = 1e-14
NEAR = 1e-3


def solve_with_kinks(
    batch: Batch, loss: Loss, targets: Array, side: newton.Side, tolerance: float
) -> tuple[Array, Array]:
    """The point of each party and the certified bound on its distance to the solution, for piecewise linear losses."""
    shape, layout, unit = pieces(loss, targets), batch.rows.layout, _unit(batch)
    x, residual = np.array(batch.points), np.full(batch.rows.parties, np.inf)
    dual = np.zeros(batch.rows.count)
    live = np.arange(batch.rows.parties)
    for width in islice(chain(NARROWING, cycle(FINISHING)), ROUNDS):
        place, part = layout.place(live), batch.take(live)
        spread = part.rows.layout.spread(width * unit[live])
        term = Envelope(loss, targets[place], shape.take(place), dual[place], spread)
        found, _ = newton.solve(part.of(term), side, dual[place], max(tolerance / 8, BLUR / width))
        weights = term.slope(part.rows.scores(found))
        found = part.points - part.weights[:, None] * part.rows.pull(weights)
        reached = certificate(part, shape.take(place), weights, found)
        dual[place] = weights
        closer = reached < residual[live]
        x[live[closer]], residual[live[closer]] = found[closer], reached[closer]
        live = np.flatnonzero(residual > tolerance)
        if not live.size:
            break
    return x, residual


def start_from_afar(batch: Batch, loss: Loss, targets: Array, side: newton.Side) -> Array:
    """Weights b for which v - t A'b is near the solution, for a smooth loss of one output."""
    unit, dual = _unit(batch), np.zeros(batch.rows.count)
    for width in NARROWING:
        term = Envelope(loss, targets, None, dual, batch.rows.layout.spread(width * unit))
        found, _ = newton.solve(batch.of(term), side, dual, NEAR)
        dual = term.slope(batch.rows.scores(found))
    return dual


def _unit(batch: Batch) -> Array:
    """The weight t times the mean of |row|^2, (parties,)."""
    layout = batch.rows.layout
    return batch.weights * np.maximum(layout.sums(batch.norms**2) / layout.sizes, np.finfo(np.float64).tiny)
