"""The constant part of a wide model of few records: noise does not move it far, and what is there is kept."""

from __future__ import annotations

import numpy as np
import pytest

import consenso
from consenso.algorithms.averaging import constant_part
from consenso.losses import Logistic, Squared

RECORDS, COLUMNS = 120, 1400


def fit(kind: str, y, epsilon: float, seed: int, **own):
    X = np.random.default_rng(0).normal(size=(RECORDS, COLUMNS))
    model = getattr(consenso, kind)(
        epsilon=epsilon, row_bound=45.0, adjacency="add-remove", records=RECORDS, random_state=seed, **own
    )
    assert model.fit(X, y).solver_ == "wide"
    return model, X


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_few_records_of_many_classes_are_no_worse_than_equal_chances(epsilon: float) -> None:
    # Noise alone moved constant scores by a hundred: the loss was 50 to 250.
    y = np.arange(RECORDS) % 40
    losses = []
    for seed in range(4):
        model, X = fit("PrivateLogisticRegression", y, epsilon, seed, classes=list(range(40)))
        losses.append(-model.predict_log_proba(X)[np.arange(RECORDS), y].mean())
    assert np.mean(losses) < np.log(40) + 0.05


def test_few_records_of_two_labels_keep_near_the_constant_model() -> None:
    y = np.arange(RECORDS) % 2
    losses = []
    for seed in range(6):
        model, X = fit("PrivateLogisticRegression", y, 0.3, seed, classes=[0, 1])
        losses.append(-model.predict_log_proba(X)[np.arange(RECORDS), y].mean())
    assert np.mean(losses) < np.log(2) + 0.1


def test_few_numbers_are_predicted_within_their_bound() -> None:
    # The constant part was three to four times the bound.
    y = np.random.default_rng(1).uniform(-0.2, 0.2, RECORDS)
    errors = []
    for seed in range(4):
        model, X = fit("PrivateRidge", y, 0.1, seed, target_bound=1.0)
        errors.append(np.mean((model.predict(X) - y) ** 2))
    assert np.mean(errors) < 0.1


def test_scores_that_stand_out_are_kept_and_noise_is_not() -> None:
    rng = np.random.default_rng(2)
    noise = [constant_part.keep(rng.normal(size=40), 1.0) for _ in range(1000)]
    assert np.mean(np.array(noise) > 0) < 0.01
    assert constant_part.keep(10 * rng.normal(size=40), 1.0) > 0.95
    assert constant_part.keep(np.array([3.0, -1.0, -2.0]), 1e-4) == pytest.approx(1.0, abs=1e-4)


def test_steps_are_held_only_where_noise_is_loud() -> None:
    quiet = constant_part.hold(1.0, np.array([1e-4]), np.array([1e-3]), 0.2, Logistic())
    assert quiet[0] > 100, "longer than the inverse curvature"
    loud = constant_part.hold(1.0, np.array([10.0]), np.array([100.0]), 0.2, Logistic())
    assert loud[0] == pytest.approx(constant_part.LABELS / 100)
    # Of a loss that pulls back, noise leaves what is allowed: an autoregression, simulated.
    rng, bends, noise = np.random.default_rng(3), 1.0, 0.5
    rate = float(constant_part.hold(1.0, np.array([noise]), np.array([1e9]), bends, Squared())[0])
    x, seen = 0.0, []
    for _ in range(200_000):
        x -= rate * (constant_part.FLAT * bends * x + noise * rng.normal())
        seen.append(x)
    assert np.std(seen) == pytest.approx(constant_part.NUMBERS, rel=0.05)
