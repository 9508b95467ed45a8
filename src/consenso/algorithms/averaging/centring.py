"""Rows around their mean, on one scale, as DualAveraging releases sums of them: bounds, factors, sums over non-zeros.

A centred row is b = d (a - t a_last), with d a scale for each column, a_last its entry in the free column (the constant
one of an intercept) and t the mean of every other column in units of the mean of that one. Along directions V in which
all columns move together it is made smaller, b - V (1 - s) V'b. Centred rows are never formed: a sum of them is the
same linear map of a sum of rows, and their lengths are a few products with the rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from consenso.algorithms.preconditioning.noise_levels import slope_limit
from consenso.algorithms.preconditioning.whitening import ROUNDOFF, Slopes
from consenso.arrays import Array, IntArray
from consenso.errors import MessageError
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.public_facts import PublicFacts
from consenso.row_products import multiply
from consenso.rows import sum_step
from consenso.shards import Cohort

# A shift is at most this long, and a clip at least this part of the row bound: rounding is magnified by no more.
LONGEST_SHIFT, SHORTEST_CLIP = 100.0, 1e-3
# Columns are made at most so much smaller.
LEAST_SCALE = 0.01
NARROWEST_WIDTH = 1e-3
# So many directions at most, of length 1 and at right angles up to this.
MOST_DIRECTIONS, TURNED = 16, 1e-9


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
        # Vectors without negative entries are not opposed.
        bounds=Bounds.of_contributions(record=one, party=one * facts.most, rounding=rounding, opposed=False),
        why="the squared entries of a row are a vector of at most its squared length (docs/privacy.md#dual-averaging)",
    )


def gradient_release(facts: PublicFacts, directions: int = 0) -> Release:
    """Gradients over centred rows, which share one cost."""
    slope, records = slope_limit(facts.problem) * (1 + rounding(facts, directions)), facts.problem.row_cap
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


def rounding(facts: PublicFacts, directions: int) -> float:
    """What rounding adds to how far a gradient moves, relative to one contribution of full length.

    Sums over rows are exact, of contributions slope times row that are rounded to a grid of `sum_step`; centring a sum
    makes it (1 + LONGEST_SHIFT) times longer at most, with four roundings of a number, in both worlds. A centred sum of
    n contributions is then multiplied with the directions and back, a product of as many terms as there are columns.
    """
    n = facts.problem.row_cap
    grid = float(np.sqrt(facts.dim)) * sum_step(1.0, n)
    centred = (1 + LONGEST_SHIFT) / SHORTEST_CLIP * (grid + 16 * n * ROUNDOFF)
    if not directions:
        return centred
    turned = 4 * float(np.sqrt(directions)) * (facts.problem.features + 2 * directions + 8) * n * ROUNDOFF
    return (centred + turned) * (1 + 2 * TURNED)


def check_centring(facts: PublicFacts, centring: Centring, width: float, share: float, directions: int = 0) -> None:
    """Refuse a shift, scales, directions, a clip, a width or a share that no honest hub names."""
    bound, shift, scales, clip = facts.problem.row_bound, centring.shift, centring.scales, centring.clip
    for name, told in (("shift", shift), ("scales", scales)):
        if told.shape not in ((0,), (facts.problem.features,)):
            raise MessageError(f"{name}: {facts.problem.features} numbers are due, or none.")
    if scales.size and not ((scales >= LEAST_SCALE) & (scales <= 1)).all():
        raise MessageError(f"scales: each lies in [{LEAST_SCALE:g}, 1], and one does not.")
    _check_directions(facts, centring.directions, directions)
    shrinks = centring.shrinks
    if shrinks.shape != (centring.directions.shape[1],) or not ((shrinks >= LEAST_SCALE) & (shrinks <= 1)).all():
        raise MessageError(f"shrinks: one for each direction, in [{LEAST_SCALE:g}, 1].")
    # Written so that what is not a number is refused.
    if not float(np.linalg.norm(shift)) <= LONGEST_SHIFT or (shift.size and shift[-1] != 0):
        raise MessageError(f"shift: at most {LONGEST_SHIFT:g} long, and 0 in the free column; this one is not.")
    if not (SHORTEST_CLIP <= clip / bound <= 1 + LONGEST_SHIFT and NARROWEST_WIDTH <= width <= 1 and 0 < share <= 1):
        raise MessageError(
            f"clip, width and share lie in [{SHORTEST_CLIP:g}, {1 + LONGEST_SHIFT:g}] row bounds, "
            f"[{NARROWEST_WIDTH:g}, 1] and (0, 1], and one of them does not."
        )


def _check_directions(facts: PublicFacts, directions: Array, due: int) -> None:
    if directions.shape not in ((0, 0), (facts.problem.features, due)):
        raise MessageError(f"directions: {due} of {facts.problem.features} numbers are due, or none.")
    # Written so that what is not a number is refused.
    if directions.size and not float(np.abs(directions.T @ directions - np.eye(due)).max()) <= TURNED / due:
        raise MessageError("directions: they are of length 1 and at right angles, and these are not.")


@dataclass(frozen=True, eq=False)
class Centring:
    """A shift and scales (features,), or (0,) for none, and the clip to which centred rows are shortened.

    directions: orthonormal, (features, k), or (0, 0) for none; rows are multiplied by shrinks (k,) along them. A model
    in the units of a hub, "wide", has a number for each column and output, then one for each direction and output.
    """

    shift: Array
    clip: float
    scales: Array = field(default_factory=lambda: np.empty(0))
    directions: Array = field(default_factory=lambda: np.empty((0, 0)))
    shrinks: Array = field(default_factory=lambda: np.empty(0))

    def factors(self, rows: Cohort) -> Array:
        """How much each centred row is shortened, (rows,): computed when this centring is first heard."""
        return rows.remember(self._name, self._compute)

    @cached_property
    def _name(self) -> str:
        parts = (self.shift, self.scales, self.shrinks, self.directions.ravel(), [self.clip, *self.directions.shape])
        return hashlib.sha256(np.concatenate(parts).tobytes()).hexdigest()

    def products(self, rows: Cohort, directions: Array) -> Array:
        """<centred row, direction> before rows are shrunk or shortened, (rows, k)."""
        vectors = self.scales[:, None] * directions if self.scales.size else np.array(directions)
        if self.shift.size:
            vectors[-1] -= self.shift @ vectors
        return rows.products(vectors)

    def center(self, sums: Array) -> Array:
        """Sums of rows (parties, dim) as sums of centred rows."""
        tables = sums.reshape(len(sums), max(len(self.shift), len(self.scales), 1), -1)
        if self.shift.size:
            tables = tables - self.shift[:, None] * tables[:, -1:, :]
        if self.scales.size:
            tables = tables * self.scales[:, None]
        if self.directions.size:
            along = (1 - self.shrinks)[:, None] * (self.directions.T @ tables)
            tables = tables - self.directions @ along
        return tables.reshape(sums.shape)

    @cached_property
    def _strong(self) -> Array:
        """Directions along which rows are made smaller; zeros for the others."""
        return self.directions * (self.shrinks < 1)

    def widen(self, gradient: Array) -> Array:
        """A gradient of scaled rows, (dim,), as a wide one in the units of the columns."""
        if not self.scales.size:
            return gradient
        table = gradient.reshape(len(self.scales), -1)
        along = self._strong.T @ table if self.directions.size else np.empty((0, table.shape[1]))
        across = table - self._strong @ along if self.directions.size else table
        return np.concatenate([across / self.scales[:, None], along / self.shrinks[:, None]]).ravel()

    def widen_noise(self, noise: float, features: int, outputs: int) -> Array:
        """Standard deviations of a wide gradient, each number of the gradient having this one."""
        scales = self.scales if self.scales.size else np.ones(features)
        return np.repeat(np.concatenate([noise / scales, noise / self.shrinks]), outputs)

    def model(self, w: Array, features: int) -> Array:
        """The model of rows for a wide model of rows around their mean: both give every row the same score."""
        table = np.array(w).reshape(features + self.shrinks.size, -1)
        along, table = table[features:], table[:features]
        if self.directions.size:
            scaled = table / self.scales[:, None]
            table = self.scales[:, None] * (scaled + self._strong @ (along - self._strong.T @ scaled))
        if self.shift.size:
            table[-1] -= self.shift @ table
        return table.ravel()

    def pull_back(self, slope: Array) -> Array:
        """Slopes in the columns of a centred model, (dim,), as those in a wide model."""
        columns = len(self.scales)
        scaled = slope.reshape(columns, -1) * self.scales[:, None]
        wide = self.widen(scaled.ravel()).reshape(columns + self.shrinks.size, -1)
        wide[columns:] *= self.shrinks[:, None]  # widening divides by them
        return wide.ravel()

    def squared_lengths(self, f: Cohort) -> Array:
        """Of centred rows, shrunk and not shortened, (rows,): at least the true ones, whatever rounding did."""
        features = f.problem.features
        squared = f.scaled_squared_norms(self.scales) if self.scales.size else f.squared_norms
        length = 0.0
        if self.shift.size:
            scales = self.scales if self.scales.size else np.ones(features)
            moved, length = scales * self.shift, float(np.linalg.norm(self.shift))
            last, along = f.products(np.stack([np.eye(1, features, features - 1)[0], scales * moved], axis=1)).T
            squared = squared - 2 * last * along + np.square(last) * float(moved @ moved)
        if self.directions.size:
            # The square of I - V (1 - s) V' takes this from the square, also where V is not quite orthonormal.
            less, products = np.diag(1 - self.shrinks), self.products(f, self.directions)
            taken = 2 * less - less @ (self.directions.T @ self.directions) @ less
            squared = squared - np.einsum("ij,ij->i", multiply(products, taken), products)
        # A computed squared length is off by less than half of this (docs/privacy.md#dual-averaging).
        hidden = 16 * (1 + self.shrinks.size) * (features + 8) * ROUNDOFF * (f.problem.row_bound * (1 + length)) ** 2
        return np.maximum(squared, 0.0) + hidden

    def _compute(self, f: Cohort) -> Array:
        shortened: Array = np.minimum(1.0, self.clip / np.sqrt(self.squared_lengths(f))) * (1 - 2.0**-48)
        return shortened


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
