"""How far x = v - t A'b can be from the prox when phi has kinks, for any weights b between the slopes of phi.

Let e move the scores s = A x so that b_j is a subgradient of phi_j at s_j + e_j; let x*, s*, b* belong to the solution,
d = |x - x*| and x - x* = -t A'(b - b*) + rho with |rho| <= r (rounding). Subgradients are monotone, so
(b_j - b*_j)(s_j + e_j - s*_j) >= 0 and

    d^2 = -t (b - b*)'(s - s*) + <rho, x - x*> <= t (b - b*)'e + r d.                                              (1)

Weak form: t (b - b*)'e <= t sum jump_j |e_j| gives d <= r + sqrt(t sum jump_j |e_j|), which loses half of the digits.

Strong form: if e = A w then t (b - b*)'e = <rho - (x - x*), w> <= (d + r)|w|, and (1) gives d <= 1.21 (|w| + r). Such
a w exists when the rows S whose scores have to move are independent: w = A_S'(A_S A_S')^-1 e_S. The other rows move
along by at most |row||w|, which is allowed while they stay on their pieces. Rounded scores mean that e_S is known up to
some slack: |w| <= |L^-1 e_S| + |L^-1|_F |slack|, where A_S A_S' = LL'. A row that occurs twice with the same kink asks
for the same thing twice and is taken once.
"""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.rows import Layout, Rows
from consenso.subproblems.batch import ROUNDING, Batch, lengths
from consenso.subproblems.pieces import Pieces

# The 1.21 of the strong form with one per cent for the rounding of the Cholesky factor.
STRONG = 1.21 * 1.01
# A score that is this many times its rounding away from a kink, or less, is treated as lying on it.
ON_KINK = 16.0
SMALLEST_PIVOT = 1e-10


def certificate(batch: Batch, shape: Pieces, weights: Array, x: Array) -> Array:
    """Bound on |x - x*| for x = v - t A'weights, (parties,)."""
    layout, length = batch.rows.layout, lengths(x)
    scores = batch.rows.linear_predictor(x)
    slack = ROUNDING * (1 + np.sqrt(batch.rows.features) / 8) * batch.norms * layout.repeat_per_row(length)
    rest = ROUNDING * (length + lengths(batch.points) + batch.weights * layout.sums(batch.norms * np.abs(weights)))
    low, high = shape.valid(weights)
    room = np.minimum(scores - low, high - scores)
    # A row of zeros has the same score at x and at x*, and adds nothing to either.
    tight = (room <= ON_KINK * slack) & (batch.norms > 0)
    wrong = np.where(tight, np.maximum(-room, 0.0) + slack, 0.0)
    weak = rest + np.sqrt(batch.weights * layout.sums(shape.jumps * wrong))
    kinks = np.where(scores - low <= high - scores, low, high)
    if layout.one_each:
        shift = np.divide(np.abs(kinks - scores) + slack, batch.norms, out=np.zeros_like(slack), where=tight)
    else:
        shift = _shift_lengths(batch.rows, np.flatnonzero(tight), kinks, scores, slack)
    there = batch.norms > 0  # the shift may be infinite
    moves = np.multiply(batch.norms, layout.repeat_per_row(shift), out=np.zeros_like(slack), where=there)
    leaves = (moves + slack >= room) & ~tight & there
    stays = layout.sums(leaves.astype(np.float64)) == 0
    return np.minimum(weak, np.where(stays, STRONG * (shift + rest), np.inf))


def _shift_lengths(rows: Rows, tight: IntArray, kinks: Array, scores: Array, slack: Array) -> Array:
    """Bounds on |w|, (parties,); infinite where the tight rows are not seen to be independent."""
    party = rows.layout.repeat_per_row(np.arange(rows.parties))[tight]
    kept = _without_twins(rows, tight, party, kinks[tight])
    tight, party = tight[kept], party[kept]
    counts = np.bincount(party, minlength=rows.parties)
    many = counts > rows.features
    tight = tight[~many[party]]
    counts[many] = 0
    bounds = np.zeros(rows.parties)
    if tight.size:
        from consenso.kernels import compiled, systems

        layout = Layout(np.concatenate(([0], np.cumsum(counts))))
        grams, starts = Rows(rows.matrix[tight], layout).grams
        arguments = (grams, starts, layout.offsets, (kinks - scores)[tight], slack[tight], SMALLEST_PIVOT, bounds)
        compiled.run(systems.shift_lengths, layout.offsets, float(counts.max()) ** 2, *arguments)
    bounds[many] = np.inf
    return bounds


def _without_twins(rows: Rows, tight: IntArray, party: IntArray, kinks: Array) -> IntArray:
    """Positions in `tight` of the first of each set of equal rows of a party with equal kinks."""
    matrix = rows.matrix[tight]
    # Equal rows have equal sums, whatever the order of summation, because each is summed in the same way.
    key = np.asarray(matrix.sum(axis=1)).reshape(-1)
    order = np.lexsort((kinks, key, party))
    same = (np.diff(party[order]) == 0) & (np.diff(kinks[order]) == 0) & (np.diff(key[order]) == 0)
    ahead, behind = matrix[order[1:][same]], matrix[order[:-1][same]]
    same[same] = np.asarray((ahead != behind).sum(axis=1)).reshape(-1) == 0
    return np.sort(order[np.concatenate(([True], ~same))]) if tight.size else tight
