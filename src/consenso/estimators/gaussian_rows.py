"""Gaussian rows with a released second moment, in the coordinates that it whitens: expectations as sums over points.

Rows are constant along the constant column, and alike in all other directions, so that an expectation needs points
along one direction and for the squared length in all that is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from consenso.algorithms.evidence import Evidence
from consenso.arrays import Array

# Points of the rules for a normal and a chi-squared number.
NORMALS, LENGTHS = 41, 24
# Relative error of what the constant column tells of the others, if rows are not Gaussian.
RULE_ERROR = 0.07


@dataclass(frozen=True, eq=False)
class GaussianRows:
    """Rows u of whoever released `seen`; constant: the value of the last column, None where it is like the others."""

    seen: Evidence
    constant: float | None

    @cached_property
    def axis(self) -> Array:
        """The direction in which whitened rows are constant; zeros without an intercept."""
        unit = np.zeros(self.features)
        if self.constant is None:
            return unit
        unit[-1] = 1.0
        axis = self.seen.metric.apply(unit, 0.5)
        return axis / float(np.linalg.norm(axis))

    @property
    def features(self) -> int:
        """How many columns there are, the constant one among them."""
        return len(self.seen.point)

    @cached_property
    def level(self) -> float:
        """The entry of every whitened row in that direction."""
        if self.constant is None:
            return 0.0
        unit = np.zeros(self.features)
        unit[-1] = 1.0
        return self.constant / float(np.linalg.norm(self.seen.metric.apply(unit, 0.5)))

    @cached_property
    def spread(self) -> float:
        """Standard deviation of a whitened row in every other direction.

        The first second moment tells it with noise. After a second release the constant column, whose second moment is
        known, tells by how much rows were shortened there, but for their law: the two are weighed by their errors.
        """
        moments = self.seen.moments
        others = max(self.features - (self.constant is not None), 1)
        told, noise = (moments.length - self.level**2) / others, moments.noise / others
        if not moments.clip or self.constant is None:
            return float(np.sqrt(max(told, noise, np.finfo(float).tiny)))
        guess = self._spread_by_constant()
        weight = noise**2 / (noise**2 + (RULE_ERROR * guess) ** 2)
        return float(np.sqrt(max(weight * guess + (1 - weight) * told, guess / 4)))

    def _spread_by_constant(self) -> float:
        """The variance at which the second release would have shortened the constant column by as much as it did."""
        from scipy.optimize import brentq

        moments = self.seen.moments
        normals, squares, chances = self.grid
        start = self.constant**2 / moments.last if self.constant else 0.0  # of the constant column, squared, before

        def shrink_square(log: float) -> Array:
            lengths = start + np.exp(log) * (normals**2 + squares)
            factors: Array = np.minimum(1.0, moments.clip**2 / lengths)
            return factors

        shown = 1 / self.level**2 - moments.lift / start

        def apart(log: float) -> float:
            return float(chances @ shrink_square(log)) - shown

        low, high = np.log(1e-4), np.log(1e4)
        root = (low if apart(low) <= 0 else high) if apart(low) <= 0 or apart(high) >= 0 else brentq(apart, low, high)
        return 1 / (float(chances @ (shrink_square(root) * normals**2)) + moments.lift / float(np.exp(root)))

    @cached_property
    def grid(self) -> tuple[Array, Array, Array]:
        """Points and their weights: normal numbers, squared lengths in the other directions, weights."""
        normals, chances = np.polynomial.hermite_e.hermegauss(NORMALS)
        chances = chances / chances.sum()
        beyond = self.features - (self.constant is not None) - 1
        if beyond <= 0:
            return normals, np.zeros_like(normals), chances
        squares = 2 * special.gammaincinv(beyond / 2, (np.arange(LENGTHS) + 0.5) / LENGTHS)
        squares *= beyond / squares.mean()
        grid = np.meshgrid(normals, squares, indexing="ij")
        return grid[0].ravel(), grid[1].ravel(), np.repeat(chances / LENGTHS, LENGTHS)

    @cached_property
    def lengths(self) -> Array:
        """Squared lengths of whitened rows at the points."""
        normals, squares, _ = self.grid
        return self.level**2 + self.spread**2 * (normals**2 + squares)

    @cached_property
    def shortened(self) -> Array:
        """How much rows are shortened at the points."""
        factors: Array = np.minimum(1.0, self.seen.clip / np.sqrt(np.maximum(self.lengths, np.finfo(float).tiny)))
        return factors

    def along(self, t: Array) -> tuple[Array, float, float]:
        """The direction of a model beyond the constant one, and its parts along both."""
        part = float(self.axis @ t)
        other = t - part * self.axis
        size = float(np.linalg.norm(other))
        if size == 0:
            other = np.eye(self.features)[0] - self.axis[0] * self.axis
            return other / float(np.linalg.norm(other)) if self.features > 1 else other, part, 0.0
        return other / size, part, size

    def scores(self, part: float, size: float) -> Array:
        """Scores at the points of a model with these parts."""
        return part * self.level + size * self.spread * self.grid[0]

    def mean(self, values: Array, direction: Array) -> Array:
        """E[values u] for values at the points of this direction."""
        normals, _, chances = self.grid
        weighted = values * chances
        across = self.spread * float(weighted @ normals) * direction
        mean: Array = float(weighted.sum()) * self.level * self.axis + across
        return mean

    def square(self, values: Array, direction: Array) -> Array:
        """E[values u u']."""
        normals, squares, chances = self.grid
        weighted, beyond = values * chances, self.features - (self.constant is not None) - 1
        rest = self.spread**2 * float(weighted @ squares) / beyond if beyond > 0 else 0.0
        basis = np.stack([self.axis, direction], axis=1)
        cross = self.level * self.spread * float(weighted @ normals)
        both = np.array(
            [
                [self.level**2 * weighted.sum() - rest, cross],
                [cross, self.spread**2 * float(weighted @ normals**2) - rest],
            ]
        )
        if self.constant is None:
            both[0, :] = both[:, 0] = 0.0
        matrix: Array = rest * np.eye(self.features) + basis @ both @ basis.T
        return matrix
