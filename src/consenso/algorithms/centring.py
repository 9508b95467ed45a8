"""Rows around their mean, on one scale, as DualAveraging releases sums of them: bounds, factors, sums over non-zeros.

A centred row is b = s (a - t a_last), with s a scale for each column, a_last its entry in the free column (the constant
one of an intercept) and t the mean of every other column in units of the mean of that one. Centred rows are never
formed: a sum of them is the same linear map of a sum of rows, and their lengths are a few products with the rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from consenso.algorithms.noise_levels import slope_limit
from consenso.algorithms.whitening import ROUNDOFF, Slopes
from consenso.arrays import Array, IntArray
from consenso.errors import MessageError
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.public_facts import PublicFacts
from consenso.rows import sum_step
from consenso.shards import Cohort

# A shift is at most this long, and a clip at least this part of the row bound: rounding is magnified by no more.
LONGEST_SHIFT, SHORTEST_CLIP = 100.0, 1e-3
# Columns are made at most so much smaller.
LEAST_SCALE = 0.01
NARROWEST_WIDTH = 1e-3


def mean_release(facts: PublicFacts) -> Release:
    """The sum of rows."""
    problem = facts.problem
    longest = problem.row_bound * (1 + np.sqrt(problem.features) * sum_step(1.0, problem.row_cap))
    return Release(
        name="mean",
        size=problem.features,
        at="sum",
        bounds=Bounds.of_contributions(
            record=longest,
            party=longest * facts.most,
            rounding=sum_rounding(problem.parties, longest * problem.row_cap),
        ),
        why="a row is at most the row bound long (docs/privacy.md#dual-averaging)",
    )


def squares_release(facts: PublicFacts) -> Release:
    """The sum of squared entries, column by column."""
    problem, one = facts.problem, facts.problem.row_bound**2
    rounding = sum_rounding(problem.parties, one * problem.row_cap)
    return Release(
        name="squares",
        size=problem.features,
        at="sum",
        bounds=Bounds(
            record_add_remove=one + rounding,
            # Vectors without negative entries are at most sqrt 2 times the longer one apart.
            record_replace_one=np.sqrt(2) * one + rounding,
            party_add_remove=one * facts.most + rounding,
            party_replace_one=np.sqrt(2) * one * facts.most + rounding,
        ),
        why="the squared entries of a row are a vector of at most its squared length (docs/privacy.md#dual-averaging)",
    )


def gradient_release(facts: PublicFacts) -> Release:
    """Gradients over centred rows, which share one cost."""
    slope, records = slope_limit(facts.problem) * (1 + rounding(facts)), facts.problem.row_cap
    return Release(
        name="gradient",
        size=facts.dim,
        at="sum",
        adaptive=True,
        parts=True,
        bounds=Bounds.of_contributions(
            record=slope, party=slope * facts.most, rounding=sum_rounding(facts.problem.parties, slope * records)
        ),
        why="a slope times a centred row shortened to the clip (docs/privacy.md#dual-averaging)",
    )


def rounding(facts: PublicFacts) -> float:
    """What rounding adds to how far a gradient moves, relative to one contribution of full length.

    Sums over rows are exact, of contributions slope times row that are rounded to a grid of `sum_step`; centring a sum
    makes it (1 + LONGEST_SHIFT) times longer at most, with four roundings of a number, in both worlds.
    """
    n = facts.problem.row_cap
    grid = float(np.sqrt(facts.dim)) * sum_step(1.0, n)
    return (1 + LONGEST_SHIFT) / SHORTEST_CLIP * (grid + 16 * n * ROUNDOFF)


def check_centring(facts: PublicFacts, centring: Centring, width: float, share: float) -> None:
    """Refuse a shift, scales, a clip, a width or a share that no honest hub names."""
    bound, shift, scales, clip = facts.problem.row_bound, centring.shift, centring.scales, centring.clip
    for name, told in (("shift", shift), ("scales", scales)):
        if told.shape not in ((0,), (facts.problem.features,)):
            raise MessageError(f"{name}: {facts.problem.features} numbers are due, or none.")
    if scales.size and not ((scales >= LEAST_SCALE) & (scales <= 1)).all():
        raise MessageError(f"scales: each lies in [{LEAST_SCALE:g}, 1], and one does not.")
    # Written so that what is not a number is refused.
    if not float(np.linalg.norm(shift)) <= LONGEST_SHIFT or (shift.size and shift[-1] != 0):
        raise MessageError(f"shift: at most {LONGEST_SHIFT:g} long, and 0 in the free column; this one is not.")
    if not (SHORTEST_CLIP <= clip / bound <= 1 + LONGEST_SHIFT and NARROWEST_WIDTH <= width <= 1 and 0 < share <= 1):
        raise MessageError(
            f"clip, width and share lie in [{SHORTEST_CLIP:g}, {1 + LONGEST_SHIFT:g}] row bounds, "
            f"[{NARROWEST_WIDTH:g}, 1] and (0, 1], and one of them does not."
        )


@dataclass(frozen=True, eq=False)
class Centring:
    """A shift and scales (features,), or (0,) for none, and the clip to which centred rows are shortened."""

    shift: Array
    clip: float
    scales: Array = field(default_factory=lambda: np.empty(0))

    def factors(self, rows: Cohort) -> Array:
        """How much each centred row is shortened, (rows,): computed when the pair is first heard."""
        told = hashlib.sha256(np.concatenate([self.shift, [self.clip], self.scales]).tobytes()).hexdigest()
        return rows.remember(told, self._compute)

    def center(self, sums: Array) -> Array:
        """Sums of rows (parties, dim) as sums of centred rows."""
        if not (self.shift.size or self.scales.size):
            return sums
        tables = sums.reshape(len(sums), max(len(self.shift), len(self.scales)), -1)
        if self.shift.size:
            tables = tables - self.shift[:, None] * tables[:, -1:, :]
        if self.scales.size:
            tables = tables * self.scales[:, None]
        return tables.reshape(sums.shape)

    def unscale(self, gradient: Array) -> Array:
        """A gradient of scaled rows, (dim,), as one in the units of the columns."""
        if not self.scales.size:
            return gradient
        return (gradient.reshape(len(self.scales), -1) / self.scales[:, None]).ravel()

    def model(self, w: Array) -> Array:
        """The model of rows for a model of rows around their mean: both give every row the same score."""
        if not self.shift.size:
            return w
        table = np.array(w).reshape(len(self.shift), -1)
        table[-1] -= self.shift @ table
        return table.ravel()

    def _compute(self, f: Cohort) -> Array:
        features = f.problem.features
        squared = f.scaled_squared_norms(self.scales) if self.scales.size else f.squared_norms
        length = 0.0
        if self.shift.size:
            scales = self.scales if self.scales.size else np.ones(features)
            moved, length = scales * self.shift, float(np.linalg.norm(self.shift))
            last = _product(f, np.eye(1, features, features - 1)[0])
            squared = squared - 2 * last * _product(f, scales * moved) + np.square(last) * float(moved @ moved)
        # A computed squared length is off by less than this (docs/privacy.md#dual-averaging).
        hidden = 16 * (features + 8) * ROUNDOFF * (f.problem.row_bound * (1 + length)) ** 2
        shortened: Array = np.minimum(1.0, self.clip / np.sqrt(np.maximum(squared, 0.0) + hidden)) * (1 - 2.0**-48)
        return shortened


def _product(f: Cohort, vector: Array) -> Array:
    """<row, vector> for every row, whatever the number of outputs."""
    table = np.zeros((f.problem.features, f.problem.outputs))
    table[:, 0] = vector
    scores = f.linear_predictor(table.ravel())
    return scores if scores.ndim == 1 else scores[:, 0]


def sum_rows(f: Cohort) -> Array:
    """Sum over each party's rows, (parties, features)."""
    step = sum_step(f.problem.row_bound, f.problem.row_cap)
    return f.add_up(_rows, step, step)


def sum_squares(f: Cohort) -> Array:
    """Sum over each party's rows of squared entries, (parties, features)."""
    step = sum_step(f.problem.row_bound**2, f.problem.row_cap)
    return f.add_up(_squares, step, step)


def sum_gradients(f: Cohort, x: Array, slopes: Slopes, centring: Centring) -> Array:
    """Sum over each party's rows of slope times factor times row, before centring, (parties, dim)."""
    limit = slope_limit(f.problem) * (1.0 if slopes.smoothing else slopes.width)
    step = sum_step(limit * f.problem.row_bound, f.problem.row_cap)
    return f.add_up(_gradients, step, x, slopes, centring, step)


def _rows(f: Cohort, step: float) -> IntArray:
    ones = np.ones(f.rows)
    if f.problem.outputs == 1:
        return f.exact_sums(ones, step)
    table = np.zeros((f.rows, f.problem.outputs))
    table[:, 0] = ones
    return f.exact_sums(table, step).reshape(len(f.parties), f.problem.features, -1)[:, :, 0]


def _squares(f: Cohort, step: float) -> IntArray:
    return f.exact_squares(step)


def _gradients(f: Cohort, x: Array, slopes: Slopes, centring: Centring, step: float) -> IntArray:
    found, shortened = slopes.at(f, x), centring.factors(f)
    return f.exact_sums(found * (shortened if found.ndim == 1 else shortened[:, None]), step)
