"""How long a model of two labels should be, and where its constant part: records counted by score and label.

Narrow slopes, steps that end early and noise give a model the wrong length, and noise its constant part. Both are two
numbers, which cost little to measure once the model is there. With o the score of the constant part and t what the
rows add to it,

    a record    is counted in one bin, by its label and by t
    released    the noisy counts (docs/privacy.md#counts-of-targets-and-slopes)
    model       o + b + s t, with the b and s that are expected of the counts, known before to be about 0 and 1

b and s are those of logistic regression of the labels on t, which is taken for its mean in a bin. Records of bins that
noise hides weigh less, by chance / (chance + noise), the variances of a bin: that is known the most exactly then, and
without noise all records weigh alike. No law of the scores is assumed, neither how large they are nor that they are
normal: those of texts are neither.

The records that are counted are those that were learnt from, and each has moved its own score towards its label, in
proportion to its slopes while the model grew to what it is: that is taken off. Slopes were narrow, so that records
which are learnt well by now have moved theirs nearly as far as others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from consenso.algorithms.averaging import scale_mixture
from consenso.arrays import Array, IntArray
from consenso.shards import Cohort

# Sizes of t at which bins end. Narrower ones have more noise together, wider ones hide how labels change inside them.
EDGES = np.array([0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
ENDS = np.concatenate([-EDGES[::-1], [0.0], EDGES])
BINS = len(ENDS) + 1
OUTER = np.concatenate([[2 * ENDS[0]], ENDS, [2 * ENDS[-1]]])
MIDDLES = (OUTER[1:] + OUTER[:-1]) / 2
# What is known of s and b before they are measured: 1 and 0, each with this standard deviation. On 22 tables and
# budgets (wide_tables and wide_unseen of benchmarks.utility, and words2000; epsilon 0.1 to 5) the best s were 1.08 +-
# 0.20 and the best b within 0.27; labels by chance ask for an s of 0. It matters where counts are hardly known: with 1
# instead words2000 lost 0.4 % at epsilon 0.1, and one fit in forty was 1.7 times as long as it should have been.
UNSURE = 0.3
# No constant part needed more than half of this; it is more where records have moved their own scores by less.
MOST_ADDED, FEW_MOVED = 2 * UNSURE, 0.1
# Of the model while it grew, at which slopes are looked at.
GROWN = (np.arange(8) + 0.5) / 8
LONGEST_FACTOR = 8.0
# Of Newton's method: turns, the longest change in one of them, and how exact the answer is.
TURNS, MOST_CHANGE, EXACT = 60, 0.5, 1e-6


def find_bins(f: Cohort, x: Array, origin: Array) -> IntArray:
    """The bins of records (rows,), by what a model adds to its constant part: those of negative labels come first."""
    places = np.searchsorted(ENDS, f.linear_predictor(x - origin), side="right")
    return np.where(f._targets > 0, BINS + places, places).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The model becomes that of scores o + added + factor * t."""

    factor: float
    added: float


def calibrate(
    counts: Array, noise: float, records: int, *, constant: float, own: float, width: float, is_free: bool
) -> Calibration:
    """From counts (2 * BINS,) whose noise has this standard deviation.

    constant: o. own: how far records have moved their own scores, the root of the mean square. width: of the slopes
    that they were moved by. is_free: whether b may be chosen.
    """
    noise = max(noise / records, np.finfo(float).tiny)
    parts = counts.reshape(2, BINS) / records
    likely = np.maximum(noise * scale_mixture.estimate(parts / noise), 0.0)
    likely /= max(1.0, float(likely.sum()))
    labels, means = np.array([[0.0], [1.0]]), _find_means(likely.sum(axis=0))
    scores = means - own * _spread_moves(likely, constant, means, width)
    told = np.stack([scores, np.ones_like(scores)])[: 1 + is_free]
    odds = expit(constant + means)
    chance = likely.sum(axis=0) * odds * (1 - odds) / records
    weights = chance / np.maximum(chance + noise**2 * (odds**2 + (1 - odds) ** 2), np.finfo(float).tiny)
    prior, sure = np.eye(2)[0, : len(told)], np.eye(len(told)) / UNSURE**2
    # Of few records, what is taken off each may be more than all of them tell.
    most, found = MOST_ADDED * max(1.0, FEW_MOVED / max(own, np.finfo(float).tiny)), prior
    for _ in range(TURNS):
        odds = expit(constant + np.tensordot(found, told, 1))
        pulls = weights * (odds - labels) * told
        slope = np.einsum("kij,ij->k", pulls, parts)
        bend = np.einsum("kij,lij,ij->kl", told, told, likely * weights * odds * (1 - odds))
        # By noise and by chance.
        spread = np.einsum("kij,lij,ij->kl", pulls, pulls, noise**2 + likely / records)
        spread += (EXACT * np.trace(spread) + np.finfo(float).tiny) * np.eye(len(told))
        # The slope has the law N(bend * d, spread) if found is off by d, which has that of N(found - prior, 1 / sure).
        tells = np.linalg.solve(spread, bend).T
        change = np.linalg.solve(tells @ bend + sure, tells @ slope + sure @ (found - prior))
        before, found = found, found - np.clip(change, -MOST_CHANGE, MOST_CHANGE)
        found[0] = np.clip(found[0], 0.0, LONGEST_FACTOR)
        found[1:] = np.clip(found[1:], -most, most)
        if np.max(np.abs(found - before)) < EXACT:
            break
    return Calibration(factor=float(found[0]), added=float(found[1]) if is_free else 0.0)


def _spread_moves(likely: Array, constant: float, means: Array, width: float) -> Array:
    """How far records of each label and bin moved their own scores, (2, BINS), over the root of the mean square."""
    odds = expit(constant + GROWN[:, None] * means)
    moves = np.stack([-np.minimum(odds, width).mean(axis=0), np.minimum(1 - odds, width).mean(axis=0)])
    size = float(np.sqrt(np.sum(likely * np.square(moves)) / max(float(likely.sum()), np.finfo(float).tiny)))
    return moves / max(size, np.finfo(float).tiny)


def _find_means(parts: Array) -> Array:
    """Of t in bins that hold these parts of the records, whose density is taken for straight between middles."""
    widths = np.diff(OUTER)
    density = parts / widths
    rises = np.gradient(density, MIDDLES) * widths**2 / 12
    # A density that falls to 0 inside a bin has its mean a sixth of the width beside the middle.
    most = density * widths / 6
    means: Array = MIDDLES + np.clip(rises, -most, most) / np.maximum(density, np.finfo(float).tiny)
    return means
