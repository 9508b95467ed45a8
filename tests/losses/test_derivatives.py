"""Values, slopes and curvatures agree with each other, and stay finite far out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.losses.scalar_losses import SCALAR

from consenso.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    SmoothedHinge,
    Softmax,
    Squared,
)

LOSSES = [*SCALAR, Softmax(classes=2), Softmax(classes=5)]
RECORDS = 50


def corners(loss) -> list[float]:
    """Where the slope or the curvature jumps: margins for labels, residuals for real targets."""
    match loss:
        case Huber():
            return [-loss.threshold, loss.threshold]
        case Hinge():
            return [1.0]
        case SmoothedHinge():
            return [1.0 - loss.smoothing, 1.0]
        case Absolute():
            return [0.0]
        case EpsilonInsensitive():
            return [-loss.width, loss.width]
    return []


def draw(loss, seed):
    rng = np.random.default_rng(seed)
    shape = (RECORDS,) if loss.outputs == 1 else (RECORDS, loss.outputs)
    scores = 3 * rng.normal(size=shape)
    if loss.targets == "sign":
        targets = rng.choice([-1.0, 1.0], RECORDS)
        place = targets * scores
    elif loss.targets == "class":
        return scores, rng.integers(0, loss.outputs, RECORDS), rng.normal(size=shape)
    else:
        targets = rng.normal(size=RECORDS)
        place = scores - targets
    for corner in corners(loss):
        scores = np.where(np.abs(place - corner) < 1e-2, scores + 0.05, scores)
    return scores, targets, rng.normal(size=shape)


def total(products):
    return products if products.ndim == 1 else products.sum(axis=1)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(seed=st.integers(0, 2**32 - 1))
def test_slopes_are_differences_of_values(loss, seed):
    scores, targets, direction = draw(loss, seed)
    width = 1e-5 * direction
    difference = (loss.value(scores + width, targets) - loss.value(scores - width, targets)) / 2e-5
    np.testing.assert_allclose(total(loss.slope(scores, targets) * direction), difference, atol=2e-9, rtol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(seed=st.integers(0, 2**32 - 1))
def test_curvatures_are_differences_of_slopes(loss, seed):
    scores, targets, direction = draw(loss, seed)
    width = 1e-5 * direction
    difference = (loss.slope(scores + width, targets) - loss.slope(scores - width, targets)) / 2e-5
    product = loss.curvature_product(scores, targets, direction)
    np.testing.assert_allclose(product, difference, atol=2e-9, rtol=1e-8)
    if loss.outputs == 1:
        np.testing.assert_array_equal(product, loss.curvature(scores, targets) * direction)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_far_scores_give_finite_values_and_slopes(loss):
    scores, targets, _ = draw(loss, 5)
    far = 1e8 * np.sign(scores)
    assert np.all(np.isfinite(loss.value(far, targets)))
    assert np.all(np.isfinite(loss.slope(far, targets)))
    assert np.all(np.isfinite(loss.curvature_product(far, targets, scores)))
    assert np.all(loss.value(far, targets) >= 0)


def test_a_record_that_is_fitted_well_keeps_its_digits():
    np.testing.assert_allclose(Logistic().value(np.array([50.0]), np.array([1.0])), np.exp(-50.0), rtol=1e-14)
    scores = np.array([[50.0, 0.0, 0.0]])
    np.testing.assert_allclose(Softmax(classes=3).value(scores, np.array([0])), 2 * np.exp(-50.0), rtol=1e-14)
    slopes = Softmax(classes=3).slope(scores, np.array([0]))[0]
    np.testing.assert_allclose(slopes, np.exp(-50.0) * np.array([-2.0, 1.0, 1.0]), rtol=1e-14)


@pytest.mark.parametrize(
    ("loss", "score", "target", "value", "slope"),
    [
        (Squared(), 3.0, 1.0, 2.0, 2.0),
        (Huber(threshold=1.0), 1.5, 1.0, 0.125, 0.5),
        (Huber(threshold=1.0), -3.0, 1.0, 3.5, -1.0),
        (Hinge(), 0.25, 1.0, 0.75, -1.0),
        (Hinge(), 1.0, 1.0, 0.0, 0.0),
        (Hinge(), 0.25, -1.0, 1.25, 1.0),
        (SmoothedHinge(smoothing=0.5), 0.75, 1.0, 0.0625, -0.5),
        (SmoothedHinge(smoothing=0.5), -1.0, 1.0, 1.75, -1.0),
        (Absolute(), 0.0, 2.0, 2.0, -1.0),
        (Absolute(), 2.0, 2.0, 0.0, 0.0),
        (EpsilonInsensitive(width=0.5), 3.0, 2.0, 0.5, 1.0),
        (EpsilonInsensitive(width=0.5), 2.25, 2.0, 0.0, 0.0),
        (Logistic(), 0.0, 1.0, np.log(2.0), -0.5),
    ],
    ids=repr,
)
def test_values_by_hand(loss, score, target, value, slope):
    scores, targets = np.array([score]), np.array([target])
    np.testing.assert_allclose(loss.value(scores, targets), value, rtol=1e-15)
    np.testing.assert_allclose(loss.slope(scores, targets), slope, rtol=1e-15)
