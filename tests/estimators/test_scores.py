"""Scores are scikit-learn's, though its metrics are imported only where they are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from consenso import PrivateLogisticRegression


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, Any, Any]:
    X = np.linspace(-1, 1, 80).reshape(-1, 2)
    y = np.where(X[:, 0] > 0.2, "yes", "no")
    return PrivateLogisticRegression(epsilon=float("inf")).fit(X, y), X, y


def test_a_score_is_the_accuracy_also_with_weights(fitted: tuple[Any, Any, Any]) -> None:
    model, X, y = fitted
    other = np.roll(y, 3)
    assert model.score(X, other) == accuracy_score(other, model.predict(X)) < 1
    weights = np.linspace(0, 1, len(y))
    assert model.score(X, other, weights) == accuracy_score(other, model.predict(X), sample_weight=weights)
    assert model.score(X, list(other)) == model.score(X, other.astype(object))


@pytest.mark.parametrize("bad", [lambda y: y[:-1], lambda y: np.arange(len(y)), lambda y: np.stack([y, y], axis=1)])
def test_labels_that_are_none_are_refused(fitted: tuple[Any, Any, Any], bad: Any) -> None:
    model, X, y = fitted
    with pytest.raises(ValueError, match=r"Mix|mix|multilabel|inconsistent|not supported"):
        model.score(X, bad(y))
