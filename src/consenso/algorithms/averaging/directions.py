"""Directions in which all columns move together, found within the budget (docs/privacy.md, "Directions").

    lengths:    l    = noisy sum of (<v_1, b>^2, ..., <v_k, b>^2, what is left of |b|^2)      (without v: of |b|^2)
    sketch:     whether rows have directions that are worth the passes (consenso.algorithms.averaging.sketch); if not,
                passes are gradients
    passes:     Y    = noisy sum of b b'V, b shortened to C;   V <- left singular vectors of Y / n
    lengths:    once more, along V and across
    a v_j is strong if its singular value stands out of the noise and its length of its share of what is left

A pass is a power iteration on the second moment of centred rows, of the cost of k products with the non-zeros; one
record moves it by C^2 at most, whatever k is. The largest singular value of a noise matrix of p rows and k columns is
sqrt(p) + sqrt(k) standard deviations, and a vector that was found at s of them lies by 1 / s beside the true one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consenso.algorithms.averaging.centring import (
    LONGEST_SHIFT,
    MOST_DIRECTIONS,
    SHORTEST_CLIP,
    TURNED,
    Centring,
    rounding,
)
from consenso.algorithms.preconditioning.whitening import ROUNDOFF
from consenso.arrays import Array, IntArray
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.public_facts import PublicFacts
from consenso.rows import sum_step
from consenso.shards import Cohort

# Shares of the squared budget: of the lengths each time, of all passes together.
LENGTHS_SHARE, RANGE_SHARE = 0.005, 0.06
PASSES = 3
# A direction is found if its singular value is so many times the largest that noise is expected to have.
FOUND = 1.2
# Strong directions have this part of what all others have of a row, together: their noise is then small and rows short.
STRONG_SHARE = 0.1
# Seed of the vectors that the first pass starts from, which are public.
START = 20_170


def least_worth(share: float) -> float:
    """The part of the squared lengths of rows that directions must have to be worth this share of the budget.

    Where they are found, rows have what is left of them and STRONG_SHARE of that. Their square, which the budget of a
    gradient is to be compared with, must become smaller than what is left of the budget.
    """
    return 1 - (1 - share) / (1 + STRONG_SHARE)


def find_least(noise: float, features: int, count: int) -> float:
    """The part of the squared lengths that a direction must have to be found, with this noise in a pass."""
    return FOUND * noise * (math.sqrt(features) + math.sqrt(count))


def pad(sums: Array, size: int) -> Array:
    """Vectors (parties, dim) with zeros behind them, (parties, size)."""
    padded = np.zeros((len(sums), size))
    padded[:, : sums.shape[1]] = sums
    return padded


def lengths_release(facts: PublicFacts, directions: int) -> Release:
    """Squared lengths along the directions and of what is left."""
    problem = facts.problem
    one = problem.row_bound**2 * (1 + 4 * TURNED)
    rounding = sum_rounding(problem.parties, one * problem.row_cap)
    return Release(
        name="lengths",
        size=directions + 1,
        at="sum",
        # Vectors without negative entries are not opposed.
        bounds=Bounds.of_contributions(record=one, party=one * facts.most, rounding=rounding, opposed=False),
        why="parts of a squared length add up to it (docs/privacy.md#directions)",
    )


def range_release(facts: PublicFacts, directions: int) -> Release:
    """A row times its products with the directions, in units of the squared clip, or a gradient in units of its own.

    All passes share one cost.
    """
    problem, n = facts.problem, facts.problem.row_cap
    grid = math.sqrt(problem.features * directions) * sum_step(1.0, n)
    product = math.sqrt(directions) * (problem.features + 8) * ROUNDOFF
    one = (1 + 2 * TURNED) * (1 + (1 + LONGEST_SHIFT) / SHORTEST_CLIP * (grid + 16 * n * ROUNDOFF + product))
    one = max(one, 1 + rounding(facts, directions))
    return Release(
        name="range",
        size=problem.features * max(directions, problem.outputs),
        at="sum",
        adaptive=True,
        parts=True,
        bounds=Bounds.of_contributions(
            record=one, party=one * facts.most, rounding=sum_rounding(problem.parties, one * n)
        ),
        why="a shortened row times products with orthonormal vectors, or times a slope (docs/privacy.md#directions)",
    )


def sum_lengths(f: Cohort, centring: Centring, directions: Array, most: int) -> Array:
    """Sum over each party's rows of their squared lengths along the directions and across, (parties, most + 1)."""
    step = sum_step(f.problem.row_bound**2, f.problem.row_cap)
    return f.add_up(_lengths, step, centring, directions, most, step)


def sum_range(f: Cohort, centring: Centring, directions: Array) -> Array:
    """Sum over each party's rows of row times products with the directions, (parties, features * directions)."""
    step = sum_step(f.problem.row_bound * centring.clip, f.problem.row_cap)
    return centring.center(f.add_up(_products, step, centring, directions, step))


def _lengths(f: Cohort, centring: Centring, directions: Array, most: int, step: float) -> IntArray:
    along = np.zeros((f.rows, most))
    if directions.size:
        along[:, : directions.shape[1]] = np.square(centring.products(f, directions))
    across = np.maximum(centring.squared_lengths(f) - along.sum(axis=1), 0.0)
    parts = np.column_stack([along, across]) * np.square(centring.factors(f))[:, None]
    parts[f.squared_norms == 0] = 0.0
    # Towards zero: no vector gets longer.
    return f.whole_sums(np.trunc(parts / step).astype(np.int64))


def _products(f: Cohort, centring: Centring, directions: Array, step: float) -> IntArray:
    return f.exact_sums(centring.products(f, directions) * np.square(centring.factors(f))[:, None], step)


def start_directions(features: int, count: int, free: int) -> Array:
    """Orthonormal vectors (features, count), 0 in the free column: all columns alike, and random ones."""
    vectors = np.random.default_rng(START).normal(size=(features, count))
    vectors[:, 0] = 1.0
    vectors[features - free :] = 0.0
    found: Array = np.linalg.qr(vectors)[0]
    return found


def most_directions(wanted: int, features: int, free: int) -> int:
    """How many directions there can be."""
    return min(wanted, MOST_DIRECTIONS, features - free)


@dataclass(frozen=True)
class Pass:
    """What one pass has told: vectors (features, k), which of them stand out, and how far they are turned by noise."""

    vectors: Array
    found: Array  # 1 or 0, (k,)
    astray: Array  # squared sine of the angle that noise has turned them by, (k,)

    @classmethod
    def read(cls, products: Array, noise: float, free: int) -> Pass:
        """From noisy products (features, k) with noise of this standard deviation."""
        features, count = products.shape
        products = np.array(products)
        products[features - free :] = 0.0
        vectors, sizes, _ = np.linalg.svd(products, full_matrices=False)
        found = (sizes > find_least(noise, features, count)) & (sizes > 0)
        astray = np.where(found, np.square(noise) * features / np.where(found, np.square(sizes), 1.0), 1.0)
        return cls(vectors=vectors, found=found.astype(np.float64), astray=astray)


def shrink(strengths: Array, across: float, found: Array) -> Array:
    """What strong directions are multiplied with, (k,): so much that they are a small part of a row; 1 for others."""
    share = across * STRONG_SHARE / max(float(found.sum()), 1.0)
    shrinks: Array = np.where(found > 0, np.sqrt(share / np.maximum(strengths, share)), 1.0)
    return shrinks
