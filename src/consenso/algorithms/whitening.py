"""What PreconditionedFixedPoint has found out, what it may release, and rows in the coordinates that it found."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from consenso.algorithms.noise_levels import slope_limit
from consenso.arrays import Array
from consenso.facts import Facts
from consenso.metric import Metric
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.rows import BLOCK_NUMBERS
from consenso.shards import Cohort

DIGEST_WORDS = 8  # of 32 bits: exact as floating-point numbers


@dataclass(frozen=True)
class Hub:
    """What the releases so far have told, and the iterates."""

    vectors: Array  # eigenvectors of Q; empty while all directions are alike
    values: Array  # eigenvalues of Q
    effective: float  # mean squared length of a whitened row
    trace: float  # mean squared length of a row
    clip: float
    steps: int  # how many gradient steps the budget is worth; 0 while it is not known
    taken: int
    width: float  # of slopes, relative to where they started
    step: float  # relative to the inverse curvature
    variance: float  # of scores that the first gradient spoke for
    gradient: Array  # the last one, whitened
    x: Array
    total: Array  # sum of the late points before the prox
    late: int

    @property
    def metric(self) -> Metric:
        """Q."""
        return Metric(self.vectors, self.values)

    @property
    def weight(self) -> float:
        """How much a typical record is shortened: the loss counts so much less, and so must the regularizer."""
        return min(1.0, self.clip / float(np.sqrt(self.effective)))


def moment_release(facts: Facts, *, several: bool) -> Release:
    """Second moments; `several` share one cost."""
    p, one = facts.problem.features, facts.problem.row_bound**2
    rounding = sum_rounding(facts.problem.row_cap, one * facts.problem.row_cap)
    return Release(
        name="second moment",
        size=p * (p + 1) // 2,
        at="sum",
        adaptive=several,
        parts=several,
        bounds=Bounds(
            record_add_remove=one + rounding,
            record_replace_one=np.sqrt(2) * one + rounding,
            user_add_remove=one * facts.most + rounding,
            # Two positive semidefinite matrices of Frobenius norm m R^2 are at most sqrt(2) m R^2 apart.
            user_replace_one=np.sqrt(2) * one * facts.most + rounding,
        ),
        why="a row contributes a a' of Frobenius norm |a|^2 (docs/privacy.md#preconditioned-fixed-point)",
    )


def gradient_release(facts: Facts) -> Release:
    """Gradients over whitened rows, which share one cost."""
    slope, records = slope_limit(facts.problem), facts.problem.row_cap
    return Release(
        name="gradient",
        size=facts.dim,
        at="sum",
        adaptive=True,
        parts=True,
        bounds=Bounds.of_contributions(
            record=slope, user=slope * facts.most, rounding=sum_rounding(records, slope * records)
        ),
        why="a slope times a whitened row shortened to the clip (docs/privacy.md#preconditioned-fixed-point)",
    )


def scale_release(facts: Facts) -> Release:
    """The sum of squared slopes."""
    rounding = sum_rounding(facts.problem.row_cap, facts.problem.row_cap)
    one, users = 1.0 + rounding, facts.most + rounding
    return Release(
        name="scale",
        size=1,
        at="sum",
        bounds=Bounds(record_add_remove=one, record_replace_one=one, user_add_remove=users, user_replace_one=users),
        why="squared slopes over their squared bound lie in [0, 1] (docs/privacy.md#adaptive-bounds)",
    )


def digest(metric: Metric, clip: float) -> Array:
    """What tells one metric and clip from all others, (DIGEST_WORDS,): exact whole numbers."""
    told = hashlib.sha256()
    for part in (metric.vectors, metric.values, np.array([clip])):
        told.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    words: Array = np.frombuffer(told.digest(), dtype="<u4").astype(np.float64)
    return words


def factors(f: Cohort, metric: Metric, clip: float) -> Array:
    """How much each whitened row is shortened.

    Rows are whitened by the very matrix that gradients are: whether its vectors are orthogonal is the hub's word.
    """
    whitened = f.squared_norms / metric.values[0] if metric.is_round else _whitened(f, metric)
    shortened: Array = np.minimum(1.0, clip / np.maximum(np.sqrt(whitened), np.finfo(float).tiny))
    return shortened


def _whitened(f: Cohort, metric: Metric) -> Array:
    return f.transformed_squared_norms(metric.power(-0.5))


def shortened_moments(f: Cohort, factors: Array) -> Array:
    """Sum over each party's rows of factor^2 times row times its transpose, (parties, features, features).

    The only place where an algorithm looks at rows: no primitive of a cohort weighs the rows of a second moment. They
    are taken a block at a time, so that no second table is made.
    """
    rows = f._rows
    length = max(1, BLOCK_NUMBERS // rows.features)
    out = np.zeros((rows.parties, rows.features, rows.features))
    for party, (start, stop) in enumerate(zip(rows.layout.offsets[:-1], rows.layout.offsets[1:], strict=True)):
        for here in range(int(start), int(stop), length):
            block = slice(here, min(here + length, int(stop)))
            part = rows.matrix[block]
            part = (part.toarray() if rows.is_sparse else part) * factors[block, None]
            out[party] += part.T @ part
    return out
