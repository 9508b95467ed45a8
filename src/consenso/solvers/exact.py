"""The fit without privacy: the minimiser of mean f_i + r, to rounding wherever the problem allows.

    stage k:   G(x) = sum of weight * term(<row, x>) + square/2 |x|^2 + envelopes of the rest of the penalty
               x   <- argmin G, by damped Newton steps (conjugate gradients where the system would be large)
               the slopes at x become the centers of the next, narrower envelopes

What is smooth is taken as it is, so that smooth problems have one stage. A loss with kinks and a penalty with kinks are
replaced by their Moreau envelopes around the last slopes (`consenso.subproblems.envelope`): the augmented Lagrangian
method on the split scores = rows x, model = x, with semismooth Newton inside.

*Certificate.* Let z be the point returned, s its scores, g_i a subgradient of the loss at p_i, q one of the penalty at
z. Convexity at p_i and z, summed with the weights v_i of the records, gives for every x*

    F(z) - F(x*) <= sum_i v_i (phi(s_i) - phi(p_i) - g_i (s_i - p_i)) + <sum_i v_i g_i row_i + q, z - x*>.

The first sum is computed; the second is bounded coordinate by coordinate, |x*_j| being at most what the penalty allows
below the objective of the zero model. Where that says little, one unit of score is put in its place: the only part that
is an estimate.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.problem import Problem
from consenso.shards import Shards
from consenso.solvers.exact_steps import descend
from consenso.solvers.smooth import Penalty, Smoothed, split
from consenso.subproblems.batch import Plain, Term
from consenso.subproblems.envelope import MoreauEnvelope
from consenso.subproblems.pieces import Pieces, pieces

# Widths of the envelopes, over the natural ones: narrow ones find the pieces on which the solution lies.
WIDTHS = (1.0, 0.1, 1e-2, 1e-3)
STAGES = 100
TOLERANCE = 1e-9  # of the certificate, relative to the objective of the zero model
ACCEPTED = 1e-5  # beyond this a caller is told


@dataclass(frozen=True, kw_only=True, eq=False)
class Exact:
    """The minimiser, the certified gap of its objective to the minimum, and the Newton steps that it took."""

    model: Array  # (dim,)
    objective: float
    gap: float
    steps: int


def fit_exact(problem: Problem, shards: Shards) -> Array:
    """The minimiser of the problem's objective on these shards, (dim,): not private, nothing is perturbed."""
    return solve_exact(problem, shards).model


def solve_exact(problem: Problem, shards: Shards, *, start: Array | None = None) -> Exact:
    """The same with its certificate. A minimum that is not reached is a warning, as in scikit-learn."""
    if shards.problem != problem:
        raise InputError("fit_exact(shards=...): the shards belong to another problem; build them for this one.")
    work = _Work.of(problem, shards)
    x = np.zeros(problem.dim) if start is None else np.array(start, dtype=np.float64)
    best, steps = work.judge(np.zeros(problem.dim), *work.smooth(1.0, None, None).slopes(np.zeros(problem.dim))), 0
    scale, stale = best.objective, 0
    dual: Array | None = None
    push: Array | None = None
    for stage in range(STAGES if work.has_kinks else 1):
        smooth = work.smooth(WIDTHS[min(stage, len(WIDTHS) - 1)], dual, push)
        x, taken = descend(smooth, x)
        steps += taken
        dual, push = smooth.slopes(x)
        found = work.judge(smooth.model(x), dual, push)
        stale = 0 if found.gap < best.gap / 2 else stale + 1
        if found.gap < best.gap or found.objective < best.objective:
            best = found
        if best.gap <= TOLERANCE * scale or (stage >= len(WIDTHS) and stale > 3):
            break
    if best.gap > ACCEPTED * scale:
        _warn(best.gap / scale if scale else math.inf)
    return Exact(model=best.model, objective=best.objective, gap=best.gap, steps=max(steps, 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Judged:
    model: Array
    objective: float
    gap: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Work:
    """What does not change between the stages."""

    problem: Problem
    rows: Any
    targets: Any
    weights: Array  # of each record in the objective, (rows,)
    squares: Array  # weighted mean squares of the columns, repeated for each output, (dim,)
    unit: float  # the natural width of a loss's envelope, in units of score
    penalty: Penalty
    shape: Pieces | None

    @classmethod
    def of(cls, problem: Problem, shards: Shards) -> _Work:
        f = shards.cohort()
        # The exact fit is no release: it works with the rows themselves.
        rows, targets = f._rows, f._targets
        weights = f.weigh(f.repeat_per_row(f.scales) / problem.parties)
        squares = np.repeat(_mean_squares(rows, weights), problem.outputs)
        kinked = math.isinf(problem.loss.curvature_bound)
        return cls(
            problem=problem,
            rows=rows,
            targets=targets,
            weights=weights,
            squares=np.where(squares > 0, squares, 1.0),
            unit=_measure_spread(targets) if problem.loss.targets == "real" else 1.0,
            penalty=split(problem.regularizer, problem.dim),
            shape=pieces(problem.loss, targets) if kinked else None,
        )

    @property
    def has_kinks(self) -> bool:
        return self.shape is not None or self.penalty.has_kinks

    def smooth(self, width: float, dual: Array | None, push: Array | None) -> Smoothed:
        """The smooth function of a stage."""
        curvature = self.problem.loss.curvature_bound
        term: Term = Plain(self.problem.loss, self.targets)
        if self.shape is not None:
            center = np.zeros(len(self.targets)) if dual is None else dual
            each = np.full(len(self.targets), width * self.unit)
            term = MoreauEnvelope(self.problem.loss, self.targets, self.shape, center, each)
            curvature = 1.0 / self.unit
        steepness = curvature * self.squares + self.penalty.square
        return Smoothed(
            rows=self.rows,
            term=term,
            weights=self.weights,
            penalty=self.penalty,
            widths=width / steepness,
            push=np.zeros(self.problem.dim) if push is None else push,
            steepness=steepness,
        )

    def judge(self, z: Array, dual: Array, push: Array) -> _Judged:
        """The objective at z, and how far above the minimum it is at most."""
        loss, scores = self.problem.loss, self.rows.linear_predictor(z)
        values = loss.value(scores, self.targets)
        objective = float(self.weights @ values + self.problem.regularizer.value(z))
        slopes, beyond = dual, 0.0
        if self.shape is None:
            slopes = loss.slope(scores, self.targets)
        else:
            low, high = self.shape.valid(dual)
            nearest = np.clip(scores, low, high)
            beyond = float(self.weights @ (values - loss.value(nearest, self.targets) - dual * (scores - nearest)))
        weighted = slopes * (self.weights if slopes.ndim == 1 else self.weights[:, None])
        left = self.rows.total(weighted) + self.penalty.square * z
        left += self.penalty.find_opposing(z, left) if self.penalty.other is None else push
        return _Judged(model=z, objective=objective, gap=max(beyond, 0.0) + float(np.abs(left) @ self.reach(z)))

    def reach(self, z: Array) -> Array:
        """How far each coordinate of the minimiser may be from z: no further than its penalty allows, (dim,)."""
        zero = float(
            self.weights @ self.problem.loss.value(self.rows.linear_predictor(np.zeros(self.problem.dim)), self.targets)
        )
        with np.errstate(divide="ignore"):
            by_square, by_absolute = np.sqrt(2 * zero / self.penalty.square), zero / self.penalty.absolute
        return np.abs(z) + np.minimum(self.unit / np.sqrt(self.squares), np.minimum(by_square, by_absolute))


def _mean_squares(rows: Any, weights: Array) -> Array:
    if rows.is_sparse:
        return np.asarray(rows.matrix.multiply(rows.matrix).T @ weights, dtype=np.float64).reshape(-1)
    sums: Array = np.einsum("ij,ij,i->j", rows.matrix, rows.matrix, weights, dtype=np.float64)
    return sums


def _measure_spread(targets: Array) -> float:
    """How far targets lie from their middle; 1 if they are all equal."""
    spread = float(np.mean(np.abs(targets - np.median(targets))))
    return spread if spread > 0 else 1.0


def _warn(gap: float) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"fit_exact: the objective may be {gap:.1e} of that of the zero model above its minimum; raise the penalty, or "
        "scale the columns.",
        ConvergenceWarning,
        stacklevel=3,
    )
