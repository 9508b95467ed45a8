"""A learned distinguisher, where no likelihood ratio can be computed: logistic regression on what is seen.

It is trained on runs of its own, which are not counted. The features are the model's coefficients and the distances to
the two worlds' mean models: the best test between two Gaussians is linear in the first, and the second catch worlds
that differ in spread.
"""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array

# The share of the runs that is used for training.
TRAINING = 0.25


def learn(zero: Array, one: Array) -> tuple[Array, Array]:
    """Scores of the runs that were not trained on, from what was seen in each run, (runs, numbers)."""
    from sklearn.linear_model import LogisticRegression

    cut0, cut1 = (max(10, int(TRAINING * len(world))) for world in (zero, one))
    known = np.concatenate([zero[:cut0], one[:cut1]])
    truth = np.concatenate([np.zeros(cut0), np.ones(cut1)])
    centres = zero[:cut0].mean(axis=0), one[:cut1].mean(axis=0)
    spread = np.maximum(known.std(axis=0), np.finfo(float).tiny)

    def features(seen: Array) -> Array:
        away = [np.linalg.norm((seen - centre) / spread, axis=1) for centre in centres]
        return np.column_stack([(seen - known.mean(axis=0)) / spread, *away])

    table = features(known)
    scale = np.maximum(table.std(axis=0), 1e-12)
    fitted = LogisticRegression(C=10.0, max_iter=300).fit(table / scale, truth)

    def scores(seen: Array) -> Array:
        out: Array = fitted.decision_function(features(seen) / scale)
        return out

    return scores(zero[cut0:]), scores(one[cut1:])
