"""Standard errors of a private fit, from what it released anyway (docs/privacy.md#standard-errors).

In coordinates u = Q^(-1/2) a, t = Q^(1/2) x that the released second moment whitens, the mean of the late gradients is

    pull = E[w slope(<t', u>, b) u] + noise + sampling,        w = how much a row is shortened,   t' = the iterates

and the estimate is the t at which the model of the targets would have given this pull: penalties, damping and steps
that were not taken to the end are undone, since they change the iterates and not what gradients say there. Its
covariance is

    H^-1 (V / n + noise^2) H^-1 + (what noise has left in Q),   H = E[w slope' u u'],   V = E[w^2 slope^2 u u'].

Expectations over rows are those of Gaussian rows with the released second moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from consenso.algorithms.evidence import Evidence
from consenso.algorithms.preconditioning.slope_sizes import POWERS
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.gaussian_rows import GaussianRows
from consenso.losses import Huber, Logistic, Loss, Squared

# Points of the rule for how far iterates wander.
WANDERINGS = 9
# Spectral norm of the noise of the second moment, relative to it, up to which coverage was tested (docs/privacy.md).
MOST_HIDDEN = 0.3
# Steps of Newton's method, which halves what is left of the distance at least; and when it is done.
MOST_STEPS, CLOSE = 50, 1e-8


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """Coefficients without shrinkage, (features,), their covariance, and the spread of residuals of a regression.

    The last coefficient is that of the constant column, or the intercept, where there is one.
    """

    coefficients: Array
    covariance: Array
    residual: float | None

    @property
    def standard_errors(self) -> Array:
        errors: Array = np.sqrt(np.diag(self.covariance))
        return errors

    def change_units(self, by: Array, shift: Array) -> Estimate:
        """Of coefficients that are `by` times these, plus `shift`."""
        covariance = by @ self.covariance @ by.T
        return Estimate(coefficients=by @ self.coefficients + shift, covariance=covariance, residual=self.residual)


def estimate(loss: Loss, records: int, constant: float | None, seen: Evidence | None) -> Estimate:
    """The estimate, in the units of the rows; an InputError says why there is none."""
    if seen is None:
        raise InputError(
            "No standard errors: this fit released no second moment to make them of, or its rows have weights; "
            "the solver 'preconditioned' releases one where there are enough records."
        )
    if not isinstance(loss, Squared | Huber | Logistic):
        raise InputError(
            f"No standard errors: they are not known for the {loss.name} loss, only for squares and two labels."
        )
    hidden = seen.moments.blur * float(np.sqrt(2 * len(seen.point)))
    if hidden > MOST_HIDDEN:
        raise InputError(
            f"No standard errors: the noise of the released second moment is {hidden:.0%} of it, they are known up to "
            f"{MOST_HIDDEN:.0%}; take more records, fewer columns, a smaller row bound or a larger epsilon."
        )
    found = (_Labels if isinstance(loss, Logistic) else _Numbers)(seen, records, constant).estimate()
    if found is None:
        raise InputError("No standard errors: noise leaves no finite estimate; take more records or a larger epsilon.")
    return found


def reach_of(level: float) -> float:
    """Half of the length of an interval that covers in a share `level` of cases, in standard errors."""
    if not 0 < level < 1:
        raise InputError(f"level={level}: the share of intervals that are to cover lies in (0, 1), such as 0.9.")
    return float(special.ndtri(0.5 + level / 2))


@dataclass(frozen=True, eq=False)
class _Fit:
    seen: Evidence
    records: int
    constant: float | None

    @cached_property
    def rows(self) -> GaussianRows:
        return GaussianRows(self.seen, self.constant)

    @cached_property
    def point(self) -> Array:
        return self.seen.metric.apply(self.seen.point, 0.5)

    def finish(self, t: Array, bread: Array, meat: Array, noise: float, residual: float | None) -> Estimate:
        """Back to the coordinates of rows. noise: in an entry of `pull`."""
        seen, p = self.seen, self.rows.features
        inverse = np.linalg.inv(bread)
        inner = meat / self.records + noise**2 * np.eye(p)
        moved = self.point - t
        blur = seen.moments.blur**2 / 2
        # Of (1 + E)^-1 M (1 + E)^-1 for a symmetric E of noise the mean is (1 + 3 E[E^2]) M, for M like the identity.
        covariance = (1 + 3 * blur * (p + 1)) * inverse @ inner @ inverse
        covariance += blur * (float(moved @ moved) * np.eye(p) + np.outer(moved, moved))
        root = seen.metric.power(-0.5)
        return Estimate(coefficients=seen.metric.apply(t, -0.5), covariance=root @ covariance @ root, residual=residual)


class _Numbers(_Fit):
    """Gaussian residuals, clipped at the limit."""

    def estimate(self) -> Estimate | None:
        rows, seen = self.rows, self.seen
        direction, _, _ = rows.along(self.point)
        flat = rows.square(rows.shortened, direction)
        squares = rows.square(rows.shortened**2, direction)
        t, residual = self.point, self.spread_of_residuals(self.point)
        for _ in range(3):  # the spread of residuals depends on the estimate, and the other way round, a little
            away = float(np.sum((self.point - t) ** 2)) + seen.wander * rows.features
            bend = _inside(seen.limit, np.hypot(residual, np.sqrt(away)))
            t = self.point - np.linalg.solve(bend * flat, seen.pull)
            residual = self.spread_of_residuals(t)
        # Slopes are straight but for the clip, which `bend` knows: noise is what was drawn. How gradients scatter over
        # a handful of steps would say it with an error, and the larger of the two is too large on average.
        meat = _clipped_square(seen.limit, residual) * squares
        return self.finish(t, bend * flat, meat, seen.noise, residual)

    def spread_of_residuals(self, t: Array) -> float:
        """Standard deviation, from counts of residuals at an early model, or of targets."""
        seen = self.seen
        least = 1e-3 * seen.unit
        if seen.sizes.size:
            away = seen.metric.apply(seen.met, 0.5) - t
            counted = _spread_of_counts(seen.sizes, self.records) * seen.unit
        elif seen.spread:
            away = seen.metric.apply(seen.origin, 0.5) - t
            counted = seen.spread
        else:
            return seen.unit
        explained = float(away @ self._moment @ away)
        return float(np.sqrt(max(counted**2 - explained, least**2)))

    @cached_property
    def _moment(self) -> Array:
        direction, _, _ = self.rows.along(self.point)
        return self.rows.square(np.ones_like(self.rows.lengths), direction)


class _Labels(_Fit):
    """Labels of a logistic model, with slopes clipped at the limit and averaged over iterates that wander."""

    def estimate(self) -> Estimate | None:
        _rows, seen = self.rows, self.seen
        t = self.point
        for _ in range(MOST_STEPS):
            bread = self._bread(t)
            step = np.linalg.solve(bread, self._pull(t) - seen.pull)
            size = float(np.linalg.norm(step))
            if not np.isfinite(size) or float(np.linalg.norm(t + step)) > 1e3:
                return None
            t = t + step / max(1.0, size)
            if size < CLOSE:
                bread = self._bread(t)
                noise = seen.noise_at(float(np.trace(bread)) / self.rows.features)
                return self.finish(t, bread, self._meat(t), noise, None)
        return None

    @cached_property
    def _noise(self) -> tuple[Array, Array]:
        points, chances = np.polynomial.hermite_e.hermegauss(WANDERINGS)
        return points, chances / chances.sum()

    def _smooth(self, function: Callable[[Array], Array], scores: Array) -> Array:
        """A function of scores, averaged over iterates that wander around their mean."""
        points, chances = self._noise
        wide = np.sqrt(self.seen.wander * self.rows.lengths)
        averaged: Array = function(scores[:, None] + wide[:, None] * points) @ chances
        return averaged

    def _up(self, scores: Array) -> Array:
        """The slope of a record without the label."""
        slopes: Array = np.minimum(special.expit(scores), self.seen.limit)
        return slopes

    def _down(self, scores: Array) -> Array:
        slopes: Array = np.minimum(special.expit(-scores), self.seen.limit)
        return slopes

    def _pull(self, t: Array) -> Array:
        """The mean gradient at the iterates if labels follow the model t."""
        rows, w = self.rows, self.rows.shortened
        direction, part, size = rows.along(self.point)
        scores = rows.scores(part, size)
        # What clips change is computed as if both models had one direction; the rest is exact.
        near = rows.scores(float(rows.axis @ t), float(direction @ t))
        up, down = self._smooth(self._up, scores), self._smooth(self._down, scores)
        chance = self._smooth(special.expit, scores)
        cut = (up - chance) - special.expit(near) * (up + down - 1)
        own, part, size = rows.along(t)
        told = special.expit(rows.scores(part, size))
        return rows.mean(w * (chance + cut), direction) - rows.mean(w * told, own)

    def _bread(self, t: Array) -> Array:
        rows = self.rows
        direction, part, size = rows.along(t)
        scores = rows.scores(part, size)
        chance = special.expit(scores)
        slopes = self._smooth(self._up, scores) + self._smooth(self._down, scores)
        return rows.square(rows.shortened * chance * (1 - chance) * slopes, direction)

    def _meat(self, t: Array) -> Array:
        rows = self.rows
        direction, part, size = rows.along(t)
        scores = rows.scores(part, size)
        chance = special.expit(scores)
        up, down = self._smooth(self._up, scores), self._smooth(self._down, scores)
        mean = rows.mean(rows.shortened * ((1 - chance) * up - chance * down), direction)
        whole = rows.square(rows.shortened**2 * ((1 - chance) * up**2 + chance * down**2), direction)
        return whole - np.outer(mean, mean)


def _inside(limit: float, spread: float) -> float:
    """The share of Gaussian residuals that are not clipped."""
    return float(special.erf(limit / (np.sqrt(2.0) * max(spread, np.finfo(float).tiny))))


def _clipped_square(limit: float, spread: float) -> float:
    """The mean square of clipped Gaussian residuals."""
    ratio = limit / spread
    inside = _inside(limit, spread)
    density = np.exp(-(ratio**2) / 2) / np.sqrt(2 * np.pi)
    return float(spread**2 * (inside - 2 * ratio * density) + limit**2 * (1 - inside))


def _spread_of_counts(counts: Array, records: int) -> float:
    """The Gaussian spread, over the unit of counts, that fits noisy counts by size best."""
    from scipy.optimize import minimize_scalar

    both = counts[:POWERS] + counts[POWERS:]
    edges = np.append(np.exp2(-np.arange(POWERS, dtype=np.float64)), 0.0)
    edges[0] = np.inf  # what is clipped is counted in the largest

    def distance(log: float) -> float:
        below = special.erf(edges / (np.sqrt(2.0) * np.exp(log)))
        return float(np.sum((both - records * (below[:-1] - below[1:])) ** 2))

    tried = np.linspace(np.log(2.0**-POWERS), 0.0, 89)
    best = min(map(float, tried), key=distance)
    found = minimize_scalar(distance, bounds=(best - 0.2, best + 0.2), method="bounded")
    return float(np.exp(found.x))
