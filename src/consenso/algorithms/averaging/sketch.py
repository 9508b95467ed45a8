"""Whether there are directions worth looking for: the second moment of a sketch (docs/privacy.md, "Directions").

    z   = S' b, shortened to the typical length of b;   S: fixed random vectors (features, SIZE)
    K   = noisy mean of z z'

A direction that has the part s of the squared lengths of rows has about that part of K, whatever it is and however many
columns there are. Noise in K has the spectral norm of a matrix of SIZE columns, not of all of them: a thousandth of the
budget tells whether there is something to find, before a twentieth is spent on finding it.
"""

from __future__ import annotations

import math

import numpy as np

from consenso.algorithms.averaging.centring import Centring
from consenso.arrays import Array, IntArray
from consenso.metric import pack_symmetric, unpack_symmetric
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.public_facts import PublicFacts
from consenso.rows import sum_step
from consenso.shards import Cohort

# Of the squared budget. Where public facts let directions be looked for, noise alone is below what would be looked for.
SKETCH_SHARE = 0.003
# A vector of SIZE numbers is as long as a row up to a factor of 1 +- sqrt(2 / SIZE); more cost time.
SIZE = 16
# Seed of the vectors of the sketch, which are public.
SEED = 20_171
# Rows that are long because they lie along a direction are shortened, which takes half of a strong one.
SHORTENED = 0.5
# What is computed is shorter than its bound by this, far more than rounding makes it longer.
MARGIN = 2.0**-40


def sketch_release(facts: PublicFacts) -> Release:
    """The second moment of the sketch, in units of the squared clip."""
    problem = facts.problem
    return Release(
        name="sketch",
        size=SIZE * (SIZE + 1) // 2,
        at="sum",
        adaptive=True,
        # Positive semidefinite matrices are not opposed.
        bounds=Bounds.of_contributions(
            record=1.0, party=1.0 * facts.most, rounding=sum_rounding(problem.parties, problem.row_cap), opposed=False
        ),
        why="a shortened vector contributes z z' of Frobenius norm |z|^2 (docs/privacy.md#directions)",
    )


def draw_sketch(features: int, free: int) -> Array:
    """Vectors (features, SIZE), 0 in the free column; at right angles where there are columns enough."""
    vectors = np.zeros((features, SIZE))
    drawn = np.random.default_rng(SEED).normal(size=(features - free, SIZE)) / math.sqrt(SIZE)
    if len(drawn) >= SIZE:
        drawn = np.linalg.qr(drawn)[0] * math.sqrt(len(drawn) / SIZE)
    vectors[: features - free] = drawn
    return vectors


def sum_sketch(f: Cohort, centring: Centring, vectors: Array) -> Array:
    """Sum over each party's rows of z z', packed so that its length is the Frobenius norm, (parties, size)."""
    step = sum_step(centring.clip**2, f.problem.row_cap)
    return f.add_up(_products, step, centring, vectors, step)


def _products(f: Cohort, centring: Centring, vectors: Array, step: float) -> IntArray:
    z = centring.products(f, vectors)
    lengths = np.sqrt(np.einsum("ij,ij->i", z, z))
    # Matrices whose entries were rounded may be opposed by 24 steps: what is shorter by 16 is no further apart.
    most = centring.clip * (1 - MARGIN - SIZE * step / centring.clip**2)
    z = z * np.minimum(1.0, most / np.maximum(lengths, np.finfo(float).tiny))[:, None]
    # Towards zero: no vector gets longer.
    return f.whole_sums(np.trunc(pack_symmetric(z[:, :, None] * z[:, None, :]) / step).astype(np.int64))


def measure_strength(packed: Array, noise: float, found: float) -> float:
    """The part of the squared lengths of rows that lies along directions that stand out.

    packed: the mean of z z' over the squared clip, whose entries have noise of this standard deviation. found: the part
    that a direction must have to be found later.
    """
    values = np.linalg.eigvalsh(unpack_symmetric(packed, SIZE))
    strengths = values - np.median(values)
    edge = noise * math.sqrt(2 * SIZE)  # the spectral norm of a symmetric matrix of such noise
    return float(strengths[strengths > max(edge, found)].sum()) / SHORTENED
