"""The constant model, from noisy counts of the targets: where a fit starts, and what it falls back to.

    counts      records by class, or real targets by bins of equal width over their public range
    labels      the scores of the mean posterior shares of the classes (noise alone says "equal"); for a hinge, which
                has the larger class at its margin, how sure it is which that is
    numbers     with many records, centre and spread of the bins that stand out of the noise, at the finest width at
                which half of the records do; with few, for which bins are fewer, or where they do not, mean posterior
                centre and spread of a Gaussian or an exponential law, centres being even over the range and spreads
                over orders of magnitude before, as far as centre plus spread is within the bound, which holds for most
                targets: where noise hides everything, centre 0 and a wide spread, and that beforehand where it will

A record is counted in one bin: counts move by 1 when it is added or removed, by sqrt 2 when it is replaced
(docs/privacy.md#counts-of-targets-and-slopes). What follows from noisy counts is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from consenso.algorithms.preconditioning import shrinking
from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.privacy.release import Bounds, Release
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.rows import moment_step
from consenso.shards import Cohort

# Bins of real targets, a power of two; the coarsest that are still looked at; and how many there may be.
BINS, COARSEST = 64, 8
ALLOWED_BINS = (8, 16, 32, BINS)
# Of the squared budget, where there are enough records.
SHARE = 0.02
# Records of a bin that holds its part of them should be so many standard deviations of noise.
CLEAR_BIN = 2.0
# Where all records together are about so many standard deviations of the noise of a bin or fewer, targets are taken to
# lie around 0 before they are counted: a centre that noise made up is worse than none, if targets do. Chosen on four
# random tables of 51 to 90 records at epsilon 0.1 (docs/solvers-measured.md).
HIDDEN = 2.5
# Centres and spreads at which the posterior of a law of numbers is computed.
CENTRES, SPREADS = np.linspace(-1, 1, 81), np.geomspace(1 / BINS, 1, 13)
# A bin stands out when it has so many standard deviations of noise.
STANDS_OUT = 2.0
# Differences of shares that cost less log loss than this do not matter.
MATTERS = 0.01
# Points at which the posterior of a share is computed.
GRID = 400


class CountSettings(Protocol):
    """Settings of an algorithm that counts targets."""

    @property
    def target_bins(self) -> int: ...

    @property
    def counts_share(self) -> float: ...

    @property
    def constant(self) -> float: ...


def check_settings(given: CountSettings, *none: int) -> None:
    """Refuse settings that make no sense. none: numbers of bins that stand for no counts."""
    name = type(given).__name__
    if given.target_bins not in (*none, *ALLOWED_BINS):
        raise InputError(f"{name}(target_bins={given.target_bins}): real targets are counted in {ALLOWED_BINS} bins.")
    if not 0 < given.counts_share < 1:
        raise InputError(f"{name}(counts_share={given.counts_share}): a share of the budget lies in (0, 1).")
    if not np.isfinite(given.constant):
        raise InputError(f"{name}(constant={given.constant}): the value of a column is finite.")


@dataclass(frozen=True)
class ConstantModel:
    """What the targets say without the rows."""

    scores: Array  # (outputs,)
    spread: float  # of real targets around the score; 1 for labels
    odds: float = 0.0  # logarithm of those of the positive one of two labels
    lead: float = 0.0  # by which part of the records it was counted more often than the other one


def bins_of(problem: Problem, real: int = BINS) -> int:
    """How many bins targets are counted in; `real` of them where targets are real."""
    return real if problem.loss.targets == "real" else max(problem.outputs, 2)


def choose_bins(clear: float) -> int:
    """How many bins real targets should have, if all records together are so many standard deviations of noise."""
    return max((bins for bins in ALLOWED_BINS if bins * CLEAR_BIN <= clear), default=min(ALLOWED_BINS))


def count_release(facts: PublicFacts, name: str, bins: int) -> Release:
    """Counts, each record in one of the bins, times its weight: whole numbers, in which nothing is rounded."""
    most = facts.problem.weight_bound
    return Release(
        name=name,
        size=bins,
        at="sum",
        # Vectors of counts are not opposed.
        bounds=Bounds.of_contributions(record=most, party=most * facts.most, opposed=False),
        why="a record is counted in one bin (docs/privacy.md#counts-of-targets-and-slopes)",
    )


def count_rows(f: Cohort, bins: int, place: Callable[..., IntArray], *arguments: Any) -> Array:
    """How many rows of each party are in each bin, times their weights, (parties, bins).

    place(part, *arguments): the bins of the rows of a part, (rows,). A row of zeros is no row, as in every sum.
    """
    step = 1.0
    if f.problem.is_weighted:
        step = moment_step(math.sqrt(f.problem.weight_bound), f.problem.row_cap) ** 2
    return f.add_up(_count, step, bins, step, place, *arguments)


def count_targets(f: Cohort, real: int = BINS) -> Array:
    """Records by target, (parties, bins); real ones in so many bins."""
    bins = bins_of(f.problem, real)
    return count_rows(f, bins, _target_bins, bins)


def _count(f: Cohort, bins: int, step: float, place: Callable[..., IntArray], *arguments: Any) -> IntArray:
    parties, there = len(f.sizes), f.squared_norms > 0
    places = place(f, *arguments)
    if parties > 1:
        places = places + f.repeat_per_row(np.arange(parties, dtype=np.float64)).astype(np.int64) * bins
    places = places[there]
    if f.weights is None:
        return np.bincount(places, minlength=parties * bins).reshape(parties, bins) * round(1 / step)
    out = np.zeros(parties * bins, dtype=np.int64)
    # Towards zero: no weight grows.
    np.add.at(out, places, np.trunc(f.weights / step)[there].astype(np.int64))
    return out.reshape(parties, bins)


def _target_bins(f: Cohort, bins: int) -> IntArray:
    problem, targets = f.problem, f._targets
    if problem.loss.targets == "real":
        bound = float(problem.target_bound or 1.0)
        return np.clip(np.floor((targets / bound + 1) / 2 * bins), 0, bins - 1).astype(np.int64)
    return (targets > 0).astype(np.int64) if problem.loss.targets == "sign" else np.asarray(targets, np.int64)


def read_constant_model(problem: Problem, counts: Array, noise: float) -> ConstantModel:
    """The constant model of noisy counts whose noise has this standard deviation."""
    if problem.loss.targets == "real":
        return _read_numbers(problem, counts, noise)
    shares = estimate_shares(counts / problem.records, noise / problem.records)
    logs = np.log(shares)
    if problem.loss.targets == "class":
        return ConstantModel(logs - logs.mean(), 1.0)
    odds = float(logs[1] - logs[0])
    if not problem.loss.is_likelihood:
        # A hinge has the larger class as its constant model, at its margin: as likely as it is the larger one.
        lead = float(counts[1] - counts[0])
        return ConstantModel(np.array([math.erf(lead / max(2 * noise, 1e-6))]), 1.0, odds, lead / problem.records)
    return ConstantModel(np.array([odds]), 1.0, odds)


def estimate_shares(seen: Array, noise: float) -> Array:
    """Mean posterior shares of classes, from noisy ones; positive, with sum 1.

    Classes are often alike: shares differ not at all, or by any order of magnitude that matters (MATTERS in log loss,
    up to a single class). Then each is any share that fits, flat priors being what is left.
    """
    least, many = 1e-6, len(seen)
    if noise > least:
        apart = seen - seen.mean()
        variances = np.geomspace(2 * MATTERS / many**2, 1 / many, 64)
        kept = shrinking.average_kept(float(apart @ apart) / noise**2, many - 1, variances / noise**2)
        seen, noise = 1 / many + kept * apart, kept * noise
    if noise < least:
        shares = np.maximum(seen, least)
    else:
        points = (np.arange(GRID) + 0.5) / GRID
        points = points ** max(1.0, math.log(len(seen), 2))  # as fine near 0 as the shares of many classes need
        prior = (len(seen) - 2) * np.log1p(-points) + np.log(np.gradient(points))
        fit = prior - 0.5 * ((seen[:, None] - points) / noise) ** 2
        weights = np.exp(fit - fit.max(axis=1, keepdims=True))
        shares = weights @ points / weights.sum(axis=1)
    total: Array = shares / shares.sum()
    return total


def _read_numbers(problem: Problem, counts: Array, noise: float) -> ConstantModel:
    bound = float(problem.target_bound or 1.0)
    bins, level, released = len(counts), noise, counts
    while len(released) == BINS and bins >= COARSEST:
        clear = np.where(counts > STANDS_OUT * level, counts, 0.0)
        if clear.sum() >= problem.records / 2:
            middles = bound * ((2 * np.arange(bins) + 1) / bins - 1)
            weights = clear / clear.sum()
            centre = float(weights @ middles)
            within = (2 * bound / bins) ** 2 / 12
            spread = math.sqrt(float(weights @ (middles - centre) ** 2) + within)
            return ConstantModel(np.array([centre]), spread)
        counts, bins, level = counts.reshape(-1, 2).sum(axis=1), bins // 2, level * math.sqrt(2.0)
    centre, spread = fit_law(released, problem.records, noise)
    return ConstantModel(np.array([bound * centre]), bound * spread)


def fit_law(counts: Array, records: float, noise: float) -> tuple[float, float]:
    """Centre of numbers in [-1, 1] and their spread around it, from noisy counts of bins: posterior means.

    Where noise will hide the centre it is likely to be 0 beforehand, but the spread around it is that of any.
    """
    apart = counts - records * _laws(len(counts))
    fit = -0.5 * np.sum(apart**2, axis=-1) / noise**2
    fit[:, np.abs(CENTRES)[:, None] + SPREADS > 1.0] = -np.inf
    weights = np.exp(fit - fit.max())
    weights /= weights.sum()
    centres, spreads = weights.sum(axis=(0, 2)), weights.sum(axis=(0, 1))
    at_zero, middle = noise**4 / (noise**4 + (records / HIDDEN) ** 4), centres[len(CENTRES) // 2]
    # Of all that is possible the centre 0 is one of so many.
    likely = at_zero * middle * len(CENTRES)
    centre = float(centres @ CENTRES) * (1 - at_zero) / (1 - at_zero + likely)
    return centre, math.sqrt(float(centres @ (CENTRES - centre) ** 2 + spreads @ SPREADS**2))


@cache
def _laws(bins: int) -> Array:
    """Shares of bins by law (Gaussian, and exponential to either side), centre and spread."""
    edges = np.linspace(-1, 1, bins + 1)[1:-1]
    z = (edges - CENTRES[:, None, None]) / SPREADS[:, None]
    right, left = -np.expm1(-np.maximum(z + 1, 0.0)), np.exp(np.minimum(z - 1, 0.0))
    below = np.stack([ndtr(z), right, left])
    shares: Array = np.diff(below, axis=-1, prepend=0.0, append=1.0)
    return shares
