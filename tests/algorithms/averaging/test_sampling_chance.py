"""Chance in the choice of the records: its size by the law of scores, and no more of it than columns show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from consenso import PrivateLogisticRegression
from consenso.algorithms.averaging.sampling_chance import MOST, SlopeLaw, find_chance_share


@pytest.mark.parametrize("width", [0.3, 0.6, 1.0])
@pytest.mark.parametrize(("constant", "size"), [(0.0, 1e-6), (-2.0, 0.5), (0.5, 3.0)])
def test_slopes_have_the_size_that_drawn_labels_give_them(constant: float, size: float, width: float) -> None:
    rng = np.random.default_rng(0)
    scores = constant + size * rng.normal(size=400_000)
    labels = rng.random(len(scores)) < expit(scores)

    def slopes(moved: float) -> np.ndarray:
        return np.clip(expit(scores + moved) - labels, -width, width)

    law = SlopeLaw.of_labels(constant, size, width)
    assert law.deviation == pytest.approx(np.sqrt(np.mean(slopes(0.0) ** 2)), rel=0.01)
    assert law.size == pytest.approx(np.abs(slopes(0.0)).mean(), rel=0.01)
    # Where all slopes are at their clip together, none is heard on one side and all are on the other.
    if size > 0.1 or width == 1.0:
        assert law.heard == pytest.approx((slopes(0.01).mean() - slopes(-0.01).mean()) / 0.02, rel=0.05, abs=0.005)


def test_chance_is_found_as_far_as_it_is_there() -> None:
    rng, noise = np.random.default_rng(0), np.full(5000, 2.0)
    chance = rng.uniform(0.5, 4.0, size=5000)
    telling = np.where(np.arange(5000) < 250, 10.0, 1.0)
    for share in (0.0, 0.3, 1.0):
        found = [
            find_chance_share(np.sqrt(noise + share * chance) * telling * rng.normal(size=5000), noise, chance)
            for _ in range(20)
        ]
        assert np.mean(found) == pytest.approx(min(share, MOST), abs=0.15)
    assert find_chance_share(telling, noise, np.zeros(5000)) == 0.0


@pytest.mark.slow
def test_a_larger_budget_gives_a_better_model_where_few_of_many_columns_tell() -> None:
    """Without noise chance is what is left, and it adds up from step to step in columns of which nothing is kept."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 1300))
    scores = X[:, :8] @ rng.normal(size=8)
    signs = np.where(rng.random(len(X)) < expit(3 * scores / scores.std()), 1, -1)
    losses = []
    for epsilon in (1.0, 3.0, 10.0):
        settings = {"epsilon": epsilon, "delta": 1e-5, "row_bound": 38.0, "classes": [-1, 1], "random_state": 0}
        model = PrivateLogisticRegression(**settings, adjacency="add-remove", records=2500)
        model.fit(X[:2500], signs[:2500])
        margins = signs[2500:] * model.decision_function(X[2500:])
        losses.append(float(np.logaddexp(0.0, -margins).mean()))
    assert losses[0] > losses[1] - 0.01 > losses[2] - 0.02
    assert losses[0] < 0.69
