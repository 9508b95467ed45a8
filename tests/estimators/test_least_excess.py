"""What no private fit can do better (docs/solvers.md#what-no-private-fit-can-promise): a fit that does has leaked."""

from __future__ import annotations

import math

import numpy as np
import pytest

import consenso

RECORDS, MORE, EPSILON, FITS = 40, 2, 0.5, 60


@pytest.mark.parametrize("name", ["PrivateLinearSVC", "PrivateLogisticRegression"])
def test_no_fit_tells_which_class_is_the_larger_better_than_its_budget_allows(name: str) -> None:
    """Two tables that differ in a few labels only, and by a lead of the one or the other class."""
    rows, lead, found = np.zeros((RECORDS, 1)), 2 * MORE / RECORDS, []
    for sign in (1, -1):
        labels = (np.arange(RECORDS) < RECORDS // 2 + sign * MORE).astype(int)
        for seed in range(FITS):
            model = getattr(consenso, name)(
                epsilon=EPSILON, delta=1e-9, row_bound=1.0, classes=[0, 1], random_state=seed, bounds="public"
            ).fit(rows, labels)
            score = float(model.decision_function(rows[:1])[0])
            found.append(_excess(name, sign * score, lead))
    least = 2 * lead / (1 + math.exp(2 * MORE * EPSILON))
    if name == "PrivateLogisticRegression":
        least *= lead / 2
    assert np.mean(found) > least - 3 * np.std(found) / math.sqrt(len(found))


def _excess(name: str, score: float, lead: float) -> float:
    """Of a score that is positive for the larger class, over the best constant one."""
    share = 0.5 + lead / 2
    if name == "PrivateLinearSVC":
        return share * max(0.0, 1 - score) + (1 - share) * max(0.0, 1 + score) - (1 - lead)
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    return share * math.log1p(math.exp(-score)) + (1 - share) * math.log1p(math.exp(score)) - entropy
