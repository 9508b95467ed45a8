"""A learned distinguisher, where no likelihood ratio can be computed: logistic regression on what is seen.

It is trained on runs of its own, which are not counted. The features are the model's coefficients and the distances to
the two worlds' mean models: the best test between two Gaussians is linear in the first, and the second catch worlds
that differ in spread.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from consenso.arrays import Array

# The share of the runs that is used for training.
TRAINING = 0.25
# With a hundred runs to learn from, weights without a ridge are mostly noise; with a thousand it hardly counts.
RIDGE, STEPS, LONGEST = 3.0, 50, 10.0


def learn(zero: Array, one: Array) -> tuple[Array, Array]:
    """Scores of the runs that were not trained on, from what was seen in each run, (runs, numbers)."""
    cut0, cut1 = (max(10, int(TRAINING * len(world))) for world in (zero, one))
    known = np.concatenate([zero[:cut0], one[:cut1]])
    centre, spread = known.mean(axis=0), known.std(axis=0)
    # A number that was the same in all known runs, such as a coefficient that is left out, has no scale of its own.
    spread = np.where(spread > 0, spread, 1.0)
    middles = zero[:cut0].mean(axis=0), one[:cut1].mean(axis=0)

    def features(seen: Array) -> Array:
        away = [np.linalg.norm((seen - middle) / spread, axis=1) for middle in middles]
        return np.column_stack([np.ones(len(seen)), (seen - centre) / spread, *away])

    weights = logistic(features(known), np.concatenate([np.zeros(cut0), np.ones(cut1)]))
    return features(zero[cut0:]) @ weights, features(one[cut1:]) @ weights


def logistic(features: Array, truth: Array) -> Array:
    """Weights of a logistic regression with a ridge, by Newton's method."""
    weights = np.zeros(features.shape[1])
    for _ in range(STEPS):
        chance = expit(features @ weights)
        slope = features.T @ (chance - truth) + RIDGE * weights
        bend = (features * (chance * (1.0 - chance))[:, None]).T @ features + RIDGE * np.eye(len(weights))
        move = np.linalg.solve(bend, slope)
        # Worlds that a line separates have no finite optimum; short moves stay where the scores still rank.
        length = float(np.linalg.norm(move))
        weights = weights - move * (LONGEST / length if length > LONGEST else 1.0)
        if length < 1e-8:
            break
    return weights
